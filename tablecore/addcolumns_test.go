package tablecore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// columnsOf is a schema of columns that may be added.
func columnsOf(fields ...arrow.Field) *arrow.Schema { return arrow.NewSchema(fields, nil) }

func nullableOf(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

// quality is the column that most tests add to the weather table.
var quality = columnsOf(nullableOf("quality", arrow.PrimitiveTypes.Int8))

// appendAs stores JSON rows that have the columns of a schema.
func (f *fixture) appendAs(schema *arrow.Schema, rows string) (*tablecore.AppendReport, error) {
	f.t.Helper()
	b := tabletest.Batch(f.t, f.mem, schema, rows)
	defer b.Release()
	return f.table.Append(f.t.Context(), tabletest.NewReader(schema, b), tablecore.AppendOptions{})
}

func TestAddColumns(t *testing.T) {
	f := newFixture(t)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "1")))
	before, err := f.table.PlanScan(t.Context(), tablecore.ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	note := arrow.Field{Name: "a.b", Type: arrow.BinaryTypes.String, Nullable: true, Metadata: arrow.NewMetadata([]string{"unit"}, []string{"K"})}
	r, err := f.table.AddColumns(t.Context(), tablecore.AddColumnsOptions{Schema: columnsOf(append(quality.Fields(), note)...), ExpectedVersion: ptr(int64(1))})
	if err != nil || r.StartingVersion != 1 || r.CommittedVersion != 2 || !slices.Equal(r.Columns, []string{"quality", "a.b"}) {
		t.Fatalf("got %+v, %v", r, err)
	}
	d, err := f.table.Describe(t.Context(), tablecore.At{})
	if err != nil || d.Version != 2 || d.Rows != 1 || d.Files != 1 || len(d.Columns) != 5 || d.Columns[3] != (tablecore.Column{Name: "quality", Type: "int8", Nullable: true}) {
		t.Fatalf("described %+v, %v", d, err)
	}
	if fields, _ := d.Schema.FieldsByName("a.b"); len(fields) != 1 || !fields[0].Metadata.Equal(note.Metadata) {
		t.Errorf("the schema is %s", d.Schema)
	}
	after, err := f.table.PlanScan(t.Context(), tablecore.ScanOptions{})
	if err != nil || after.SchemaID() == before.SchemaID() {
		t.Errorf("schema ids %s, %s, %v", before.SchemaID(), after.SchemaID(), err)
	}
	all := arrow.NewSchema(append(weather.Fields(), nullableOf("quality", arrow.PrimitiveTypes.Int8), nullableOf("a.b", arrow.BinaryTypes.String)), nil)
	if _, err := f.appendAs(all, `[{"origin":"EWR","time_hour":3600000000,"temp":2,"quality":7,"a.b":"x"}]`); err != nil {
		t.Fatal(err)
	}
	want := []string{`{"a.b":null,"origin":"EWR","quality":null,"temp":1,"time_hour":"1970-01-01T00:00:00Z"}`,
		`{"a.b":"x","origin":"EWR","quality":7,"temp":2,"time_hour":"1970-01-01T01:00:00Z"}`}
	if got, _ := f.scan(tablecore.ScanOptions{}); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	// The version before has the columns of its time.
	if got, _ := f.scan(tablecore.ScanOptions{Version: ptr(int64(1))}); !slices.Equal(got, []string{jsonRow("EWR", 0, "1")}) {
		t.Errorf("version 1 holds %q", got)
	}
	if _, err := f.table.PlanScan(t.Context(), tablecore.ScanOptions{Version: ptr(int64(1)), Columns: []string{"quality"}}); tableerr.TokenOf(err) != tableerr.TokenInvalid {
		t.Errorf("a column that version 1 lacks: %v", err)
	}
}

// TestAppendsOmitColumns makes sure that an append may leave out every nullable
// payload column once columns were added, and none before.
func TestAppendsOmitColumns(t *testing.T) {
	f := newFixture(t)
	without := arrow.NewSchema(weather.Fields()[:2], nil)
	rows := func(hour int) string { return fmt.Sprintf(`[{"origin":"EWR","time_hour":%d}]`, int64(hour)*3600e6) }
	if _, err := f.appendAs(without, rows(0)); tableerr.TokenOf(err) != tableerr.TokenSchemaMismatch {
		t.Fatalf("before: %v", err)
	}
	if _, err := f.table.AddColumns(t.Context(), tablecore.AddColumnsOptions{Schema: quality}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.appendAs(without, rows(1)); err != nil {
		t.Fatalf("without temp and quality: %v", err)
	}
	if _, err := f.appendAs(weather, rowsOf(rowAt("EWR", 2, "2"))); err != nil {
		t.Fatalf("without quality: %v", err)
	}
	for i, name := range []string{"origin", "time_hour"} {
		other := 1 - i
		key := arrow.NewSchema(weather.Fields()[other:other+1], nil)
		_, err := f.appendAs(key, []string{`[{"time_hour":0}]`, `[{"origin":"EWR"}]`}[i])
		if tableerr.TokenOf(err) != tableerr.TokenSchemaMismatch || tabletest.DetailOf(err) != "column "+name {
			t.Errorf("without %s: %v", name, err)
		}
	}
	want := []string{`{"origin":"EWR","quality":null,"temp":null,"time_hour":"1970-01-01T01:00:00Z"}`, `{"origin":"EWR","quality":null,"temp":2,"time_hour":"1970-01-01T02:00:00Z"}`}
	if got, _ := f.scan(tablecore.ScanOptions{}); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestAddColumnsRefusals has a stale expected_version beside each invalid
// request: the request is told first.
func TestAddColumnsRefusals(t *testing.T) {
	f := newFixture(t)
	long := arrow.PrimitiveTypes.Int64
	metadata := arrow.NewMetadata([]string{"k"}, []string{"v"})
	for name, schema := range map[string]*arrow.Schema{
		"none":        columnsOf(),
		"metadata":    arrow.NewSchema(quality.Fields(), &metadata),
		"there":       columnsOf(nullableOf("Temp", long)),
		"key":         columnsOf(nullableOf("origin", long)),
		"insertion":   columnsOf(nullableOf("_INGEST_TS", long)),
		"not null":    columnsOf(arrow.Field{Name: "c", Type: long}),
		"unsupported": columnsOf(nullableOf("c", arrow.FixedWidthTypes.DayTimeInterval)),
	} {
		_, err := f.table.AddColumns(t.Context(), tablecore.AddColumnsOptions{Schema: schema, ExpectedVersion: ptr(int64(7))})
		if tableerr.TokenOf(err) != tableerr.TokenInvalid || !strings.Contains(fmt.Sprint(fieldsOf(err)), "default.weather") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := f.table.AddColumns(t.Context(), tablecore.AddColumnsOptions{Schema: quality, ExpectedVersion: ptr(int64(7))})
	if tableerr.TokenOf(err) != tableerr.TokenVersionConflict || tabletest.DetailOf(err) != "expected 7 found 0" {
		t.Errorf("a stale version: %v", err)
	}
	if _, err := f.table.AddColumns(t.Context(), tablecore.AddColumnsOptions{Schema: quality, TableID: "another"}); tableerr.TokenOf(err) != tableerr.TokenTableNotFound {
		t.Errorf("another table: %v", err)
	}
	if _, err := f.house.CreateTable(t.Context(), tablecore.CreateOptions{Name: typesName, IndexColumn: "k", IndexType: "int64", IndexGranularity: "1"}); err != nil {
		t.Fatal(err)
	}
	bare, err := f.house.Table(t.Context(), typesName)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bare.AddColumns(t.Context(), tablecore.AddColumnsOptions{Schema: quality}); tableerr.TokenOf(err) != tableerr.TokenInvalid {
		t.Errorf("a table without a schema: %v", err)
	}
}

// fieldsOf returns the fields of an error.
func fieldsOf(err error) []tableerr.Field {
	e, ok := err.(tableerr.Error)
	if !ok {
		return nil
	}
	return e.Fields()
}

// TestAddedColumnsPrune makes sure that files from before a column count as
// holding nothing but nulls in it.
func TestAddedColumnsPrune(t *testing.T) {
	f := newFixture(t)
	f.mustAppend(rowsOf(rowAt("EWR", 0, "1"), rowAt("EWR", 1, "2")))
	if _, err := f.table.AddColumns(t.Context(), tablecore.AddColumnsOptions{Schema: quality}); err != nil {
		t.Fatal(err)
	}
	all := arrow.NewSchema(append(weather.Fields(), quality.Fields()...), nil)
	if _, err := f.appendAs(all, `[{"origin":"EWR","time_hour":7200000000,"quality":1},{"origin":"EWR","time_hour":10800000000}]`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ op, value, want string }{
		{"=", "1", "02"}, {"!=", "2", "02"}, {"<", "9", "02"}, {"in", "[0,1,2]", "02"}, {"is not null", "", "02"},
		{"is null", "", "00 01 03"}, {"=", "100000", ""}, {">=", "-100000.5", "02"},
	} {
		o := tablecore.ScanOptions{Filter: []tablecore.Condition{{Column: "quality", Op: c.op}}, Columns: []string{"time_hour"}}
		if c.value != "" {
			o.Filter[0].Value = json.RawMessage(c.value)
		}
		rows, stats := f.scan(o)
		full, _ := f.scan(o.Unpruned())
		var hours []string
		for _, row := range rows {
			hours = append(hours, row[len(`{"time_hour":"1970-01-01T`):][:2])
		}
		if strings.Join(hours, " ") != c.want || !slices.Equal(rows, full) {
			t.Errorf("%s %s: got %q, unpruned %q", c.op, c.value, rows, full)
		}
		if c.op != "is null" && stats.RowGroups > 1 {
			t.Errorf("%s %s: %d row groups are read", c.op, c.value, stats.RowGroups)
		}
	}
}

// TestFiltersOnAddedColumns compares filters with the naive evaluation on tables
// that have gained columns between the files.
func TestFiltersOnAddedColumns(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 8))
		const keys, files = 3, 4
		fields := slices.Clone(mixedSchema.Fields())
		payload := fields[keys:]
		r.Shuffle(len(payload), func(i, k int) { payload[i], payload[k] = payload[k], payload[i] })
		known := keys + r.IntN(4)
		table := createMixed(t, mem, columnsOf(fields[:known]...))
		var rows []mixedRow
		for file := range files {
			rows = appendMixed(t, r, mem, table, columnsOf(fields[:known]...), file, files, 30, rows)
			if file == files-1 {
				break
			}
			next := len(fields)
			if file < files-2 {
				next = known + 1 + r.IntN(len(fields)-known-1)
			}
			if known == len(fields) {
				continue
			}
			if _, err := table.AddColumns(t.Context(), tablecore.AddColumnsOptions{Schema: columnsOf(fields[known:next]...)}); err != nil {
				t.Fatal(err)
			}
			known = next
		}
		for range 100 {
			checkFilter(t, r, table, rows)
			if t.Failed() {
				return
			}
		}
	}
}

// addColumns adds columns to a table of random rows.
func (f *typesTable) addColumns(fields ...arrow.Field) {
	f.t.Helper()
	if _, err := f.table.AddColumns(f.t.Context(), tablecore.AddColumnsOptions{Schema: columnsOf(fields...)}); err != nil {
		f.t.Fatal(err)
	}
	md := f.schema.Metadata()
	f.schema = arrow.NewSchema(append(slices.Clone(f.schema.Fields()), fields...), &md)
	for key := range f.rows {
		for _, field := range fields {
			f.rows[key] += "\n" + field.Name + "=null"
		}
	}
}

// appendWithout stores random rows in a stream that leaves columns out.
func (f *typesTable) appendWithout(n int, omitted ...string) {
	f.t.Helper()
	full := f.batch(n)
	defer full.Release()
	var sent, all []arrow.Array
	var fields []arrow.Field
	for i, field := range f.schema.Fields() {
		if slices.Contains(omitted, field.Name) {
			null := array.MakeArrayOfNull(f.mem, field.Type, n)
			defer null.Release()
			all = append(all, null)
			continue
		}
		all, sent, fields = append(all, full.Column(i)), append(sent, full.Column(i)), append(fields, field)
	}
	stored := array.NewRecordBatch(f.schema, all, int64(n))
	defer stored.Release()
	for i := range n {
		f.rows[tabletest.ValueText(stored.Column(0), i)] = rowText(stored, i)
	}
	schema := columnsOf(fields...)
	batch := array.NewRecordBatch(schema, sent, int64(n))
	defer batch.Release()
	if _, err := f.table.Append(f.t.Context(), tabletest.NewReader(schema, batch), tablecore.AppendOptions{RequestID: fmt.Sprint("r", f.next)}); err != nil {
		f.t.Fatal(err)
	}
}

// someNullable picks columns that an append may leave out.
func (f *typesTable) someNullable() (names []string) {
	for _, field := range f.schema.Fields()[2:] {
		if field.Nullable && f.rng.IntN(3) == 0 {
			names = append(names, field.Name)
		}
	}
	return names
}

// checkProjection reads one column in every order and compares it with what was
// appended.
func (f *typesTable) checkProjection(name string) {
	f.t.Helper()
	for _, o := range []tablecore.ScanOptions{{}, {Order: "unordered"}, {NewestFirst: true}} {
		o.Profile = "exact"
		for _, columns := range [][]string{{name}, {name, "k"}} {
			o.Columns = columns
			plan, err := f.table.PlanScan(f.t.Context(), o)
			if err != nil {
				f.t.Fatal(err)
			}
			seen := 0
			_, err = tabletest.EachBatch(f.t.Context(), plan, func(batch arrow.RecordBatch) error {
				seen += int(batch.NumRows())
				if len(columns) == 1 {
					return nil
				}
				for i := range int(batch.NumRows()) {
					want := f.rows[tabletest.ValueText(batch.Column(1), i)] + "\n"
					if got := "\n" + name + "=" + tabletest.ValueText(batch.Column(0), i) + "\n"; !strings.Contains(want, got) {
						f.t.Fatalf("%+v gives %q of\n%s", o, got, want)
					}
				}
				return nil
			})
			if err != nil || seen != len(f.rows) {
				f.t.Fatalf("%+v gives %d rows of %d, %v", o, seen, len(f.rows), err)
			}
		}
	}
}

// TestAddedTypesComeBack adds columns of every type to a table with rows.
func TestAddedTypesComeBack(t *testing.T) {
	f := newTypesTable(t, 1, false, nullableOf("first", arrow.PrimitiveTypes.Int32))
	f.append(40, 2)
	var added []arrow.Field
	for _, field := range typeCases() {
		if field.Nullable {
			added = append(added, field)
		}
	}
	f.addColumns(added[:len(added)/2]...)
	f.check("exact", f.exact) // nothing but nulls
	f.append(25)
	f.addColumns(added[len(added)/2:]...)
	f.append(10, 10)
	f.appendWithout(20, f.someNullable()...)
	f.check("exact", f.exact)
	f.check("compat", f.plain)
	for _, field := range added {
		f.checkProjection(field.Name)
	}
}

// TestRandomTypesAreAdded takes tables of random nested columns through appends
// and added columns.
func TestRandomTypesAreAdded(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 9))
			field := func(i int) arrow.Field {
				return arrow.Field{Name: fmt.Sprint("c", i), Type: tabletest.RandomType(rng, 4), Nullable: true}
			}
			f := newTypesTable(t, seed, rng.IntN(2) == 0, field(0), arrow.Field{Name: "always", Type: tabletest.RandomType(rng, 2)})
			f.append(1 + rng.IntN(60))
			for i := range 1 + rng.IntN(3) {
				f.addColumns(field(1 + i))
				if rng.IntN(3) > 0 {
					f.append(1 + rng.IntN(60))
				}
				if rng.IntN(2) == 0 {
					f.appendWithout(1+rng.IntN(60), f.someNullable()...)
				}
			}
			f.check("exact", f.exact)
			f.check("compat", f.plain)
			f.checkProjection(f.schema.Field(f.schema.NumFields() - 1).Name)
		})
	}
}

// TestColumnUndoneMeanwhile has a rollback take an added column away while an
// append is under way. Without the column the stream fits, sent again; with it,
// it does not.
func TestColumnUndoneMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name   string
		schema *arrow.Schema
		token  tableerr.Token
	}{
		{"not sent", weather, tableerr.TokenVersionConflict},
		{"sent", columnsOf(append(weather.Fields(), quality.Fields()...)...), tableerr.TokenSchemaMismatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.mustAppend(rowsOf(rowAt("EWR", 0, "0")))
			if _, err := f.table.AddColumns(t.Context(), tablecore.AddColumnsOptions{Schema: quality}); err != nil {
				t.Fatal(err)
			}
			b := tabletest.Batch(t, f.mem, c.schema, rowsOf(rowAt("EWR", 1, "1")))
			defer b.Release()
			_, err := f.table.Append(t.Context(), during{tabletest.NewReader(c.schema, b), func() { f.rollback(1) }}, tablecore.AppendOptions{})
			if tableerr.TokenOf(err) != c.token {
				t.Fatalf("got %v", err)
			}
			var conflict *tableerr.VersionConflict
			if errors.As(err, &conflict) && (conflict.Expected != 2 || conflict.Found != 3) {
				t.Errorf("got %+v", conflict)
			}
			f.wantRows(nil, jsonRow("EWR", 0, "0"))
		})
	}
}
