package interval

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

func mustNew(t testing.TB, index tabledef.IndexType, unit arrow.TimeUnit, g tabledef.Granularity) Domain {
	t.Helper()
	d, err := New(index, unit, g)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// naive is the arithmetic of the package in math/big.
type naive struct {
	width    *big.Int
	min, max *big.Int
}

func newNaive(index tabledef.IndexType, unit arrow.TimeUnit, g tabledef.Granularity) naive {
	n := naive{width: new(big.Int).SetUint64(g.N), min: big.NewInt(math.MinInt64), max: big.NewInt(math.MaxInt64)}
	switch index {
	case tabledef.IndexUint64:
		n.min, n.max = big.NewInt(0), new(big.Int).SetUint64(math.MaxUint64)
	case tabledef.IndexTimestamp:
		n.width.Mul(n.width, new(big.Int).SetUint64(g.Nanos()))
		n.width.Div(n.width, big.NewInt(int64(unit.Multiplier())))
	}
	return n
}

// value turns an ordinal, or an id, into the number it stands for.
func (n naive) value(ordinal uint64) *big.Int {
	return new(big.Int).Add(n.min, new(big.Int).SetUint64(ordinal))
}

// id is floor(value / width) + 2^63 where values are signed; Div rounds down
// for positive divisors.
func (n naive) id(ordinal uint64) *big.Int {
	q := new(big.Int).Div(n.value(ordinal), n.width)
	if n.min.Sign() < 0 {
		q.Add(q, new(big.Int).Lsh(big.NewInt(1), 63))
	}
	return q
}

func (n naive) bounds(id *big.Int) (first, last *big.Int) {
	q := new(big.Int).Set(id)
	if n.min.Sign() < 0 {
		q.Sub(q, new(big.Int).Lsh(big.NewInt(1), 63))
	}
	first = new(big.Int).Mul(q, n.width)
	last = new(big.Int).Add(first, n.width)
	last.Sub(last, big.NewInt(1))
	if first.Cmp(n.min) < 0 {
		first = n.min
	}
	if last.Cmp(n.max) > 0 {
		last = n.max
	}
	return first, last
}

// samples are ordinals at which mistakes show: the domain's ends, zero, and
// values around whole multiples of the width.
func samples(n naive, rng *rand.Rand) []uint64 {
	out := []uint64{0, 1, 2, math.MaxUint64, math.MaxUint64 - 1, signBit - 2, signBit - 1, signBit, signBit + 1}
	for range 200 {
		out = append(out, rng.Uint64(), signBit+rng.Uint64()>>rng.IntN(64), signBit-rng.Uint64()>>rng.IntN(64))
	}
	for range 100 {
		// A multiple of the width inside the domain, and its neighbours.
		v := n.value(rng.Uint64())
		v.Sub(v, new(big.Int).Mod(v, n.width))
		v.Sub(v, n.min)
		for _, by := range []int64{-1, 0, 1} {
			if w := new(big.Int).Add(v, big.NewInt(by)); w.IsUint64() {
				out = append(out, w.Uint64())
			}
		}
	}
	return out
}

type axis struct {
	index tabledef.IndexType
	unit  arrow.TimeUnit
	g     tabledef.Granularity
}

func axes(rng *rand.Rand) []axis {
	var out []axis
	widths := []uint64{1, 2, 3, 5, 7, 10, 60, 1 << 20, 3600, 1e9, 1e9 + 7, math.MaxUint32, 1 << 40, math.MaxInt64 - 1, math.MaxInt64, 1 << 63, 1<<63 + 1, math.MaxUint64 - 1, math.MaxUint64}
	for range 200 {
		widths = append(widths, max(1, rng.Uint64()>>rng.IntN(64)))
	}
	for _, w := range widths {
		out = append(out, axis{tabledef.IndexInt64, 0, tabledef.Granularity{N: w}}, axis{tabledef.IndexUint64, 0, tabledef.Granularity{N: w}})
	}
	for _, unit := range []arrow.TimeUnit{arrow.Second, arrow.Millisecond, arrow.Microsecond, arrow.Nanosecond} {
		for _, n := range []uint64{1, 7, 15, 1e9, math.MaxUint32} {
			for _, u := range []string{"ns", "us", "ms", "s", "m", "h", "d", "w"} {
				out = append(out, axis{tabledef.IndexTimestamp, unit, tabledef.Granularity{N: n, Unit: u}})
			}
		}
	}
	return out
}

func TestAgainstBigIntegers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	checked := 0
	for _, a := range axes(rng) {
		d, err := New(a.index, a.unit, a.g)
		if err != nil {
			continue
		}
		checked++
		n := newNaive(a.index, a.unit, a.g)
		ordinals := samples(n, rng)
		ids := make([]uint64, len(ordinals))
		d.IDs(ids, ordinals)
		for i, o := range ordinals {
			want := n.id(o)
			if !want.IsUint64() || d.ID(o) != want.Uint64() || ids[i] != want.Uint64() {
				t.Fatalf("%v: value %v is in interval %d (or %d), want %v", a, n.value(o), d.ID(o), ids[i], want)
			}
			first, last := d.Bounds(ids[i])
			wantFirst, wantLast := n.bounds(want)
			if n.value(first).Cmp(wantFirst) != 0 || n.value(last).Cmp(wantLast) != 0 {
				t.Fatalf("%v: interval %d is [%v, %v], want [%v, %v]", a, ids[i], n.value(first), n.value(last), wantFirst, wantLast)
			}
			if first > o || last < o {
				t.Fatalf("%v: interval %d does not hold %v", a, ids[i], n.value(o))
			}
		}
		slices.Sort(ordinals)
		slices.Sort(ids)
		for i, o := range ordinals {
			if d.ID(o) != ids[i] {
				t.Fatalf("%v: ids do not keep the order", a)
			}
		}
		if d.MinID() != ids[0] || d.MaxID() != ids[len(ids)-1] {
			t.Fatalf("%v: domain is %d to %d", a, d.MinID(), d.MaxID())
		}
	}
	if checked < 500 {
		t.Errorf("only %d axes were checked", checked)
	}
}

func TestTwoIntervalsOfAWideGranularity(t *testing.T) {
	d := mustNew(t, tabledef.IndexTimestamp, arrow.Nanosecond, tabledef.Granularity{N: math.MaxUint32, Unit: "d"})
	if d.MinID() != signBit-1 || d.MaxID() != signBit {
		t.Fatalf("ids go from %x to %x", d.MinID(), d.MaxID())
	}
	if got, want := d.Text(d.MinID()), "[1677-09-21T00:12:43.145224192Z, 1970-01-01T00:00:00Z)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := d.Text(d.MaxID()), "[1970-01-01T00:00:00Z, 2262-04-11T23:47:16.854775807Z]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestIDsOutsideTheDomain(t *testing.T) {
	for _, a := range axes(rand.New(rand.NewPCG(3, 4))) {
		d, err := New(a.index, a.unit, a.g)
		if err != nil {
			continue
		}
		for _, id := range []uint64{0, d.MinID() - 1, d.MaxID() + 1, math.MaxUint64} {
			if id >= d.MinID() && id <= d.MaxID() {
				continue
			}
			first, last := d.Bounds(id)
			if end := uint64(math.MaxUint64); id > d.MaxID() && (first != end || last != end) || id < d.MinID() && (first != 0 || last != 0) {
				t.Fatalf("%v: interval %d is [%d, %d]", a, id, first, last)
			}
			d.Text(id)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, a := range []axis{
		{tabledef.IndexTimestamp, arrow.Second, tabledef.Granularity{N: 1, Unit: "ms"}},
		{tabledef.IndexTimestamp, arrow.Microsecond, tabledef.Granularity{N: 999, Unit: "ns"}},
		{tabledef.IndexTimestamp, arrow.Millisecond, tabledef.Granularity{N: 1001, Unit: "us"}},
		{tabledef.IndexTimestamp, arrow.Millisecond, tabledef.Granularity{N: 1, Unit: "fortnight"}},
	} {
		_, err := New(a.index, a.unit, a.g)
		var invalid *tableerr.Invalid
		if !errors.As(err, &invalid) || invalid.Field != "index_granularity" {
			t.Errorf("%v: %v", a, err)
		}
	}
}

func TestWithoutIntervals(t *testing.T) {
	for _, d := range []Domain{{}, mustNew(t, tabledef.IndexUint64, 0, tabledef.Granularity{}), mustNew(t, tabledef.IndexTimestamp, arrow.Second, tabledef.Granularity{})} {
		if d.HasIntervals() {
			t.Error("there are intervals")
		}
		ids := make([]uint64, 1)
		d.IDs(ids, []uint64{77})
		first, last := d.Bounds(77)
		if d.ID(77) != 77 || ids[0] != 77 || first != 77 || last != 77 {
			t.Errorf("value 77 is in interval %d or %d, [%d, %d]", d.ID(77), ids[0], first, last)
		}
	}
}

func TestIDsInPlace(t *testing.T) {
	d := mustNew(t, tabledef.IndexInt64, 0, tabledef.Granularity{N: 10})
	v := []uint64{SignedOrdinal(-1), SignedOrdinal(0), SignedOrdinal(19)}
	d.IDs(v, v)
	for i, want := range []int64{-1, 0, 1} {
		if SignedValue(v[i]) != want {
			t.Errorf("value %d is in interval %d, want %d", i, SignedValue(v[i]), want)
		}
	}
	if !d.Signed() || mustNew(t, tabledef.IndexUint64, 0, tabledef.Granularity{N: 10}).Signed() {
		t.Error("the axes' signs are wrong")
	}
}

func BenchmarkIDs(b *testing.B) {
	const rows = 64 << 10
	hour := tabledef.Granularity{N: 1, Unit: "h"}
	for _, c := range []struct {
		name string
		axis axis
	}{
		{"hour", axis{tabledef.IndexTimestamp, arrow.Microsecond, hour}},
		{"microsecond", axis{tabledef.IndexTimestamp, arrow.Microsecond, tabledef.Granularity{N: 1, Unit: "us"}}},
		{"seven", axis{tabledef.IndexUint64, 0, tabledef.Granularity{N: 7}}},
	} {
		b.Run(fmt.Sprintf("width=%s/rows=%d", c.name, rows), func(b *testing.B) {
			d := mustNew(b, c.axis.index, c.axis.unit, c.axis.g)
			ordinals, ids := make([]uint64, rows), make([]uint64, rows)
			rng := rand.New(rand.NewPCG(1, 2))
			for i := range ordinals {
				ordinals[i] = SignedOrdinal(1356998400000000 + rng.Int64N(365*86400e6))
			}
			for b.Loop() {
				d.IDs(ids, ordinals)
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// TestStoredOrdinal compares single stored values with whole columns.
func TestStoredOrdinal(t *testing.T) {
	us := &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	for _, c := range []struct {
		index  tabledef.IndexType
		unit   arrow.TimeUnit
		stored arrow.DataType
		v      int64
		want   int64
	}{
		{tabledef.IndexInt64, 0, arrow.PrimitiveTypes.Int64, -7, -7},
		{tabledef.IndexTimestamp, arrow.Microsecond, us, -7, -7},
		{tabledef.IndexTimestamp, arrow.Millisecond, us, -7, -1},
		{tabledef.IndexTimestamp, arrow.Second, us, 2_999_999, 2},
		{tabledef.IndexTimestamp, arrow.Nanosecond, arrow.PrimitiveTypes.Int64, 5, 5},
	} {
		d, err := New(c.index, c.unit, tabledef.Granularity{})
		if err != nil {
			t.Fatal(err)
		}
		if got := d.StoredOrdinal(c.stored, c.v); got != SignedOrdinal(c.want) {
			t.Errorf("%d of %s: %d, want %d", c.v, c.stored, SignedValue(got), c.want)
		}
	}
}
