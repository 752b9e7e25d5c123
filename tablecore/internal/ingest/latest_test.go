package ingest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/interval"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
)

// overwrites makes a model's table one that overwrites, with intervals that
// hold several rows.
func (m *model) overwrites(rng *rand.Rand) {
	m.def.Uniqueness = tabledef.UniqueOverwrite
	if m.def.Granularity.IsZero() {
		m.def.Granularity = tabledef.Granularity{N: 10}
		if m.def.IndexType == tabledef.IndexTimestamp {
			m.def.Granularity.Unit = "s"
		}
	}
	m.def.Granularity.N *= 1 + rng.Uint64N(5)
}

// lastOfEach keeps of the rows of one entity in one interval the last one, the
// slow way.
func lastOfEach(rows []modelRow, domain interval.Domain) []modelRow {
	type place struct {
		key string
		id  uint64
	}
	last := map[place]int{}
	for i, r := range rows {
		last[place{r.key, domain.ID(r.ordinal)}] = i
	}
	var kept []modelRow
	for i, r := range rows {
		if last[place{r.key, domain.ID(r.ordinal)}] == i {
			kept = append(kept, r)
		}
	}
	return kept
}

// TestLatestEqualsReference compares random appends to tables that overwrite, in
// memory and by runs, with a naive search for the last row of each interval.
func TestLatestEqualsReference(t *testing.T) {
	replaced := 0
	for seed := range uint64(200) {
		rows := 1 + int(seed)*9
		if seed == 199 {
			rows = 100_000
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 17))
			m := newModel(rng, rows)
			m.overwrites(rng)
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer mem.AssertSize(t, 0)
			input := m.fill(rng, memory.DefaultAllocator)
			cfg := testConfig(t, m.def, mem)
			cfg.limits, cfg.Write.MaxRowsPerRowGroup = m.limits, m.group
			want := lastOfEach(m.reference(t, input), cfg.Domain)
			replaced += rows - len(want)
			small := spilling(t, cfg, 1+rng.Int64N(int64(rows)))
			if rng.IntN(2) == 0 {
				small.limits.mergeBytes = 1 << (10 + rng.IntN(8)) // intervals are cut between entities
			}
			for _, cfg := range []Config{cfg, small} {
				cfg.Store = memstore.New()
				result, err := Run(context.Background(), cfg, &batches{m.stream, slices.Clone(input)})
				if err != nil {
					t.Fatal(err)
				}
				m.check(t, cfg.Store, result, want, cfg.Domain)
				if result.Coverage.Total() != uint64(len(want)) {
					t.Fatalf("%d intervals are covered, want %d", result.Coverage.Total(), len(want))
				}
				checkIndexes(t, result)
			}
		})
	}
	if replaced < 1000 {
		t.Errorf("only %d rows were replaced: the test shows little", replaced)
	}
}

// checkIndexes makes sure that what the files say of their rows fits their
// number.
func checkIndexes(t *testing.T, result *Result) {
	t.Helper()
	for i, f := range result.Files {
		rows := int64(0)
		for _, r := range f.Index.Directory {
			if r.Start != rows || r.End <= r.Start || r.First < f.MinIndex || r.Last > f.MaxIndex {
				t.Fatalf("file %d: run %+v behind row %d, of [%d, %d]", i, r, rows, f.MinIndex, f.MaxIndex)
			}
			rows = r.End
		}
		if rows != f.Rows || f.Index.Rows != rows || f.Index.Coverage.Total() != uint64(rows) {
			t.Fatalf("file %d has %d rows, the directory %d and the index %d; %d intervals", i, f.Rows, rows, f.Index.Rows, f.Index.Coverage.Total())
		}
	}
}

// TestLatestRow shows which of the rows in an interval stays: the last one of
// the stream, whatever its index value and the run it came in.
func TestLatestRow(t *testing.T) {
	for _, c := range []struct {
		name string
		rows []observation
		want []observation
	}{
		{"a later value", []observation{{"E", 0, 10}, {"E", 0, 20}}, []observation{{"E", 0, 20}}},
		{"an earlier value", []observation{{"E", 0, 20}, {"E", 0, 10}}, []observation{{"E", 0, 10}}},
		{"the middle value", []observation{{"E", 0, 30}, {"E", 0, 10}, {"E", 0, 20}}, []observation{{"E", 0, 20}}},
		{"other entities and intervals", []observation{{"F", 1, 5}, {"E", 1, 5}, {"E", 0, 5}, {"E", 1, 1}}, []observation{{"E", 0, 5}, {"E", 1, 1}, {"F", 1, 5}}},
		{"one row many times", slices.Repeat([]observation{{"E", 0, 7}}, 100), []observation{{"E", 0, 7}}},
	} {
		for run := range int64(4) {
			t.Run(fmt.Sprint(c.name, "/runs of ", run), func(t *testing.T) {
				cfg := start(t, weather(tabledef.UniqueOverwrite))
				if run > 0 {
					cfg = spilling(t, cfg, run)
				}
				result, err := Run(context.Background(), cfg, observations(c.rows, 2))
				if err != nil {
					t.Fatal(err)
				}
				var got, want []string
				for _, f := range result.Files {
					for _, row := range readFile(t, cfg.Store, f.Path, cfg.Def.Stored) {
						got = append(got, row[0]+" "+row[1])
					}
				}
				for _, o := range c.want {
					want = append(want, o.origin+" "+time.UnixMicro(o.hour*hour+o.micros).UTC().Format(time.RFC3339Nano))
				}
				if !slices.Equal(got, want) || result.Rows != int64(len(want)) {
					t.Fatalf("%d rows %v, want %v", result.Rows, got, want)
				}
			})
		}
	}
}
