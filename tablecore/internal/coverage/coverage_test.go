package coverage

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// pair is an element of the sets.
type pair struct {
	key string
	id  uint64
}

func comparePairs(a, b pair) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.id, b.id))
}

// naive is a set as a map.
type naive map[pair]bool

func (n naive) sorted() []pair { return slices.SortedFunc(maps.Keys(n), comparePairs) }

func (n naive) build(t testing.TB) *Set {
	t.Helper()
	b := NewBuilder()
	var ids []uint64
	sorted := n.sorted()
	for i, p := range sorted {
		if i == 0 || p.key != sorted[i-1].key {
			b.AddIDs(ids)
			ids = ids[:0]
			b.Entity(p.key)
		}
		ids = append(ids, p.id)
	}
	b.AddIDs(ids)
	return finish(t, b)
}

func finish(t testing.TB, b *Builder) *Set {
	t.Helper()
	s, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pairs lists the elements of a set, which must be small.
func pairs(s *Set) []pair {
	var out []pair
	for i := range s.Entities() {
		for first, last := range s.Runs(i) {
			for id := first; ; id++ {
				out = append(out, pair{s.Key(i), id})
				if id == last {
					break
				}
			}
		}
	}
	return out
}

// random makes sets whose ids are dense, sparse, or at the domain's ends.
func random(rng *rand.Rand) naive {
	n := naive{}
	base := []uint64{0, 1 << 63, math.MaxUint64 - 300, rng.Uint64()}[rng.IntN(4)]
	spread := []uint64{3, 30, 300, 1 << 40}[rng.IntN(4)]
	for range rng.IntN(400) {
		key := []string{"", "a\x00\x01", "ab\x00\x01", "b\x00\x01", "ba\x00\x01"}[rng.IntN(5)]
		id := base + rng.Uint64N(spread)
		if id < base {
			id = math.MaxUint64
		}
		n[pair{key, id}] = true
	}
	return n
}

func TestAgainstNaiveSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		n := random(rng)
		s := n.build(t)
		checkAgainst(t, s, n, rng)
		decoded, err := Decode(s.AppendEncoded(nil))
		if err != nil {
			t.Fatal(err)
		}
		checkAgainst(t, decoded, n, rng)
		if again := decoded.AppendEncoded(nil); !bytes.Equal(again, s.AppendEncoded(nil)) {
			t.Fatal("the encoding changed")
		}
	}
}

func checkAgainst(t *testing.T, s *Set, n naive, rng *rand.Rand) {
	t.Helper()
	sorted := n.sorted()
	if !slices.Equal(pairs(s), sorted) {
		t.Fatalf("the set has %d pairs, want %d", len(pairs(s)), len(sorted))
	}
	if s.Total() != uint64(len(n)) {
		t.Fatalf("the total is %d, want %d", s.Total(), len(n))
	}
	for i := range s.Entities() {
		var own []uint64
		for _, p := range sorted {
			if p.key == s.Key(i) {
				own = append(own, p.id)
			}
		}
		if s.Count(i) != uint64(len(own)) || s.First(i) != own[0] || s.Last(i) != own[len(own)-1] {
			t.Fatalf("entity %d has %d ids from %d to %d", i, s.Count(i), s.First(i), s.Last(i))
		}
	}
	for range 100 {
		p := pair{"a\x00\x01", rng.Uint64()}
		if len(sorted) > 0 {
			p = sorted[rng.IntN(len(sorted))]
			p.id += rng.Uint64N(3) - 1
		}
		if s.Contains(p.key, p.id) != n[p] {
			t.Fatalf("%v: Contains says %v", p, !n[p])
		}
	}
	if s.Contains("zz", 0) {
		t.Fatal("an unknown entity is contained")
	}
}

func TestIntersectAndUnion(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		a, b := random(rng), random(rng)
		if rng.IntN(2) == 0 { // make them meet
			for p := range a {
				if rng.IntN(3) == 0 {
					b[p] = true
				}
			}
		}
		common := naive{}
		for p := range a {
			if b[p] {
				common[p] = true
			}
		}
		sa, sb := a.build(t), b.build(t)
		for _, got := range []Overlap{Intersect(sa, sb), Intersect(sb, sa)} {
			if got.Count != uint64(len(common)) {
				t.Fatalf("the overlap is %d, want %d", got.Count, len(common))
			}
			if smallest := common.sorted(); len(smallest) > 0 && (pair{got.Key, got.ID}) != smallest[0] {
				t.Fatalf("the smallest pair is %v, want %v", got, smallest[0])
			}
		}
		all := maps.Clone(a)
		maps.Copy(all, b)
		sets := []*Set{sa, {}, sb}
		for range rng.IntN(6) {
			c := random(rng)
			maps.Copy(all, c)
			sets = append(sets, c.build(t))
		}
		union, err := Union(sets...)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(pairs(union), all.sorted()) {
			t.Fatal("the union is wrong")
		}
	}
}

// TestShared finds the smallest pair that two of some sets have.
func TestShared(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		seen, shared := naive{}, naive{}
		sets := []*Set{{}}
		for range rng.IntN(5) {
			s := random(rng)
			for p := range s {
				if seen[p] && rng.IntN(4) > 0 { // few meet
					delete(s, p)
				} else if seen[p] {
					shared[p] = true
				}
				seen[p] = true
			}
			sets = append(sets, s.build(t))
		}
		key, id, found := Shared(sets...)
		want := shared.sorted()
		if found != (len(want) > 0) || found && (pair{key, id}) != want[0] {
			t.Fatalf("got %q, %d, %t of %v", key, id, found, want)
		}
	}
	if _, _, found := Shared(); found {
		t.Error("no sets share something")
	}
}

// TestLongStreams goes over skips: two sets of many runs of which few meet.
func TestLongStreams(t *testing.T) {
	const n = 50_000
	rng := rand.New(rand.NewPCG(5, 6))
	a, b, few := NewBuilder(), NewBuilder(), NewBuilder()
	for _, x := range []*Builder{a, b, few} {
		x.Entity("")
		x.Add(7)
		x.Entity("e")
	}
	in := map[uint64]bool{}
	var ids []uint64
	for i := range uint64(n) {
		id := i*1000 + rng.Uint64N(500)
		a.Add(id)
		b.Add(i*1000 + 500 + rng.Uint64N(499))
		if i%5000 == 17 {
			few.Add(id)
			in[id] = true
		}
		ids = append(ids, id)
	}
	sa, sb, sf := finish(t, a), finish(t, b), finish(t, few)
	if len(sa.skips) != (n-1)/skipEvery {
		t.Errorf("there are %d skips", len(sa.skips))
	}
	decoded, err := Decode(sa.AppendEncoded(nil))
	if err != nil || !slices.Equal(decoded.skips, sa.skips) || !slices.Equal(decoded.skipped, sa.skipped) {
		t.Fatalf("the decoded set has other skips (%v)", err)
	}
	if got := Intersect(sa, sb); got != (Overlap{1, "", 7}) {
		t.Errorf("got %v", got)
	}
	if got := Intersect(sf, decoded); got.Count != uint64(len(in))+1 {
		t.Errorf("got %v", got)
	}
	for _, id := range ids[:2000] {
		if !decoded.Contains("e", id) || decoded.Contains("e", id+500) {
			t.Fatalf("id %d is told wrong", id)
		}
	}
	for range decoded.Runs(1) {
		break // a caller may stop
	}
}

func TestWholeDomain(t *testing.T) {
	b := NewBuilder()
	b.Entity("a")
	b.AddRun(0, math.MaxUint64)
	b.Entity("b")
	b.AddRun(5, 9)
	b.AddRun(7, 8)
	b.AddRun(10, math.MaxUint64)
	b.AddIDs([]uint64{math.MaxUint64})
	b.Entity("c")
	b.Add(0)
	b.Add(math.MaxUint64)
	s := finish(t, b)
	decoded, err := Decode(s.AppendEncoded(nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Set{s, decoded} {
		if s.Count(0) != math.MaxUint64 || s.Count(1) != math.MaxUint64-4 || s.Count(2) != 2 || s.Total() != math.MaxUint64 {
			t.Errorf("the counts are %d, %d, %d, %d", s.Count(0), s.Count(1), s.Count(2), s.Total())
		}
		if got := Intersect(s, s); got != (Overlap{math.MaxUint64, "a", 0}) {
			t.Errorf("got %v", got)
		}
		if !s.Contains("a", math.MaxUint64) || s.Contains("b", 4) || !s.Contains("c", math.MaxUint64) || s.Contains("c", 1) {
			t.Error("the ends are told wrong")
		}
	}
	if s.Bytes() <= 0 {
		t.Error("the set holds no memory")
	}
}

func TestBuilderOrder(t *testing.T) {
	for name, c := range map[string]struct {
		feed func(b *Builder)
		want error
	}{
		"no entity":           {func(b *Builder) { b.Add(1) }, ErrKeyOrder},
		"no entity, many":     {func(b *Builder) { b.AddIDs([]uint64{1, 5, 9}); b.Entity("a"); b.Add(1) }, ErrKeyOrder},
		"equal keys":          {func(b *Builder) { b.Entity("a"); b.Add(1); b.Entity("a"); b.AddIDs([]uint64{7}) }, ErrKeyOrder},
		"keys descend":        {func(b *Builder) { b.Entity("b"); b.Entity("a"); b.Entity("c"); b.Add(4) }, ErrKeyOrder},
		"ids descend":         {func(b *Builder) { b.Entity("a"); b.Add(2); b.Add(1) }, ErrIDOrder},
		"ids descend inside":  {func(b *Builder) { b.Entity("a"); b.AddIDs([]uint64{1, 5, 3}); b.Add(9) }, ErrIDOrder},
		"ids descend between": {func(b *Builder) { b.Entity("a"); b.AddIDs([]uint64{5}); b.AddIDs([]uint64{4}) }, ErrIDOrder},
		"after the last id":   {func(b *Builder) { b.Entity("a"); b.AddIDs([]uint64{math.MaxUint64, 0}) }, ErrIDOrder},
		"a run backwards":     {func(b *Builder) { b.Entity("a"); b.AddRun(2, 1) }, ErrIDOrder},
		"runs descend":        {func(b *Builder) { b.Entity("a"); b.AddRun(4, 8); b.AddRun(3, 9) }, ErrIDOrder},
	} {
		b := NewBuilder()
		c.feed(b)
		if s, err := b.Finish(); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, %v", name, s, err)
		}
	}
	b := NewBuilder()
	b.Entity("a")
	b.AddIDs(nil)
	b.Entity("b")
	b.AddIDs([]uint64{1, 1, 2})
	b.Entity("c")
	if s := finish(t, b); s.Entities() != 1 || s.Key(0) != "b" || s.Count(0) != 2 {
		t.Errorf("got %v", pairs(s))
	}
	if s := finish(t, NewBuilder()); s.Entities() != 0 || s.Total() != 0 {
		t.Error("an empty set is not empty")
	}
}

// TestEncodedBytes holds the persisted encoding.
func TestEncodedBytes(t *testing.T) {
	b := NewBuilder()
	b.Entity("EWR\x00\x01")
	b.AddRun(1<<63+100, 1<<63+199)
	b.Entity("EWX\x00\x01")
	b.AddIDs([]uint64{1<<63 + 90, 1<<63 + 92, 1<<63 + 300, 1<<63 + 301, 1<<63 + 302})
	want := "02" + "00" + "05" + "4557520001" + "c801" + "63" + "00" + "02" + "03" + "580001" + "13" + "00" + "04" + "00" + "9d03" + "01"
	if got := fmt.Sprintf("%x", finish(t, b).AppendEncoded(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := fmt.Sprintf("%x", (&Set{}).AppendEncoded(nil)); got != "00" {
		t.Errorf("got %s", got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := random(rand.New(rand.NewPCG(9, 9))).build(t).AppendEncoded(nil)
	for name, data := range map[string][]byte{
		"nothing":              {},
		"many entities":        {0xFF, 0xFF, 0xFF, 0xFF, 0x0F},
		"cut":                  good[:len(good)-1],
		"trailing":             append(slices.Clone(good), 0),
		"shared without last":  {1, 1, 1, 'a', 0, 0, 0},
		"key cut":              {1, 0, 9, 'a', 0, 0, 0},
		"equal keys":           {2, 0, 1, 'a', 0, 0, 0, 1, 0, 0, 0, 0},
		"keys descend":         {2, 0, 1, 'b', 0, 0, 0, 0, 1, 'a', 0, 0, 0},
		"prefix after longer":  {2, 0, 2, 'b', 'c', 0, 0, 0, 1, 0, 0, 0, 0},
		"first cut":            {1, 0, 1, 'a', 0x80, 0x80, 0x80},
		"first run too long":   {1, 0, 1, 'a', 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 0},
		"stream cut":           {1, 0, 1, 'a', 0, 0, 2, 0},
		"token cut":            {1, 0, 1, 'a', 0, 0, 1, tokenMore},
		"token with no rest":   {1, 0, 1, 'a', 0, 0, 2, tokenMore, 0},
		"length cut":           {1, 0, 1, 'a', 0, 0, 1, tokenLong},
		"gap beyond domain":    {1, 0, 1, 'a', 0, 0, 10, tokenMore, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 3},
		"gap beyond 64 bits":   {1, 0, 1, 'a', 0, 0, 11, tokenMore, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1},
		"length beyond domain": {1, 0, 1, 'a', 0, 0, 11, tokenLong, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1},
	} {
		if s, err := Decode(data); err == nil {
			t.Errorf("%s: decoded %d entities", name, s.Entities())
		}
	}
	// Keys that share a long beginning unfold; a bound stops them.
	long := bytes.Repeat([]byte{'k'}, 1<<20)
	data := append([]byte{0xE8, 7, 0, 0x80, 0x80, 0x40}, long...)
	data = append(data, 0, 0, 0)
	for i := range 999 {
		data = append(data, 0x80, 0x80, 0x40, 2, byte(i>>8), byte(i), 0, 0, 0)
	}
	if _, err := Decode(data); err == nil {
		t.Error("keys of 1 GB were unfolded")
	}
}

func FuzzDecode(f *testing.F) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 20 {
		f.Add(random(rng).build(f).AppendEncoded(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Decode(data)
		if err != nil {
			return
		}
		again, err := Decode(s.AppendEncoded(nil))
		if err != nil || again.Entities() != s.Entities() || again.Total() != s.Total() {
			t.Fatalf("the set did not come back: %v", err)
		}
		if s.Entities() > 0 {
			if got := Intersect(s, again); got.Count != s.Total() || got.Key != s.Key(0) || got.ID != s.First(0) {
				t.Fatalf("the set and itself have %v in common", got)
			}
		}
		union, err := Union(s, again)
		if err != nil || !bytes.Equal(union.AppendEncoded(nil), s.AppendEncoded(nil)) {
			t.Fatalf("the union of a set with itself is another one: %v", err)
		}
	})
}

// TestTenMillionTicks bounds the memory of 10 M ticks of 1,000 symbols in a
// day at a granularity of 1 µs.
func TestTenMillionTicks(t *testing.T) {
	const symbols, ticks, limit = 1000, 10_000, 48 << 20
	rng := rand.New(rand.NewPCG(1, 2))
	b := NewBuilder()
	ids := make([]uint64, ticks)
	for s := range symbols {
		at := uint64(1<<63) + 1_700_000_000_000_000
		for i := range ids {
			at += 1 + rng.Uint64N(2*86_400_000_000/ticks)
			ids[i] = at
		}
		b.Entity(fmt.Sprintf("SYM%06d\x00\x01", s))
		b.AddIDs(ids)
	}
	s := finish(t, b)
	data := s.AppendEncoded(nil)
	decoded, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if s.Total() != symbols*ticks || s.Bytes() > limit || decoded.Bytes() > limit || len(data) > limit {
		t.Errorf("%d pairs take %d bytes, %d decoded, %d encoded", s.Total(), s.Bytes(), decoded.Bytes(), len(data))
	}
}
