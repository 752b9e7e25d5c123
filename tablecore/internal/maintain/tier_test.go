package maintain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
)

func TestPlanTiers(t *testing.T) {
	one := func(min, rows int64) sized { return sized{min, min + 9, 1, rows, ""} }
	line := func(n int, rows int64) (files []sized) {
		for i := range n {
			files = append(files, one(int64(i)*10, rows))
		}
		return files
	}
	join := func(parts ...[]sized) []sized { return slices.Concat(parts...) }
	large := func(min, max int64) []sized { return []sized{{min, max, 50, 10, ""}} }
	for _, c := range []struct {
		name  string
		files []sized
		want  string // with four of a class merged
	}{
		{"nothing", nil, ""},
		{"one too few", line(3, 1), ""},
		{"as many as it takes", line(4, 1), "abcd"},
		{"and more", line(6, 1), "abcdef"},
		{"of different classes", []sized{one(0, 1), one(10, 4), one(20, 16), one(30, 64)}, ""},
		{"smaller ones between are taken along", []sized{one(0, 4), one(10, 1), one(20, 15), one(30, 4), one(40, 4)}, "abcde"},
		{"larger ones between are not", []sized{one(0, 1), one(10, 4), one(20, 1), one(30, 1), one(40, 1)}, "acde"},
		{"two classes", join(line(4, 64), line(4, 1)), "abcdefgh"},
		{"a large file between", join(line(2, 1), large(22, 23), []sized{one(30, 1), one(40, 1)}), ""},
		{"a large file over them", join(line(2, 1), large(5, 100), []sized{one(30, 1), one(40, 1)}), "abde"},
		{"so many that they are merged anywhere", join(line(2, 1), large(22, 23), []sized{one(30, 1), one(40, 1)}, large(50, 51), line(12, 1)), "abdeghijklmnopqr"},
		{"enough for a file", []sized{{0, 9, 24, 10, ""}, {10, 19, 24, 10, ""}, {20, 29, 24, 10, ""}, {30, 39, 24, 10, ""}, {40, 49, 24, 10, ""}, {50, 59, 24, 10, ""}}, "abcd!"},
		{"rows enough for a file", []sized{{0, 9, 1, targetRows * 2 / 5, ""}, {10, 19, 1, targetRows * 2 / 5, ""}, {20, 29, 1, targetRows * 2 / 5, ""}}, "ab!"},
		{"not small", []sized{{0, 9, 25, 1, ""}, {0, 9, 25, 1, ""}, {0, 9, 25, 1, ""}, {0, 9, 25, 1, ""}}, ""},
		{"unsorted, foreign, cut, of one entity on purpose", []sized{{0, 9, 1, 1, "apart"}, {0, 9, 1, 1, "unsorted"}, {0, 9, 1, 1, "foreign"}, {0, 9, 1, 1, "cut"}, one(0, 1), one(0, 1)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := planned(t, "5", c.files...)
			o := PlanTiers(s, TierConfig{MergeFiles: 4})
			if got := strings.Join(groupsOf(o), " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if o.Base() != s || o.Commit(s, nil).Info.OperationParameters["auto"] != "true" {
				t.Error("the plan is not of this version, or not automatic")
			}
		})
	}
}

// TestPlanTiersInTurn bounds a plan by its bytes; the default takes 32 files.
func TestPlanTiersInTurn(t *testing.T) {
	var files []sized
	for i := range int64(12) {
		files = append(files, sized{i * 10, i*10 + 9, 24, 10, ""})
	}
	s := planned(t, "5", files...)
	for max, want := range map[int64]string{0: "abcd! efgh! ijkl", 1: "abcd!", 96_000: "abcd!", 96_001: "abcd! efgh!"} {
		if got := strings.Join(groupsOf(PlanTiers(s, TierConfig{MergeFiles: 4, MaxBytes: max})), " "); got != want {
			t.Errorf("%d bytes: got %q, want %q", max, got, want)
		}
	}
	few := slices.Repeat([]sized{{0, 9, 1, 1, ""}}, 26)
	if o := PlanTiers(planned(t, "5", few...), TierConfig{}); !o.Empty() {
		t.Errorf("got %v", groupsOf(o))
	}
}

// TestPlanTiersOfEqualRows: where rows may be equal only files are merged that
// follow each other.
func TestPlanTiersOfEqualRows(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []sized
		want  string
	}{
		{"in the order of commits", []sized{{40, 49, 1, 1, ""}, {0, 9, 1, 1, ""}, {30, 39, 1, 1, ""}, {10, 19, 1, 1, ""}}, "abcd"},
		{"a larger file between, elsewhere", []sized{{0, 9, 1, 1, ""}, {0, 9, 1, 1, ""}, {10, 19, 300, 1, ""}, {0, 9, 1, 1, ""}, {0, 9, 1, 1, ""}}, "abde"},
		{"a larger file between, in the same place", []sized{{0, 9, 1, 1, ""}, {0, 9, 1, 1, ""}, {9, 19, 300, 1, ""}, {0, 9, 1, 1, ""}, {0, 9, 1, 1, ""}}, ""},
		{"and then as many as it takes", []sized{{0, 9, 1, 1, ""}, {9, 19, 1, 4, ""}, {0, 9, 1, 1, ""}, {0, 9, 1, 1, ""}, {0, 9, 1, 1, ""}, {0, 9, 1, 1, ""}}, "cdef"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newTierTable(t, tabledef.UniqueNone)
			for _, f := range c.files {
				x.append(f)
			}
			if got := strings.Join(x.names(PlanTiers(x.s, TierConfig{MergeFiles: 4})), " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// tierTable is a table without data: what the log says of its files.
type tierTable struct {
	t         *testing.T
	s         *snapshot.Snapshot
	appended  []sized
	holds     map[string][]int // which appends a file holds, in order
	rewritten int64            // bytes
}

func newTierTable(t *testing.T, uniqueness tabledef.Uniqueness) *tierTable {
	c := &deltalog.Commit{Protocol: deltalog.ContrailProtocol(false), Metadata: &deltalog.Metadata{ID: "p", Provider: "parquet", SchemaString: sitesSchema,
		Configuration: map[string]string{"contrail.format-version": "0.3.0", "contrail.index-column": "k", "contrail.index-type": "int64",
			"contrail.entity-columns": `["site"]`, "contrail.index-granularity": "1", "contrail.uniqueness": string(uniqueness), "contrail.target-file-bytes": "1000000"}}}
	return &tierTable{t: t, s: versions(t, c)[0], holds: map[string][]int{}}
}

// apply commits.
func (x *tierTable) apply(c *deltalog.Commit) {
	x.t.Helper()
	c.Version = x.s.Version() + 1
	var err error
	if x.s, err = x.s.Apply(c); err != nil {
		x.t.Fatal(err)
	}
}

// add is a file at the next version.
func (x *tierTable) add(f sized, bytes int64, holds []int) *deltalog.Add {
	version := x.s.Version() + 1
	path := fmt.Sprintf("%d-%d", version, len(x.holds))
	x.holds[path] = holds
	return &deltalog.Add{Path: path, Size: bytes, DataChange: true, Stats: fmt.Sprintf(`{"numRecords":%d}`, f.rows),
		Tags: map[string]string{tabledef.TagSorted: "true", tabledef.TagIndexMin: fmt.Sprint(f.min), tabledef.TagIndexMax: fmt.Sprint(f.max),
			tabledef.TagVersion: strconv.FormatInt(version, 10)}}
}

// append adds a file, of so many thousands of bytes.
func (x *tierTable) append(f sized) {
	x.appended = append(x.appended, f)
	x.apply(&deltalog.Commit{Adds: []*deltalog.Add{x.add(f, f.size*1000, []int{len(x.appended) - 1})}})
}

// names returns the groups of a plan by the appends whose rows they hold.
func (x *tierTable) names(o *Optimize) (all []string) {
	for _, g := range o.groups {
		text := ""
		for _, f := range g.files {
			for _, i := range x.holds[f.Path] {
				text += string(rune('a' + i))
			}
		}
		all = append(all, text)
	}
	return all
}

// maintain merges until there is nothing to merge.
func (x *tierTable) maintain(k int) {
	x.t.Helper()
	for round := 0; ; round++ {
		o := PlanTiers(x.s, TierConfig{MergeFiles: k})
		if o.Empty() {
			return
		}
		if round == 20 {
			x.t.Fatalf("there is no end: %v", groupsOf(o))
		}
		c := o.Commit(x.s, nil)
		for _, g := range o.groups {
			x.rewritten += g.bytes
			c.Adds = append(c.Adds, x.merged(o, g))
		}
		x.apply(c)
	}
}

// merged is the file that a group becomes.
func (x *tierTable) merged(o *Optimize, g *group) *deltalog.Add {
	f := sized{min: math.MaxInt64, max: math.MinInt64, rows: g.rows}
	var holds []int
	order := int64(0)
	for _, old := range g.files {
		f.min, f.max = min(f.min, int64(old.Min^1<<63)), max(f.max, int64(old.Max^1<<63))
		holds = append(holds, x.holds[old.Path]...)
		order = max(order, old.Order)
	}
	a := x.add(f, g.bytes, holds)
	if g.settled {
		a.Tags[tabledef.TagTarget] = strconv.FormatInt(o.cfg.TargetBytes, 10)
	}
	if x.s.Def.Uniqueness == tabledef.UniqueNone {
		a.Tags[tabledef.TagOrder] = strconv.FormatInt(order, 10)
	}
	return a
}

// inOrder makes sure that every append is there once, and, where rows may be
// equal, that of those that overlap the later one comes later, in a file or
// between files.
func (x *tierTable) inOrder() {
	x.t.Helper()
	var order []int
	for _, f := range x.s.Files {
		order = append(order, x.holds[f.Path]...)
	}
	if len(order) != len(x.appended) {
		x.t.Fatalf("%d of %d appends are there", len(order), len(x.appended))
	}
	for i, later := range order {
		for _, earlier := range order[i+1:] {
			a, b := x.appended[later], x.appended[earlier]
			if x.s.Def.Uniqueness == tabledef.UniqueNone && earlier < later && a.min <= b.max && b.min <= a.max {
				x.t.Fatalf("append %d comes behind %d", earlier, later)
			}
		}
	}
}

// TestTiersGrowWithTheLogarithm appends in every way and merges after each: what
// was rewritten grows no faster than the data times its logarithm, few small
// files are left, and equal rows keep their order.
func TestTiersGrowWithTheLogarithm(t *testing.T) {
	const k, n = 4, 400
	// What an append covers: the i-th in turn, or something older, or anything.
	shapes := map[string]func(r *rand.Rand, i int64) (int64, int64){
		"in time": func(_ *rand.Rand, i int64) (int64, int64) { return i * 10, i*10 + 9 },
		"late": func(r *rand.Rand, i int64) (int64, int64) {
			if r.IntN(4) == 0 {
				i = r.Int64N(i + 1)
			}
			return i * 10, i*10 + r.Int64N(15)
		},
		"anywhere":   func(r *rand.Rand, _ int64) (int64, int64) { low := r.Int64N(4000); return low, low + r.Int64N(500) },
		"everywhere": func(*rand.Rand, int64) (int64, int64) { return 0, 4000 },
		"backwards":  func(_ *rand.Rand, i int64) (int64, int64) { return -i * 10, -i*10 + 9 },
	}
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 1))
		for name, shape := range shapes {
			for _, uniqueness := range []tabledef.Uniqueness{tabledef.UniqueReject, tabledef.UniqueNone} {
				x := newTierTable(t, uniqueness)
				equal := r.IntN(2) == 0
				var bytes int64
				for i := range int64(n) {
					f := sized{rows: 1, size: 1}
					if !equal {
						f.rows = 1 + r.Int64N(1<<r.IntN(8))
						f.size = f.rows
					}
					f.min, f.max = shape(r, i)
					bytes += f.size * 1000
					x.append(f)
					x.maintain(k)
				}
				x.inOrder()
				classes := int64(math.Log(float64(bytes/1000))/math.Log(k)) + 1
				if x.rewritten > bytes*classes {
					t.Errorf("%s, %s: %d bytes became %d", name, uniqueness, bytes, x.rewritten)
				}
				large := 0
				for _, f := range x.s.Files {
					if f.Add.Size >= 250_000 {
						large++
					}
				}
				// Where rows may be equal those of different sizes may be in each other's way.
				if small := len(x.s.Files) - large; small > scattered*k*int(classes) && (uniqueness != tabledef.UniqueNone || equal) {
					t.Errorf("%s, %s: %d small files of %d appends, %d classes", name, uniqueness, small, n, classes)
				}
			}
		}
	}
}
