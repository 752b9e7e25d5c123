package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/scratch"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// spilling makes a config spill after a number of rows.
func spilling(tb testing.TB, cfg Config, rows int64) Config {
	tb.Helper()
	cfg.Scratch = scratch.Dir(tb.TempDir())
	cfg.limits.runRows = rows
	return cfg
}

// sameResult compares what an append without runs and one with runs made: the
// same files of the same rows.
func sameResult(t *testing.T, def *tabledef.Definition, memory, spilled *Result, a, b objstore.Store) {
	t.Helper()
	if memory.Rows != spilled.Rows || len(memory.Files) != len(spilled.Files) {
		t.Fatalf("%d rows in %d files, want %d in %d", spilled.Rows, len(spilled.Files), memory.Rows, len(memory.Files))
	}
	if !reflect.DeepEqual(memory.Coverage, spilled.Coverage) {
		t.Fatal("the coverage differs")
	}
	for i, want := range memory.Files {
		got := spilled.Files[i]
		if got.Rows != want.Rows || got.RowGroups != want.RowGroups || got.MinIndex != want.MinIndex || got.MaxIndex != want.MaxIndex {
			t.Fatalf("file %d is %+v, want %+v", i, got, want)
		}
		if !reflect.DeepEqual(got.Index, want.Index) {
			t.Fatalf("file %d: %+v, want %+v", i, got.Index, want.Index)
		}
		if !reflect.DeepEqual(got.Add.Tags, want.Add.Tags) || got.Add.Stats != want.Add.Stats {
			t.Fatalf("file %d: %v %s, want %v %s", i, got.Add.Tags, got.Add.Stats, want.Add.Tags, want.Add.Stats)
		}
		if rows := readFile(t, a, want.Path, def.Stored); !reflect.DeepEqual(readFile(t, b, got.Path, def.Stored), rows) {
			t.Fatalf("file %d holds other rows", i)
		}
	}
}

// TestSpilledEqualsMemory compares random appends with and without runs.
func TestSpilledEqualsMemory(t *testing.T) {
	for seed := range uint64(150) {
		rows := 1 + int(seed)*9
		if seed%50 == 49 {
			rows = 100_000
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 11))
			m := newModel(rng, rows)
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer mem.AssertSize(t, 0)
			input := m.fill(rng, memory.DefaultAllocator)
			cfg := testConfig(t, m.def, mem)
			cfg.limits, cfg.Write.MaxRowsPerRowGroup, cfg.Store = m.limits, m.group, memstore.New()
			want, err := Run(context.Background(), cfg, &batches{m.stream, input})
			if err != nil {
				t.Fatal(err)
			}
			small := spilling(t, cfg, 1+rng.Int64N(int64(rows)))
			small.Store = memstore.New()
			got, err := Run(context.Background(), small, &batches{m.stream, input})
			if err != nil {
				t.Fatal(err)
			}
			sameResult(t, m.def, want, got, cfg.Store, small.Store)
		})
	}
}

// TestSpilledDuplicates compares the duplicate that is named with a naive
// search: of the first run that has one in itself, or else of all rows.
func TestSpilledDuplicates(t *testing.T) {
	early, late := 0, 0
	for seed := range uint64(120) {
		rng := rand.New(rand.NewPCG(seed, 5))
		var rows []observation
		for e := range 1 + rng.IntN(20) {
			for h := range 1 + rng.IntN(100) {
				rows = append(rows, observation{fmt.Sprintf("E%02d", e), int64(h), rng.Int64N(hour)})
			}
		}
		for range rng.IntN(4) {
			r := rows[rng.IntN(len(rows))]
			if rng.IntN(2) == 0 {
				r.micros = rng.Int64N(hour)
			}
			rows = append(rows, r)
		}
		rng.Shuffle(len(rows), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
		run := 1 + rng.IntN(len(rows))
		cfg := spilling(t, start(t, weather(tabledef.UniqueReject)), int64(run))
		cfg.limits.rows, cfg.limits.maxRows, cfg.limits.bytes, cfg.limits.maxBytes = 100, 150, 1<<40, 1<<40
		_, err := Run(context.Background(), cfg, observations(rows, 1+rng.IntN(len(rows))))
		var want *tableerr.DuplicateInterval
		for first := 0; first < len(rows) && want == nil; first += run {
			if want = smallestDuplicate(rows[first:min(first+run, len(rows))]); want != nil {
				want.Rows[0], want.Rows[1] = want.Rows[0]+int64(first), want.Rows[1]+int64(first)
				early++
			}
		}
		if want == nil {
			if want = smallestDuplicate(rows); want != nil {
				late++
			}
		}
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
		if !reflect.DeepEqual(got, want) {
			t.Errorf("seed %d: got %+v, want %+v", seed, got, want)
		}
		if left := keys(t, cfg.Store); len(left) > 0 {
			t.Errorf("the store holds %v", left)
		}
	}
	if early < 10 || late < 10 {
		t.Errorf("%d duplicates in a run and %d between runs: the test shows little", early, late)
	}
}

// TestBudgetSpills takes rows in by a real budget, from large batches and small
// ones.
func TestBudgetSpills(t *testing.T) {
	var few, many []observation
	for i := range 70_000 {
		few = append(few, observation{"A", int64(i), 0})
		many = append(many, observation{fmt.Sprintf("entity number %d", i), 1, 0})
	}
	for i, rows := range [][]observation{few, many} {
		rand.New(rand.NewPCG(1, 1)).Shuffle(len(rows), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
		whole := start(t, weather(tabledef.UniqueReject))
		want, err := Run(context.Background(), whole, observations(rows, 10_000))
		if err != nil {
			t.Fatal(err)
		}
		for _, batch := range []int{100, 70_000} {
			cfg := spilling(t, start(t, weather(tabledef.UniqueReject)), 0)
			cfg.MemoryBudget = 500_000
			cfg.Budget = NewBudget(cfg.MemoryBudget)
			got, err := Run(context.Background(), cfg, observations(rows, batch))
			if err != nil {
				t.Fatalf("case %d: %v", i, err)
			}
			sameResult(t, cfg.Def, want, got, whole.Store, cfg.Store)
			if cfg.Budget.Used() != 0 {
				t.Errorf("%d bytes are kept", cfg.Budget.Used())
			}
		}
	}
}

// TestRowBeyondBudget refuses the one thing that no run helps against.
func TestRowBeyondBudget(t *testing.T) {
	cfg := spilling(t, start(t, weather(tabledef.UniqueReject)), 0)
	cfg.MemoryBudget = 20
	var large *tableerr.MessageTooLarge
	if _, err := Run(context.Background(), cfg, observations([]observation{{"A", 1, 0}, {"B", 2, 0}}, 2)); !errors.As(err, &large) {
		t.Errorf("got %v", err)
	}
	if !slices.Equal(keys(t, cfg.Store), nil) {
		t.Error("something is left")
	}
}

// TestSpilledNested compares appends of nested values with and without runs.
func TestSpilledNested(t *testing.T) {
	def := weather(tabledef.UniqueReject,
		arrow.Field{Name: "list", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
		arrow.Field{Name: "struct", Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
			arrow.Field{Name: "b", Type: arrow.ListOf(arrow.PrimitiveTypes.Int16), Nullable: true}), Nullable: true},
		arrow.Field{Name: "map", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64), Nullable: true},
		arrow.Field{Name: "decimal", Type: &arrow.Decimal128Type{Precision: 20, Scale: 3}, Nullable: true})
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 41))
		rows := 1 + rng.IntN(3000)
		var text strings.Builder
		for i, at := range rng.Perm(rows) {
			fmt.Fprintf(&text, `{"origin": "E%d", "hour": %d`, i%5, int64(at)*hour)
			if rng.IntN(4) > 0 {
				fmt.Fprintf(&text, `, "list": ["%d", null, "%s"]`, i, strings.Repeat("x", rng.IntN(20)))
			}
			if rng.IntN(4) > 0 {
				fmt.Fprintf(&text, `, "struct": {"a": %d.5, "b": [%d, null]}`, i, i%100)
			}
			if rng.IntN(4) > 0 {
				fmt.Fprintf(&text, `, "map": [{"key": "k%d", "value": %d}]`, i, i)
			}
			if rng.IntN(4) > 0 {
				fmt.Fprintf(&text, `, "decimal": "%d.125"`, i)
			}
			text.WriteString("}\n")
		}
		batch := batchOfJSON(t, def.Schema(), text.String(), rows)
		input := []arrow.RecordBatch{batch.NewSlice(0, int64(rows/3)), batch.NewSlice(int64(rows/3), int64(rows))}
		cfg := start(t, def)
		cfg.limits = limits{rows: 700, maxRows: 1000, bytes: 1 << 40, maxBytes: 1 << 40}
		want, err := Run(context.Background(), cfg, &batches{def.Schema(), input})
		if err != nil {
			t.Fatal(err)
		}
		small := spilling(t, start(t, def), 1+rng.Int64N(int64(rows)))
		small.limits.rows, small.limits.maxRows, small.limits.bytes, small.limits.maxBytes = 700, 1000, 1<<40, 1<<40
		got, err := Run(context.Background(), small, &batches{def.Schema(), input})
		if err != nil {
			t.Fatal(err)
		}
		sameResult(t, def, want, got, cfg.Store, small.Store)
	}
}

// batchOfJSON reads rows from JSON objects.
func batchOfJSON(t *testing.T, schema *arrow.Schema, text string, rows int) arrow.RecordBatch {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	decoder := json.NewDecoder(strings.NewReader(text))
	for range rows {
		if err := decoder.Decode(b); err != nil {
			t.Fatal(err)
		}
	}
	return b.NewRecordBatch()
}
