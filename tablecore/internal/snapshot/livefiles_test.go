package snapshot

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/tabledef"
)

// newTable returns version 0 of a table with an index column of numbers.
func newTable(t testing.TB) *Snapshot {
	t.Helper()
	def, err := tabledef.New("id", tabledef.Request{IndexColumn: "x", IndexGranularity: "1",
		Schema: arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil)})
	if err != nil {
		t.Fatal(err)
	}
	configuration, err := def.Configuration()
	if err != nil {
		t.Fatal(err)
	}
	schema, err := tabledef.DeltaSchemaJSON(def.Stored)
	if err != nil {
		t.Fatal(err)
	}
	state, err := deltalog.NewState().Apply(&deltalog.Commit{Protocol: deltalog.ContrailProtocol(false),
		Metadata: &deltalog.Metadata{ID: "id", SchemaString: schema, Configuration: configuration}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(state)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fileOf(path string, low, high int) *deltalog.Add {
	return &deltalog.Add{Path: path, Size: 10, Stats: `{"numRecords":2}`,
		Tags: map[string]string{tabledef.TagIndexMin: fmt.Sprint(low), tabledef.TagIndexMax: fmt.Sprint(high)}}
}

func follow(t testing.TB, s *Snapshot, c *deltalog.Commit) *Snapshot {
	t.Helper()
	c.Version = s.Version() + 1
	next, err := s.Apply(c)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// consistent holds a snapshot's files against those of its state, and what
// Meeting yields against all of them.
func consistent(t testing.TB, s *Snapshot) {
	t.Helper()
	fresh, err := New(s.State)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Files) != len(fresh.Files) || len(s.spans) != len(s.Files) || s.Rows != fresh.Rows || s.Bytes != fresh.Bytes {
		t.Fatalf("version %d: %d files, %d rows, %d bytes; want %d, %d, %d", s.Version(), len(s.Files), s.Rows, s.Bytes, len(fresh.Files), fresh.Rows, fresh.Bytes)
	}
	paths := func(files []*File) (paths []string) {
		for _, f := range files {
			paths = append(paths, f.Path)
		}
		slices.Sort(paths) // a file that is added again keeps its place in the state alone
		return paths
	}
	if !slices.Equal(paths(s.Files), paths(fresh.Files)) {
		t.Fatalf("version %d: files %q, want %q", s.Version(), paths(s.Files), paths(fresh.Files))
	}
	if !slices.IsSortedFunc(s.Files, func(a, b *File) int { return int(a.Order - b.Order) }) {
		t.Fatalf("version %d: the files are not in their order", s.Version())
	}
	for low := -2; low < 12; low += 3 {
		first, last := uint64(low)^1<<63, uint64(low+2)^1<<63
		var want []*File
		for _, f := range s.Files {
			if f.Meets(first, last) {
				want = append(want, f)
			}
		}
		if got := slices.Collect(s.Meeting(first, last)); !slices.Equal(got, want) {
			t.Fatalf("version %d: %d files meet, want %d", s.Version(), len(got), len(want))
		}
	}
}

// TestApplyBranches grows a tree of snapshots at random: what one of them adds
// no other sees, though they share their arrays.
func TestApplyBranches(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		tree := []*Snapshot{newTable(t)}
		for n := range 80 {
			s := tree[len(tree)-1]
			if r.IntN(3) == 0 {
				s = tree[r.IntN(len(tree))]
			}
			c := &deltalog.Commit{}
			for k := range r.IntN(4) {
				low := r.IntN(10)
				c.Adds = append(c.Adds, fileOf(fmt.Sprintf("f%d-%d", n, k), low, low+r.IntN(3)))
				c.Adds[k].Tags[tabledef.TagVersion] = fmt.Sprint(s.Version() + 1)
				if r.IntN(5) == 0 { // made from older files
					c.Adds[k].Tags[tabledef.TagOrder] = fmt.Sprint(r.Int64N(s.Version() + 2))
				}
			}
			if live := s.State.Files(); len(live) > 0 && r.IntN(4) == 0 {
				c.Removes = []*deltalog.Remove{{Path: live[r.IntN(len(live))].Path}}
			} else if len(live) > 0 && r.IntN(6) == 0 {
				again := *live[r.IntN(len(live))]
				c.Adds = append(c.Adds, &again)
			}
			tree = append(tree, follow(t, s, c))
		}
		for _, s := range tree {
			consistent(t, s)
		}
	}
}

// TestApplySharesItsFiles: behind many files, a file more copies none of them.
func TestApplySharesItsFiles(t *testing.T) {
	c := &deltalog.Commit{}
	for i := range 10_000 {
		c.Adds = append(c.Adds, fileOf(fmt.Sprint("f", i), i, i))
	}
	s := follow(t, newTable(t), c)
	one := follow(t, s, &deltalog.Commit{Adds: []*deltalog.Add{fileOf("one", 1, 1)}})
	two := follow(t, s, &deltalog.Commit{Adds: []*deltalog.Add{fileOf("two", 2, 2)}})
	if &one.Files[0] != &s.Files[0] || &two.Files[0] == &s.Files[0] {
		t.Error("the first that follows does not share the files, or the second does")
	}
	if one.Files[10_000].Path != "one" || two.Files[10_000].Path != "two" || len(s.Files) != 10_000 {
		t.Error("one snapshot sees the other's file")
	}
	if _, err := one.Apply(&deltalog.Commit{Version: one.Version() + 1, Adds: []*deltalog.Add{{Path: "../x"}}}); err == nil {
		t.Error("a file outside of the table is added")
	}
	consistent(t, follow(t, one, &deltalog.Commit{Adds: []*deltalog.Add{fileOf("three", 3, 3)}}))
}
