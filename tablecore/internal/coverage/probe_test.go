package coverage

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestProbe asks for random intervals in ascending order, equal ones too, and
// compares the answers with those of Contains and of a map.
func TestProbe(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 9))
		n := random(rng)
		set := n.build(t)
		for i := range set.Entities() {
			var ids []uint64
			for p := range n {
				ids = append(ids, p.id, p.id+1, p.id-1)
			}
			ids = append(ids, 0, math.MaxUint64, rng.Uint64())
			slices.Sort(ids)
			probe := set.Probe(i)
			for _, id := range ids {
				want := n[pair{set.Key(i), id}]
				if probe.Has(id) != want || set.Contains(set.Key(i), id) != want {
					t.Fatalf("seed %d: is %d an interval of %q? want %t", seed, id, fmt.Sprint(set.Key(i)), want)
				}
			}
		}
	}
}
