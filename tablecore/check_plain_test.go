package tablecore_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// TestCheckGolden: no table that Spark wrote has an error, but for the log of
// those that were made to have one.
func TestCheckGolden(t *testing.T) {
	for _, name := range goldenNames(t) {
		t.Run(name, func(t *testing.T) {
			g := goldenExpectation(t, name)
			w := tabletest.Warehouse(t, goldenStore(t, name), memory.DefaultAllocator)
			var lines []string
			report, err := w.Check(t.Context(), plainName, tablecore.CheckOptions{Findings: func(found []tablecore.CheckFinding) error {
				for _, f := range found {
					lines = append(lines, findingLine(f))
				}
				return nil
			}})
			switch {
			case err != nil:
				if g.Refused == nil {
					t.Errorf("refused with %v", err)
				}
			case g.Refused == nil && !report.OK:
				t.Errorf("found\n%s", strings.Join(lines, "\n"))
			}
		})
	}
}

// TestCheckPlain: what applies to a plain Delta table is checked; it cannot be
// repaired.
func TestCheckPlain(t *testing.T) {
	store := memstore.New()
	table := plainTable(t, "")
	copyStore(t, store, table)
	w := tabletest.Warehouse(t, store, memory.DefaultAllocator)
	if lines, report := checked(t, w, plainName, false); len(lines) > 0 || report.FilesChecked != 2 {
		t.Errorf("found %q, %+v", lines, report)
	}
	if _, err := w.Check(t.Context(), plainName, tablecore.CheckOptions{Repair: true}); tableerr.TokenOf(err) != tableerr.TokenFormatUnwritable {
		t.Errorf("got %v", err)
	}
	key := "default/plain/_delta_log/00000000000000000000.json"
	log, err := store.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	for old, test := range map[string]struct{ fresh, want string }{
		`\"id\":12`:                     {`\"id\":11`, "error bad_statistics part-1.parquet column id: the statistics in the log: the maximum is 11, there is 12"},
		`\"numRecords\":3`:              {`\"numRecords\":4`, "error bad_statistics part-1.parquet: it has 3 rows, the log says 4"},
		`\"nullCount\":{\"id\":1`:       {`\"nullCount\":{\"id\":0`, "error bad_statistics part-1.parquet column id: "},
		`"path":"part-0.parquet"`:       {`"path":"part-9.parquet"`, "error missing_file part-9.parquet: data file of version 0 is missing"},
		`"modificationTime":0,"dataCha`: {`"modificationTime":1,"dataCha`, ""},
	} {
		if err := store.Put(t.Context(), key, []byte(strings.Replace(string(log), old, test.fresh, 1))); err != nil {
			t.Fatal(err)
		}
		w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
		lines, _ := checked(t, w, plainName, false)
		lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "warning orphan") })
		if test.want == "" && len(lines) > 0 || test.want != "" && (len(lines) != 1 || !strings.HasPrefix(lines[0], test.want)) {
			t.Errorf("%s: found %q", old, lines)
		}
	}
}

// TestCheckKinds: no kind of index, entity or rule makes a sound table look
// damaged.
func TestCheckKinds(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	w := tabletest.Warehouse(t, memstore.New(), mem)
	for i, kind := range checkKinds() {
		kind.options.Name.Namespace, kind.options.Name.Table = "default", "kind"+string(rune('a'+i))
		if _, err := w.CreateTable(t.Context(), kind.options); err != nil {
			t.Fatal(err)
		}
		table, err := w.Table(t.Context(), kind.options.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, rows := range kind.appends {
			b := tabletest.Batch(t, mem, kind.options.Schema, rows)
			_, err := table.Append(t.Context(), tabletest.NewReader(kind.options.Schema, b), tablecore.AppendOptions{})
			b.Release()
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := table.WriteState(t.Context()); err != nil {
			t.Fatal(err)
		}
		if lines, report := checked(t, w, kind.options.Name, false); len(lines) > 0 || report.FilesChecked == 0 {
			t.Errorf("%d: found %q, %+v", i, lines, report)
		}
	}
	if err := clean(context.Background(), w, false); err != nil {
		t.Error(err)
	}
}

// checkKind is a table with appends.
type checkKind struct {
	options tablecore.CreateOptions
	appends []string
}

func checkKinds() []checkKind {
	entity := func(name string, typ arrow.DataType) arrow.Field { return arrow.Field{Name: name, Type: typ} }
	value := arrow.Field{Name: "v", Type: arrow.PrimitiveTypes.Float64, Nullable: true}
	text := arrow.Field{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}
	schema := func(index arrow.DataType, more ...arrow.Field) *arrow.Schema {
		return arrow.NewSchema(append([]arrow.Field{{Name: "k", Type: index}}, more...), nil)
	}
	long := strings.Repeat("ü", 40)
	numbers := []string{`[{"k":5,"v":1.5},{"k":1,"v":null}]`, `[{"k":3,"v":-0.0},{"k":9,"v":2}]`}
	return []checkKind{
		{tablecore.CreateOptions{IndexColumn: "k", IndexGranularity: "2", Schema: schema(arrow.PrimitiveTypes.Uint64, value)},
			[]string{numbers[0], `[{"k":18446744073709551615,"v":1},{"k":18446744073709551612,"v":1}]`}},
		{tablecore.CreateOptions{IndexColumn: "k", IndexGranularity: "1", Schema: schema(arrow.PrimitiveTypes.Int64, value)},
			[]string{numbers[0], `[{"k":-9223372036854775808,"v":1},{"k":9223372036854775807,"v":1}]`}},
		{tablecore.CreateOptions{IndexColumn: "k", Uniqueness: "none", Schema: schema(arrow.PrimitiveTypes.Int64, value)}, append(numbers, numbers...)},
		{tablecore.CreateOptions{IndexColumn: "k", IndexGranularity: "10", Uniqueness: "none", EntityColumns: []string{"e"},
			Schema: schema(arrow.PrimitiveTypes.Int64, entity("e", arrow.PrimitiveTypes.Int32), value)},
			[]string{`[{"k":1,"e":7,"v":1},{"k":2,"e":-7,"v":2}]`, `[{"k":1,"e":7,"v":3}]`}},
		{tablecore.CreateOptions{IndexColumn: "k", IndexGranularity: "1", Uniqueness: "overwrite", EntityColumns: []string{"e", "f"},
			Schema: schema(arrow.PrimitiveTypes.Int64, entity("e", arrow.PrimitiveTypes.Uint64), entity("f", arrow.BinaryTypes.String), text)},
			[]string{`[{"k":1,"e":7,"f":"` + long + `","s":"` + long + `"},{"k":2,"e":8,"f":"","s":null}]`, `[{"k":1,"e":7,"f":"` + long + `","s":"x"}]`}},
		{tablecore.CreateOptions{IndexColumn: "k", IndexGranularity: "1ms", Schema: schema(&arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}, value)},
			[]string{`[{"k":"2026-01-01T00:00:00.000000001Z","v":1},{"k":"1969-12-31T23:59:59.999999999Z","v":2}]`}},
		{tablecore.CreateOptions{IndexColumn: "k", IndexGranularity: "1s", Schema: schema(&arrow.TimestampType{Unit: arrow.Second}, text)},
			[]string{`[{"k":"2026-01-01 00:00:00","s":"a"},{"k":"1969-12-31 23:59:59","s":""}]`}},
	}
}

// copyStore puts the objects of a table into another store.
func copyStore(t *testing.T, to *memstore.Store, table *tablecore.Table) {
	t.Helper()
	for info, err := range table.Store().List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		data, err := table.Store().Get(t.Context(), info.Key)
		if err == nil {
			err = to.Put(t.Context(), "default/plain/"+info.Key, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
