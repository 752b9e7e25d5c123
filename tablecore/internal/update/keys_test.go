package update

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"contrail/tablecore/internal/scratch"
	"contrail/tablecore/objstore"
)

// coded is a key with its entity.
type coded struct {
	code uint32
	key
}

// sortedKeys gives keys to a sorter and returns what it makes of them.
func sortedKeys(t *testing.T, all []coded, entities, limit int, space scratch.Space) *keys {
	t.Helper()
	s := &keySorter{limit: limit, space: space}
	t.Cleanup(s.close)
	for _, c := range all {
		if err := s.add(c.code, c.key); err != nil {
			t.Fatal(err)
		}
	}
	k, err := s.finish(t.Context(), entities)
	if err != nil {
		t.Fatal(err)
	}
	if inFile := k.file != nil; inFile != (space != nil && len(all) >= limit) {
		t.Errorf("%d keys of %d at once lie in a file: %t", len(all), limit, inFile)
	}
	return k
}

// TestKeys compares keys in memory and in scratch files, in one run or many,
// with a sorted list.
func TestKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		entities := 1 + rng.IntN(6)
		all := make([]coded, rng.IntN(300))
		for i := range all {
			all[i] = coded{uint32(rng.IntN(entities)), key{uint64(rng.IntN(50)) << 57, uint32(i)}}
		}
		want := slices.Clone(all)
		slices.SortFunc(want, func(a, b coded) int { return cmp.Or(cmp.Compare(a.code, b.code), compareKeys(a.key, b.key)) })
		limit, space := 1+rng.IntN(100), scratch.Space(scratch.Dir(t.TempDir()))
		if rng.IntN(3) == 0 {
			space = nil
		}
		k := sortedKeys(t, all, entities, limit, space)
		if k.count() != int64(len(all)) {
			t.Fatalf("%d keys of %d", k.count(), len(all))
		}
		for code := range uint32(entities) {
			mine := slices.DeleteFunc(slices.Clone(want), func(c coded) bool { return c.code != code })
			got := []key{}
			if err := k.pieces(code, func(list []key, place int64) error {
				if want[place].key != list[0] {
					t.Errorf("place %d holds %v, want %v", place, list[0], want[place])
				}
				got = append(got, list...)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			first, last := uint64(rng.IntN(50))<<57, uint64(rng.IntN(50))<<57
			some, _, err := k.of(code, first, last)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(got, mine, func(a key, b coded) bool { return a == b.key }) {
				t.Errorf("entity %d has %v, want %v", code, got, mine)
			}
			within := slices.DeleteFunc(mine, func(c coded) bool { return c.ordinal < first || c.ordinal > last })
			if !slices.EqualFunc(some, within, func(a key, b coded) bool { return a == b.key }) {
				t.Errorf("entity %d has %v from %d to %d, want %v", code, some, first, last, within)
			}
		}
	}
}

// full is a space whose files take a number of bytes.
type full struct {
	scratch.Space
	room int
}

// limited is a file of it.
type limited struct {
	scratch.File
	of *full
}

func (f *full) Create() (scratch.File, error) {
	if f.room == 0 {
		return nil, objstore.ErrNoSpace
	}
	file, err := f.Space.Create()
	return limited{file, f}, err
}

func (l limited) Write(p []byte) (int, error) {
	if l.of.room -= len(p); l.of.room < 0 {
		return 0, objstore.ErrNoSpace
	}
	return l.File.Write(p)
}

func TestKeysOnAFullDisk(t *testing.T) {
	for room := range 30 * keyBytes {
		s := &keySorter{limit: 5, space: &full{scratch.Dir(t.TempDir()), room}}
		var err error
		for i := 0; i < 17 && err == nil; i++ {
			err = s.add(0, key{uint64(i), uint32(i)})
		}
		if err == nil {
			_, err = s.finish(context.Background(), 1)
		}
		if !errors.Is(err, objstore.ErrNoSpace) {
			t.Errorf("with room for %d bytes: %v", room, err)
		}
		s.close()
	}
}

func TestJoin(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		stored := make([]uint64, rng.IntN(60))
		for i := range stored {
			stored[i] = uint64(rng.IntN(40))
		}
		slices.Sort(stored)
		var s span
		for v := range uint64(40) {
			if rng.IntN(4) == 0 {
				s.keys = append(s.keys, key{ordinal: v})
			}
		}
		var got, want [][2]int
		join(s, stored, func(row, k int) { got = append(got, [2]int{row, k}) })
		for row, v := range stored {
			for k := range s.keys {
				if s.keys[k].ordinal == v {
					want = append(want, [2]int{row, k})
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v with %v: got %v, want %v", stored, s.keys, got, want)
		}
	}
}
