package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"go.uber.org/goleak"

	"contrail/tablecore/internal/derived"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var hourTime = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}

// weather is a small table: hourly rows of stations.
func weather(unique tabledef.Uniqueness, payload ...arrow.Field) *tabledef.Definition {
	fields := append([]arrow.Field{{Name: "origin", Type: arrow.BinaryTypes.String}, {Name: "hour", Type: hourTime}}, payload...)
	d := &tabledef.Definition{ID: "weather", Format: tabledef.CurrentFormat, IndexColumn: "hour", IndexType: tabledef.IndexTimestamp,
		Granularity: tabledef.Granularity{N: 1, Unit: "h"}, EntityColumns: []string{"origin"}, Uniqueness: unique, IngestTimeColumn: "_ingest_ts"}
	return d.WithSchema(arrow.NewSchema(fields, nil))
}

const hour = 3_600_000_000

// observation is a row of weather: a station, an hour, and microseconds in it.
type observation struct {
	origin string
	hour   int64
	micros int64
}

// observations makes batches of size rows.
func observations(rows []observation, size int) *batches {
	schema := weather(tabledef.UniqueReject).Schema()
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	out := &batches{schema: schema}
	for part := range slices.Chunk(rows, size) {
		for _, r := range part {
			b.Field(0).(*array.StringBuilder).Append(r.origin)
			b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(r.hour*hour + r.micros))
		}
		out.left = append(out.left, b.NewRecordBatch())
	}
	return out
}

// start makes a config with a store and a checked allocator.
func start(t *testing.T, def *tabledef.Definition) Config {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	cfg := testConfig(t, def, mem)
	cfg.Store = memstore.New()
	return cfg
}

// keys lists what a store holds.
func keys(t *testing.T, s objstore.Store) []string {
	t.Helper()
	var all []string
	for info, err := range s.List(context.Background(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, info.Key)
	}
	return all
}

func TestEmptyStream(t *testing.T) {
	for _, rows := range []*batches{{schema: weather("").Schema()}, observations([]observation{}, 1)} {
		cfg := start(t, weather(tabledef.UniqueReject))
		result, err := Run(context.Background(), cfg, rows)
		if err != nil || result.Rows != 0 || len(result.Files) != 0 || result.Coverage != nil {
			t.Errorf("got %+v, %v", result, err)
		}
		if left := keys(t, cfg.Store); len(left) > 0 {
			t.Errorf("the store holds %v", left)
		}
	}
}

func TestZeroRowBatches(t *testing.T) {
	cfg := start(t, weather(tabledef.UniqueReject))
	rows := observations([]observation{{"JFK", 1, 0}, {"EWR", 1, 0}}, 1)
	empty := rows.left[0].NewSlice(0, 0)
	rows.left = []arrow.RecordBatch{empty, rows.left[0], empty, rows.left[1], empty}
	result, err := Run(context.Background(), cfg, rows)
	if err != nil || result.Rows != 2 || len(result.Files) != 1 {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestWhatAFileSays(t *testing.T) {
	cfg := start(t, weather(tabledef.UniqueReject))
	result, err := Run(context.Background(), cfg, observations([]observation{{"JFK", 3, 5}, {"EWR", 2, 1}, {"JFK", 1, 7}, {"JFK", 2, 0}}, 3))
	if err != nil {
		t.Fatal(err)
	}
	f := result.Files[0]
	if f.Path != "data/01/01-file-0001.parquet" || f.Rows != 4 || f.RowGroups != 1 || f.Add.Path != f.Path || f.Add.Size != f.Bytes || !f.Add.DataChange ||
		f.Add.ModificationTime != 1_800_000_000_123 {
		t.Errorf("got %+v, %+v", f, f.Add)
	}
	wantTags := map[string]string{tabledef.TagIndexMin: "3600000007", tabledef.TagIndexMax: "10800000005", tabledef.TagSorted: "true",
		tabledef.TagLayout: "mixed", tabledef.TagNaN: "[]", tabledef.TagWriter: "contrail/test"}
	for k, v := range wantTags {
		if f.Add.Tags[k] != v {
			t.Errorf("tag %s is %q, want %q", k, f.Add.Tags[k], v)
		}
	}
	if len(f.Add.Tags) != len(wantTags) {
		t.Errorf("tags %v", f.Add.Tags)
	}
	const wantStats = `{"numRecords":4,"minValues":{"origin":"EWR","hour":"1970-01-01T01:00:00.000007Z","_ingest_ts":"2027-01-15T08:00:00.123456Z"},` +
		`"maxValues":{"origin":"JFK","hour":"1970-01-01T03:00:00.000005Z","_ingest_ts":"2027-01-15T08:00:00.123456Z"},"nullCount":{"origin":0,"hour":0,"_ingest_ts":0}}`
	if f.Add.Stats != wantStats {
		t.Errorf("stats %s", f.Add.Stats)
	}
	const sign = 1 << 63
	wantDirectory := derived.Directory{
		{Key: "EWR\x00\x01", Start: 0, End: 1, First: sign + 2*hour + 1, Last: sign + 2*hour + 1},
		{Key: "JFK\x00\x01", Start: 1, End: 4, First: sign + hour + 7, Last: sign + 3*hour + 5}}
	if !slices.Equal(f.Index.Directory, wantDirectory) || f.Index.Rows != 4 {
		t.Errorf("index %+v", f.Index)
	}
	for _, set := range []interface {
		Contains(string, uint64) bool
		Total() uint64
	}{result.Coverage, f.Index.Coverage} {
		if set.Total() != 4 || !set.Contains("JFK\x00\x01", sign+1) || !set.Contains("JFK\x00\x01", sign+3) || set.Contains("EWR\x00\x01", sign+1) {
			t.Errorf("coverage %v", set)
		}
	}
	got := readFile(t, cfg.Store, f.Path, cfg.Def.Stored)
	if len(got) != 4 || got[0][0] != "EWR" || got[1][1] != "1970-01-01T01:00:00.000007Z" || got[1][2] != "2027-01-15T08:00:00.123456Z" {
		t.Errorf("rows %q", got)
	}
}

func TestSingleEntityFile(t *testing.T) {
	cfg := start(t, weather(tabledef.UniqueReject))
	result, err := Run(context.Background(), cfg, observations([]observation{{`J"K`, 3, 5}}, 1))
	if err != nil {
		t.Fatal(err)
	}
	tags := result.Files[0].Add.Tags
	if tags[tabledef.TagLayout] != "single" || tags[tabledef.TagEntity] != `{"origin":"J\"K"}` {
		t.Errorf("tags %v", tags)
	}
}

// TestInsertionTime checks that a stream's own insertion times are kept and its
// nulls stamped, and that columns a stream leaves out are null.
func TestInsertionTime(t *testing.T) {
	def := weather(tabledef.UniqueReject, arrow.Field{Name: "temp", Type: arrow.PrimitiveTypes.Uint8, Nullable: true})
	def.ColumnsAdded = true
	cfg := start(t, def)
	schema := arrow.NewSchema([]arrow.Field{{Name: "_ingest_ts", Type: hourTime, Nullable: true}, {Name: "origin", Type: arrow.BinaryTypes.String}, {Name: "hour", Type: hourTime}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.TimestampBuilder).AppendValues([]arrow.Timestamp{77, 0}, []bool{true, false})
	b.Field(1).(*array.StringBuilder).AppendValues([]string{"A", "B"}, nil)
	b.Field(2).(*array.TimestampBuilder).AppendValues([]arrow.Timestamp{1, 2}, nil)
	result, err := Run(context.Background(), cfg, &batches{schema, []arrow.RecordBatch{b.NewRecordBatch()}})
	if err != nil {
		t.Fatal(err)
	}
	got := readFile(t, cfg.Store, result.Files[0].Path, def.Stored)
	if got[0][3] != "1970-01-01T00:00:00.000077Z" || got[1][3] != "2027-01-15T08:00:00.123456Z" || got[0][2] != array.NullValueStr {
		t.Errorf("got %q", got)
	}
}

// TestDuplicates checks which duplicate is told: the smallest by (entity,
// index), over files and however the rows were batched.
func TestDuplicates(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var rows []observation
		for e := range 20 {
			for h := range 200 {
				rows = append(rows, observation{fmt.Sprintf("E%02d", e), int64(h), rng.Int64N(hour)})
			}
		}
		twice := rng.IntN(4)
		for range twice {
			r := rows[rng.IntN(len(rows))]
			r.micros = rng.Int64N(hour)
			rows = append(rows, r)
		}
		rng.Shuffle(len(rows), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
		cfg := start(t, weather(tabledef.UniqueReject))
		cfg.limits = limits{rows: 500, maxRows: 700, bytes: 1 << 40, maxBytes: 1 << 40}
		_, err := Run(context.Background(), cfg, observations(rows, 1+rng.IntN(len(rows))))
		want := smallestDuplicate(rows)
		if want == nil {
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		var got *tableerr.DuplicateInterval
		if !errors.As(err, &got) {
			t.Fatalf("got %v", err)
		}
		if got.Entity[0].Value != want.Entity[0].Value || got.Entity[0].Name != "origin" || got.Interval != want.Interval || got.Rows != want.Rows {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if left := keys(t, cfg.Store); len(left) > 0 {
			t.Errorf("the store holds %v", left)
		}
	}
}

// smallestDuplicate looks at all pairs of neighbours the slow way.
func smallestDuplicate(rows []observation) *tableerr.DuplicateInterval {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if c := strings.Compare(rows[a].origin, rows[b].origin); c != 0 {
			return c
		}
		return int(rows[a].hour*hour + rows[a].micros - rows[b].hour*hour - rows[b].micros)
	})
	for i := 1; i < len(order); i++ {
		a, b := rows[order[i-1]], rows[order[i]]
		if a.origin == b.origin && a.hour == b.hour {
			day, h := a.hour/24, a.hour%24
			next := a.hour + 1
			return &tableerr.DuplicateInterval{Entity: tableerr.Values{{Name: "origin", Value: a.origin}},
				Interval: fmt.Sprintf("[1970-01-%02dT%02d:00:00Z, 1970-01-%02dT%02d:00:00Z)", day+1, h, next/24+1, next%24),
				Rows:     [2]int64{int64(min(order[i-1], order[i])), int64(max(order[i-1], order[i]))}}
		}
	}
	return nil
}

func TestUniquenessNoneTakesDuplicates(t *testing.T) {
	cfg := start(t, weather(tabledef.UniqueNone))
	result, err := Run(context.Background(), cfg, observations([]observation{{"A", 1, 5}, {"A", 1, 5}, {"A", 1, 2}}, 2))
	if err != nil || result.Rows != 3 || result.Coverage.Total() != 1 {
		t.Errorf("got %+v, %v", result, err)
	}
}

// TestOneIntervalIsCutByEntity checks that a range of one interval that is too
// large for a file is cut between entities.
func TestOneIntervalIsCutByEntity(t *testing.T) {
	var rows []observation
	for i := range 1000 {
		rows = append(rows, observation{fmt.Sprintf("E%03d", 999-i), 5, int64(i)})
	}
	rows = append(rows, observation{"E000", 7, 0}, observation{"E001", 3, 0})
	cfg := start(t, weather(tabledef.UniqueReject))
	cfg.limits = limits{rows: 100, maxRows: 150, bytes: 1 << 40, maxBytes: 1 << 40}
	result, err := Run(context.Background(), cfg, observations(rows, 77))
	if err != nil {
		t.Fatal(err)
	}
	total, last := int64(0), ""
	for i, f := range result.Files {
		total += f.Rows
		if f.Rows > 150 || f.Rows != int64(len(readFile(t, cfg.Store, f.Path, cfg.Def.Stored))) || f.Index.Rows != f.Rows {
			t.Errorf("file %d has %d rows", i, f.Rows)
		}
		if i > 0 && i < len(result.Files)-1 {
			if f.Index.Directory[0].Key <= last || f.Index.Directory[0].Start != 0 {
				t.Errorf("file %d begins with %q after %q", i, f.Index.Directory[0].Key, last)
			}
			last = f.Index.Directory[len(f.Index.Directory)-1].Key
		}
	}
	if total != 1002 || len(result.Files) != 12 {
		t.Errorf("%d rows in %d files", total, len(result.Files))
	}
}

// TestRowErrorsPassThrough checks one of each kind; convert tests the rest.
func TestRowErrorsPassThrough(t *testing.T) {
	cfg := start(t, weather(tabledef.UniqueReject))
	var mismatch *tableerr.SchemaMismatch
	if _, err := Run(context.Background(), cfg, &batches{schema: tickSchema}); !errors.As(err, &mismatch) {
		t.Errorf("got %v", err)
	}
	rows := observations([]observation{{"A", 1, 0}, {"A", 2, 0}}, 1)
	b := array.NewRecordBuilder(memory.DefaultAllocator, rows.schema)
	defer b.Release()
	b.Field(0).(*array.StringBuilder).AppendNull()
	b.Field(1).(*array.TimestampBuilder).Append(3)
	rows.left = append(rows.left, b.NewRecordBatch())
	var null *tableerr.NullKey
	if _, err := Run(context.Background(), cfg, rows); !errors.As(err, &null) || null.Row != 2 {
		t.Errorf("got %v", err)
	}
}

// broken is a stream that fails after its batches.
type broken struct {
	batches
	err error
}

func (b *broken) Next(ctx context.Context) (arrow.RecordBatch, error) {
	batch, err := b.batches.Next(ctx)
	if err == io.EOF {
		return nil, b.err
	}
	return batch, err
}

func TestStreamErrors(t *testing.T) {
	cut := errors.New("cut")
	cfg := start(t, weather(tabledef.UniqueReject))
	rows := observations([]observation{{"A", 1, 0}, {"A", 2, 0}}, 1)
	if _, err := Run(context.Background(), cfg, &broken{*rows, cut}); !errors.Is(err, cut) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, cfg, rows); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	cfg.NewID = func() (string, error) { return "", cut }
	if _, err := Run(context.Background(), cfg, rows); !errors.Is(err, cut) {
		t.Errorf("got %v", err)
	}
	if left := keys(t, cfg.Store); len(left) > 0 {
		t.Errorf("the store holds %v", left)
	}
}

// TestMemoryBudget checks that a stream beyond the budget is refused, by
// fixed-width columns, by entities, by text and by sorting.
func TestMemoryBudget(t *testing.T) {
	var few, many []observation
	for i := range 70_000 {
		few = append(few, observation{"A", int64(i), 0})
		many = append(many, observation{fmt.Sprintf("entity number %d", i), 1, 0})
	}
	for i, rows := range [][]observation{few, many} {
		cfg := start(t, weather(tabledef.UniqueReject))
		cfg.MemoryBudget = 1 << 20
		var large *tableerr.MessageTooLarge
		if _, err := Run(context.Background(), cfg, observations(rows, 10_000)); !errors.As(err, &large) || large.LimitBytes != 1<<20 {
			t.Errorf("case %d: got %v", i, err)
		}
		cfg.MemoryBudget = 100 << 20
		if _, err := Run(context.Background(), cfg, observations(rows, 10_000)); err != nil {
			t.Errorf("case %d: %v", i, err)
		}
	}
	// The rows fit, sorting them does not: 70,000 rows take 131,072 · 12 bytes, and 70,000 · 12 more.
	cfg := start(t, weather(tabledef.UniqueReject))
	cfg.MemoryBudget = 1<<17*12 + 10_000
	var large *tableerr.MessageTooLarge
	if _, err := Run(context.Background(), cfg, observations(few, 10_000)); !errors.As(err, &large) || large.Bytes < cfg.MemoryBudget {
		t.Errorf("got %v", err)
	}
}

// TestFaults fails and stops the store at every operation in turn.
func TestFaults(t *testing.T) {
	var rows []observation
	for i := range 600 {
		rows = append(rows, observation{fmt.Sprintf("E%d", i%7), int64(i), 0})
	}
	run := func(t *testing.T, plan faultstore.Plan) (faulty *faultstore.Store, inner objstore.Store, result *Result, err error) {
		cfg := start(t, weather(tabledef.UniqueReject))
		cfg.limits = limits{rows: 200, maxRows: 300, bytes: 1 << 40, maxBytes: 1 << 40}
		inner = cfg.Store
		faulty = faultstore.Wrap(inner, plan)
		cfg.Store = faulty
		result, err = Run(context.Background(), cfg, observations(rows, 100))
		return faulty, inner, result, err
	}
	for _, kind := range faultstore.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			for at := 0; ; at++ {
				faulty, inner, result, err := run(t, faultstore.Plan{At: at, Kind: kind})
				if err == nil {
					if faulty.Ops() > at {
						t.Fatalf("operation %d failed and nobody noticed: %v", at, faulty.Trace())
					}
					if len(result.Files) != 4 || len(keys(t, inner)) < 4 {
						t.Fatalf("%d files", len(result.Files))
					}
					result.Discard(context.Background(), inner)
					if left := keys(t, inner); len(left) > 0 {
						t.Fatalf("after Discard the store holds %v", left)
					}
					return
				}
				var unavailable *tableerr.StoreUnavailable
				if !errors.As(err, &unavailable) && !errors.Is(err, context.Canceled) {
					t.Errorf("operation %d: %v", at, err)
				}
				if left := keys(t, inner); len(left) > 0 && !faulty.Stopped() {
					t.Errorf("operation %d: the store holds %v", at, left)
				}
			}
		})
	}
	t.Run("full", func(t *testing.T) {
		_, _, _, err := run(t, faultstore.Plan{At: 2, Kind: faultstore.Error, Err: objstore.ErrNoSpace})
		var full *tableerr.StorageFull
		if !errors.As(err, &full) && !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// TestFilesAreDisjoint checks that a large append, in time order or not, gives
// files whose ranges meet no common interval, with every row in one of them.
func TestFilesAreDisjoint(t *testing.T) {
	const rows = 400_000
	for _, shuffled := range []bool{false, true} {
		cfg := start(t, tickDefinition())
		cfg.limits = limits{rows: 150_000, maxRows: 200_000, bytes: 1 << 40, maxBytes: 1 << 40}
		result, err := Run(context.Background(), cfg, &batches{tickSchema, ticks(t, rows, shuffled)})
		if err != nil {
			t.Fatal(err)
		}
		total, last := int64(0), uint64(0)
		for i, f := range result.Files {
			if first := cfg.Domain.ID(f.MinIndex); i > 0 && first <= last {
				t.Errorf("file %d begins in interval %d, the one before ends in %d", i, first, last)
			}
			last = cfg.Domain.ID(f.MaxIndex)
			total += f.Rows
			if len(f.Index.Directory) != tickSymbols || f.RowGroups != 1 {
				t.Errorf("file %d has %d entities in %d row groups", i, len(f.Index.Directory), f.RowGroups)
			}
		}
		if total != rows || len(result.Files) != 4 || result.Coverage.Total() != rows {
			t.Errorf("%d rows in %d files cover %d intervals", total, len(result.Files), result.Coverage.Total())
		}
	}
}
