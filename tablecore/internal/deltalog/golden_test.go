package deltalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"testing"

	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
)

// goldenDir holds tables that Spark wrote; its README tells where they come
// from. The versions, files and errors expected here are what deltalake 1.6.6
// gives for them, but where it stops at what the protocol text does not forbid:
// old metadata without a schemaString, and a damaged newest checkpoint whose
// commits are all there.
const goldenDir = "../../../integration/testdata/delta"

// goldenStore returns a store with a golden table, which Spark wrote.
func goldenStore(t *testing.T, table string) objstore.Store {
	t.Helper()
	store := memstore.New()
	files := os.DirFS(path.Join(goldenDir, table))
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return store.Put(context.Background(), name, data)
	})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func filesOf(t *testing.T, s *State) []string {
	t.Helper()
	var files []string
	for _, a := range s.Files() {
		file, err := a.File()
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

func TestGoldenTables(t *testing.T) {
	for table, want := range map[string]struct {
		version        int64
		files          int
		id             string
		reader, writer int32
		checkpoint     int64
	}{
		"basic-with-inserts-deletes-checkpoint":                          {13, 7, "", 1, 2, 10},
		"basic-with-vacuum-protocol-check-feature":                       {1, 2, "", 3, 7, -1},
		"canonicalized-paths-normal-a":                                   {1, 0, "7afc4b76-09fb-4b06-836d-f9972b9c1f91", 1, 2, -1},
		"canonicalized-paths-special-a":                                  {1, 0, "b2facba1-1669-43f3-9b1d-7580c207873e", 1, 2, -1},
		"commit-info-containing-arbitrary-operationParams-types":         {2, 2, "", 1, 7, -1},
		"corrupted-last-checkpoint-kernel":                               {11, 2, "", 1, 2, 10},
		"data-reader-escaped-chars":                                      {2, 3, "", 1, 2, -1},
		"data-reader-timestamp_ntz":                                      {1, 4, "", 3, 7, -1},
		"delete-re-add-same-file-different-transactions":                 {3, 2, "testId", 1, 2, -1},
		"deltalog-getChanges":                                            {2, 0, "", 1, 2, -1},
		"deltalog-state-reconstruction-from-checkpoint-missing-metadata": {10, 11, "", 1, 2, -1},
		"log-replay-latest-metadata-protocol":                            {2, 4, "", 3, 7, -1},
		"log-replay-special-characters-a":                                {1, 0, "testId", 1, 2, -1},
		"log-replay-special-characters-b":                                {0, 1, "testId", 1, 2, -1},
		"multi-part-checkpoint":                                          {1, 10, "", 1, 2, 1},
		"only-checkpoint-files":                                          {2, 7, "", 1, 2, 2},
		"snapshot-data2-deleted":                                         {4, 3, "", 1, 2, -1},
	} {
		t.Run(table, func(t *testing.T) {
			s, err := New(goldenStore(t, table), Options{}).LoadLatest(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			p := s.Protocol()
			if s.Version() != want.version || s.NumFiles() != want.files || p.MinReaderVersion != want.reader || p.MinWriterVersion != want.writer || s.Checkpoint().Version != want.checkpoint {
				t.Errorf("version %d, %d files, protocol %+v, checkpoint %d", s.Version(), s.NumFiles(), p, s.Checkpoint().Version)
			}
			if want.id != "" && s.Metadata().ID != want.id || s.Metadata().ID == "" {
				t.Errorf("id %s", s.Metadata().ID)
			}
			if files := filesOf(t, s); len(files) != want.files {
				t.Errorf("files %q", files)
			}
		})
	}
}

func TestGoldenTablesRefused(t *testing.T) {
	for table, want := range map[string]error{
		"deltalog-invalid-protocol-version":              &tableerr.Unsupported{Feature: "minReaderVersion 99"},
		"deltalog-state-reconstruction-without-metadata": &tableerr.Corrupt{Path: CommitKey(0)},
		"deltalog-state-reconstruction-without-protocol": &tableerr.Corrupt{Path: CommitKey(0)},
		"log-replay-dv-key-cases":                        &tableerr.Unsupported{Feature: "deletionVectors"},
		"table-with-columnmapping-mode-id":               &tableerr.Unsupported{Feature: "columnMapping"},
		"v2-checkpoint-json":                             &tableerr.Unsupported{Feature: "v2Checkpoint"},
		"versions-not-contiguous":                        &tableerr.Corrupt{Path: CommitKey(1)},
		"no-delta-log-folder":                            &tableerr.TableNotFound{},
	} {
		store := objstore.Store(memstore.New())
		if table != "no-delta-log-folder" {
			store = goldenStore(t, table)
		}
		_, err := New(store, Options{}).LoadLatest(t.Context())
		if !sameError(err, want) {
			t.Errorf("%s: %v, want %#v", table, err, want)
		}
	}
}

// sameError compares token, feature and path.
func sameError(got, want error) bool {
	var u, wu *tableerr.Unsupported
	if errors.As(want, &wu) {
		return errors.As(got, &u) && u.Feature == wu.Feature && u.Path == wu.Path
	}
	var c, wc *tableerr.Corrupt
	if errors.As(want, &wc) {
		return errors.As(got, &c) && c.Path == wc.Path
	}
	return tableerr.TokenOf(got) == tableerr.TokenOf(want)
}

// TestGoldenHistory loads every version, with and without the checkpoints, and
// refreshes from each to the newest: all ways lead to the same state.
func TestGoldenHistory(t *testing.T) {
	for _, table := range []string{"basic-with-inserts-deletes-checkpoint", "snapshot-data2-deleted", "multi-part-checkpoint", "only-checkpoint-files", "data-reader-escaped-chars"} {
		store := goldenStore(t, table)
		log := New(store, Options{})
		newest, err := log.LoadLatest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		replayed := NewState()
		for version := range newest.Version() + 1 {
			c, err := log.ReadCommit(t.Context(), version)
			if err != nil {
				t.Fatal(err)
			}
			if replayed, err = replayed.Apply(c); err != nil {
				t.Fatal(err)
			}
			at, err := log.LoadAt(t.Context(), version)
			if err != nil {
				t.Fatal(err)
			}
			want, got := filesOf(t, replayed), filesOf(t, at)
			slices.Sort(want)
			slices.Sort(got)
			if at.Version() != version || !slices.Equal(got, want) || at.Bytes() != replayed.Bytes() {
				t.Errorf("%s at %d: %q, replay gives %q", table, version, got, want)
			}
			later, commits, err := log.Refresh(t.Context(), at)
			if err != nil || later.Version() != newest.Version() || len(commits) != int(newest.Version()-version) || later.NumFiles() != newest.NumFiles() {
				t.Errorf("%s from %d: %v", table, version, err)
			}
		}
	}
}

// TestCheckpointByDeltalake reads the checkpoint that the deltalake package
// (1.6.6, create_checkpoint) wrote of a table of ours, as it may any time. It
// keeps what Contrail needs.
func TestCheckpointByDeltalake(t *testing.T) {
	store := memstore.New()
	for _, name := range []string{"_delta_log/00000000000000000011.checkpoint.parquet", "_delta_log/00000000000000000011.json", "_delta_log/_last_checkpoint"} {
		data, err := os.ReadFile(path.Join("testdata/deltalake-checkpoint", name))
		if err != nil {
			t.Fatal(err)
		}
		put(t, store, name, string(data))
	}
	s, err := New(store, Options{}).LoadLatest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Version() != 11 || s.NumFiles() != 11 || s.NumTxns() != 12 || s.NumRemoves() != 1 || s.Domain("contrail.state").Configuration != `{"oldest_version":0}` {
		t.Errorf("version %d, %d files, %d txns, %d removes", s.Version(), s.NumFiles(), s.NumTxns(), s.NumRemoves())
	}
	a := s.File("data/07/a7.parquet")
	if a == nil || a.Tags["contrail.v"] != "1" || a.Stats == "" || a.Size == 0 {
		t.Errorf("%+v", a)
	}
	if tx := s.Txn("contrail/7"); tx == nil || tx.Version != 7 || tx.LastUpdated == nil {
		t.Errorf("%+v", tx)
	}
	if err := s.CheckWritable(); err != nil {
		t.Error(err)
	}
}

// TestGoldenMultiPartWithMissingPart: an unfinished checkpoint is ignored.
func TestGoldenMultiPartWithMissingPart(t *testing.T) {
	for _, part := range []int{1, 2} {
		store := goldenStore(t, "multi-part-checkpoint")
		remove(t, store, fmt.Sprintf("_delta_log/00000000000000000001.checkpoint.%010d.0000000002.parquet", part))
		s, err := New(store, Options{}).LoadLatest(t.Context())
		if err != nil || s.NumFiles() != 10 || s.Checkpoint().Version != -1 {
			t.Errorf("without part %d: %v", part, err)
		}
		remove(t, store, CommitKey(0))
		if _, err := New(store, Options{}).LoadLatest(t.Context()); !sameError(err, &tableerr.Corrupt{Path: CommitKey(0)}) {
			t.Errorf("without part %d and the first commit: %v", part, err)
		}
	}
}
