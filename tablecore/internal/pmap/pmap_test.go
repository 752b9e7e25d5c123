package pmap

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// TestAgainstMap edits maps at random under shared owners, keeps old
// versions and holds all of them against plain maps. Short hashes make every
// kind of collision happen.
func TestAgainstMap(t *testing.T) {
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
			m    Map[int]
			want map[string]int
		}
		kept := []version{{want: map[string]int{}}}
		for round := range 200 {
			from := kept[rnd.IntN(len(kept))]
			m, want, o := from.m, maps.Clone(from.want), &Owner{}
			for range rnd.IntN(30) {
				key := fmt.Sprint("k", rnd.IntN(60))
				if rnd.IntN(3) == 0 {
					m.removeHash(o, hash(key), key)
					delete(want, key)
				} else {
					m.put(o, &trieLeaf[int]{hash(key), key, round})
					want[key] = round
				}
			}
			kept = append(kept, version{m, want})
		}
		for i, v := range kept {
			got := maps.Collect(v.m.All())
			if !maps.Equal(got, v.want) || v.m.Len() != len(v.want) {
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

func TestAllStops(t *testing.T) {
	var m Map[int]
	for i := range 1000 {
		m.Set(&Owner{}, fmt.Sprint(i), i)
	}
	n := 0
	for range m.All() {
		if n++; n == 10 {
			break
		}
	}
	if n != 10 {
		t.Fatal(n)
	}
	if v, ok := m.Get("7"); !ok || v != 7 {
		t.Fatal(v, ok)
	}
	if _, ok := m.Get("x"); ok {
		t.Fatal("x is there")
	}
	m.Remove(&Owner{}, "7")
	m.Remove(&Owner{}, "x")
	if m.Len() != 999 {
		t.Fatal(m.Len())
	}
}
