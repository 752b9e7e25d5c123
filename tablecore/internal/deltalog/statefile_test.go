package deltalog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"testing"

	"contrail/tablecore/objstore/memstore"
)

// reread encodes a state and decodes it again.
func reread(t testing.TB, s *State) *State {
	t.Helper()
	data, err := EncodeState(s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeState(s.Version(), string(data))
	if err != nil {
		t.Fatal(err)
	}
	again, err := EncodeState(got)
	if err != nil || !bytes.Equal(again, data) {
		t.Fatalf("decoded, the state has other bytes: %v", err)
	}
	return got
}

// sameDecoded is sameState for a state that stands on no commit yet.
func sameDecoded(t *testing.T, got, want *State) {
	t.Helper()
	got.timestamp = want.timestamp
	sameState(t, got, want)
	if got.Bytes() != want.Bytes() || got.refused != want.refused || got.marks != want.marks {
		t.Errorf("%d bytes, %d refused, marks %+v; want %d, %d, %+v", got.Bytes(), got.refused, got.marks, want.Bytes(), want.refused, want.marks)
	}
	if got.Checkpoint().Version != want.Checkpoint().Version || got.Checkpoint().Bytes != want.Checkpoint().Bytes || got.WantsCheckpoint() != want.WantsCheckpoint() {
		t.Errorf("checkpoint %+v, want %+v", got.Checkpoint(), want.Checkpoint())
	}
}

func TestStateRoundTrip(t *testing.T) {
	want := richLog(t, memstore.New())
	sameDecoded(t, reread(t, want), want)
	checkpointed := want.WithCheckpoint(CheckpointRef{Version: 1, Bytes: 77, logBytes: want.logBytes - 5})
	sameDecoded(t, reread(t, checkpointed), checkpointed)
}

// TestStateRoundTripOfGoldenTables decodes what other writers have written.
func TestStateRoundTripOfGoldenTables(t *testing.T) {
	tables, err := os.ReadDir(goldenDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if !table.IsDir() {
			continue
		}
		t.Run(table.Name(), func(t *testing.T) {
			s, err := New(goldenStore(t, table.Name()), Options{}).LoadLatest(t.Context())
			if err != nil {
				return // TestGoldenTablesRefused says why
			}
			sameDecoded(t, reread(t, s), s)
		})
	}
}

// TestStateRoundTripAtRandom follows a log at random: each version's state, and
// what later commits make of it, is that of the log.
func TestStateRoundTripAtRandom(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := apply(t, NewState(), first())
		resumed := s
		for version := int64(1); version < 40; version++ {
			c := randomCommit(r, version)
			s, resumed = apply(t, s, c), apply(t, resumed, c)
			if r.IntN(4) == 0 {
				resumed = reread(t, resumed)
			}
			sameDecoded(t, resumed, s)
		}
	}
}

func randomCommit(r *rand.Rand, version int64) *Commit {
	c := &Commit{Version: version, Size: r.Int64N(1000)}
	maps := []map[string]string{nil, {}, {"a": "1"}, {"a": "", "b": "é\x00"}, {"contrail.version": fmt.Sprint(version)}}
	for range r.IntN(4) {
		a := add(fmt.Sprint("f", r.IntN(20)), r.Int64N(1<<60))
		a.ModificationTime, a.Stats = r.Int64()-1<<62, strings.Repeat("x", r.IntN(9))
		a.PartitionValues, a.Tags = maps[r.IntN(len(maps))], maps[r.IntN(len(maps))]
		a.DataChange = false
		c.Adds = append(c.Adds, a)
	}
	for range r.IntN(3) {
		x := &Remove{Path: fmt.Sprint("f", r.IntN(20)), DeletionTimestamp: r.Int64N(1 << 50), ExtendedFileMetadata: r.IntN(2) == 0,
			PartitionValues: maps[r.IntN(len(maps))]}
		if r.IntN(2) == 0 {
			x.Size = ptr(r.Int64())
		}
		c.Removes = append(c.Removes, x)
	}
	for range r.IntN(3) {
		x := &Txn{AppID: fmt.Sprint("app", r.IntN(9)), Version: r.Int64()}
		if r.IntN(2) == 0 {
			x.LastUpdated = ptr(-r.Int64())
		}
		c.Txns = append(c.Txns, x)
	}
	if r.IntN(3) == 0 {
		c.Domains = []*DomainMetadata{{Domain: fmt.Sprint("d", r.IntN(3)), Configuration: "{}", Removed: r.IntN(3) == 0}}
	}
	if r.IntN(9) == 0 {
		c.Metadata = &Metadata{ID: "id", Configuration: maps[r.IntN(len(maps))], PartitionColumns: []string{"a"}, CreatedTime: ptr(version)}
		c.Protocol = &Protocol{MinReaderVersion: 1, MinWriterVersion: 7, WriterFeatures: []string{"appendOnly"}}
	}
	c.reconcile()
	return c
}

func TestEncodeStateRefuses(t *testing.T) {
	s := apply(t, NewState(), first())
	a := add("x", 1)
	a.DeletionVector = &DeletionVector{StorageType: "u", PathOrInline: "abc"}
	with := apply(t, s, &Commit{Version: 1, Adds: []*Add{a}})
	gone := apply(t, with, &Commit{Version: 2, Removes: []*Remove{{Path: "x", DeletionVector: a.DeletionVector}}})
	for _, s := range []*State{with, gone} {
		if _, err := EncodeState(s); err == nil {
			t.Errorf("version %d with a deletion vector is encoded", s.Version())
		}
	}
}

func TestDecodeStateRefuses(t *testing.T) {
	data, err := EncodeState(richLog(t, memstore.New()))
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(data) {
		if _, err := DecodeState(1, string(data[:n])); err == nil {
			t.Fatalf("the first %d of %d bytes are taken for a state", n, len(data))
		}
	}
	for name, c := range map[string]struct {
		version int64
		data    string
	}{
		"more behind it":          {1, string(data) + "\x00"},
		"a negative version":      {-1, string(data)},
		"a version too large":     {maxVersion + 1, string(data)},
		"a number too long":       {1, strings.Repeat("\xff", 12)},
		"a number beyond 64 bits": {1, strings.Repeat("\xff", 9) + "\x02"},
	} {
		if _, err := DecodeState(c.version, c.data); err == nil {
			t.Errorf("%s is taken for a state", name)
		}
	}
}

// TestGoldenState holds the bytes of a state. A change of them needs a new
// version of state files.
func TestGoldenState(t *testing.T) {
	got, err := EncodeState(richLog(t, memstore.New()))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "state.golden", got)
}

// golden compares bytes with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := path.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s differs: %d bytes, want %d (%v)", file, len(got), len(want), err)
	}
}

func FuzzDecodeState(f *testing.F) {
	data, err := EncodeState(richLog(f, memstore.New()))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := DecodeState(3, string(data))
		if err != nil {
			return
		}
		reread(t, s)
		_ = s.CheckReadable()
		_ = s.CheckPaths()
	})
}

// manyFiles is a state of 10,000 files as Contrail writes them.
func manyFiles(b *testing.B) *State {
	b.Helper()
	s := apply(b, NewState(), first())
	c := &Commit{Version: 1}
	for i := range 10_000 {
		a := add(fmt.Sprintf("data/%02x/%032x.parquet", i%256, i), 40_000)
		a.Tags = map[string]string{"contrail.index-min": fmt.Sprint(i), "contrail.index-max": fmt.Sprint(i), "contrail.sorted": "true",
			"contrail.layout": "mixed", "contrail.writer": "Contrail/0.1.0", "contrail.version": fmt.Sprint(i)}
		a.Stats = fmt.Sprintf(`{"numRecords":1,"minValues":{"x":%d},"maxValues":{"x":%d},"nullCount":{"x":0}}`, i, i)
		c.Adds = append(c.Adds, a)
	}
	return apply(b, s, c)
}

func BenchmarkState(b *testing.B) {
	s := manyFiles(b)
	data, err := EncodeState(s)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("files=10000/encode", func(b *testing.B) {
		for b.Loop() {
			if _, err := EncodeState(s); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(data)), "bytes")
	})
	b.Run("files=10000/decode", func(b *testing.B) {
		for b.Loop() {
			if _, err := DecodeState(1, string(data)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkEncodeCheckpoint(b *testing.B) {
	s, log := manyFiles(b), New(memstore.New(), Options{})
	for b.Loop() {
		data, err := log.encodeCheckpoint(b.Context(), s)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(data)), "bytes")
	}
}
