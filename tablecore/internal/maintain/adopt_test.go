package maintain

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"contrail/tablecore/internal/coverage"
)

// pair is an interval of an entity.
type pair struct {
	key string
	id  uint64
}

func coverageOf(t *testing.T, pairs []pair) *coverage.Set {
	t.Helper()
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.id, b.id)) })
	b := coverage.NewBuilder()
	for i, p := range pairs {
		if i == 0 || p.key != pairs[i-1].key {
			b.Entity(p.key)
		}
		b.Add(p.id)
	}
	set, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// The tally of many files counts each row but the first in an interval, and gives
// the smallest example, whether the files overlap or follow each other.
func TestTally(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		var tally tally
		seen := map[pair]bool{}
		surplus, smallest := uint64(0), pair{}
		first := uint64(0)
		for range r.IntN(20) {
			first += r.Uint64N(1 + seed%30)
			own, last := map[pair]bool{{string(rune('a' + r.IntN(3))), first}: true}, first
			for range r.IntN(6) {
				p := pair{string(rune('a' + r.IntN(3))), first + r.Uint64N(20)}
				own[p], last = true, max(last, p.id)
			}
			pairs := slices.Collect(maps.Keys(own))
			for _, p := range pairs {
				if seen[p] {
					if surplus++; surplus == 1 || p.key < smallest.key || p.key == smallest.key && p.id < smallest.id {
						smallest = p
					}
				}
				seen[p] = true
			}
			if err := tally.add(coverageOf(t, pairs), first, last); err != nil {
				t.Fatal(err)
			}
		}
		if err := tally.settle(); err != nil {
			t.Fatal(err)
		}
		if got := tally.found; got.Count != surplus || surplus > 0 && (got.Key != smallest.key || got.ID != smallest.id) {
			t.Fatalf("seed %d: got %+v, want %d of which %+v is the smallest", seed, got, surplus, smallest)
		}
	}
}
