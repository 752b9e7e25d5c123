package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// TestIntervalBeyondMemory merges a range of one interval whose rows find no
// memory together: it is cut between entities, and every duplicate between runs
// is still found.
func TestIntervalBeyondMemory(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 23))
		var rows []observation
		for e := range 2000 {
			rows = append(rows, observation{fmt.Sprintf("E%04d", e), 5, rng.Int64N(hour)})
		}
		for range rng.IntN(3) {
			r := rows[rng.IntN(len(rows))]
			r.micros = rng.Int64N(hour)
			rows = append(rows, r)
		}
		rows = append(rows, observation{"E0000", 3, 0}, observation{"E0000", 9, 0})
		rng.Shuffle(len(rows), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
		cfg := spilling(t, start(t, weather(tabledef.UniqueReject)), 100)
		cfg.limits.mergeBytes = 20_000
		result, err := Run(context.Background(), cfg, observations(rows, 100))
		var found *tableerr.DuplicateInterval
		if errors.As(err, &found) && found.Rows[0]/100 != found.Rows[1]/100 {
			if want := smallestDuplicate(rows); !reflect.DeepEqual(found, want) {
				t.Errorf("got %+v, want %+v", found, want)
			}
		}
		if found != nil {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if want := smallestDuplicate(rows); want != nil {
			t.Fatalf("%v was not seen", want)
		}
		if len(result.Files) < 5 || len(keys(t, cfg.Store)) != len(result.Files) {
			t.Fatalf("%d files", len(result.Files))
		}
		total, last := 0, ""
		for _, f := range result.Files[1 : len(result.Files)-1] {
			if f.Rows > 1000 || f.Index.Directory[0].Key <= last {
				t.Errorf("a file has %d rows from %q after %q", f.Rows, f.Index.Directory[0].Key, last)
			}
			last = f.Index.Directory[len(f.Index.Directory)-1].Key
		}
		for _, f := range result.Files {
			total += len(readFile(t, cfg.Store, f.Path, cfg.Def.Stored))
		}
		if total != len(rows) || result.Coverage.Total() != uint64(len(rows)) {
			t.Errorf("%d rows, %d intervals", total, result.Coverage.Total())
		}
	}
}

// TestEntityBeyondMemory merges the many rows of one entity in one interval of
// a table that takes them: the files follow each other by index, and equal
// values by arrival.
func TestEntityBeyondMemory(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 29))
		spread := []int64{1, 2, 50, hour}[seed%4]
		rows := make([]observation, 3000)
		for i := range rows {
			rows[i] = observation{"A", 5, rng.Int64N(spread)}
			if rng.IntN(3) == 0 {
				rows[i].micros = 0
			}
		}
		cfg := spilling(t, start(t, weather(tabledef.UniqueNone)), 1+rng.Int64N(1000))
		cfg.limits.mergeBytes = 20_000
		result, err := Run(context.Background(), cfg, observations(rows, 700))
		if err != nil {
			t.Fatal(err)
		}
		if len(result.Files) < 5 || result.Coverage.Total() != 1 {
			t.Fatalf("%d files", len(result.Files))
		}
		slices.SortStableFunc(rows, func(a, b observation) int { return cmp.Compare(a.micros, b.micros) })
		at := 0
		for _, f := range result.Files {
			if f.Rows > 1000 {
				t.Errorf("a file has %d rows", f.Rows)
			}
			for _, got := range readFile(t, cfg.Store, f.Path, cfg.Def.Stored) {
				if want := observations(rows[at:at+1], 1).left[0].Column(1).ValueStr(0); got[1] != want {
					t.Fatalf("row %d is %s, want %s", at, got[1], want)
				}
				at++
			}
		}
		if at != len(rows) {
			t.Errorf("%d rows", at)
		}
	}
}

// TestSmallMergeMemory merges ranges of several intervals with little memory:
// there are more files, of the same rows.
func TestSmallMergeMemory(t *testing.T) {
	var rows []observation
	for i := range 5000 {
		rows = append(rows, observation{fmt.Sprintf("E%d", i%7), int64(i * 11 % 5000), 0})
	}
	cfg := spilling(t, start(t, weather(tabledef.UniqueReject)), 900)
	cfg.limits.mergeBytes = 20_000
	result, err := Run(context.Background(), cfg, observations(rows, 100))
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Files) < 8 || result.Coverage.Total() != 5000 {
		t.Errorf("%d files cover %d intervals", len(result.Files), result.Coverage.Total())
	}
	last := uint64(0)
	for _, f := range result.Files {
		if f.MinIndex <= last || f.Rows > 1500 {
			t.Errorf("%d rows from %d after %d", f.Rows, f.MinIndex, last)
		}
		last = f.MaxIndex
	}
}
