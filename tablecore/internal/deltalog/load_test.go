package deltalog

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/meterstore"
	"contrail/tablecore/tableerr"
)

// tableLog writes a log whose version v adds file fv, and returns the newest
// state.
func tableLog(t testing.TB, store objstore.Store, newest int64) *State {
	t.Helper()
	log, s := New(store, Options{}), NewState()
	for version := range newest + 1 {
		c := &Commit{Info: &CommitInfo{InCommitTimestamp: ptr(1000 + version), Operation: "APPEND"}}
		if version == 0 {
			c = first()
		}
		c.Adds = []*Add{add(fmt.Sprint("f", version), version)}
		s = writeNext(t, log, s, c)
	}
	return s
}

func writeNext(t testing.TB, log *Log, s *State, c *Commit) *State {
	t.Helper()
	version := s.Version() + 1
	data, err := EncodeCommit(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.store.PutIfAbsent(context.Background(), CommitKey(version), data); err != nil {
		t.Fatal(err)
	}
	parsed, err := ParseCommit(version, data)
	if err != nil {
		t.Fatal(err)
	}
	return apply(t, s, parsed)
}

// checkpointAt writes the checkpoint of a version.
func checkpointAt(t testing.TB, store objstore.Store, version int64) CheckpointRef {
	t.Helper()
	log := New(store, Options{})
	s, err := log.LoadAt(context.Background(), version)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := log.WriteCheckpoint(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func remove(t testing.TB, store objstore.Store, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := store.Delete(context.Background(), key); err != nil {
			t.Fatal(err)
		}
	}
}

func put(t testing.TB, store objstore.Store, key, data string) {
	t.Helper()
	if err := store.Put(context.Background(), key, []byte(data)); err != nil {
		t.Fatal(err)
	}
}

func commitKeys(from, to int64) []string {
	var keys []string
	for v := from; v <= to; v++ {
		keys = append(keys, CommitKey(v))
	}
	return keys
}

// TestLoad loads the same ten versions from logs in every condition.
func TestLoad(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, store objstore.Store){
		"commits only":             func(*testing.T, objstore.Store) {},
		"checkpoint behind":        func(t *testing.T, s objstore.Store) { checkpointAt(t, s, 5) },
		"checkpoint at the newest": func(t *testing.T, s objstore.Store) { checkpointAt(t, s, 9) },
		"no hint":                  func(t *testing.T, s objstore.Store) { checkpointAt(t, s, 5); remove(t, s, hintKey) },
		"empty hint":               func(t *testing.T, s objstore.Store) { checkpointAt(t, s, 5); put(t, s, hintKey, "") },
		"hint without version":     func(t *testing.T, s objstore.Store) { checkpointAt(t, s, 5); put(t, s, hintKey, `{"size":3}`) },
		"hint to nowhere":          func(t *testing.T, s objstore.Store) { checkpointAt(t, s, 5); put(t, s, hintKey, `{"version":1000000}`) },
		"hint to a commit":         func(t *testing.T, s objstore.Store) { checkpointAt(t, s, 5); put(t, s, hintKey, `{"version":7}`) },
		"stale hint": func(t *testing.T, s objstore.Store) {
			checkpointAt(t, s, 3)
			checkpointAt(t, s, 7)
			put(t, s, hintKey, `{"version":3,"size":5}`)
		},
		"stale hint to a checkpoint that is gone": func(t *testing.T, s objstore.Store) {
			checkpointAt(t, s, 3)
			checkpointAt(t, s, 7)
			put(t, s, hintKey, `{"version":3,"size":5}`)
			remove(t, s, CheckpointKey(3))
			remove(t, s, commitKeys(0, 6)...)
		},
		"cleaned up":                 func(t *testing.T, s objstore.Store) { checkpointAt(t, s, 5); remove(t, s, commitKeys(0, 4)...) },
		"cleaned up to a checkpoint": func(t *testing.T, s objstore.Store) { checkpointAt(t, s, 5); remove(t, s, commitKeys(0, 5)...) },
		"only a checkpoint":          func(t *testing.T, s objstore.Store) { checkpointAt(t, s, 9); remove(t, s, commitKeys(0, 9)...) },
		"cleaned up and without hint": func(t *testing.T, s objstore.Store) {
			checkpointAt(t, s, 5)
			remove(t, s, append(commitKeys(0, 5), hintKey)...)
		},
		"damaged checkpoint": func(t *testing.T, s objstore.Store) {
			checkpointAt(t, s, 5)
			put(t, s, CheckpointKey(5), "PAR1 no, it is not PAR1")
		},
		"damaged and an older one": func(t *testing.T, s objstore.Store) {
			checkpointAt(t, s, 3)
			checkpointAt(t, s, 5)
			remove(t, s, commitKeys(0, 3)...)
			put(t, s, CheckpointKey(5), "")
		},
		"empty hole before the checkpoint": func(t *testing.T, s objstore.Store) { checkpointAt(t, s, 5); remove(t, s, CommitKey(2)) },
		"other files": func(t *testing.T, s objstore.Store) {
			for _, key := range []string{".tmp", "00000000000000000003.crc", "00000000000000000002.00000000000000000004.compacted.json", "_sidecars/x.parquet", "_staged_commits/00000000000000000011.x.json", "zz", "00000000000000000004.checkpoint.0000000001.0000000002.parquet"} {
				put(t, s, logDir+key, "x")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			want := tableLog(t, store, 9)
			damage(t, store)
			got, err := New(store, Options{}).LoadLatest(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got.Version() != 9 || got.NumFiles() != want.NumFiles() || got.Bytes() != want.Bytes() || got.Metadata().ID != "id" {
				t.Errorf("version %d with %d files", got.Version(), got.NumFiles())
			}
			at, known := got.Timestamp()
			if onlyCheckpoint := name == "only a checkpoint"; known == onlyCheckpoint || known && at != 1009 {
				t.Errorf("time %d, %v", at, known)
			}
			same, none, err := New(store, Options{}).Refresh(t.Context(), got)
			if err != nil || same != got || none != nil {
				t.Errorf("refreshed to %v, %v, %v", same, none, err)
			}
		})
	}
}

func TestLoadErrors(t *testing.T) {
	for name, c := range map[string]struct {
		damage  func(t *testing.T, store objstore.Store)
		version int64
		want    error
	}{
		"no log":             {func(t *testing.T, s objstore.Store) { remove(t, s, commitKeys(0, 9)...) }, latest, &tableerr.TableNotFound{}},
		"no log, a version":  {func(t *testing.T, s objstore.Store) { remove(t, s, commitKeys(0, 9)...) }, 3, &tableerr.TableNotFound{}},
		"gap":                {func(t *testing.T, s objstore.Store) { remove(t, s, CommitKey(4)) }, latest, &tableerr.Corrupt{Path: CommitKey(4)}},
		"gap, a version":     {func(t *testing.T, s objstore.Store) { remove(t, s, CommitKey(4)) }, 6, &tableerr.Corrupt{Path: CommitKey(4)}},
		"no start":           {func(t *testing.T, s objstore.Store) { remove(t, s, CommitKey(0)) }, latest, &tableerr.Corrupt{Path: CommitKey(0)}},
		"damaged commit":     {func(t *testing.T, s objstore.Store) { put(t, s, CommitKey(4), "{") }, latest, &tableerr.Corrupt{Path: CommitKey(4)}},
		"empty first commit": {func(t *testing.T, s objstore.Store) { put(t, s, CommitKey(0), "") }, latest, &tableerr.Corrupt{Path: CommitKey(0)}},
		"gap behind the checkpoint": {func(t *testing.T, s objstore.Store) { checkpointAt(t, s, 5); remove(t, s, CommitKey(7)) }, latest,
			&tableerr.Corrupt{Path: CommitKey(7)}},
		"damaged checkpoint, commits gone": {func(t *testing.T, s objstore.Store) {
			checkpointAt(t, s, 5)
			put(t, s, CheckpointKey(5), "x")
			remove(t, s, commitKeys(0, 4)...)
		}, latest, &tableerr.Corrupt{Path: CheckpointKey(5)}},
		"unknown version":  {func(*testing.T, objstore.Store) {}, 10, &tableerr.VersionNotFound{}},
		"negative version": {func(*testing.T, objstore.Store) {}, -2, &tableerr.VersionNotFound{}},
		"negative version, no log": {func(t *testing.T, s objstore.Store) { remove(t, s, commitKeys(0, 9)...) }, -2,
			&tableerr.TableNotFound{}},
		"expired": {func(t *testing.T, s objstore.Store) { checkpointAt(t, s, 5); remove(t, s, commitKeys(0, 4)...) }, 4,
			&tableerr.VersionExpired{}},
		"expired, an old checkpoint is left": {func(t *testing.T, s objstore.Store) {
			checkpointAt(t, s, 2)
			checkpointAt(t, s, 6)
			remove(t, s, commitKeys(0, 6)...)
		}, 4, &tableerr.VersionExpired{}},
		"only a V2 checkpoint": {func(t *testing.T, s objstore.Store) {
			remove(t, s, commitKeys(0, 9)...)
			put(t, s, logDir+"00000000000000000009.checkpoint.80a083e8.json", "x")
		}, latest, &tableerr.Unsupported{Feature: "v2Checkpoint"}},
		"path outside": {func(t *testing.T, s objstore.Store) {
			put(t, s, CommitKey(9), `{"add":{"path":"/etc/passwd"}}`)
		}, latest, &tableerr.Unsupported{Path: "/etc/passwd"}},
		"last version in the world": {func(t *testing.T, s objstore.Store) { put(t, s, CommitKey(maxVersion), "{}") }, latest, &tableerr.Corrupt{Path: CommitKey(10)}},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			tableLog(t, store, 9)
			c.damage(t, store)
			log := New(store, Options{})
			var err error
			if c.version == latest {
				_, err = log.LoadLatest(t.Context())
			} else {
				_, err = log.LoadAt(t.Context(), c.version)
			}
			if !sameError(err, c.want) {
				t.Errorf("%v, want %#v", err, c.want)
			}
			var missing *tableerr.VersionNotFound
			if errors.As(err, &missing) && (missing.Current != 9 || missing.Version != c.version) {
				t.Errorf("%+v", missing)
			}
		})
	}
}

func TestLoadAllowsExternalPaths(t *testing.T) {
	store := memstore.New()
	tableLog(t, store, 0)
	put(t, store, CommitKey(1), `{"add":{"path":"s3://bucket/x"}}`)
	if _, err := New(store, Options{}).LoadLatest(t.Context()); !sameError(err, &tableerr.Unsupported{Path: "s3://bucket/x"}) {
		t.Error(err)
	}
	if s, err := New(store, Options{AllowExternalPaths: true}).LoadLatest(t.Context()); err != nil || s.NumFiles() != 2 {
		t.Error(err)
	}
}

func TestLoadAt(t *testing.T) {
	store := memstore.New()
	tableLog(t, store, 9)
	checkpointAt(t, store, 5)
	for version := range int64(10) {
		s, err := New(store, Options{}).LoadAt(t.Context(), version)
		if err != nil || s.Version() != version || s.NumFiles() != int(version)+1 {
			t.Errorf("%d: %v", version, err)
		}
	}
}

// TestLoadBesideCleanup: a file that goes between the listing and the read
// makes the load look again.
func TestLoadBesideCleanup(t *testing.T) {
	inner := memstore.New()
	tableLog(t, inner, 9)
	store := faultstore.Wrap(inner, faultstore.Plan{
		Match: func(op objstore.Op, key string) bool { return key == CommitKey(0) },
		Before: func(objstore.Op, string) {
			checkpointAt(t, inner, 7)
			remove(t, inner, commitKeys(0, 6)...)
		},
	})
	s, err := New(store, Options{}).LoadLatest(t.Context())
	if err != nil || s.Version() != 9 || s.Checkpoint().Version != 7 {
		t.Fatal(s, err)
	}
}

// TestLoadDuringGrowth: a listing that shows version 11 and not 10 is no gap.
func TestLoadDuringGrowth(t *testing.T) {
	inner := memstore.New()
	tableLog(t, inner, 9)
	store := faultstore.Wrap(inner, faultstore.Plan{
		Match: func(op objstore.Op, key string) bool { return key == CommitKey(0) },
		Before: func(objstore.Op, string) {
			put(t, inner, CommitKey(10), `{"add":{"path":"f10","size":1}}`)
		},
	})
	put(t, inner, CommitKey(11), `{"add":{"path":"f11","size":1}}`)
	s, err := New(store, Options{}).LoadLatest(t.Context())
	if err != nil || s.Version() != 11 || s.NumFiles() != 12 {
		t.Fatal(s, err)
	}
}

// TestLoadStoreErrors fails each operation in turn: the load gives the store's
// error or, where the hint was hit, the right state.
func TestLoadStoreErrors(t *testing.T) {
	inner := memstore.New()
	tableLog(t, inner, 9)
	checkpointAt(t, inner, 5)
	for at := 0; ; at++ {
		store := faultstore.Wrap(inner, faultstore.Plan{At: at, Kind: faultstore.Error})
		s, err := New(store, Options{}).LoadLatest(t.Context())
		if store.Ops() <= at { // nothing was hit
			if at < 8 || err != nil {
				t.Fatalf("a clean run of %d operations: %v", at, err)
			}
			break
		}
		hint := at == 0 // the hint can be done without
		if hint && (err != nil || s.Version() != 9 || s.NumFiles() != 10) || !hint && (!errors.Is(err, faultstore.ErrInjected) || tableerr.TokenOf(err) != "") {
			t.Fatalf("operation %d: %v, %v", at, s, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(inner, Options{}).LoadLatest(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestLoadCost(t *testing.T) {
	store := meterstore.Wrap(memstore.New())
	tableLog(t, store, 99)
	checkpointAt(t, store, 97)
	store.Reset()
	s, err := New(store, Options{}).LoadLatest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The hint and two commits; of the list only what is behind the hint.
	if c := store.Counts(); c.Get != 3 || c.List != 1 || c.Open != 1 || c.Listed > 6 {
		t.Errorf("cold: %v", c)
	}
	store.Reset()
	if _, _, err := New(store, Options{}).Refresh(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if c := store.Counts(); c.Requests() != 2 {
		t.Errorf("warm: %v", c)
	}
}

func FuzzParseHint(f *testing.F) {
	f.Add([]byte(`{"version":10,"size":13,"parts":2,"checkpointSchema":{"a":[1]}}`))
	f.Add([]byte(`{"version":1e3}`))
	f.Add([]byte(`{"version":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		version, err := parseHint(data)
		if err == nil && (version < 0 || version > maxVersion) {
			t.Fatal(version)
		}
		// Whatever the hint says, the table is read right.
		store := memstore.New()
		tableLog(t, store, 3)
		checkpointAt(t, store, 2)
		put(t, store, hintKey, string(data))
		if s, err := New(store, Options{}).LoadLatest(t.Context()); err != nil || s.Version() != 3 {
			t.Fatal(err)
		}
	})
}

// TestCheckProperties makes sure that a table's properties are judged before
// its features, when it is loaded and when it has changed.
func TestCheckProperties(t *testing.T) {
	ctx, store := context.Background(), memstore.New()
	odd := errors.New("a newer format")
	log := New(store, Options{CheckProperties: func(c map[string]string) error {
		if c["odd"] != "" {
			return odd
		}
		return nil
	}})
	s := tableLog(t, store, 0)
	metadata := *s.Metadata()
	metadata.Configuration = map[string]string{"odd": "yes"}
	writeNext(t, New(store, Options{}), s, &Commit{Info: &CommitInfo{}, Metadata: &metadata, Protocol: &Protocol{MinReaderVersion: 9, MinWriterVersion: 9}})
	if _, _, err := log.Refresh(ctx, s); !errors.Is(err, odd) {
		t.Errorf("refresh: %v", err)
	}
	if _, err := log.LoadLatest(ctx); !errors.Is(err, odd) {
		t.Errorf("load: %v", err)
	}
	if _, err := log.LoadAt(ctx, 0); err != nil {
		t.Errorf("the version before: %v", err)
	}
}
