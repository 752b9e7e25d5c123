package tablecore_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// listedRows runs a listing and returns its rows.
func listedRows(t *testing.T, l *tablecore.Listing) []map[string]any {
	t.Helper()
	var rows []map[string]any
	err := l.Run(t.Context(), func(batch arrow.RecordBatch) error {
		if !batch.Schema().Equal(l.Schema()) {
			t.Errorf("a batch has schema %s", batch.Schema())
		}
		for i, f := range l.Schema().Fields() {
			if !f.Nullable && batch.Column(i).NullN() > 0 {
				t.Errorf("column %s has nulls", f.Name)
			}
		}
		var text strings.Builder
		if err := array.RecordToJSON(batch, &text); err != nil {
			return err
		}
		for line := range strings.Lines(text.String()) {
			row := map[string]any{}
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				return err
			}
			rows = append(rows, row)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// schemaText is a schema in the words of the protocol's documents.
func schemaText(s *arrow.Schema) string {
	var parts []string
	for _, f := range s.Fields() {
		text := f.Name + " " + tabledef.TypeName(f.Type)
		if f.Nullable {
			text += "?"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func TestListingSchemas(t *testing.T) {
	f := newFixture(t)
	must := func(l *tablecore.Listing, err error) *tablecore.Listing {
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	plan, err := f.table.PlanScan(t.Context(), tablecore.ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const index = "timestamp[us, tz=UTC]"
	for _, c := range []struct {
		l    *tablecore.Listing
		want string
	}{
		{must(f.table.History(t.Context(), "")), "version int64, committed_at " + index + ", operation string, request_id string?, rows_added int64, rows_removed int64, " +
			"files_added int64, files_removed int64, bytes_added int64, bytes_removed int64, expired bool, report string?"},
		{must(f.table.Files(t.Context(), tablecore.At{})), "path string, rows int64, row_groups int32, bytes int64, index_min " + index + "?, index_max " + index +
			"?, layout string, sorted bool, added_version int64?"},
		{must(f.table.Entities(t.Context(), tablecore.At{})), "origin string, intervals uint64?, start " + index + "?, end " + index + "?"},
		{f.house.Tables(), "table string, version int64?, committed_at " + index + "?, format_version string?, rows int64?, files int64?, bytes int64?"},
		{plan.Explain(), "path string, kept bool, reason string, row_groups int32, row_groups_kept int32"},
	} {
		if got := schemaText(c.l.Schema()); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
		if len(c.l.SchemaID()) != 16 {
			t.Errorf("schema id %q", c.l.SchemaID())
		}
	}
}

func TestListings(t *testing.T) {
	f := newFixture(t)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "0"), rowAt("EWR", 1, "1"), rowAt("JFK", 5, "10")))
	f.mustAppend(rowsOf(rowAt("EWR", 7, "5"), rowAt("EWR", 8, "6")))
	history, err := f.table.History(t.Context(), f.table.ID())
	if err != nil {
		t.Fatal(err)
	}
	rows := listedRows(t, history)
	if len(rows) != 3 || rows[0]["version"] != 2.0 || rows[0]["rows_added"] != 2.0 || rows[0]["rows_removed"] != 0.0 || rows[0]["files_added"] != 1.0 ||
		rows[0]["expired"] != false || rows[1]["operation"] != "append" || rows[2]["operation"] != "create_table" || rows[1]["bytes_added"].(float64) <= 0 {
		t.Errorf("history is %v", rows)
	}
	var report tablecore.AppendReport
	if text, ok := rows[0]["report"].(string); !ok || json.Unmarshal([]byte(text), &report) != nil || report.Rows != 2 {
		t.Errorf("the report is %v", rows[0]["report"])
	}
	files, err := f.table.Files(t.Context(), tablecore.At{})
	if err != nil {
		t.Fatal(err)
	}
	rows = listedRows(t, files)
	paths := []string{}
	for _, row := range rows {
		paths = append(paths, row["path"].(string))
	}
	if len(rows) != 2 || !slices.IsSorted(paths) || rows[0]["row_groups"] != 1.0 || rows[0]["sorted"] != true || rows[0]["index_min"] == nil {
		t.Errorf("files are %v", rows)
	}
	layouts := fmt.Sprint(rows[0]["layout"], rows[1]["layout"])
	if layouts != "singlemixed" && layouts != "mixedsingle" {
		t.Errorf("layouts are %s", layouts)
	}
	entities, err := f.table.Entities(t.Context(), tablecore.At{})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(listedRows(t, entities))
	if want := "[map[end:1970-01-01T09:00:00Z intervals:4 origin:EWR start:1970-01-01T00:00:00Z] map[end:1970-01-01T06:00:00Z intervals:1 origin:JFK start:1970-01-01T05:00:00Z]]"; got != want {
		t.Errorf("entities are %s", got)
	}
	older, err := f.table.Entities(t.Context(), tablecore.At{Version: ptr(int64(0))})
	if err != nil || older.Version() != 0 || len(listedRows(t, older)) != 0 {
		t.Errorf("entities of version 0: %v", err)
	}
	tables := listedRows(t, f.house.Tables())
	if len(tables) != 1 || tables[0]["table"] != "default.weather" || tables[0]["rows"] != 5.0 || tables[0]["version"] != 2.0 {
		t.Errorf("tables are %v", tables)
	}
	if _, err := f.table.History(t.Context(), "another"); tableerr.TokenOf(err) != tableerr.TokenTableNotFound {
		t.Errorf("history of another table: %v", err)
	}
	if _, err := f.table.Files(t.Context(), tablecore.At{Version: ptr(int64(9))}); tableerr.TokenOf(err) != tableerr.TokenVersionNotFound {
		t.Errorf("files of a version to come: %v", err)
	}
}

func TestListingsEndWithYield(t *testing.T) {
	f := newFixture(t)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "0")))
	l, err := f.table.Files(t.Context(), tablecore.At{})
	if err != nil {
		t.Fatal(err)
	}
	stop := fmt.Errorf("stop")
	if err := l.Run(t.Context(), func(arrow.RecordBatch) error { return stop }); err != stop {
		t.Errorf("got %v", err)
	}
}

// The last interval of the domain has no end that could be told.
func TestEntitiesAtTheEndOfTheDomain(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	house := tabletest.Warehouse(t, memstore.New(), mem)
	schema := arrow.NewSchema([]arrow.Field{{Name: "u", Type: arrow.PrimitiveTypes.Uint64}}, nil)
	name := tabledef.Name{Namespace: "default", Table: "u"}
	if _, err := house.CreateTable(t.Context(), tablecore.CreateOptions{Name: name, IndexColumn: "u", IndexGranularity: "10", Schema: schema}); err != nil {
		t.Fatal(err)
	}
	table, err := house.Table(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	batch := tabletest.Batch(t, mem, schema, fmt.Sprintf(`[{"u":3},{"u":%d}]`, uint64(math.MaxUint64)))
	defer batch.Release()
	if _, err := table.Append(t.Context(), tabletest.NewReader(schema, batch), tablecore.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	l, err := table.Entities(t.Context(), tablecore.At{})
	if err != nil {
		t.Fatal(err)
	}
	rows := listedRows(t, l)
	if len(rows) != 1 || rows[0]["intervals"] != 2.0 || rows[0]["start"] != 0.0 || rows[0]["end"] != nil {
		t.Errorf("entities are %v", rows)
	}
}

func TestExplain(t *testing.T) {
	f := newFixture(t)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "0"), rowAt("JFK", 1, "10")))
	f.mustAppend(rowsOf(rowAt("EWR", 100, "50"), rowAt("JFK", 101, "60")))
	f.mustAppend(rowsOf(rowAt("LGA", 50, "20")))
	for _, c := range []struct {
		name string
		o    tablecore.ScanOptions
		want string
	}{
		{"all", tablecore.ScanOptions{}, "kept kept kept"},
		{"range", tablecore.ScanOptions{Start: json.RawMessage(`"1970-01-02T00:00:00Z"`), End: json.RawMessage(`"1970-01-04T00:00:00Z"`)}, "kept range range"},
		{"entity", tablecore.ScanOptions{Entities: []tablecore.EntityFilter{{"origin": json.RawMessage(`"LGA"`)}}}, "entity entity kept"},
		{"filter", tablecore.ScanOptions{Filter: []tablecore.Condition{{Column: "temp", Op: ">", Value: json.RawMessage("30")}}}, "filter filter kept"},
		{"none", tablecore.ScanOptions{Entities: []tablecore.EntityFilter{}}, "entity entity entity"},
	} {
		plan, err := f.table.PlanScan(t.Context(), c.o)
		if err != nil {
			t.Fatal(err)
		}
		var reasons []string
		for _, row := range listedRows(t, plan.Explain()) {
			reasons = append(reasons, row["reason"].(string))
			if row["kept"] != (row["reason"] == "kept") || row["row_groups"] != 1.0 || (row["row_groups_kept"] == 1.0) != (row["reason"] == "kept") {
				t.Errorf("%s: %v", c.name, row)
			}
		}
		slices.Sort(reasons) // paths are random
		if got := strings.Join(reasons, " "); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
