package tablecore_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

var plainName = tabledef.Name{Namespace: "default", Table: "plain"}

// plainTable makes a table as another Delta writer would: two files, one of
// them without statistics.
func plainTable(t *testing.T, partitions string) *tablecore.Table {
	t.Helper()
	store := memstore.New()
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "v", Type: arrow.PrimitiveTypes.Float64, Nullable: true}}, nil)
	sizes := make([]int, 2)
	for i := range sizes {
		data := parquetOf(t, schema, fmt.Sprintf(`[{"id":%d,"v":1.5},{"id":%d},{"id":null,"v":3}]`, i*10+2, i*10+1))
		if err := store.Put(t.Context(), fmt.Sprintf("default/plain/part-%d.parquet", i), data); err != nil {
			t.Fatal(err)
		}
		sizes[i] = len(data)
	}
	fields := `{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}},{\"name\":\"v\",\"type\":\"double\",\"nullable\":true,\"metadata\":{}}]}`
	log := strings.Join([]string{
		`{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}`,
		`{"metaData":{"id":"p","format":{"provider":"parquet","options":{}},"schemaString":"` + fields + `","partitionColumns":[` + partitions + `],"configuration":{}}}`,
		fmt.Sprintf(`{"add":{"path":"part-0.parquet","partitionValues":{},"size":%d,"modificationTime":0,"dataChange":true}}`, sizes[0]),
		fmt.Sprintf(`{"add":{"path":"part-1.parquet","partitionValues":{},"size":%d,"modificationTime":0,"dataChange":true,"stats":"{\"numRecords\":3,\"minValues\":{\"id\":11,\"v\":1.5},\"maxValues\":{\"id\":12,\"v\":3.0},\"nullCount\":{\"id\":1,\"v\":1}}"}}`, sizes[1]),
		`{"commitInfo":{"timestamp":1,"operation":"WRITE"}}`,
	}, "\n")
	if err := store.Put(t.Context(), "default/plain/_delta_log/00000000000000000000.json", []byte(log)); err != nil {
		t.Fatal(err)
	}
	return openPlain(t, store)
}

func openPlain(t *testing.T, store objstore.Store) *tablecore.Table {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	table, err := tabletest.Warehouse(t, store, mem).Table(t.Context(), plainName)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestScanOfAPlainDeltaTable(t *testing.T) {
	table := plainTable(t, "")
	scan := func(o tablecore.ScanOptions) string {
		rows, _, err := tabletest.Scan(t.Context(), table, o)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(rows, "\n")
	}
	if got := strings.Count(scan(tablecore.ScanOptions{}), "\n") + 1; got != 6 {
		t.Errorf("%d rows", got)
	}
	where := func(column, op, value string) tablecore.ScanOptions {
		return tablecore.ScanOptions{Columns: []string{"id"}, Filter: []tablecore.Condition{{Column: column, Op: op, Value: json.RawMessage(value)}}}
	}
	if got := scan(where("id", ">", "10")); got != `{"id":12}`+"\n"+`{"id":11}` {
		t.Errorf("got %s", got)
	}
	// Another writer's maximum may leave a NaN out.
	plan, err := table.PlanScan(t.Context(), where("v", "=", `"NaN"`))
	if err != nil {
		t.Fatal(err)
	}
	if rows := listedRows(t, plan.Explain()); rows[1]["path"] != "part-1.parquet" {
		t.Errorf("explained as %v", rows)
	}
	if got := scan(tablecore.ScanOptions{Limit: ptr(int64(4)), Version: ptr(int64(0))}); strings.Count(got, "\n") != 3 {
		t.Errorf("limited to %s", got)
	}
	for field, o := range map[string]tablecore.ScanOptions{
		"entities": {Entities: []tablecore.EntityFilter{}}, "start": {Start: json.RawMessage("1")}, "end": {End: json.RawMessage("1")},
		"newest_first": {NewestFirst: true},
	} {
		_, err := table.PlanScan(t.Context(), o)
		invalidAt(t, err, field)
	}
	files, err := table.Files(t.Context(), tablecore.At{})
	if err != nil {
		t.Fatal(err)
	}
	if rows := listedRows(t, files); len(rows) != 2 || rows[0]["rows"] != 3.0 || rows[0]["index_min"] != nil || rows[0]["sorted"] != false {
		t.Errorf("files are %v", rows)
	}
	history, err := table.History(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if rows := listedRows(t, history); len(rows) != 1 || rows[0]["operation"] != "WRITE" || rows[0]["rows_added"] != 3.0 || rows[0]["report"] != nil {
		t.Errorf("history is %v", rows)
	}
	if _, err := table.Entities(t.Context(), tablecore.At{}); tableerr.TokenOf(err) != tableerr.TokenFormatUnwritable {
		t.Errorf("entities of a plain table: %v", err)
	}
	_, err = plainTable(t, `"id"`).PlanScan(t.Context(), tablecore.ScanOptions{})
	if tableerr.TokenOf(err) != tableerr.TokenUnsupported {
		t.Errorf("a partitioned table: %v", err)
	}
}
