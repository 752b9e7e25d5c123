package scan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/predicate"
)

func ranges(pairs ...int64) (out []datafile.RowRange) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, datafile.RowRange{Start: pairs[i], End: pairs[i+1]})
	}
	return out
}

func TestRanges(t *testing.T) {
	if got := coalesce(ranges(0, 5, 5, 5, 100, 200, 20000, 20001)); !slices.Equal(got, ranges(0, 200, 20000, 20001)) {
		t.Errorf("coalesced to %v", got)
	}
	if got := intersect(ranges(0, 10, 20, 30, 40, 50), ranges(5, 25, 29, 45)); !slices.Equal(got, ranges(5, 10, 20, 25, 29, 30, 40, 45)) {
		t.Errorf("intersected to %v", got)
	}
	if got := firstOf(ranges(0, 10, 20, 30), 15); !slices.Equal(got, ranges(0, 10, 20, 25)) {
		t.Errorf("cut to %v", got)
	}
	if got := firstOf(ranges(0, 10), 15); !slices.Equal(got, ranges(0, 10)) {
		t.Errorf("cut to %v", got)
	}
	groups := []datafile.RowGroup{{FirstRow: 0, Rows: 10}, {FirstRow: 10, Rows: 0}, {FirstRow: 10, Rows: 10}, {FirstRow: 20, Rows: 5}}
	if got := groupsOf(groups, ranges(3, 4, 22, 23)); got != 2 {
		t.Errorf("%d row groups", got)
	}
}

// streamOf walks the units of files given by their runs.
func streamOf(unordered bool, runs ...[]derived.Run) string {
	p := &Plan{runs: runs, query: &query{unordered: unordered}}
	var units []string
	for s := p.stream(); s.next(); {
		var pieces []string
		for _, piece := range s.unit.pieces {
			pieces = append(pieces, fmt.Sprintf("%d:%d-%d", piece.file, piece.first, piece.last))
		}
		units = append(units, s.unit.key+" "+strings.Join(pieces, " "))
	}
	return strings.Join(units, ", ")
}

func run(key string, first, last uint64) derived.Run {
	return derived.Run{Key: key, End: 1, First: first, Last: last}
}

func TestUnits(t *testing.T) {
	a := []derived.Run{run("a", 0, 5), run("b", 0, 9)}
	b := []derived.Run{run("a", 6, 8), run("b", 9, 12), run("c", 0, 0)}
	c := []derived.Run{run("a", 2, 3), run("b", 20, 30)}
	if got, want := streamOf(false, a, b, c, nil), "a 0:0-5 2:2-3, a 1:6-8, b 0:0-9 1:9-12, b 2:20-30, c 1:0-0"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := streamOf(true, a, c), "a 0:0-5, b 0:0-9, a 1:2-3, b 1:20-30"; got != want {
		t.Errorf("unordered: %s", got)
	}
	if got := streamOf(false); got != "" {
		t.Errorf("nothing gives %s", got)
	}
}

func TestDepth(t *testing.T) {
	depth := func(runs ...[]derived.Run) int { return (&Plan{runs: runs, query: &query{}}).depth() }
	one := func(key string, first, last uint64) []derived.Run { return []derived.Run{run(key, first, last)} }
	for name, c := range map[string]struct{ got, want int }{
		"one after the other": {depth(one("a", 0, 5), one("a", 6, 7), one("b", 0, 9)), 1},
		"overlapping":         {depth(one("a", 0, 5), one("a", 5, 7), one("a", 1, 9)), 3},
		"a chain":             {depth(one("a", 0, 5), one("a", 5, 10), one("a", 10, 15)), 2},
		"several entities":    {depth([]derived.Run{run("a", 0, 1), run("z", 0, 1)}, []derived.Run{run("a", 2, 3), run("z", 2, 3)}), 2},
		"nothing":             {depth(nil, nil), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", name, c.got, c.want)
		}
	}
}

// Every unit belongs to exactly one part, the parts ascend, and their weights
// are about equal.
func TestDivider(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		weights := make([]float64, 1+r.IntN(50))
		total := 0.0
		for i := range weights {
			weights[i] = float64(r.IntN(100))
			total += weights[i]
		}
		count := 1 + r.IntN(8)
		d, last := divider{total: total, count: count}, 0
		for _, w := range weights {
			part := d.part(w)
			if part < last || part >= count {
				t.Fatalf("part %d of %d follows %d", part, count, last)
			}
			last = part
		}
	}
}

func TestRanking(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		k := &ranking{rows: 1 + r.IntN(10)}
		var all []uint64
		for range r.IntN(20) {
			some := make([]uint64, r.IntN(12))
			for i := range some {
				some[i] = r.Uint64N(15)
			}
			slices.Sort(some)
			all = append(all, some...)
			k.add(some)
		}
		if len(all) < k.rows {
			continue
		}
		low := k.cut()
		slices.Sort(all)
		slices.Reverse(all)
		if low != all[k.rows-1] {
			t.Fatalf("the %d. highest is %d, not %d", k.rows, all[k.rows-1], low)
		}
		atOrAbove := int64(0)
		for _, v := range all {
			if v >= low {
				atOrAbove++
			}
		}
		if got := int64(len(k.values)) + k.dropped(low); got != atOrAbove {
			t.Fatalf("%d values from %d on, not %d", atOrAbove, low, got)
		}
	}
}

func TestCut(t *testing.T) {
	p := &Plan{query: &query{span: predicate.Span{First: 5, Last: 9}}}
	got := p.cut(derived.Run{Key: "a", Start: 100, End: 105}, []uint64{1, 5, 7, 9, 12})
	if got != (derived.Run{Key: "a", Start: 101, End: 104, First: 5, Last: 9}) {
		t.Errorf("cut to %+v", got)
	}
	if got := p.cut(derived.Run{Key: "a", Start: 100, End: 102}, []uint64{1, 12}); got.Start != got.End {
		t.Errorf("cut to %+v", got)
	}
}
