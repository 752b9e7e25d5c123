package deltalog

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// TestPmapAgainstMap edits maps at random under shared owners, keeps old
// versions and holds all of them against plain maps. Short hashes make every
// kind of collision happen.
func TestPmapAgainstMap(t *testing.T) {
	for _, mask := range []uint64{^uint64(0), 0xff, 1 << 63, 0} {
		rnd := rand.New(rand.NewPCG(1, mask))
		hash := func(key string) uint64 {
			h := uint64(14695981039346656037)
			for i := range len(key) {
				h = (h ^ uint64(key[i])) * 1099511628211
			}
			return h & mask
		}
		type version struct {
			m    pmap[int]
			want map[string]int
		}
		kept := []version{{want: map[string]int{}}}
		for round := range 200 {
			from := kept[rnd.IntN(len(kept))]
			m, want, o := from.m, maps.Clone(from.want), &owner{}
			for range rnd.IntN(30) {
				key := fmt.Sprint("k", rnd.IntN(60))
				if rnd.IntN(3) == 0 {
					m.removeHash(o, hash(key), key)
					delete(want, key)
				} else {
					m.put(o, &pleaf[int]{hash(key), key, round})
					want[key] = round
				}
			}
			kept = append(kept, version{m, want})
		}
		for i, v := range kept {
			got := maps.Collect(v.m.all())
			if !maps.Equal(got, v.want) || v.m.len() != len(v.want) {
				t.Fatalf("mask %x: version %d = %v, want %v", mask, i, got, v.want)
			}
			for k := range 60 {
				key := fmt.Sprint("k", k)
				leaf := v.m.find(hash(key), key)
				if want, ok := v.want[key]; ok != (leaf != nil) || ok && leaf.value != want {
					t.Fatalf("mask %x: version %d: %s = %v", mask, i, key, leaf)
				}
			}
		}
	}
}

func TestPmapAllStops(t *testing.T) {
	var m pmap[int]
	for i := range 1000 {
		m.set(&owner{}, fmt.Sprint(i), i)
	}
	n := 0
	for range m.all() {
		if n++; n == 10 {
			break
		}
	}
	if n != 10 {
		t.Fatal(n)
	}
	if v, ok := m.get("7"); !ok || v != 7 {
		t.Fatal(v, ok)
	}
	if _, ok := m.get("x"); ok {
		t.Fatal("x is there")
	}
	m.remove(&owner{}, "7")
	m.remove(&owner{}, "x")
	if m.len() != 999 {
		t.Fatal(m.len())
	}
}
