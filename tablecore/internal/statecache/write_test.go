package statecache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
)

func TestWants(t *testing.T) {
	store := memstore.New()
	create(t, store, tableID)
	grow(t, store, 1, fewestCommits+5, "f")
	c, _ := cache(store)
	for version, want := range map[int64]bool{0: false, fewestCommits - 2: false, fewestCommits - 1: true, fewestCommits + 5: true} {
		if got := c.Wants(at(t, store, version)); got != want {
			t.Errorf("a state of version %d is wanted: %t", version, got)
		}
	}
	if err := c.Write(t.Context(), at(t, store, 5), nil); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[int64]bool{3: false, fewestCommits + 4: false, fewestCommits + 5: true} {
		if got := c.Wants(at(t, store, version)); got != want {
			t.Errorf("behind one of version 5, a state of version %d is wanted: %t", version, got)
		}
	}
	opened, _ := cache(store)
	if _, err := opened.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if opened.Wants(at(t, store, fewestCommits+4)) || !opened.Wants(at(t, store, fewestCommits+5)) {
		t.Error("who has loaded version 5 does not know it")
	}
	// One of a larger version is of a table that was there before.
	if err := opened.Write(t.Context(), at(t, store, fewestCommits+2), nil); err != nil {
		t.Fatal(err)
	}
	if !opened.Wants(at(t, store, fewestCommits)) || opened.Wants(at(t, store, 7)) {
		t.Error("a state of a larger version counts")
	}
}

// TestWantsFewer: the more files there are and the longer the last state, the
// more commits between two states.
func TestWantsFewer(t *testing.T) {
	store := memstore.New()
	create(t, store, tableID)
	grow(t, store, 1, 1100, "f")
	for files, due := range map[int]int64{0: 100, 2000: 100, 10_000: 500, 100_000: 1000} {
		c, _ := cache(store)
		for version, want := range map[int64]bool{due - 2: false, due - 1: true} {
			s := *at(t, store, version)
			s.Files = make([]*snapshot.File, files)
			if got := c.Wants(&s); got != want {
				t.Errorf("with %d files a state of version %d is wanted: %t", files, version, got)
			}
		}
	}
	for bytes, due := range map[int]int64{1000: 100, 400 * bytesPerCommit: 400, 5000 * bytesPerCommit: 1000} {
		c, _ := cache(store)
		noise := make([]byte, bytes)
		if _, err := rand.NewChaCha8([32]byte{}).Read(noise); err != nil {
			t.Fatal(err)
		}
		if err := c.Write(t.Context(), at(t, store, 50), []derived.Section{{Kind: derived.SectionNewest, Data: noise}}); err != nil {
			t.Fatal(err)
		}
		if c.Wants(at(t, store, 50+due-1)) || !c.Wants(at(t, store, 50+due+1)) {
			t.Errorf("behind a state of %d bytes, one is not wanted after %d commits", bytes, due)
		}
	}
}

// TestWantsBulk: much data is worth a state at once.
func TestWantsBulk(t *testing.T) {
	store := memstore.New()
	create(t, store, tableID)
	add := func(version, size int64) {
		commit(t, store, version, &deltalog.Commit{Adds: []*deltalog.Add{{Path: fmt.Sprint("f", version), Size: size}}})
	}
	add(1, bulkBytes-1)
	add(2, 1)
	add(3, 40*bulkBytes)
	add(4, 10*bulkBytes)
	add(5, bulkBytes)
	c, _ := cache(store)
	if c.Wants(at(t, store, 1)) || !c.Wants(at(t, store, 2)) || !c.Bulk(at(t, store, 2)) {
		t.Error("the first bytes")
	}
	if err := c.Write(t.Context(), at(t, store, 3), nil); err != nil {
		t.Fatal(err)
	}
	if c.Wants(at(t, store, 4)) || !c.Wants(at(t, store, 5)) {
		t.Error("a quarter of what there was")
	}
}

// TestWantsOnlyWhereItMay: formats without a head, plain Delta tables and
// states that stand on a checkpoint alone get none.
func TestWantsOnlyWhereItMay(t *testing.T) {
	for name, change := range map[string]func(c map[string]string){
		"format 0.1.0":  func(c map[string]string) { c[tabledef.KeyFormatVersion] = "0.1.0" },
		"a plain table": func(c map[string]string) { clear(c) },
	} {
		store := memstore.New()
		m := *create(t, store, tableID).State.Metadata()
		m.Configuration = map[string]string{}
		for k, v := range plain(t, store).State.Metadata().Configuration {
			m.Configuration[k] = v
		}
		change(m.Configuration)
		commit(t, store, 1, &deltalog.Commit{Metadata: &m})
		grow(t, store, 2, 2*fewestCommits, "f")
		c, _ := cache(store)
		if c.Wants(plain(t, store)) {
			t.Errorf("%s wants a head", name)
		}
	}
	store := memstore.New()
	create(t, store, tableID)
	grow(t, store, 1, 2*fewestCommits, "f")
	checkpoint(t, store, 2*fewestCommits)
	for version := range int64(2*fewestCommits + 1) {
		remove(t, store, deltalog.CommitKey(version))
	}
	c, _ := cache(store)
	if c.Wants(plain(t, store)) {
		t.Error("a version without a commit wants a head")
	}
}

// TestWriteKeepsTheNewest: what is there is replaced by newer versions only,
// unless it leads nowhere.
func TestWriteKeepsTheNewest(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, store objstore.Store)
		want   int64
	}{
		"as it was":       {func(*testing.T, objstore.Store) {}, 8},
		"a state is gone": {func(t *testing.T, s objstore.Store) { remove(t, s, derived.StatePath(tableID, 8)) }, 5},
		"damaged":         {func(t *testing.T, s objstore.Store) { put(t, s, derived.HeadPath, []byte("CTRH")) }, 5},
		"the commit is gone": {func(t *testing.T, s objstore.Store) {
			remove(t, s, deltalog.CommitKey(8), deltalog.CommitKey(9))
		}, 5},
		"of the future": {func(t *testing.T, s objstore.Store) {
			head := headOf(t, s)
			head.Of.Version = 1_000_000
			putHead(t, s, head)
		}, 5},
		"of another history": {func(t *testing.T, s objstore.Store) {
			head := headOf(t, s)
			head.Of.Commit[0]++
			putHead(t, s, head)
		}, 5},
		"of another table": {func(t *testing.T, s objstore.Store) {
			head := headOf(t, s)
			head.Of.TableID = otherID
			putHead(t, s, head)
		}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			create(t, store, tableID)
			grow(t, store, 1, 9, "f")
			write(t, store, 8)
			c.change(t, store)
			if write(t, store, 5); headOf(t, store).Of.Version != c.want {
				t.Errorf("the head is of version %d, want %d", headOf(t, store).Of.Version, c.want)
			}
			loadsAsPlain(t, store)
		})
	}
}

func TestWriteRemovesOldStates(t *testing.T) {
	store := memstore.New()
	create(t, store, tableID)
	grow(t, store, 1, 9, "f")
	others := []string{"_contrail/state/other", "_contrail/state/00000000000000000001-" + otherID, "_contrail/state/x-" + tableID,
		"_contrail/state/1-" + tableID, derived.StatePath(tableID, 77)}
	for _, key := range others {
		put(t, store, key, nil)
	}
	for version := int64(2); version < 9; version++ {
		write(t, store, version)
		want := append([]string{derived.StatePath(tableID, version)}, others...)
		if version > 2 {
			want = append(want, derived.StatePath(tableID, version-1))
		}
		slices.Sort(want)
		if got := stateFiles(t, store); !slices.Equal(got, want) {
			t.Fatalf("behind version %d there are %q, want %q", version, got, want)
		}
	}
	if reason := loadsAsPlain(t, store); reason != "" {
		t.Error(reason)
	}
}

// TestWriteOvertaken: a head that names a state file which two faster writers
// have removed gets it back.
func TestWriteOvertaken(t *testing.T) {
	store := memstore.New()
	create(t, store, tableID)
	grow(t, store, 1, 9, "f")
	slow := faultstore.Wrap(store, faultstore.Plan{
		Match:  func(op objstore.Op, key string) bool { return op == objstore.OpPut && key == derived.HeadPath },
		Before: func(objstore.Op, string) { write(t, store, 7); write(t, store, 8) },
	})
	c, _ := cache(slow)
	if err := c.Write(t.Context(), at(t, store, 5), nil); err != nil {
		t.Fatal(err)
	}
	if got := headOf(t, store).Of.Version; got != 5 {
		t.Errorf("the head is of version %d, the last that was put", got)
	}
	if reason := loadsAsPlain(t, store); reason != "" {
		t.Errorf("the head is ignored: %s", reason)
	}
}

// TestWriteFaults fails and stops the store at every operation of writing: the
// table is loaded as the log has it, and the next writer is as good as the
// first.
func TestWriteFaults(t *testing.T) {
	for _, kind := range faultstore.Kinds() {
		for op := 0; ; op++ {
			inner := memstore.New()
			create(t, inner, tableID)
			grow(t, inner, 1, 9, "f")
			write(t, inner, 2)
			write(t, inner, 4)
			s := at(t, inner, 6)
			store := faultstore.Wrap(inner, faultstore.Plan{At: op, Kind: kind})
			c, _ := cache(store)
			err := c.Write(t.Context(), s, nil)
			if err == nil && headOf(t, inner).Of.Version != 6 {
				t.Errorf("%s at %d is no error", kind, op)
			}
			if reason := loadsAsPlain(t, inner); reason != "" {
				t.Errorf("%s at %d: the head is ignored: %s", kind, op, reason)
			}
			write(t, inner, 8)
			if got := stateFiles(t, inner); headOf(t, inner).Of.Version != 8 || len(got) != 2 {
				t.Errorf("%s at %d: then the head is of version %d, beside %q", kind, op, headOf(t, inner).Of.Version, got)
			}
			if store.Ops() <= op {
				break
			}
		}
	}
}

// TestWriteTogether lets several processes write states of one table while
// others open it.
func TestWriteTogether(t *testing.T) {
	store := memstore.New()
	create(t, store, tableID)
	grow(t, store, 1, 60, "f")
	snapshots := make([]*snapshot.Snapshot, 61)
	for version := range snapshots {
		snapshots[version] = at(t, store, int64(version))
	}
	want := snapshots[60].State
	var group sync.WaitGroup
	for process := range 4 {
		group.Go(func() {
			c, _ := cache(store)
			for version := 1 + process; version <= 60; version += 1 + process {
				if err := c.Write(context.Background(), snapshots[version], nil); err != nil {
					t.Error(err)
				}
			}
		})
		group.Go(func() {
			for range 20 {
				c, _ := cache(store)
				got, err := c.Load(context.Background())
				if err != nil || got.Version() != 60 || got.NumFiles() != want.NumFiles() {
					t.Errorf("loaded %v, %v", got, err)
				}
			}
		})
	}
	group.Wait()
	if reason := loadsAsPlain(t, store); reason != "" {
		t.Error(reason)
	}
}

func TestWriteRefuses(t *testing.T) {
	store := memstore.New()
	s := create(t, store, strings.Repeat("x", 70_000)) // no header holds such an id
	c, _ := cache(store)
	if err := c.Write(t.Context(), s, nil); err == nil {
		t.Error("a state with an endless table id is written")
	}
	if got := stateFiles(t, store); len(got) > 0 {
		t.Errorf("left %q", got)
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, commits := range []int64{2000, 10_000} {
		store := memstore.New()
		create(b, store, tableID)
		grow(b, store, 1, commits, "f")
		write(b, store, commits)
		b.Run(fmt.Sprintf("versions=%d", commits), func(b *testing.B) {
			for b.Loop() {
				c, _ := cache(store)
				if _, err := c.Load(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestSections reads the other sections of a state file: what cannot be read is
// not there.
func TestSections(t *testing.T) {
	store := memstore.New()
	create(t, store, tableID)
	grow(t, store, 1, 9, "f")
	c, reasons := cache(store)
	if c.Stored(tableID, 9) != nil {
		t.Error("a state is known before any was written")
	}
	want := []byte("the coverage")
	if err := c.Write(t.Context(), at(t, store, 6), []derived.Section{{Kind: derived.SectionCoverage, Data: want}}); err != nil {
		t.Fatal(err)
	}
	opened, _ := cache(store)
	if _, err := opened.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Cache{c, opened} {
		s := c.Stored(tableID, 6)
		if s == nil || s.State.Version() != 6 || !s.Has(derived.SectionCoverage) || s.Has(derived.SectionNewest) {
			t.Fatalf("%+v", s)
		}
		if got := s.Read(t.Context(), derived.SectionCoverage); string(got) != string(want) {
			t.Errorf("read %q", got)
		}
		if got := s.Read(t.Context(), derived.SectionNewest); got != nil {
			t.Errorf("read %q", got)
		}
		if c.Stored(tableID, 5) != nil || c.Stored(otherID, 6) != nil {
			t.Error("a state of a later version or another table is given")
		}
	}
	path := derived.StatePath(tableID, 6)
	whole := get(t, store, path)
	if err := c.Write(t.Context(), at(t, store, 6), nil); err != nil { // as another process may
		t.Fatal(err)
	}
	s := opened.Stored(tableID, 6)
	opened.cfg.Ignored = c.cfg.Ignored
	for name, data := range map[string][]byte{"another file": get(t, store, path), "a short one": whole[:len(whole)-1], "a changed one": append(whole[:len(whole)-1:len(whole)-1], 'x')} {
		put(t, store, path, data)
		*reasons = nil
		if got := s.Read(t.Context(), derived.SectionCoverage); got != nil || len(*reasons) != 1 {
			t.Errorf("%s: read %q, told %q", name, got, *reasons)
		}
	}
	remove(t, store, path)
	if got := s.Read(t.Context(), derived.SectionCoverage); got != nil {
		t.Errorf("from no file, read %q", got)
	}
}
