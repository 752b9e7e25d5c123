package statecache

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"go.uber.org/goleak"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/txn"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// create writes version 0 of a table.
func create(t testing.TB, store objstore.Store, id string) *snapshot.Snapshot {
	t.Helper()
	def, err := tabledef.New(id, tabledef.Request{IndexColumn: "ts", IndexGranularity: "1h", EntityColumns: []string{"sym"},
		Schema: arrow.NewSchema([]arrow.Field{{Name: "sym", Type: arrow.BinaryTypes.String},
			{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}}}, nil)})
	if err != nil {
		t.Fatal(err)
	}
	metadata, protocol, err := txn.Describe(def)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, store, 0, &deltalog.Commit{Metadata: metadata, Protocol: protocol})
	return plain(t, store)
}

func commit(t testing.TB, store objstore.Store, version int64, c *deltalog.Commit) {
	t.Helper()
	ms := began.UnixMilli() + version
	c.Info = &deltalog.CommitInfo{InCommitTimestamp: &ms, Operation: "test"}
	data, err := deltalog.EncodeCommit(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.PutIfAbsent(context.Background(), deltalog.CommitKey(version), data); err != nil {
		t.Fatal(err)
	}
}

// grow appends commits that add a file each; every third removes one, too.
func grow(t testing.TB, store objstore.Store, from, to int64, mark string) {
	t.Helper()
	for version := from; version <= to; version++ {
		c := &deltalog.Commit{
			Adds: []*deltalog.Add{{Path: fmt.Sprintf("data/%s%d.parquet", mark, version), Size: 100 + version, PartitionValues: map[string]string{},
				Stats: `{"numRecords":1}`, Tags: map[string]string{tabledef.TagVersion: fmt.Sprint(version), tabledef.TagIndexMin: fmt.Sprint(version)}}},
			Txns: []*deltalog.Txn{{AppID: fmt.Sprint("app", version%2), Version: version}},
		}
		if version%3 == 0 {
			c.Removes = []*deltalog.Remove{{Path: fmt.Sprintf("data/%s%d.parquet", mark, version-1), DeletionTimestamp: began.UnixMilli()}}
		}
		commit(t, store, version, c)
	}
}

// plain opens a table from its log alone.
func plain(t testing.TB, store objstore.Store) *snapshot.Snapshot {
	t.Helper()
	state, err := deltalog.New(store, deltalog.Options{}).LoadLatest(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.New(state)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// at opens a version from the log alone.
func at(t testing.TB, store objstore.Store, version int64) *snapshot.Snapshot {
	t.Helper()
	state, err := deltalog.New(store, deltalog.Options{}).LoadAt(context.Background(), version)
	if err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.New(state)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// cache returns the cache of a process, and why it has ignored heads.
func cache(store objstore.Store) (*Cache, *[]string) {
	reasons := &[]string{}
	return New(Config{Store: store, Log: deltalog.New(store, deltalog.Options{}), Clock: func() time.Time { return began },
		Ignored: func(_ context.Context, reason string) { *reasons = append(*reasons, reason) }}), reasons
}

// write writes the state and the head of a version.
func write(t testing.TB, store objstore.Store, version int64) {
	t.Helper()
	c, _ := cache(store)
	if err := c.Write(context.Background(), at(t, store, version), nil); err != nil {
		t.Fatal(err)
	}
}

// loadsAsPlain loads the table by way of the head and from the log, holds one
// against the other and returns why the head was ignored, "" where it was not.
func loadsAsPlain(t testing.TB, store objstore.Store) string {
	t.Helper()
	c, reasons := cache(store)
	got, err := c.Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, got, plain(t, store).State)
	if len(*reasons) == 0 {
		return ""
	}
	return (*reasons)[0]
}

func sameState(t testing.TB, got, want *deltalog.State) {
	t.Helper()
	gotBytes, err := deltalog.EncodeState(got)
	if err != nil {
		t.Fatal(err)
	}
	wantBytes, err := deltalog.EncodeState(want)
	if err != nil {
		t.Fatal(err)
	}
	gotDigest, _ := got.CommitDigest()
	wantDigest, _ := want.CommitDigest()
	gotTime, _ := got.Timestamp()
	wantTime, _ := want.Timestamp()
	if got.Version() != want.Version() || gotDigest != wantDigest || gotTime != wantTime || !bytes.Equal(gotBytes, wantBytes) {
		t.Fatalf("version %d with %d files at %d, want %d with %d at %d", got.Version(), got.NumFiles(), gotTime, want.Version(), want.NumFiles(), wantTime)
	}
}

func put(t testing.TB, store objstore.Store, key string, data []byte) {
	t.Helper()
	if err := store.Put(context.Background(), key, data); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, store objstore.Store, key string) []byte {
	t.Helper()
	data, err := store.Get(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func remove(t testing.TB, store objstore.Store, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := store.Delete(context.Background(), key); err != nil {
			t.Fatal(err)
		}
	}
}

// headOf reads the head that is there.
func headOf(t testing.TB, store objstore.Store) derived.Head {
	t.Helper()
	head, err := derived.DecodeHead(get(t, store, derived.HeadPath))
	if err != nil {
		t.Fatal(err)
	}
	return head
}

func putHead(t testing.TB, store objstore.Store, head derived.Head) {
	t.Helper()
	data, err := head.Encode()
	if err != nil {
		t.Fatal(err)
	}
	put(t, store, derived.HeadPath, data)
}

// stateFiles lists the state files by name.
func stateFiles(t testing.TB, store objstore.Store) []string {
	t.Helper()
	var keys []string
	for info, err := range store.List(context.Background(), "_contrail/state/", "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}
