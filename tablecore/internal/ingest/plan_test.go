package ingest

import (
	"slices"
	"testing"
)

func TestCutRowGroups(t *testing.T) {
	runsOf := func(sizes ...int) []run {
		var runs []run
		at := 0
		for i, n := range sizes {
			runs = append(runs, run{uint32(i), at, at + n})
			at += n
		}
		return runs
	}
	cases := []struct {
		name  string
		sizes []int
		max   int
		want  []int
	}{
		{"one small file", []int{5, 3}, 100, []int{8}},
		{"small entities fill a group up to a boundary", []int{30, 30, 30, 30}, 100, []int{90, 120}},
		{"a large entity begins a group", []int{20, 90, 10}, 100, []int{20, 120}},
		{"unless the one before stayed nearly empty", []int{5, 98, 2}, 100, []int{100, 105}},
		{"an entity larger than a group", []int{250, 10}, 100, []int{100, 200, 260}},
		{"exactly full", []int{100, 100}, 100, []int{100, 200}},
		{"groups of one row", []int{2, 1}, 1, []int{1, 2, 3}},
	}
	for _, c := range cases {
		if got := cutRowGroups(runsOf(c.sizes...), c.max); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestRangeOf(t *testing.T) {
	var many []uint64
	for i := range uint64(40) {
		many = append(many, 10*(i+1))
	}
	for _, cuts := range [][]uint64{many[:5], many} {
		for v := range uint64(500) {
			if got, want := rangeOf(cuts, v), min(int(v/10), len(cuts)); got != want {
				t.Fatalf("%d of %d cuts: got %d, want %d", v, len(cuts), got, want)
			}
		}
	}
}

// TestPieces checks how many files rows are worth.
func TestPieces(t *testing.T) {
	cases := []struct {
		rows, rowBytes int64
		want           int
	}{{1, 1, 1}, {2_000_000, 40, 1}, {2_000_001, 40, 2}, {10_000_000, 30, 8}, {11_000_000, 30, 10}, {1_000_000, 400, 4}, {1 << 40, 1, maxPieces}}
	for _, c := range cases {
		p := planner{limits: defaultLimits, rowBytes: c.rowBytes}
		if got := p.pieces(c.rows); got != c.want {
			t.Errorf("%d rows of %d bytes: %d pieces, want %d", c.rows, c.rowBytes, got, c.want)
		}
	}
}
