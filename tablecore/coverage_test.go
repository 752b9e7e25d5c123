package tablecore_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// foreignTable makes a table with an index and entities whose files another
// writer put there, without any derived data, one for each list of rows.
func foreignTable(t *testing.T, files ...string) *tablecore.Table {
	t.Helper()
	store := memstore.New()
	schema := arrow.NewSchema([]arrow.Field{{Name: "site", Type: arrow.BinaryTypes.String}, {Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "v", Type: arrow.PrimitiveTypes.Float64, Nullable: true}}, nil)
	fields := `{\"type\":\"struct\",\"fields\":[{\"name\":\"site\",\"type\":\"string\",\"nullable\":false,\"metadata\":{}},` +
		`{\"name\":\"id\",\"type\":\"long\",\"nullable\":false,\"metadata\":{}},{\"name\":\"v\",\"type\":\"double\",\"nullable\":true,\"metadata\":{}}]}`
	log := []string{
		`{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}`,
		`{"metaData":{"id":"f","format":{"provider":"parquet","options":{}},"schemaString":"` + fields + `","partitionColumns":[],"configuration":` +
			`{"contrail.index-column":"id","contrail.index-type":"int64","contrail.index-granularity":"10","contrail.entity-columns":"[\"site\"]"}}}`,
	}
	for i, rows := range files {
		batch := tabletest.Batch(t, memory.DefaultAllocator, schema, rows)
		var out bytes.Buffer
		w, err := datafile.NewWriter(&out, schema, datafile.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		err = w.Write(batch)
		batch.Release()
		if _, failed := w.Close(); err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		name := fmt.Sprintf("part-%d.parquet", i)
		if err := store.Put(t.Context(), "default/foreign/"+name, out.Bytes()); err != nil {
			t.Fatal(err)
		}
		log = append(log, fmt.Sprintf(`{"add":{"path":%q,"partitionValues":{},"size":%d,"modificationTime":0,"dataChange":true}}`, name, out.Len()))
	}
	if err := store.Put(t.Context(), "default/foreign/_delta_log/00000000000000000000.json", []byte(strings.Join(log, "\n"))); err != nil {
		t.Fatal(err)
	}
	w := tabletest.Warehouse(t, store, memory.DefaultAllocator)
	table, err := w.Table(t.Context(), tabledef.Name{Namespace: "default", Table: "foreign"})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func foreignRow(site string, id int, v float64) string {
	return fmt.Sprintf(`{"site":%q,"id":%d,"v":%g}`, site, id, v)
}

var coveredTo = func(end string) tablecore.CoverageOptions {
	return tablecore.CoverageOptions{Kind: tablecore.CoverageCovered, End: json.RawMessage(end)}
}

// TestSeriesOfForeignFiles computes what no writer has stored.
func TestSeriesOfForeignFiles(t *testing.T) {
	table := foreignTable(t, rowsOf(foreignRow("a", 5, 1), foreignRow("a", 15, 2), foreignRow("b", 1, 3)), rowsOf(foreignRow("a", 11, 4), foreignRow("b", 99, 5)))
	got, err := rowTextsOf(t.Context(), func() (*tablecore.Listing, error) { return table.Latest(t.Context(), tablecore.LatestOptions{}) })
	if want := []string{`("a", 15, 2)`, `("b", 99, 5)`}; err != nil || !slices.Equal(got, want) {
		t.Errorf("latest is %q, %v", got, err)
	}
	got, err = rowTextsOf(t.Context(), func() (*tablecore.Listing, error) { return table.Coverage(t.Context(), coveredTo("50")) })
	if want := []string{`("a", 0, 20, 2)`, `("b", 0, 10, 1)`}; err != nil || !slices.Equal(got, want) {
		t.Errorf("coverage is %q, %v", got, err)
	}
}

// TestSeriesOfUnsortedFiles: the coverage of such a file is known from its rows,
// its newest rows are refused as a sorted scan is.
func TestSeriesOfUnsortedFiles(t *testing.T) {
	table := foreignTable(t, rowsOf(foreignRow("b", 15, 1), foreignRow("a", 5, 2), foreignRow("b", 5, 3)))
	got, err := rowTextsOf(t.Context(), func() (*tablecore.Listing, error) { return table.Coverage(t.Context(), coveredTo("50")) })
	if want := []string{`("a", 0, 10, 1)`, `("b", 0, 20, 2)`}; err != nil || !slices.Equal(got, want) {
		t.Errorf("coverage is %q, %v", got, err)
	}
	_, err = rowTextsOf(t.Context(), func() (*tablecore.Listing, error) { return table.Latest(t.Context(), tablecore.LatestOptions{}) })
	var unsupported *tableerr.Unsupported
	if !errors.As(err, &unsupported) || unsupported.Path != "part-0.parquet" {
		t.Errorf("latest gives %v", err)
	}
}

func TestCoverageRefusals(t *testing.T) {
	f := newFixture(t)
	zero, one := int64(0), int64(1)
	for name, c := range map[string]struct {
		o             tablecore.CoverageOptions
		field, column string
	}{
		"no kind":            {tablecore.CoverageOptions{}, "kind", ""},
		"another kind":       {tablecore.CoverageOptions{Kind: "gaps"}, "kind", ""},
		"no n":               {tablecore.CoverageOptions{Kind: tablecore.CoverageLastWindow}, "n", ""},
		"n of nothing":       {tablecore.CoverageOptions{Kind: tablecore.CoverageLastWindow, N: &zero}, "n", ""},
		"n elsewhere":        {tablecore.CoverageOptions{Kind: tablecore.CoverageMissing, N: &one}, "n", ""},
		"an empty range":     {tablecore.CoverageOptions{Kind: tablecore.CoverageMissing, Start: json.RawMessage("5"), End: json.RawMessage("5")}, "start", ""},
		"a reversed range":   {tablecore.CoverageOptions{Kind: tablecore.CoverageMissing, Start: json.RawMessage("6"), End: json.RawMessage("5")}, "start", ""},
		"a bound of nothing": {tablecore.CoverageOptions{Kind: tablecore.CoverageMissing, End: json.RawMessage(`"x"`)}, "end", ""},
		"an unknown column":  {tablecore.CoverageOptions{Kind: tablecore.CoverageMissing, Entities: []tablecore.EntityFilter{{"x": json.RawMessage("1")}}}, "entities[0].x", "x"},
		"a mistyped value":   {tablecore.CoverageOptions{Kind: tablecore.CoverageMissing, Entities: []tablecore.EntityFilter{{"origin": json.RawMessage("1")}}}, "entities[0].origin", "origin"},
	} {
		_, err := f.table.Coverage(t.Context(), c.o)
		var invalid *tableerr.Invalid
		if !errors.As(err, &invalid) || invalid.Field != c.field || invalid.Column != c.column || invalid.Table != "default.weather" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := f.table.Latest(t.Context(), tablecore.LatestOptions{At: json.RawMessage(`"x"`)}); tableerr.TokenOf(err) != tableerr.TokenInvalid {
		t.Errorf("at: %v", err)
	}
}

// TestSeriesOfOtherTables asks tables that have no series to tell of.
func TestSeriesOfOtherTables(t *testing.T) {
	f := newFixture(t)
	name := func(text string) tabledef.Name { return tabledef.Name{Namespace: "default", Table: text} }
	for _, o := range []tablecore.CreateOptions{
		{Name: name("adopts"), IndexColumn: "n", IndexType: "int64", IndexGranularity: "1"},
		{Name: name("plainseq"), IndexColumn: "seq", Uniqueness: "none", Schema: journal},
		{Name: name("ids"), IndexColumn: "n", IndexType: "int64", IndexGranularity: "1", EntityColumns: []string{"id"},
			Schema: arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}, {Name: "id", Type: arrow.PrimitiveTypes.Int32}}, nil)},
	} {
		if _, err := f.house.CreateTable(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(table *tablecore.Table, o tablecore.CoverageOptions) (coverage, latest tableerr.Token) {
		o.Kind = tablecore.CoverageMissing
		_, err := table.Coverage(t.Context(), o)
		_, err2 := table.Latest(t.Context(), tablecore.LatestOptions{})
		return tableerr.TokenOf(err), tableerr.TokenOf(err2)
	}
	for text, want := range map[string][2]tableerr.Token{"adopts": {tableerr.TokenInvalid, tableerr.TokenInvalid}, "plainseq": {tableerr.TokenNoGranularity, ""}, "ids": {}} {
		table, err := f.house.Table(t.Context(), name(text))
		if err != nil {
			t.Fatal(err)
		}
		if a, b := ask(table, tablecore.CoverageOptions{}); a != want[0] || b != want[1] {
			t.Errorf("%s gives %q and %q", text, a, b)
		}
		if text == "ids" {
			if a, _ := ask(table, tablecore.CoverageOptions{Entities: []tablecore.EntityFilter{{"id": json.RawMessage("2147483648")}}}); a != tableerr.TokenInvalid {
				t.Errorf("an identity that cannot be gives %q", a)
			}
		}
	}
	if a, b := ask(plainTable(t, ""), tablecore.CoverageOptions{}); a != tableerr.TokenFormatUnwritable || b != tableerr.TokenFormatUnwritable {
		t.Errorf("a plain table gives %q and %q", a, b)
	}
}

// TestSeriesAfterAStoreFailure: what failed once is right the next time, and a
// caller that stops an answer gets its own error back.
func TestSeriesAfterAStoreFailure(t *testing.T) {
	store := memstore.New()
	w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
		t.Fatal(err)
	}
	table := openWeather(t, w)
	for hour := range 3 {
		b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rowAt("EWR", hour, "1"), rowAt("JFK", 2*hour, "2")))
		_, err := table.Append(t.Context(), tabletest.NewReader(weather, b), tablecore.AppendOptions{})
		b.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	ask := func(table *tablecore.Table) (errs []error) {
		for _, l := range []func() (*tablecore.Listing, error){
			func() (*tablecore.Listing, error) { return table.Latest(t.Context(), tablecore.LatestOptions{}) },
			func() (*tablecore.Listing, error) { return table.Coverage(t.Context(), coveredTo("100000000000")) },
		} {
			rows, err := rowTextsOf(t.Context(), l)
			if err == nil && len(rows) < 2 {
				t.Errorf("rows %q", rows)
			}
			errs = append(errs, err)
		}
		return errs
	}
	broken := true
	fault := faultstore.Wrap(sharedStore{store}, faultstore.Plan{Kind: faultstore.Error, Match: func(op objstore.Op, key string) bool {
		return broken && op == objstore.OpOpen && strings.HasSuffix(key, ".parquet")
	}})
	cold := tabletest.Warehouse(t, fault, memory.DefaultAllocator)
	table = openWeather(t, cold)
	if errs := ask(table); tableerr.TokenOf(errs[0]) != tableerr.TokenStoreUnavailable {
		t.Errorf("a store that fails gives %v", errs)
	}
	broken = false
	if errs := ask(table); errors.Join(errs...) != nil {
		t.Errorf("after the failure: %v", errs)
	}
	l, err := table.Latest(t.Context(), tablecore.LatestOptions{})
	if err == nil {
		err = l.Run(t.Context(), func(arrow.RecordBatch) error { return errBroken })
	}
	if !errors.Is(err, errBroken) {
		t.Errorf("stopped, it gives %v", err)
	}
}
