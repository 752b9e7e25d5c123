package maintain

import (
	"fmt"
	"strings"
	"testing"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// timed is the version of a table over time, in microseconds, with files named a,
// b, c … of one row from min to max.
func timed(t *testing.T, configuration map[string]string, ranges ...[2]int64) *snapshot.Snapshot {
	t.Helper()
	const schema = `{"type":"struct","fields":[{"name":"k","type":"timestamp","nullable":false,"metadata":{}}]}`
	c := &deltalog.Commit{Protocol: deltalog.ContrailProtocol(false), Metadata: &deltalog.Metadata{ID: "p", Provider: "parquet", SchemaString: schema,
		Configuration: map[string]string{"contrail.format-version": "0.3.0", "contrail.index-column": "k", "contrail.index-type": "timestamp", "contrail.index-granularity": "1us"}}}
	for key, value := range configuration {
		c.Metadata.Configuration[key] = value
	}
	for i, r := range ranges {
		tags := map[string]string{tabledef.TagIndexMin: fmt.Sprint(r[0]), tabledef.TagIndexMax: fmt.Sprint(r[1])}
		if r[0] > r[1] {
			tags = nil // of another writer
		}
		c.Adds = append(c.Adds, &deltalog.Add{Path: string(rune('a' + i)), Size: 10, DataChange: true, Tags: tags, Stats: `{"numRecords":1}`})
	}
	return versions(t, c)[0]
}

func TestPlanRetention(t *testing.T) {
	files := [][2]int64{{0, 999}, {0, 1000}, {500, 1999}, {-50, -1}, {1, 0}, {2000, 6000}}
	for _, c := range []struct {
		name          string
		configuration map[string]string
		want          string
	}{
		{"none", nil, ""},
		{"exactly as old is kept", map[string]string{"contrail.retention": "5ms"}, "ad"},
		{"a little more", map[string]string{"contrail.retention": "4999us"}, "abd"},
		{"parts of a tick", map[string]string{"contrail.retention": "4999999ns"}, "ad"},
		{"all but the newest", map[string]string{"contrail.retention": "1us"}, "abcd"},
		{"longer than there is", map[string]string{"contrail.retention": "4294967295w"}, ""},
		{"appends only", map[string]string{"contrail.retention": "1us", "delta.appendOnly": "true"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := timed(t, c.configuration, files...)
			r := PlanRetention(s)
			var got strings.Builder
			for _, remove := range r.Commit(nil).Removes {
				if got.WriteString(remove.Path); !remove.DataChange {
					t.Error("a row goes without a change of data")
				}
			}
			if got.String() != c.want || r.Empty() != (c.want == "") || r.Base() != s {
				t.Errorf("got %q, want %q", got.String(), c.want)
			}
			if d := r.Dropped(s); d.Files != len(c.want) || d.Rows != int64(len(c.want)) || d.Bytes != int64(10*len(c.want)) {
				t.Errorf("got %+v", d)
			}
		})
	}
	if r := PlanRetention(planned(t, "5", sized{0, 9, 1, 1, ""}, sized{100, 109, 1, 1, ""})); !r.Empty() {
		t.Error("a table of integers drops rows")
	}
}

// TestRetentionIsPlannedAnew: what is dropped follows from the version that the
// commit follows.
func TestRetentionIsPlannedAnew(t *testing.T) {
	keep := map[string]string{"contrail.retention": "5ms"}
	base := timed(t, keep, [2]int64{0, 10}, [2]int64{100, 10000})
	r := PlanRetention(base)
	more := timed(t, keep, [2]int64{0, 10}, [2]int64{100, 10000}, [2]int64{20, 4000})
	if err := r.Revalidate(t.Context(), more); err != nil || len(r.Commit(nil).Removes) != 2 {
		t.Errorf("%v, %+v", err, r.Commit(nil).Removes)
	}
	if err := r.Revalidate(t.Context(), timed(t, keep, [2]int64{100, 10000})); err != ErrNothingLeft {
		t.Errorf("got %v", err)
	}
	gone := timed(t, keep)
	gone.Def.ID = "another"
	if err := r.Revalidate(t.Context(), gone); tableerr.TokenOf(err) != tableerr.TokenTableNotFound {
		t.Errorf("another table: %v", err)
	}
	newer := timed(t, keep)
	newer.Def.Format.Minor = 99
	if err := r.Revalidate(t.Context(), newer); tableerr.TokenOf(err) != tableerr.TokenFormatUnwritable {
		t.Errorf("a newer format: %v", err)
	}
}
