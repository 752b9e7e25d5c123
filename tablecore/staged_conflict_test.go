package tablecore_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// TestStagedConflicts has another process commit right before the commit of
// staged rows is put.
func TestStagedConflicts(t *testing.T) {
	// The table has EWR 0 in version 1, and EWR 1 and 2 are staged.
	mine := []string{jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "1"), jsonRow("EWR", 2, "2")}
	appends := func(row string) func(*stageFixture, *tablecore.Table, []string) error {
		return func(f *stageFixture, table *tablecore.Table, _ []string) error {
			b := tabletest.Batch(f.t, f.mem, weather, rowsOf(row))
			defer b.Release()
			_, err := table.Append(f.t.Context(), tabletest.NewReader(weather, b), tablecore.AppendOptions{})
			return err
		}
	}
	commits := func(id string, which func([]string) []string) func(*stageFixture, *tablecore.Table, []string) error {
		return func(f *stageFixture, table *tablecore.Table, tokens []string) error {
			_, err := table.CommitStaged(f.t.Context(), tablecore.CommitStagedOptions{RequestID: id, Staged: which(tokens)})
			return err
		}
	}
	rollsBack := func(f *stageFixture, table *tablecore.Table, _ []string) error {
		_, err := table.Rollback(f.t.Context(), tablecore.RollbackOptions{Version: 0, ExpectedVersion: 1})
		return err
	}
	addsColumn := func(f *stageFixture, table *tablecore.Table, _ []string) error {
		_, err := table.AddColumns(f.t.Context(), tablecore.AddColumnsOptions{Schema: arrow.NewSchema([]arrow.Field{{Name: "quality", Type: arrow.PrimitiveTypes.Int8, Nullable: true}}, nil)})
		return err
	}
	setsTeam := func(f *stageFixture, table *tablecore.Table, _ []string) error {
		_, err := table.SetProperties(f.t.Context(), tablecore.SetPropertiesOptions{Properties: map[string]*string{"team": ptr("ops")}})
		return err
	}
	all := func(tokens []string) []string { return tokens }
	for what, c := range map[string]struct {
		overwrite bool
		expected  *int64
		rival     func(*stageFixture, *tablecore.Table, []string) error
		want      tableerr.Token
		field     string
		replayed  bool
		rows      []string // nil where not compared
	}{
		"another append":                    {rival: appends(rowAt("JFK", 5, "5")), rows: append(slices.Clone(mine), jsonRow("JFK", 5, "5"))},
		"an append with the version pinned": {rival: appends(rowAt("JFK", 5, "5")), expected: ptr(int64(1)), want: tableerr.TokenVersionConflict},
		"an append of the same interval":    {rival: appends(rowAt("EWR", 2, "9")), want: tableerr.TokenIntervalOverlap, rows: []string{mine[0], jsonRow("EWR", 2, "9")}},
		"set_properties":                    {rival: setsTeam, rows: mine},
		"add_columns":                       {rival: addsColumn},
		"rollback":                          {rival: rollsBack, rows: mine[1:]},
		"the same job":                      {rival: commits("job", all), replayed: true, rows: mine},
		"the same tokens for another job":   {rival: commits("other", all), want: tableerr.TokenInvalid, field: "staged[0]", rows: mine},
		"one of the tokens":                 {rival: commits("other", func(t []string) []string { return t[1:] }), want: tableerr.TokenInvalid, field: "staged[1]", rows: []string{mine[0], mine[2]}},
		"overwrite, another append":         {overwrite: true, rival: appends(rowAt("JFK", 5, "5")), rows: append(slices.Clone(mine), jsonRow("JFK", 5, "5"))},
		"overwrite, the same interval":      {overwrite: true, rival: appends(rowAt("EWR", 2, "9")), rows: mine},
		"overwrite, rollback":               {overwrite: true, rival: rollsBack, want: tableerr.TokenVersionConflict, rows: []string{}},
		"overwrite, the same job":           {overwrite: true, rival: commits("job", all), replayed: true, rows: mine},
		"overwrite, the tokens elsewhere":   {overwrite: true, rival: commits("other", all), want: tableerr.TokenInvalid, field: "staged[0]", rows: mine},
	} {
		t.Run(what, func(t *testing.T) {
			f := newStageFixture(t, func(o *tablecore.CreateOptions) {
				if c.overwrite {
					o.Uniqueness = "overwrite"
				}
			})
			f.mustAppend(rowsOf(rowAt("EWR", 0, "0")))
			tokens := []string{f.stage(rowAt("EWR", 1, "1")), f.stage(rowAt("EWR", 2, "2"))}
			fault := faultstore.Wrap(sharedStore{f.store}, faultstore.Plan{})
			w, err := tablecore.Open(t.Context(), tablecore.Options{Store: sharedStore{fault}, Allocator: f.mem, Clock: f.clock.Now, Random: tabletest.Random(5)})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}()
			rival := openWeather(f.t, f.open(9))
			met := false
			fault.Arm(faultstore.Plan{
				Match: func(op objstore.Op, key string) bool {
					return op == objstore.OpPutAllIfAbsent && strings.Contains(key, "_delta_log/")
				},
				Before: func(objstore.Op, string) {
					met = true
					if err := c.rival(f, rival, tokens); err != nil {
						t.Errorf("the rival got %v", err)
					}
				},
			})
			r, err := openWeather(f.t, w).CommitStaged(t.Context(), tablecore.CommitStagedOptions{RequestID: "job", Staged: tokens, ExpectedVersion: c.expected})
			if tableerr.TokenOf(err) != c.want || c.field != "" && fieldOf(err, "field") != c.field || !met {
				t.Fatalf("got %+v, %v", r, err)
			}
			if err == nil && r.Replayed != c.replayed {
				t.Errorf("got %+v", r)
			}
			f.table = openWeather(f.t, f.open(11))
			if c.rows != nil {
				if got, _ := f.scan(tablecore.ScanOptions{}); !slices.Equal(got, c.rows) {
					t.Errorf("got %v, want %v", got, c.rows)
				}
			}
			f.nothingClaimed()
		})
	}
}
