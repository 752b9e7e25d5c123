package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// sortedFiles are files that were written, as Merge takes them.
func sortedFiles(t *testing.T, cfg Config, written []newfile.File) SortedFiles {
	t.Helper()
	in := SortedFiles{Snapshot: &snapshot.Snapshot{State: &deltalog.State{}, Def: cfg.Def},
		Cache: filecache.New().Files(cfg.Store, cfg.Mem, func(_ context.Context, path, reason string) { t.Errorf("%s: %s", path, reason) })}
	for _, f := range written {
		in.List = append(in.List, &snapshot.File{Path: f.Path, Add: f.Add})
	}
	return in
}

// TestMergeEqualsRun merges the files of random appends: what comes out are the
// files that one append of all rows makes.
func TestMergeEqualsRun(t *testing.T) {
	merged := 0
	for seed := range uint64(80) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			m := newModel(rng, 1+int(seed)*9)
			input := m.fill(rng, memory.DefaultAllocator)
			cfg := start(t, m.def)
			cfg.Write.MaxRowsPerRowGroup = m.group
			var written []newfile.File
			for from := 0; from < len(input); {
				to := min(len(input), from+1+rng.IntN(1+len(input)/3))
				result, err := Run(t.Context(), cfg, &batches{m.stream, slices.Clone(input[from:to])})
				if err != nil {
					t.Fatal(err)
				}
				written, from = append(written, result.Files...), to
			}
			cfg.limits = m.limits
			cfg.limits.blockRows = int64(1 + rng.IntN(200))
			files, done, err := Merge(t.Context(), cfg, sortedFiles(t, cfg, written))
			if err != nil || !done {
				if err != nil || len(keys(t, cfg.Store)) != len(written) {
					t.Errorf("%v, %d files", err, len(keys(t, cfg.Store)))
				}
				return
			}
			merged++
			result := &Result{Files: files}
			result.count()
			m.check(t, cfg.Store, result, m.reference(t, input), cfg.Domain)
			want, err := Run(t.Context(), cfg, &batches{m.stream, input})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(files, want.Files, func(a, b newfile.File) bool {
				return a.Index.Equal(&b.Index) && a.MinIndex == b.MinIndex && a.MaxIndex == b.MaxIndex && a.Add.Stats == b.Add.Stats
			}) {
				t.Error("an append of all rows makes other files")
			}
		})
	}
	if merged < 30 {
		t.Errorf("only %d were merged", merged)
	}
}

// overlapping are two files of stations that overlap, and what may merge them.
func overlapping(t *testing.T) (Config, SortedFiles) {
	t.Helper()
	cfg := start(t, weather(tabledef.UniqueNone))
	var written []newfile.File
	for file := range int64(2) {
		var rows []observation
		for i := range int64(300) {
			rows = append(rows, observation{fmt.Sprint("E", i%3), 2*i + file, 0})
		}
		result, err := Run(t.Context(), cfg, observations(rows, 100))
		if err != nil {
			t.Fatal(err)
		}
		written = append(written, result.Files...)
	}
	cfg.Shape.FileRows = 100
	return cfg, sortedFiles(t, cfg, written)
}

// TestMergeLeavesToRun: what it cannot do it does not begin.
func TestMergeLeavesToRun(t *testing.T) {
	for name, change := range map[string]func(cfg *Config, in *SortedFiles){
		"by entity":        func(cfg *Config, _ *SortedFiles) { cfg.Shape.ByEntity = true },
		"many inputs":      func(_ *Config, in *SortedFiles) { in.List = slices.Repeat(in.List, mostInputs) },
		"many outputs":     func(cfg *Config, _ *SortedFiles) { cfg.Shape.FileRows = 2 },
		"little memory":    func(cfg *Config, _ *SortedFiles) { cfg.MemoryBudget = 1 << 10 },
		"a budget used up": func(cfg *Config, _ *SortedFiles) { cfg.Budget = NewBudget(1 << 10) },
		"an unsorted file": func(cfg *Config, in *SortedFiles) {
			in.Cache.Keep(cfg.Def, in.List[1].Path, &derived.FileIndex{Rows: 300})
		},
		"nothing": nil,
	} {
		t.Run(name, func(t *testing.T) {
			cfg, in := overlapping(t)
			if change != nil {
				change(&cfg, &in)
			}
			files, done, err := Merge(t.Context(), cfg, in)
			if err != nil || done != (change == nil) || done != (len(files) == 6) {
				t.Errorf("got %d files, %t, %v", len(files), done, err)
			}
			if left := len(keys(t, cfg.Store)); left != 2+len(files) {
				t.Errorf("%d files are there", left)
			}
			if cfg.Budget != nil && cfg.Budget.Used() != 0 {
				t.Errorf("%d bytes are kept", cfg.Budget.Used())
			}
		})
	}
}

// TestMergeGivesUp: rows that turn out to be much larger than their files tell are
// left to Run, which has little memory for them.
func TestMergeGivesUp(t *testing.T) {
	cfg := start(t, weather(tabledef.UniqueNone, arrow.Field{Name: "body", Type: arrow.BinaryTypes.String, Nullable: true}))
	text := strings.Repeat("same", 2500)
	cfg.Budget = NewBudget(1 << 30)
	var written []newfile.File
	for file := range int64(2) {
		result, err := Run(t.Context(), cfg, stationTexts(300, file, func(b *array.StringBuilder) { b.Append(text) }))
		if err != nil {
			t.Fatal(err)
		}
		written = append(written, result.Files...)
	}
	for budget, want := range map[int64]bool{64 << 20: true, 4 << 20: false} {
		cfg.MemoryBudget = budget
		before := len(keys(t, cfg.Store))
		files, done, err := Merge(t.Context(), cfg, sortedFiles(t, cfg, written))
		if err != nil || done != want || len(keys(t, cfg.Store)) != before+len(files) || cfg.Budget.Used() != 0 {
			t.Errorf("with %d bytes: %d files, %t, %v, %d bytes are kept", budget, len(files), done, err, cfg.Budget.Used())
		}
	}
}

// stationTexts are rows of a station, in every second hour from one on, with a
// column body.
func stationTexts(rows int, first int64, body func(*array.StringBuilder)) *batches {
	schema := arrow.NewSchema(append(weather(tabledef.UniqueNone).Schema().Fields(), arrow.Field{Name: "body", Type: arrow.BinaryTypes.String, Nullable: true}), nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := range int64(rows) {
		b.Field(0).(*array.StringBuilder).Append("E")
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp((2*i + first) * hour))
		body(b.Field(2).(*array.StringBuilder))
	}
	return &batches{schema, []arrow.RecordBatch{b.NewRecordBatch()}}
}

// TestMergeAddedColumn merges a file that is older than a column with one that
// has it.
func TestMergeAddedColumn(t *testing.T) {
	cfg := start(t, weather(tabledef.UniqueNone))
	var rows []observation
	for i := range int64(300) {
		rows = append(rows, observation{"E", 2 * i, 0})
	}
	old, err := Run(t.Context(), cfg, observations(rows, 100))
	if err != nil {
		t.Fatal(err)
	}
	body := arrow.Field{Name: "body", Type: arrow.BinaryTypes.String, Nullable: true}
	cfg.Def = weather(tabledef.UniqueNone, body)
	younger, err := Run(t.Context(), cfg, stationTexts(300, 1, func(b *array.StringBuilder) { b.Append(fmt.Sprint(b.Len())) }))
	if err != nil {
		t.Fatal(err)
	}
	files, done, err := Merge(t.Context(), cfg, sortedFiles(t, cfg, append(old.Files, younger.Files...)))
	if err != nil || !done || len(files) != 1 {
		t.Fatalf("got %d files, %t, %v", len(files), done, err)
	}
	got := readFile(t, cfg.Store, files[0].Path, arrow.NewSchema([]arrow.Field{body}, nil))
	if len(got) != 600 {
		t.Fatalf("%d rows", len(got))
	}
	for i, row := range got {
		if want := []string{array.NullValueStr, fmt.Sprint(i / 2)}[i%2]; row[0] != want {
			t.Errorf("row %d has %q, want %q", i, row[0], want)
		}
	}
}

// A block never has more batches than there are places for.
func TestMergeBlockFull(t *testing.T) {
	b := &mergeBlock{sources: make([]arrow.RecordBatch, mostPlaces-mostInputs), rows: 1, bytes: 1}
	if b.full(2) || !b.full(1) {
		t.Error("a block counts its rows wrongly")
	}
	if b.sources = append(b.sources, nil); !b.full(2) {
		t.Error("a block might have more batches than places")
	}
	if b = (&mergeBlock{bytes: 2 * blockBytes}); !b.full(1) {
		t.Error("a block grows without bounds")
	}
}

// TestMergeFailures: a file that is gone, one whose rows do not lie as its
// directory says, and a caller that has left, leave nothing behind.
func TestMergeFailures(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, cfg Config, in SortedFiles)
		want  func(err error) bool
	}{
		"a file is missing": {func(t *testing.T, cfg Config, in SortedFiles) {
			if err := cfg.Store.Delete(t.Context(), in.List[1].Path); err != nil {
				t.Fatal(err)
			}
		}, func(err error) bool { return tableerr.TokenOf(err) == tableerr.TokenFileMissing }},
		"a directory lies": {func(_ *testing.T, cfg Config, in SortedFiles) {
			in.Cache.Keep(cfg.Def, in.List[1].Path, &derived.FileIndex{Rows: 300, Directory: derived.Directory{{Key: "all", End: 300}}})
		}, func(err error) bool {
			var corrupt *tableerr.Corrupt
			return errors.As(err, &corrupt) && corrupt.Path != "" && errors.Is(err, errDisorder)
		}},
		"a directory has more rows": {func(t *testing.T, cfg Config, in SortedFiles) {
			index, err := in.Cache.Index(t.Context(), in.Snapshot, in.List[1])
			if err != nil {
				t.Fatal(err)
			}
			longer := slices.Clone(index.Directory)
			longer[len(longer)-1].End++
			in.Cache.Keep(cfg.Def, in.List[1].Path, &derived.FileIndex{Rows: 301, Directory: longer})
		}, func(err error) bool { return tableerr.TokenOf(err) == tableerr.TokenCorrupt }},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, in := overlapping(t)
			c.spoil(t, cfg, in)
			before := len(keys(t, cfg.Store))
			if _, done, err := Merge(t.Context(), cfg, in); done || !c.want(err) {
				t.Errorf("got %t, %v", done, err)
			}
			if left := len(keys(t, cfg.Store)); left != before {
				t.Errorf("%d files are there, %d before", left, before)
			}
		})
	}
	cfg, in := overlapping(t)
	ctx, cancel := context.WithCancel(t.Context())
	cfg.Now = func() time.Time { cancel(); return time.Time{} }
	if _, done, err := Merge(ctx, cfg, in); done || !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that has left gets %t, %v", done, err)
	}
	if left := len(keys(t, cfg.Store)); left != 2 {
		t.Errorf("%d files are there", left)
	}
}

// TestMergeSpace compares merging with a stable sort.
func TestMergeSpace(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var space mergeSpace
	for round := range 200 {
		type row struct {
			key   uint64
			place uint32
		}
		var want []row
		space.reset()
		for range rng.IntN(9) {
			run := make([]uint64, rng.IntN(20))
			for i := range run {
				run[i] = uint64(rng.IntN(30) + round%2*len(want))
			}
			slices.Sort(run)
			first := uint32(len(want))
			space.add(run, first)
			for i, k := range run {
				want = append(want, row{k, first + uint32(i)})
			}
		}
		slices.SortStableFunc(want, func(a, b row) int { return cmp.Compare(a.key, b.key) })
		keys, places := space.sorted()
		var got []row
		for i := range keys {
			got = append(got, row{keys[i], places[i]})
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}
