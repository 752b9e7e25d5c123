package deltalog

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"contrail/tablecore/tableerr"
)

// first is the commit every test table begins with.
func first() *Commit {
	return &Commit{
		Protocol: ContrailProtocol(false),
		Metadata: &Metadata{ID: "id", SchemaString: `{"type":"struct","fields":[]}`, Configuration: map[string]string{"delta.enableInCommitTimestamps": "true"}},
		Info:     &CommitInfo{InCommitTimestamp: ptr(int64(1000)), Operation: "CREATE TABLE"},
	}
}

func add(path string, size int64) *Add { return &Add{Path: path, Size: size, DataChange: true} }

func apply(t testing.TB, s *State, c *Commit) *State {
	t.Helper()
	c.Version = s.Version() + 1
	next, err := s.Apply(c)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func TestApply(t *testing.T) {
	s0 := apply(t, NewState(), first())
	s1 := apply(t, s0, &Commit{
		Adds: []*Add{add("b", 5), add("a%20a", 7)}, Txns: []*Txn{{AppID: "x", Version: 9}},
		Domains: []*DomainMetadata{{Domain: "d", Configuration: "1"}, {Domain: "c", Configuration: "2"}},
	})
	// Two states that branch off from s1 do not see each other.
	s2 := apply(t, s1, &Commit{
		Removes: []*Remove{{Path: "b", DeletionTimestamp: 50}, {Path: "never was", DeletionTimestamp: 60}}, Adds: []*Add{add("c", 1)},
		Txns: []*Txn{{AppID: "x", Version: 3}}, Domains: []*DomainMetadata{{Domain: "d", Removed: true}},
		Info: &CommitInfo{Timestamp: ptr(int64(77))},
	})
	other := apply(t, s1, &Commit{Adds: []*Add{add("a a", 70), add("z", 1)}})
	s3 := apply(t, s2, &Commit{Adds: []*Add{add("b", 2)}})

	for _, c := range []struct {
		s       *State
		files   []string
		bytes   int64
		removes int
		txn     int64
	}{{s1, []string{"b", "a a"}, 12, 0, 9}, {s2, []string{"a a", "c"}, 8, 2, 3}, {other, []string{"b", "a a", "z"}, 76, 0, 9}, {s3, []string{"a a", "c", "b"}, 10, 1, 3}} {
		if got := filesOf(t, c.s); !slices.Equal(got, c.files) || c.s.Bytes() != c.bytes || c.s.NumFiles() != len(c.files) {
			t.Errorf("files %q, %d bytes; want %q, %d", got, c.s.Bytes(), c.files, c.bytes)
		}
		if c.s.NumRemoves() != c.removes || c.s.Txn("x").Version != c.txn || c.s.NumTxns() != 1 {
			t.Errorf("%d removes, txn %v", c.s.NumRemoves(), c.s.Txn("x"))
		}
	}
	if s2.File("b") != nil || s1.File("b") == nil || s1.File("a a").Size != 7 || other.File("a a").Size != 70 {
		t.Error("File")
	}
	if d := s1.Domains(); len(d) != 2 || d[0].Domain != "c" || d[1].Domain != "d" || s1.Domain("d").Configuration != "1" {
		t.Error("domains of s1")
	}
	if s2.Domain("d") != nil || len(s2.Domains()) != 1 || s2.Txn("y") != nil {
		t.Error("domains of s2")
	}
	for r := range s2.Removes() {
		if r.DeletionTimestamp < 50 {
			t.Error(r)
		}
	}
	for range s2.Removes() {
		break
	}
	for x := range s2.Txns() {
		if x.AppID != "x" {
			t.Error(x)
		}
		break
	}
	if at, ok := s2.Timestamp(); !ok || at != 77 {
		t.Error(at, ok)
	}
	if _, ok := s3.Timestamp(); ok {
		t.Error("s3 has a time")
	}
}

func TestApplyRefuses(t *testing.T) {
	if _, err := apply(t, NewState(), first()).Apply(first()); err == nil {
		t.Error("a commit out of order was applied")
	}
	for _, c := range []*Commit{{}, {Protocol: ContrailProtocol(false)}, {Metadata: &Metadata{}}} {
		var corrupt *tableerr.Corrupt
		if _, err := NewState().Apply(c); !errors.As(err, &corrupt) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestNextTimestamp(t *testing.T) {
	s := apply(t, NewState(), first())
	for _, c := range []struct{ now, want int64 }{{2000, 2000}, {1001, 1001}, {1000, 1001}, {0, 1001}} {
		if got := s.NextTimestamp(c.now); got != c.want {
			t.Errorf("at %d = %d, want %d", c.now, got, c.want)
		}
	}
	late := apply(t, s, &Commit{Info: &CommitInfo{InCommitTimestamp: ptr(int64(math.MaxInt64))}})
	if got := late.NextTimestamp(5); got != math.MaxInt64 {
		t.Error(got)
	}
	if got := apply(t, s, &Commit{}).NextTimestamp(5); got != 5 {
		t.Error(got)
	}
}

func TestHostileSizes(t *testing.T) {
	s := apply(t, NewState(), first())
	s = apply(t, s, &Commit{Adds: []*Add{add("a", math.MaxInt64), add("b", math.MaxInt64)}})
	if s.Bytes() != math.MaxInt64 {
		t.Error(s.Bytes())
	}
	s = apply(t, s, &Commit{Removes: []*Remove{{Path: "a"}, {Path: "b"}}, Adds: []*Add{add("c", 3)}})
	if s.Bytes() != 3 {
		t.Error(s.Bytes())
	}
}

// TestStateAgainstModel holds random histories against a plain map, at every
// version.
func TestStateAgainstModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	s := apply(t, NewState(), first())
	model := map[string]int64{}
	var states []*State
	var models []map[string]int64
	for range 300 {
		c := &Commit{}
		for range rnd.IntN(5) {
			path := fmt.Sprint("f", rnd.IntN(40))
			if _, done := model[path]; done && rnd.IntN(2) == 0 {
				c.Removes = append(c.Removes, &Remove{Path: path})
			} else {
				c.Adds = append(c.Adds, add(path, rnd.Int64N(100)))
			}
		}
		for _, a := range c.Adds {
			a.settle()
		}
		for _, r := range c.Removes {
			r.settle()
		}
		c.reconcile()
		next := map[string]int64{}
		for k, v := range model {
			next[k] = v
		}
		for _, r := range c.Removes {
			delete(next, r.Path)
		}
		for _, a := range c.Adds {
			next[a.Path] = a.Size
		}
		s, model = apply(t, s, c), next
		states, models = append(states, s), append(models, model)
	}
	for i, s := range states {
		var total int64
		for path, size := range models[i] {
			if a := s.File(path); a == nil || a.Size != size {
				t.Fatalf("state %d: %s = %v, want size %d", i, path, a, size)
			}
			total += size
		}
		if s.NumFiles() != len(models[i]) || s.Bytes() != total {
			t.Fatalf("state %d: %d files, %d bytes", i, s.NumFiles(), s.Bytes())
		}
	}
}

func TestExpire(t *testing.T) {
	s := apply(t, NewState(), first())
	c := &Commit{Removes: []*Remove{{Path: "a", DeletionTimestamp: 10}, {Path: "b", DeletionTimestamp: 20}, {Path: "c"}}}
	for i := range 10 {
		c.Txns = append(c.Txns, &Txn{AppID: fmt.Sprint("contrail/", i), Version: int64(i), LastUpdated: ptr(int64(100 + i))})
	}
	c.Txns = append(c.Txns, &Txn{AppID: "spark", Version: 1}, &Txn{AppID: "old", Version: 1, LastUpdated: ptr(int64(5))})
	s = apply(t, s, c)
	if same := s.Expire(Expiry{}); same.NumRemoves() != 3 || same.NumTxns() != 12 {
		t.Error("the zero value forgets something")
	}
	e := s.Expire(Expiry{RemovesBefore: 20, TxnsBefore: 102, TxnPrefix: "contrail/", MaxTxns: 3})
	if e.NumRemoves() != 1 || e.NumTxns() != 5 || e.Txn("spark") == nil || e.Txn("contrail/7") == nil || e.Txn("contrail/6") != nil || e.Txn("old") == nil {
		t.Errorf("%d removes, %d txns", e.NumRemoves(), e.NumTxns())
	}
	again := *s.Txn("contrail/8")
	newer := apply(t, s, &Commit{Txns: []*Txn{&again}})
	forgot := newer.Forget(Forgotten{Txns: []*Txn{s.Txn("contrail/7"), s.Txn("contrail/8"), {AppID: "nobody"}}})
	if forgot.NumTxns() != 11 || forgot.Txn("contrail/7") != nil || forgot.Txn("contrail/8") != &again || newer.Txn("contrail/7") == nil {
		t.Errorf("forgetting two left %d txns", forgot.NumTxns())
	}
	if s.NumRemoves() != 3 || s.NumTxns() != 12 {
		t.Error("the state itself was changed")
	}
}

func BenchmarkApply(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		s := apply(b, NewState(), first())
		big := &Commit{}
		for i := range n {
			big.Adds = append(big.Adds, add(fmt.Sprintf("data/%02x/%032d.parquet", i%256, i), 1))
		}
		s = apply(b, s, big)
		b.Run(fmt.Sprint("files=", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				c := &Commit{Version: s.Version() + 1, Adds: []*Add{{Path: "x", file: fmt.Sprint("new", i)}}, Txns: []*Txn{{AppID: "y"}}}
				if _, err := s.Apply(c); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprint("list/files=", n), func(b *testing.B) {
			for range b.N {
				s.Files()
			}
		})
	}
}

func BenchmarkParseCommit(b *testing.B) {
	c := first()
	for i := range 1000 {
		a := add(fmt.Sprintf("data/%02x/%032d.parquet", i%256, i), 1)
		a.Stats = `{"numRecords":1000,"minValues":{"time":"2013-01-01T00:00:00.000Z","temp":1.25},"maxValues":{"time":"2013-01-02T00:00:00.000Z","temp":9.25},"nullCount":{"time":0,"temp":3}}`
		a.Tags = map[string]string{"contrail.min": "123456789", "contrail.max": "223456789", "contrail.entity": "single"}
		c.Adds = append(c.Adds, a)
	}
	data, err := EncodeCommit(c)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for range b.N {
		if _, err := ParseCommit(0, data); err != nil {
			b.Fatal(err)
		}
	}
}
