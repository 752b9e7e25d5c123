package tablecore_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// overwriteOptions makes the weather table one that overwrites.
func overwriteOptions() tablecore.CreateOptions {
	o := weatherOptions()
	o.Uniqueness = "overwrite"
	return o
}

// newOverwriting is newFixture with a table that overwrites, and its store.
func newOverwriting(t *testing.T, change ...func(*tablecore.CreateOptions)) (*fixture, objstore.Store) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	store := memstore.New()
	f := &fixture{t: t, mem: mem, house: tabletest.Warehouse(t, store, mem)}
	o := overwriteOptions()
	for _, c := range change {
		c(&o)
	}
	if _, err := f.house.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	f.table = openWeather(t, f.house)
	return f, store
}

// filePaths lists the live data files of a version's report.
func filePaths(r *tablecore.AppendReport) []string {
	var paths []string
	for _, f := range r.DataFiles {
		paths = append(paths, f.Path)
	}
	return paths
}

func TestOverwrite(t *testing.T) {
	f, store := newOverwriting(t)
	first := f.mustAppend(rowsOf(rowAt("EWR", 1, "1"), rowAt("EWR", 2, "2"), rowAt("JFK", 1, "10")))
	other := f.mustAppend(rowsOf(rowAt("EWR", 5, "5")))
	if first.RowsReplaced != 0 || other.RowsReplaced != 0 {
		t.Errorf("replaced %d and %d rows of nothing", first.RowsReplaced, other.RowsReplaced)
	}
	r := f.mustAppend(rowsOf(rowAt("EWR", 2, "20"), rowAt("EWR", 3, "3"), rowAt("LGA", 2, "4")), rowsOf(rowAt("EWR", 2, "200")))
	if r.Rows != 3 || r.RowsReplaced != 1 || len(r.DataFiles) != 1 || r.DataFiles[0].Rows != 3 || r.StartingVersion != 2 || r.CommittedVersion != 3 {
		t.Errorf("got %+v", r)
	}
	rows, _ := f.scan(tablecore.ScanOptions{})
	if got, want := brief(t, rows), []string{"EWR 01 1", "EWR 02 200", "EWR 03 3", "EWR 05 5", "JFK 01 10", "LGA 02 4"}; !slices.Equal(got, want) {
		t.Errorf("the table holds %q, want %q", got, want)
	}
	old := int64(2)
	rows, _ = f.scan(tablecore.ScanOptions{Version: &old})
	if got, want := brief(t, rows), []string{"EWR 01 1", "EWR 02 2", "EWR 05 5", "JFK 01 10"}; !slices.Equal(got, want) {
		t.Errorf("version 2 holds %q, want %q", got, want)
	}
	live := liveFiles(t, f.table)
	if len(live) != 3 || slices.Contains(live, first.DataFiles[0].Path) || !slices.Contains(live, other.DataFiles[0].Path) || !slices.Contains(live, r.DataFiles[0].Path) {
		t.Errorf("the files are %q: others than the one hit were rewritten", live)
	}
	if n := len(dataFiles(t, store)); n != 4 {
		t.Errorf("%d data files lie in the store", n)
	}
}

// TestOverwriteWholeFile makes sure that a file of which no row stays is only
// taken out.
func TestOverwriteWholeFile(t *testing.T) {
	f, store := newOverwriting(t)
	f.mustAppend(rowsOf(rowAt("EWR", 1, "1"), rowAt("JFK", 1, "10")))
	r := f.mustAppend(rowsOf(rowAt("JFK", 1, "11"), rowAt("EWR", 1, "2")))
	if r.RowsReplaced != 2 || r.Rows != 2 || len(dataFiles(t, store)) != 2 {
		t.Errorf("got %+v", r)
	}
	if live := liveFiles(t, f.table); !slices.Equal(live, filePaths(r)) {
		t.Errorf("the files are %q, want %q", live, filePaths(r))
	}
}

// TestOverwriteOtherValue makes sure that rows are replaced by interval, not by
// index value.
func TestOverwriteOtherValue(t *testing.T) {
	f, _ := newOverwriting(t)
	at := func(us int64, temp string) string {
		return fmt.Sprintf(`{"origin":"EWR","time_hour":%d,"temp":%s}`, us, temp)
	}
	f.mustAppend(rowsOf(at(10, "1"), at(3600e6, "2")))
	r := f.mustAppend(rowsOf(at(3600e6-1, "3"), at(20, "4")))
	if r.RowsReplaced != 1 || r.Rows != 1 {
		t.Errorf("got %+v", r)
	}
	rows, _ := f.scan(tablecore.ScanOptions{Columns: []string{"temp"}})
	if want := []string{`{"temp":4}`, `{"temp":2}`}; !slices.Equal(rows, want) {
		t.Errorf("the table holds %q, want %q", rows, want)
	}
}

// TestOverwriteHistory shows what the commit of an append that replaces rows
// says of itself, to Contrail and to other software.
func TestOverwriteHistory(t *testing.T) {
	f, store := newOverwriting(t)
	f.mustAppend(rowsOf(rowAt("EWR", 1, "1"), rowAt("EWR", 2, "2")))
	r := f.mustAppend(rowsOf(rowAt("EWR", 2, "3")))
	listing, err := f.table.History(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	newest := listedRows(t, listing)[0]
	for name, want := range map[string]any{"operation": "append", "rows_added": 2.0, "rows_removed": 2.0, "files_added": 2.0, "files_removed": 1.0} {
		if newest[name] != want {
			t.Errorf("history: %s is %v, want %v", name, newest[name], want)
		}
	}
	data, err := store.Get(t.Context(), commitName(2))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"operation":"MERGE"`, `"contrailOperation":"append"`, `"rows_replaced":1`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the commit lacks %s: %s", want, data)
		}
	}
	var remove struct {
		Remove struct {
			DataChange           bool  `json:"dataChange"`
			ExtendedFileMetadata bool  `json:"extendedFileMetadata"`
			DeletionTimestamp    int64 `json:"deletionTimestamp"`
			Size                 int64 `json:"size"`
		} `json:"remove"`
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, `{"remove"`) {
			if err := json.Unmarshal([]byte(line), &remove); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := remove.Remove; !got.DataChange || !got.ExtendedFileMetadata || got.DeletionTimestamp == 0 || got.Size == 0 {
		t.Errorf("the old file is removed with %+v", got)
	}
	if r.CommittedVersion != 2 {
		t.Errorf("got %+v", r)
	}
}

// TestOverwriteAppendOnly makes sure that a table that is for appending only
// takes rows where it has none, and loses none.
func TestOverwriteAppendOnly(t *testing.T) {
	f, store := newOverwriting(t, func(o *tablecore.CreateOptions) { o.Properties = map[string]string{"delta.appendOnly": "true"} })
	f.mustAppend(rowsOf(rowAt("EWR", 1, "1")))
	f.mustAppend(rowsOf(rowAt("EWR", 2, "1"), rowAt("EWR", 2, "2")))
	_, err := f.append(tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 2, "3"), rowAt("EWR", 3, "3")))
	if tableerr.TokenOf(err) != tableerr.TokenUnsupported || !strings.Contains(err.Error(), "delta.appendOnly") {
		t.Fatalf("got %v", err)
	}
	rows, _ := f.scan(tablecore.ScanOptions{})
	if got, want := brief(t, rows), []string{"EWR 01 1", "EWR 02 2"}; !slices.Equal(got, want) || len(dataFiles(t, store)) != 2 {
		t.Errorf("the table holds %q, want %q", got, want)
	}
}

// TestOverwriteOptions covers what the options mean to an append that replaces
// rows.
func TestOverwriteOptions(t *testing.T) {
	f, store := newOverwriting(t)
	f.mustAppend(rowsOf(rowAt("EWR", 1, "1"), rowAt("EWR", 2, "2")))
	stale, current := int64(0), int64(1)
	if _, err := f.append(tablecore.AppendOptions{ExpectedVersion: &stale}, rowsOf(rowAt("EWR", 2, "3"))); tableerr.TokenOf(err) != tableerr.TokenVersionConflict {
		t.Errorf("a stale version: %v", err)
	}
	o := tablecore.AppendOptions{ExpectedVersion: &current, RequestID: "once"}
	rows := []string{rowsOf(rowAt("EWR", 2, "3"), rowAt("EWR", 2, "4")), rowsOf(rowAt("JFK", 2, "5"))}
	first, err := f.append(o, rows...)
	if err != nil || first.RowsReplaced != 1 || first.Rows != 2 {
		t.Fatalf("got %+v, %v", first, err)
	}
	again, err := f.append(o, rows...)
	if err != nil || !again.Replayed {
		t.Fatalf("the repetition: %+v, %v", again, err)
	}
	again.Replayed = false
	if got, want := fmt.Sprintf("%+v", *again), fmt.Sprintf("%+v", *first); maskPointers(got) != maskPointers(want) {
		t.Errorf("the repetition was answered with %s, the first with %s", got, want)
	}
	// The digest covers the rows that were replaced on the way, too.
	if _, err := f.append(o, rowsOf(rowAt("EWR", 2, "9"), rowAt("EWR", 2, "4"), rowAt("JFK", 2, "5"))); tableerr.TokenOf(err) != tableerr.TokenRequestIDReused {
		t.Errorf("other rows under a known id: %v", err)
	}
	if r, err := f.append(tablecore.AppendOptions{}, "[]"); err != nil || r.Rows != 0 || r.CommittedVersion != 2 {
		t.Errorf("no rows: %+v, %v", r, err)
	}
	if n := len(dataFiles(t, store)); n != 3 {
		t.Errorf("%d data files lie in the store", n)
	}
}

// maskPointers cuts the address of a report's request id.
func maskPointers(text string) string {
	before, after, _ := strings.Cut(text, "RequestID:")
	_, after, _ = strings.Cut(after, " ")
	return before + after
}

// TestOverwriteNeedsIntervals refuses a table that overwrites nothing.
func TestOverwriteNeedsIntervals(t *testing.T) {
	w := tabletest.Warehouse(t, memstore.New(), memory.DefaultAllocator)
	o := overwriteOptions()
	o.IndexGranularity = ""
	if _, err := w.CreateTable(t.Context(), o); tableerr.TokenOf(err) != tableerr.TokenInvalid {
		t.Errorf("got %v", err)
	}
}

// overwriteCase is a random table that overwrites.
type overwriteCase struct {
	rng     *rand.Rand
	model   *tabletest.Model
	schema  *arrow.Schema
	options tablecore.CreateOptions
	spread  int64 // index values lie in [-spread/2, spread/2), or from 0 on
	keys    int
	rows    int64
}

func newOverwriteCase(rng *rand.Rand) *overwriteCase {
	index := []arrow.DataType{&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint64}[rng.IntN(3)]
	width := uint64(1 + rng.IntN(20))
	granularity := fmt.Sprint(width)
	if index.ID() == arrow.TIMESTAMP {
		granularity += "us"
	}
	c := &overwriteCase{rng: rng, spread: 1 + rng.Int64N(1000), keys: 1 + rng.IntN(6)}
	c.options = tablecore.CreateOptions{Name: weatherName, IndexColumn: "at", IndexGranularity: granularity, Uniqueness: "overwrite", IngestTimeColumn: noIngestTime}
	fields := []arrow.Field{{Name: "at", Type: index}, {Name: "n", Type: arrow.PrimitiveTypes.Int64}, {Name: "text", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "value", Type: arrow.PrimitiveTypes.Float64, Nullable: true}}
	types := []arrow.DataType{arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint64}
	for i := range rng.IntN(3) {
		name := fmt.Sprintf("key%d", i)
		fields = append(fields, arrow.Field{Name: name, Type: types[rng.IntN(len(types))]})
		c.options.EntityColumns = append(c.options.EntityColumns, name)
	}
	rng.Shuffle(len(fields), func(a, b int) { fields[a], fields[b] = fields[b], fields[a] })
	c.schema = arrow.NewSchema(fields, nil)
	c.options.Schema = c.schema
	c.model = &tabletest.Model{Index: "at", Entities: c.options.EntityColumns, Width: width, Overwrite: true, Timestamps: index.ID() == arrow.TIMESTAMP}
	c.model.SetSchema(c.schema)
	return c
}

// batch makes rows in a part of the index, with the same interval more than once.
func (c *overwriteCase) batch() []tabletest.Row {
	rows := make([]tabletest.Row, 1+c.rng.IntN(120))
	from, size := c.rng.Int64N(c.spread), 1+c.rng.Int64N(c.spread)
	for i := range rows {
		at := from + c.rng.Int64N(size)
		for _, f := range c.schema.Fields() {
			rows[i] = append(rows[i], c.value(f, at))
		}
		c.rows++
	}
	return rows
}

func (c *overwriteCase) value(f arrow.Field, at int64) any {
	key := c.rng.IntN(c.keys)
	switch {
	case f.Name == "n":
		return c.rows
	case f.Nullable && c.rng.IntN(4) == 0:
		return nil
	case f.Name == "text":
		return strings.Repeat("x", c.rng.IntN(4))
	case f.Name == "value":
		return c.rng.NormFloat64()
	case f.Type.ID() == arrow.STRING:
		return []string{"", "a", "a\x00", "b", "näher", "zz"}[key]
	case f.Type.ID() == arrow.UINT64 && f.Name == "at":
		return uint64(at)
	case f.Type.ID() == arrow.UINT64:
		return uint64(key) << 61
	case f.Name == "at":
		return at - c.spread/2
	default:
		return int64(key) - 2
	}
}

// options of an append: small row groups here and there.
func (c *overwriteCase) appendOptions() tablecore.AppendOptions {
	var o tablecore.AppendOptions
	if c.rng.IntN(2) == 0 {
		rows := int64(1 + c.rng.IntN(50))
		o.MaxRowsPerRowGroup = &rows
	}
	return o
}

// TestOverwriteEqualsReference makes random appends to random tables that
// overwrite, and compares every version with the reference, by what is in memory
// and by what a process reads that starts anew.
func TestOverwriteEqualsReference(t *testing.T) {
	for seed := range numberFrom(t, "SEEDS", 200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			c := newOverwriteCase(rand.New(rand.NewPCG(seed, 23)))
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			store := memstore.New()
			opened := byte(0)
			open := func() *tablecore.Warehouse {
				opened++
				w, err := tablecore.Open(t.Context(), tablecore.Options{Store: sharedStore{store}, Allocator: mem, Clock: tabletest.NewClock().Now, Random: tabletest.Random(opened)})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = w.Close() })
				return w
			}
			house := open()
			if _, err := house.CreateTable(t.Context(), c.options); err != nil {
				t.Fatal(err)
			}
			for range 2 + c.rng.IntN(8) {
				if c.rng.IntN(4) == 0 {
					house = open()
				}
				c.append(t, openWeather(t, house), mem)
				c.compare(t, openWeather(t, house))
			}
			c.compare(t, openWeather(t, open()))
		})
	}
}

// append makes an append on the table and on the reference.
func (c *overwriteCase) append(t *testing.T, table *tablecore.Table, mem memory.Allocator) {
	t.Helper()
	rows := c.batch()
	stream := tabletest.NewReader(c.schema)
	for part := range slices.Chunk(rows, 1+c.rng.IntN(len(rows))) {
		b, err := tabletest.BatchOf(mem, c.schema, part)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Release()
		stream.Batches = append(stream.Batches, b)
	}
	r, err := table.Append(t.Context(), stream, c.appendOptions())
	if err != nil {
		t.Fatal(err)
	}
	stored, replaced := c.model.Commit(tabletest.ModelAppend{Schema: c.schema, Rows: rows})
	inFiles := int64(0)
	for _, f := range r.DataFiles {
		inFiles += f.Rows
	}
	if r.Rows != int64(stored) || r.RowsReplaced != int64(replaced) || inFiles != r.Rows {
		t.Fatalf("version %d stored %d rows for %d, and %d in its files; want %d for %d", r.CommittedVersion, r.Rows, r.RowsReplaced, inFiles, stored, replaced)
	}
}

// compare scans a version, the newest or one before it, whole and in parts.
func (c *overwriteCase) compare(t *testing.T, table *tablecore.Table) {
	t.Helper()
	version := c.model.Version()
	if c.rng.IntN(3) == 0 {
		version -= c.rng.Int64N(version + 1)
	}
	o := tablecore.ScanOptions{Version: &version}
	query := tabletest.ModelScan{}
	if c.rng.IntN(2) == 0 {
		query.Filter = []tabletest.ModelCondition{{Column: "n", Op: ">=", Values: []any{c.rows / 2}}}
		o.Filter = append(o.Filter, conditionOf(query.Filter[0]))
	}
	plan, err := table.PlanScan(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := tabletest.ScanRows(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(rows), fmt.Sprint(c.model.Scan(query, version)); got != want {
		t.Fatalf("version %d holds\n%s\nwant\n%s", version, got, want)
	}
	d, err := table.Describe(t.Context(), tablecore.At{})
	if err != nil {
		t.Fatal(err)
	}
	if want := c.model.Summary(c.model.Version()); d.Rows != want.Rows || d.Entities != want.Entities {
		t.Fatalf("described as %d rows of %d entities, want %+v", d.Rows, d.Entities, want)
	}
}

// liveFiles lists the data files of the newest version, sorted.
func liveFiles(t *testing.T, table *tablecore.Table) []string {
	t.Helper()
	listing, err := table.Files(t.Context(), tablecore.At{})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, row := range listedRows(t, listing) {
		paths = append(paths, row["path"].(string))
	}
	slices.Sort(paths)
	return paths
}
