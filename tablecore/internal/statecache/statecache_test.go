package statecache

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/meterstore"
	"contrail/tablecore/tableerr"
)

const (
	tableID = "0b6d1a2e-0000-4000-8000-000000000001"
	otherID = "0b6d1a2e-0000-4000-8000-000000000002"
)

// TestLoad opens a table of ten versions whose head is of version 6, in every
// condition: what is loaded is what the log says.
func TestLoad(t *testing.T) {
	statePath := derived.StatePath(tableID, 6)
	for name, c := range map[string]struct {
		change func(t *testing.T, store objstore.Store)
		reason string // why the head is ignored, "" where it is not
	}{
		"as it was":            {func(*testing.T, objstore.Store) {}, ""},
		"no head":              {func(t *testing.T, s objstore.Store) { remove(t, s, derived.HeadPath) }, ""},
		"a head of the newest": {func(t *testing.T, s objstore.Store) { write(t, s, 9) }, ""},
		"no state file":        {func(t *testing.T, s objstore.Store) { remove(t, s, statePath) }, "does not exist"},
		"an empty head":        {func(t *testing.T, s objstore.Store) { put(t, s, derived.HeadPath, nil) }, "damaged"},
		"an empty state file":  {func(t *testing.T, s objstore.Store) { put(t, s, statePath, nil) }, "too short"},
		"a head that is too new": {func(t *testing.T, s objstore.Store) {
			data := get(t, s, derived.HeadPath)
			data[4] = 2
			put(t, s, derived.HeadPath, data)
		}, "of version 2"},
		"a state file that is too new": {func(t *testing.T, s objstore.Store) {
			data := get(t, s, statePath)
			data[4] = 2
			put(t, s, statePath, data)
		}, "of version 2"},
		"a head of the future": {func(t *testing.T, s objstore.Store) {
			head := headOf(t, s)
			head.Of.Version = 1_000_000
			data, first := stateOf(t, s, head.Of)
			putHead(t, s, derived.Head{Of: head.Of, First: first})
			put(t, s, derived.StatePath(tableID, 1_000_000), data)
		}, "no longer holds"},
		"a head that reads too little": {func(t *testing.T, s objstore.Store) {
			head := headOf(t, s)
			head.First--
			putHead(t, s, head)
		}, "without its first section"},
		"a head that reads too much": {func(t *testing.T, s objstore.Store) {
			head := headOf(t, s)
			head.First = 1 << 50
			putHead(t, s, head)
		}, "too short"},
		"the state file of another version": {func(t *testing.T, s objstore.Store) {
			of := headOf(t, s).Of
			of.Version--
			data, _ := stateOf(t, s, of)
			put(t, s, statePath, data)
		}, "of another version"},
		"of another table": {func(t *testing.T, s objstore.Store) {
			other := memstore.New()
			create(t, other, otherID)
			grow(t, other, 1, 6, "x")
			write(t, other, 6)
			for _, key := range append(stateFiles(t, other), derived.HeadPath) {
				put(t, s, key, get(t, other, key))
			}
		}, "no longer holds"},
		"another table's state under this one's id": {func(t *testing.T, s objstore.Store) {
			other := memstore.New()
			create(t, other, otherID)
			grow(t, other, 1, 6, "x")
			data, first := stateOf(t, other, headOf(t, s).Of)
			put(t, s, statePath, data)
			putHead(t, s, derived.Head{Of: headOf(t, s).Of, First: first})
		}, "of another table"},
		"a log that was cut": {func(t *testing.T, s objstore.Store) {
			for version := int64(4); version <= 9; version++ {
				remove(t, s, deltalog.CommitKey(version))
			}
		}, "no longer holds"},
		"a log that was cut and grew again": {func(t *testing.T, s objstore.Store) {
			for version := int64(4); version <= 9; version++ {
				remove(t, s, deltalog.CommitKey(version))
			}
			grow(t, s, 4, 8, "again")
		}, "no longer holds"},
		"a table made anew": {func(t *testing.T, s objstore.Store) {
			for version := int64(0); version <= 9; version++ {
				remove(t, s, deltalog.CommitKey(version))
			}
			create(t, s, otherID)
			grow(t, s, 1, 7, "new")
		}, "no longer holds"},
		"a newer checkpoint": {func(t *testing.T, s objstore.Store) { checkpoint(t, s, 8) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			create(t, store, tableID)
			grow(t, store, 1, 9, "f")
			write(t, store, 6)
			c.change(t, store)
			var reason string
			if name == "a newer checkpoint" { // which the two ways know of or not
				loadsFiles(t, store)
			} else {
				reason = loadsAsPlain(t, store)
			}
			if (reason == "") != (c.reason == "") || !strings.Contains(reason, c.reason) {
				t.Errorf("the head is ignored because %q, want %q", reason, c.reason)
			}
		})
	}
}

// stateOf returns the state file of a store's version 6 under another name.
func stateOf(t *testing.T, store objstore.Store, of derived.Of) (data []byte, first int64) {
	t.Helper()
	files, err := deltalog.EncodeState(at(t, store, 6).State)
	if err != nil {
		t.Fatal(err)
	}
	data, first, err = derived.EncodeState(of, []derived.Section{{Kind: derived.SectionFiles, Data: files}})
	if err != nil {
		t.Fatal(err)
	}
	return data, first
}

func checkpoint(t *testing.T, store objstore.Store, version int64) {
	t.Helper()
	if _, err := deltalog.New(store, deltalog.Options{}).WriteCheckpoint(t.Context(), at(t, store, version).State); err != nil {
		t.Fatal(err)
	}
}

// loadsFiles compares live files alone.
func loadsFiles(t *testing.T, store objstore.Store) {
	t.Helper()
	c, _ := cache(store)
	got, err := c.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := plain(t, store).State
	for i, a := range want.Files() {
		if got.Version() != want.Version() || got.NumFiles() != want.NumFiles() || got.Files()[i].Path != a.Path {
			t.Fatal("other files")
		}
	}
}

// TestLoadDamaged alters every byte of a small head and state file, and cuts
// them at every place.
func TestLoadDamaged(t *testing.T) {
	store := memstore.New()
	create(t, store, tableID)
	grow(t, store, 1, 3, "f")
	write(t, store, 2)
	for _, key := range []string{derived.HeadPath, derived.StatePath(tableID, 2)} {
		whole := get(t, store, key)
		for i := range whole {
			damaged := bytes.Clone(whole)
			damaged[i] ^= byte(1 << (i % 8))
			put(t, store, key, damaged)
			if loadsAsPlain(t, store) == "" {
				t.Fatalf("%s with another byte %d is used", key, i)
			}
			put(t, store, key, whole[:i])
			if loadsAsPlain(t, store) == "" {
				t.Fatalf("%s cut at %d is used", key, i)
			}
		}
		put(t, store, key, whole)
		if reason := loadsAsPlain(t, store); reason != "" {
			t.Fatal(reason)
		}
	}
}

// TestLoadCost counts the requests of an opening.
func TestLoadCost(t *testing.T) {
	store := meterstore.Wrap(memstore.New())
	create(t, store, tableID)
	grow(t, store, 1, 2000, "f")
	for behind, want := range map[int64]int64{0: 6, 3: 9} {
		write(t, store, 2000-behind)
		c, _ := cache(store)
		store.Reset()
		if _, err := c.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The head, the hint, the commit and the state file, what is behind them,
		// and two requests for what is not there.
		counts := store.Counts()
		if counts.Get != 4+behind || counts.Head != 1 || counts.Open != 1 || counts.ReadAt != 1 || counts.Requests()-counts.ReadAt != want {
			t.Errorf("%d versions behind, an opening takes %s", behind, counts)
		}
		remove(t, store, derived.HeadPath)
	}
}

// TestLoadFaults fails and stops the store at every operation of an opening:
// the table is loaded or the error is the store's.
func TestLoadFaults(t *testing.T) {
	inner := memstore.New()
	create(t, inner, tableID)
	grow(t, inner, 1, 9, "f")
	write(t, inner, 6)
	want := plain(t, inner).State
	for _, kind := range faultstore.Kinds() {
		for op := 0; ; op++ {
			store := faultstore.Wrap(inner, faultstore.Plan{At: op, Kind: kind})
			c, _ := cache(store)
			got, err := c.Load(t.Context())
			if err == nil {
				sameState(t, got, want)
			} else if tableerr.TokenOf(err) != "" || !store.Stopped() {
				t.Errorf("%s at %d: %v", kind, op, err)
			}
			if store.Ops() <= op {
				break
			}
		}
	}
}

func TestLoadErrors(t *testing.T) {
	c, _ := cache(memstore.New())
	var notFound *tableerr.TableNotFound
	if _, err := c.Load(t.Context()); !errors.As(err, &notFound) {
		t.Error(err)
	}
	store := memstore.New()
	create(t, store, tableID)
	grow(t, store, 1, 9, "f")
	write(t, store, 6)
	remove(t, store, deltalog.CommitKey(8))
	c, _ = cache(store)
	var corrupt *tableerr.Corrupt
	if _, err := c.Load(t.Context()); !errors.As(err, &corrupt) {
		t.Errorf("a gap behind the head: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Load(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
