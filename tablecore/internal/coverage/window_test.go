package coverage

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// idSet is a naive set of pairs.
type idSet map[string]map[uint64]bool

func (s idSet) set(t *testing.T) *Set {
	t.Helper()
	b := NewBuilder()
	for _, key := range slices.Sorted(maps.Keys(s)) {
		b.Entity(key)
		b.AddIDs(slices.Sorted(maps.Keys(s[key])))
	}
	set, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func (s idSet) add(key string, id uint64) {
	if s[key] == nil {
		s[key] = map[uint64]bool{}
	}
	s[key][id] = true
}

// randomSet has ids near the ends of the domain and near one place inside.
func randomSet(rng *rand.Rand) idSet {
	s := idSet{}
	for range rng.IntN(60) {
		id := rng.Uint64N(40)
		switch rng.IntN(3) {
		case 0:
			id = math.MaxUint64 - id
		case 1:
			id += 1 << 63
		}
		s.add(fmt.Sprint("e", rng.IntN(4)), id)
	}
	return s
}

// places are the ids that a random set may hold, ascending, and what is one
// step from them.
func places() []uint64 {
	var ids []uint64
	for i := range uint64(45) {
		ids = append(ids, i, math.MaxUint64-i, 1<<63+i, 1<<63-1-i)
	}
	slices.Sort(ids)
	return ids
}

func expand(t *testing.T, runs iter.Seq2[uint64, uint64], ids []uint64) map[uint64]bool {
	t.Helper()
	in := map[uint64]bool{}
	last, any := uint64(0), false
	for a, b := range runs {
		if a > b || any && (a <= last || a == last+1) {
			t.Fatalf("a run %d to %d after one that ends at %d", a, b, last)
		}
		last, any = b, true
		for _, id := range ids {
			if a <= id && id <= b {
				in[id] = true
			}
		}
	}
	return in
}

func TestWindowAgainstNaive(t *testing.T) {
	ids := places()
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 9))
		a, b := randomSet(rng), randomSet(rng)
		m := NewMerged(a.set(t), b.set(t))
		w := Window{ids[rng.IntN(len(ids))], ids[rng.IntN(len(ids))]}
		if w.First > w.Last {
			w.First, w.Last = w.Last, w.First
		}
		var keys []string
		for e := range m.Entities() {
			keys = append(keys, e.Key)
			runs := m.Runs(e, w)
			covered, missing := expand(t, runs, ids), expand(t, Gaps(runs, w), ids)
			for _, id := range ids {
				in := w.First <= id && id <= w.Last
				has := a[e.Key][id] || b[e.Key][id]
				if covered[id] != (in && has) || missing[id] != (in && !has) {
					t.Fatalf("seed %d: entity %s, window %v: %d is covered %t, missing %t", seed, e.Key, w, id, covered[id], missing[id])
				}
			}
			checkSummary(t, runs, w)
			checkLastWindow(t, runs, w, a[e.Key], b[e.Key])
		}
		want := idSet{}
		for _, s := range []idSet{a, b} {
			for key := range s {
				want.add(key, 0)
			}
		}
		if !slices.Equal(keys, slices.Sorted(maps.Keys(want))) {
			t.Fatalf("seed %d: entities %q", seed, keys)
		}
	}
}

func checkSummary(t *testing.T, runs iter.Seq2[uint64, uint64], w Window) {
	t.Helper()
	s := Summarize(runs, w)
	var longest uint64
	for a, b := range Gaps(runs, w) {
		longest = max(longest, runLength(a, b))
	}
	if s.LongestGap != longest || s.Missing != w.Length() && s.Covered+s.Missing-1 != w.Last-w.First {
		t.Fatalf("window %v: %+v, longest gap %d", w, s, longest)
	}
	if (s.Ratio == 1) != (s.Missing == 0) && s.Missing > 1<<12 || (s.Ratio == 0) != (s.Covered == 0) {
		t.Fatalf("window %v: %+v", w, s)
	}
}

func checkLastWindow(t *testing.T, runs iter.Seq2[uint64, uint64], w Window, a, b map[uint64]bool) {
	t.Helper()
	for n := uint64(1); n < 5; n++ {
		var want Window
		found := false
		for id := range a {
			found = newer(&want, found, id, n, w, a, b)
		}
		for id := range b {
			found = newer(&want, found, id, n, w, a, b)
		}
		if got, ok := LastWindow(runs, n); ok != found || found && got != want {
			t.Fatalf("last window of %d in %v: %v %t, want %v %t", n, w, got, ok, want, found)
		}
	}
}

// newer looks whether the n ids that end at id are a newer window than best.
func newer(best *Window, found bool, id, n uint64, w Window, a, b map[uint64]bool) bool {
	if id < n-1 || id-(n-1) < w.First || id > w.Last || found && id <= best.Last {
		return found
	}
	for i := range n {
		if !a[id-i] && !b[id-i] {
			return found
		}
	}
	*best = Window{id - (n - 1), id}
	return true
}

// all is the window of every id.
var all = Window{0, math.MaxUint64}

func TestWindowOfTheWholeDomain(t *testing.T) {
	b := NewBuilder()
	b.Entity("")
	b.AddRun(0, math.MaxUint64)
	full, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	m := NewMerged(nil, full)
	e, found := m.Find("")
	if s := Summarize(m.Runs(e, all), all); !found || s != (Summary{Covered: math.MaxUint64, Ratio: 1}) {
		t.Errorf("a full domain is %+v", s)
	}
	if w, ok := LastWindow(m.Runs(e, all), math.MaxUint64); !ok || w != (Window{1, math.MaxUint64}) {
		t.Errorf("its last window is %v, %t", w, ok)
	}
	none, found := m.Find("x")
	if s := Summarize(m.Runs(none, all), all); found || s != (Summary{Missing: math.MaxUint64, LongestGap: math.MaxUint64}) {
		t.Errorf("an empty domain is %+v", s)
	}
	rest, err := Subtract(full, full)
	if err != nil || rest.Entities() != 0 {
		t.Errorf("a set less itself has %d entities, %v", rest.Entities(), err)
	}
}

func TestSubtractAgainstNaive(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 10))
		a, b := randomSet(rng), randomSet(rng)
		got, err := Subtract(a.set(t), b.set(t))
		if err != nil {
			t.Fatal(err)
		}
		want := idSet{}
		for key, ids := range a {
			for id := range ids {
				if !b[key][id] {
					want.add(key, id)
				}
			}
		}
		if string(got.AppendEncoded(nil)) != string(want.set(t).AppendEncoded(nil)) {
			t.Fatalf("seed %d: %v less %v", seed, a, b)
		}
	}
}

func TestMergedSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 11))
	a, b := randomSet(rng).set(t), randomSet(rng).set(t)
	union, err := Union(a, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m    *Merged
		want *Set
	}{{NewMerged(a, b), union}, {NewMerged(a, nil), a}, {NewMerged(nil, b), b}} {
		got, err := c.m.Set()
		if err != nil || string(got.AppendEncoded(nil)) != string(c.want.AppendEncoded(nil)) {
			t.Errorf("the union of parts differs: %v", err)
		}
		if base, more := c.m.Parts(); c.m.Bytes() != base.Bytes()+more.Bytes() {
			t.Error("the bytes are not those of the parts")
		}
	}
}
