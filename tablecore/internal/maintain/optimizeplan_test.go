package maintain

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

const sitesSchema = `{"type":"struct","fields":[{"name":"site","type":"string","nullable":false,"metadata":{}},{"name":"k","type":"long","nullable":false,"metadata":{}}]}`

// sized is a file of a plan: its range of the index, its kilobytes, its rows, and
// what is odd about it.
type sized struct {
	min, max, size, rows int64
	odd                  string // "single a", "cut", "apart", "unsorted", "foreign", together
}

// planned is the version of a table with files named a, b, c …
func planned(t *testing.T, granularity string, files ...sized) *snapshot.Snapshot {
	t.Helper()
	c := &deltalog.Commit{Protocol: deltalog.ContrailProtocol(false), Metadata: &deltalog.Metadata{ID: "p", Provider: "parquet", SchemaString: sitesSchema,
		Configuration: map[string]string{"contrail.format-version": "0.3.0", "contrail.index-column": "k", "contrail.index-type": "int64",
			"contrail.entity-columns": `["site"]`, "contrail.index-granularity": granularity, "contrail.target-file-bytes": "100000"}}}
	for i, f := range files {
		tags := map[string]string{tabledef.TagSorted: "true", tabledef.TagIndexMin: fmt.Sprint(f.min), tabledef.TagIndexMax: fmt.Sprint(f.max)}
		if _, site, single := strings.Cut(f.odd, "single "); single {
			tags[tabledef.TagLayout], tags[tabledef.TagEntity] = tabledef.LayoutSingle, fmt.Sprintf(`{"site":%q}`, site[:1])
		}
		if strings.Contains(f.odd, "cut") {
			tags[tabledef.TagTarget] = "100000"
		}
		if strings.Contains(f.odd, "apart") {
			tags[tabledef.TagTarget] = "0"
		}
		if strings.Contains(f.odd, "unsorted") {
			tags[tabledef.TagSorted] = "false"
		}
		if f.odd == "foreign" {
			tags = nil
		}
		c.Adds = append(c.Adds, &deltalog.Add{Path: string(rune('a' + i)), Size: f.size * 1000, DataChange: true, Tags: tags, Stats: fmt.Sprintf(`{"numRecords":%d}`, f.rows)})
	}
	return versions(t, c)[0]
}

// groupsOf names the files of each group; one whose files are not small
// afterwards ends in "!".
func groupsOf(o *Optimize) []string {
	var all []string
	for _, g := range o.groups {
		text := ""
		for _, f := range g.files {
			text += f.Path
		}
		if g.settled {
			text += "!"
		}
		all = append(all, text)
	}
	return all
}

func TestPlanOptimize(t *testing.T) {
	const large = targetRows * 3
	for _, c := range []struct {
		name     string
		byEntity bool
		files    []sized
		want     string
	}{
		{"nothing", false, nil, ""},
		{"one small file", false, []sized{{0, 9, 1, 10, ""}}, ""},
		{"small neighbours", false, []sized{{0, 9, 1, 10, ""}, {20, 29, 1, 10, ""}, {10, 19, 1, 10, ""}}, "abc"},
		{"small ones apart on purpose", false, []sized{{0, 9, 1, 10, "apart"}, {10, 19, 1, 10, "apart"}}, "ab"},
		{"small ones around a good one", false, []sized{{0, 9, 1, 10, ""}, {10, 19, 50, 10, ""}, {20, 29, 1, 10, ""}}, ""},
		{"small files fill one", false, []sized{{0, 9, 24, 10, ""}, {10, 19, 24, 10, ""}, {20, 29, 24, 10, ""}, {30, 39, 24, 10, ""}, {40, 49, 24, 10, ""}, {50, 59, 24, 10, ""}}, "abcd! ef"},
		{"few bytes, many rows", false, []sized{{0, 9, 1, targetRows, ""}, {10, 19, 1, targetRows, ""}}, ""},
		{"rows fill one", false, []sized{{0, 9, 1, targetRows / 3, ""}, {10, 19, 1, targetRows / 3, ""}, {20, 29, 1, targetRows / 3, ""}, {30, 39, 1, targetRows / 3, ""}}, "abc!"},
		{"overlap", false, []sized{{0, 19, 80, 10, ""}, {10, 29, 80, 10, ""}, {30, 39, 80, 10, ""}}, "ab!"},
		{"a chain", false, []sized{{0, 19, 30, 10, ""}, {10, 29, 30, 10, ""}, {29, 39, 30, 10, ""}}, "abc!"},
		{"a late file takes its neighbour along", false, []sized{{0, 9, 80, 10, "cut"}, {5, 5, 1, 1, ""}, {10, 19, 1, 1, ""}}, "abc!"},
		{"unsorted", false, []sized{{0, 9, 50, 10, "unsorted"}, {10, 19, 50, 10, ""}}, "a!"},
		{"of other software", false, []sized{{0, 0, 50, 10, "foreign"}, {10, 19, 50, 10, ""}}, "ab!"},
		{"too large", false, []sized{{0, 9, 300, 10, ""}, {10, 19, 300, 10, "cut"}, {20, 29, 1, large, ""}}, "a! c!"},
		{"cannot be cut", false, []sized{{0, 4, 300, 10, "single a"}}, ""},
		{"cut from one interval", false, []sized{{0, 3, 300, 10, "cut"}, {1, 4, 300, 10, "cut"}}, ""},
		{"in one interval", false, []sized{{0, 3, 30, 10, "cut"}, {1, 4, 30, 10, ""}}, "ab!"},
		{"entities apart", false, []sized{{0, 90, 80, 10, "single a"}, {0, 90, 80, 10, "single b"}}, ""},
		{"small entities", false, []sized{{0, 90, 1, 10, "single a"}, {0, 90, 1, 10, "single b"}}, "ab"},
		{"an entity overlaps itself", false, []sized{{0, 90, 80, 10, "single a"}, {50, 90, 80, 10, "single a"}}, "ab!"},

		{"entities apart", true, []sized{{0, 90, 1, 10, "single a"}, {0, 90, 1, 10, "single b"}}, ""},
		{"mixed", true, []sized{{0, 90, 80, 10, ""}, {0, 9, 80, 10, "single b"}, {95, 99, 80, 10, "single b"}, {100, 109, 1, 10, "single c"}}, "abcd"},
		{"each entity's own", true, []sized{{0, 9, 1, 10, "single a"}, {10, 19, 1, 10, "single b"}, {20, 29, 1, 10, "single a"}}, "ac"},
	} {
		t.Run(fmt.Sprint(c.name, " ", c.byEntity), func(t *testing.T) {
			s := planned(t, "5", c.files...)
			o := PlanOptimize(s, OptimizeConfig{ByEntity: c.byEntity})
			if got := strings.Join(groupsOf(o), " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if o.Empty() != (c.want == "") || len(o.groups) != len(strings.Fields(c.want)) || o.Base() != s {
				t.Errorf("%d groups", len(o.groups))
			}
		})
	}
}

// TestOptimizeCommits: a commit takes the groups whose files are all there, and
// changes no rows.
func TestOptimizeCommits(t *testing.T) {
	base := planned(t, "5", sized{0, 9, 30, 10, ""}, sized{5, 14, 80, 10, ""}, sized{20, 29, 30, 10, ""}, sized{25, 34, 80, 10, ""})
	o := PlanOptimize(base, OptimizeConfig{})
	if got := groupsOf(o); !slices.Equal(got, []string{"ab!", "cd!"}) {
		t.Fatalf("got %v", got)
	}
	if p := o.Planned(); p != (Counts{FilesIn: 4, FilesOut: 4, BytesIn: 220_000, BytesOut: 220_000, Rows: 40}) {
		t.Errorf("planned %+v", p)
	}
	after := func(removes ...string) *snapshot.Snapshot {
		c := &deltalog.Commit{Version: 1}
		for _, path := range removes {
			c.Removes = append(c.Removes, &deltalog.Remove{Path: path, DataChange: true})
		}
		s, err := base.Apply(c)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	one := after("c")
	if err := o.Revalidate(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	c := o.Commit(one, nil)
	if len(c.Removes) != 2 || c.Removes[0].Path != "a" || c.Removes[0].DataChange || *c.Removes[0].Size != 30_000 || o.Counts(one).FilesIn != 2 {
		t.Errorf("got %+v", c)
	}
	if err := o.Revalidate(t.Context(), after("a", "d")); err != ErrNothingLeft {
		t.Errorf("got %v", err)
	}
	other := planned(t, "10", sized{0, 9, 30, 10, ""})
	if err := o.Revalidate(t.Context(), other); tableerr.TokenOf(err) != tableerr.TokenVersionConflict {
		t.Errorf("other intervals: %v", err)
	}
	gone := planned(t, "5", sized{0, 9, 30, 10, ""})
	gone.Def.ID = "another"
	if err := o.Revalidate(t.Context(), gone); tableerr.TokenOf(err) != tableerr.TokenTableNotFound {
		t.Errorf("another table: %v", err)
	}
}
