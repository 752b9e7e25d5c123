package deltalog

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
)

// richLog writes a log whose checkpoint has every action and odd values.
func richLog(t testing.TB, store objstore.Store) *State {
	t.Helper()
	log := New(store, Options{})
	c := fullCommit()
	c.Metadata.SchemaString = `{"type":"struct","fields":[{"name":"x","type":"long","nullable":true,"metadata":{}}]}`
	c.Removes = c.Removes[:1]
	s := writeNext(t, log, NewState(), c)
	next := &Commit{Removes: []*Remove{{Path: "plain"}}, Txns: []*Txn{{AppID: "x", Version: 1 << 62}}}
	for i := range 50 {
		next.Adds = append(next.Adds, add(fmt.Sprintf("data/%02d.parquet", i), int64(i)))
	}
	return writeNext(t, log, s, next)
}

func TestCheckpointRoundTrip(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	store := memstore.New()
	want := richLog(t, store)
	log := New(store, Options{Allocator: mem})
	ref, err := log.WriteCheckpoint(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	info, err := store.Head(t.Context(), CheckpointKey(1))
	if err != nil || info.Size != ref.Bytes || ref.Version != 1 {
		t.Fatal(info, ref, err)
	}
	hint, err := store.Get(t.Context(), hintKey)
	if wantHint := fmt.Sprintf(`{"version":1,"size":58,"sizeInBytes":%d,"numOfAddFiles":51}`, ref.Bytes); err != nil || string(hint) != wantHint {
		t.Errorf("hint %s, want %s", hint, wantHint)
	}
	got, err := log.LoadLatest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, got, want)
	if got.Checkpoint() != (CheckpointRef{Version: 1, Bytes: ref.Bytes}) {
		t.Error(got.Checkpoint())
	}
}

// sameState holds everything a checkpoint keeps against each other.
func sameState(t *testing.T, got, want *State) {
	t.Helper()
	if got.Version() != want.Version() || !reflect.DeepEqual(got.Protocol(), want.Protocol()) || !reflect.DeepEqual(got.Metadata(), want.Metadata()) {
		t.Errorf("version %d, %+v, %+v\nwant %+v, %+v", got.Version(), got.Protocol(), got.Metadata(), want.Protocol(), want.Metadata())
	}
	gotFiles, wantFiles := got.Files(), want.Files()
	if len(gotFiles) != len(wantFiles) {
		t.Fatalf("%d files, want %d", len(gotFiles), len(wantFiles))
	}
	for i, a := range wantFiles {
		a := *a
		a.DataChange = false // a checkpoint changes no data
		if !reflect.DeepEqual(*gotFiles[i], a) {
			t.Errorf("file %d = %+v, want %+v", i, gotFiles[i], a)
		}
	}
	wantRemoves := maps.Collect(want.removes.All())
	for key, r := range got.removes.All() {
		r, want := *r, *wantRemoves[key]
		want.DataChange = false
		if !reflect.DeepEqual(r, want) {
			t.Errorf("remove %+v, want %+v", r, want)
		}
	}
	if got.NumRemoves() != want.NumRemoves() || !reflect.DeepEqual(maps.Collect(got.txns.All()), maps.Collect(want.txns.All())) || !reflect.DeepEqual(got.Domains(), want.Domains()) {
		t.Errorf("removes, txns or domains differ")
	}
	gotTime, ok1 := got.Timestamp()
	if wantTime, ok2 := want.Timestamp(); gotTime != wantTime || ok1 != ok2 {
		t.Errorf("time %d, want %d", gotTime, wantTime)
	}
}

// TestCheckpointIsDeterministic: two writers that came to the state on
// different ways write the same bytes.
func TestCheckpointIsDeterministic(t *testing.T) {
	store := memstore.New()
	tableLog(t, store, 30)
	log := New(store, Options{})
	replayed, err := log.LoadLatest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkpointAt(t, store, 17)
	fromCheckpoint, err := log.LoadLatest(t.Context())
	if err != nil || fromCheckpoint.Checkpoint().Version != 17 {
		t.Fatal(err)
	}
	one, err := log.encodeCheckpoint(t.Context(), replayed)
	if err != nil {
		t.Fatal(err)
	}
	two, err := log.encodeCheckpoint(t.Context(), fromCheckpoint)
	if err != nil || !bytes.Equal(one, two) {
		t.Errorf("%d and %d bytes: %v", len(one), len(two), err)
	}
}

func TestCheckpointManyBatches(t *testing.T) {
	store := memstore.New()
	log := New(store, Options{})
	c := first()
	for i := range checkpointBatchRows + 100 {
		c.Adds = append(c.Adds, add(fmt.Sprint("f", i), 1))
	}
	want := writeNext(t, log, NewState(), c)
	if _, err := log.WriteCheckpoint(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := log.LoadLatest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, got, want)
}

func TestWriteCheckpointLeavesWhatIsThere(t *testing.T) {
	store := memstore.New()
	tableLog(t, store, 9)
	checkpointAt(t, store, 7)
	hint, _ := store.Get(t.Context(), hintKey)
	checkpointAt(t, store, 5)
	if now, _ := store.Get(t.Context(), hintKey); !bytes.Equal(now, hint) {
		t.Errorf("the hint moved back: %s", now)
	}
	before, _ := store.Get(t.Context(), CheckpointKey(7))
	ref := checkpointAt(t, store, 7)
	if after, _ := store.Get(t.Context(), CheckpointKey(7)); !bytes.Equal(before, after) || ref.Bytes != int64(len(after)) {
		t.Error("a checkpoint was replaced")
	}
	// A hint to a checkpoint that does not exist gives way.
	put(t, store, hintKey, `{"version":1000000}`)
	checkpointAt(t, store, 8)
	if version, ok := New(store, Options{}).readHint(t.Context()); !ok || version != 8 {
		t.Error(version, ok)
	}
}

func TestWriteCheckpointRefuses(t *testing.T) {
	log := New(memstore.New(), Options{})
	s := apply(t, NewState(), &Commit{Protocol: &Protocol{MinReaderVersion: 1, MinWriterVersion: 7, WriterFeatures: []string{"rowTracking"}}, Metadata: &Metadata{}})
	if _, err := log.WriteCheckpoint(t.Context(), s); !sameError(err, &tableerr.Unsupported{Feature: "rowTracking"}) {
		t.Error(err)
	}
}

// TestWriteCheckpointFaults fails and stops at each operation in turn: the log
// loads as before, and a repetition brings the checkpoint.
func TestWriteCheckpointFaults(t *testing.T) {
	for _, kind := range faultstore.Kinds() {
		for at := 0; ; at++ {
			store := memstore.New()
			s := tableLog(t, store, 9)
			faulty := faultstore.Wrap(store, faultstore.Plan{At: at, Kind: kind})
			_, err := New(faulty, Options{}).WriteCheckpoint(t.Context(), s)
			log := New(store, Options{})
			if got, err := log.LoadLatest(t.Context()); err != nil || got.Version() != 9 || got.NumFiles() != 10 {
				t.Fatalf("%v at %d: %v", kind, at, err)
			}
			if ref, err := log.WriteCheckpoint(t.Context(), s); err != nil || ref.Version != 9 {
				t.Fatalf("%v at %d: again: %v", kind, at, err)
			}
			if version, ok := log.readHint(t.Context()); !ok || version != 9 {
				t.Fatalf("%v at %d: hint %d, %v", kind, at, version, ok)
			}
			if faulty.Ops() <= at {
				if err != nil || at < 4 {
					t.Fatalf("%v: a clean run of %d operations: %v", kind, at, err)
				}
				break
			}
		}
	}
}

func TestWantsCheckpoint(t *testing.T) {
	s := apply(t, NewState(), first())
	grow := func(s *State, commits int, bytes int64) *State {
		for range commits {
			s = apply(t, s, &Commit{Size: bytes})
		}
		return s
	}
	s = grow(s, 98, 1000)
	if s.WantsCheckpoint() {
		t.Error("wants one after 99 commits")
	}
	s = grow(s, 1, 1000)
	if !s.WantsCheckpoint() {
		t.Error("wants none after 100 commits without any")
	}
	big := s.WithCheckpoint(CheckpointRef{Version: 99, Bytes: 1_000_000, logBytes: s.logBytes})
	if big = grow(big, 200, 1000); big.WantsCheckpoint() {
		t.Error("wants one though the tail is a fifth")
	}
	if big = grow(big, 50, 1000); !big.WantsCheckpoint() {
		t.Error("wants none though the tail is a quarter")
	}
	var txns []*Txn
	for i := range 2000 {
		txns = append(txns, &Txn{AppID: fmt.Sprint(i)})
	}
	wide := apply(t, s, &Commit{Txns: txns}).WithCheckpoint(CheckpointRef{Version: 100})
	if wide = grow(wide, 399, 1000); wide.WantsCheckpoint() {
		t.Error("wants one though the tail has fewer commits than a fifth of the actions")
	}
	if wide = grow(wide, 1, 1000); !wide.WantsCheckpoint() {
		t.Error("wants none after so many commits")
	}
	huge := s.WithCheckpoint(CheckpointRef{Version: 99, Bytes: 1 << 40, logBytes: s.logBytes})
	if huge = grow(huge, 999, 1); huge.WantsCheckpoint() {
		t.Error("wants one after 999 commits")
	}
	if huge = grow(huge, 1, 1); !huge.WantsCheckpoint() {
		t.Error("wants none after 1000 commits")
	}
	if s.WithCheckpoint(CheckpointRef{Version: 100}) != s || big.WithCheckpoint(CheckpointRef{Version: 3}) != big {
		t.Error("a checkpoint of the future or the past was taken")
	}
}

// parquetOf writes one batch of one row.
func parquetOf(t testing.TB, fields []arrow.Field, fill func(*array.RecordBuilder)) []byte {
	t.Helper()
	schema := arrow.NewSchema(fields, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	fill(b)
	batch := b.NewRecordBatch()
	defer batch.Release()
	var out bytes.Buffer
	if _, err := datafile.WriteTable(&out, schema, []arrow.RecordBatch{batch}, nil, datafile.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// oneMember is a checkpoint of one row with one action of one member.
func oneMember(t testing.TB, action, member string, typ arrow.DataType, fill func(array.Builder)) []byte {
	return parquetOf(t, []arrow.Field{nullableField(action, arrow.StructOf(nullableField(member, typ)))}, func(b *array.RecordBuilder) {
		s := b.Field(0).(*array.StructBuilder)
		s.Append(true)
		fill(s.FieldBuilder(0))
	})
}

func TestReadCheckpointRefuses(t *testing.T) {
	text := func(v string) func(array.Builder) {
		return func(b array.Builder) { b.(*array.StringBuilder).Append(v) }
	}
	number := func(b array.Builder) { b.(*array.Int64Builder).Append(-5) }
	str, long := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64
	log := New(memstore.New(), Options{})
	for name, data := range map[string][]byte{
		"path of another type":   oneMember(t, "add", "path", long, number),
		"size of another type":   oneMember(t, "add", "size", str, text("1")),
		"flag of another type":   oneMember(t, "add", "dataChange", str, text("true")),
		"map of another type":    oneMember(t, "add", "tags", str, text("x")),
		"vector of another type": oneMember(t, "add", "deletionVector", str, text("x")),
		"list of another type":   oneMember(t, "protocol", "readerFeatures", str, text("x")),
		"format of another type": oneMember(t, "metaData", "format", str, text("x")),
		"empty path":             oneMember(t, "add", "path", str, text("")),
		"empty path of a remove": oneMember(t, "remove", "path", str, text("")),
		"not UTF-8":              oneMember(t, "add", "path", str, text("\xff")),
		"action of another type": parquetOf(t, []arrow.Field{nullableField("add", str)}, func(b *array.RecordBuilder) { b.Field(0).(*array.StringBuilder).Append("x") }),
		"negative version":       oneMember(t, "protocol", "minReaderVersion", long, number),
		"version out of range":   oneMember(t, "protocol", "minReaderVersion", long, func(b array.Builder) { b.(*array.Int64Builder).Append(1 << 40) }),
		"map of other values":    oneMember(t, "add", "tags", arrow.MapOf(str, long), func(b array.Builder) { b.AppendNull() }),
		"list of other values":   oneMember(t, "protocol", "readerFeatures", arrow.ListOf(long), func(b array.Builder) { b.AppendNull() }),
		"no Parquet":             []byte("PAR1"),
		"nothing":                nil,
	} {
		_, err := log.decodeCheckpoint(t.Context(), bytes.NewReader(data), "c")
		if !sameError(err, &tableerr.Corrupt{Path: "c"}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, action := range []string{"sidecar", "checkpointMetadata"} {
		data := oneMember(t, action, "path", str, text("x"))
		if _, err := log.decodeCheckpoint(t.Context(), bytes.NewReader(data), "c"); !sameError(err, &tableerr.Unsupported{Feature: "v2Checkpoint"}) {
			t.Errorf("%s: %v", action, err)
		}
	}
}

// TestCheckpointWithoutProtocol: such a checkpoint is damaged, and so is the
// table when nothing else is left.
func TestCheckpointWithoutProtocol(t *testing.T) {
	store := memstore.New()
	put(t, store, CheckpointKey(4), string(oneMember(t, "metaData", "id", arrow.BinaryTypes.String, func(b array.Builder) { b.(*array.StringBuilder).Append("id") })))
	if _, err := New(store, Options{}).LoadLatest(t.Context()); !sameError(err, &tableerr.Corrupt{Path: CheckpointKey(4)}) {
		t.Error(err)
	}
	var corrupt *tableerr.Corrupt
	put(t, store, CheckpointKey(4), string(oneMember(t, "protocol", "minReaderVersion", arrow.PrimitiveTypes.Int64, func(b array.Builder) { b.(*array.Int64Builder).Append(1) })))
	if _, err := New(store, Options{}).LoadLatest(t.Context()); !errors.As(err, &corrupt) || corrupt.Msg != "the checkpoint holds no metaData action" {
		t.Error(err)
	}
}

// TestCheckpointReadsOtherLayouts: 32-bit numbers and missing
// members are read, and a struct without its key member is no action.
func TestCheckpointReadsOtherLayouts(t *testing.T) {
	member := func(name string, typ arrow.DataType) arrow.Field { return nullableField(name, typ) }
	fields := []arrow.Field{member("add", arrow.StructOf(member("path", arrow.BinaryTypes.String), member("size", arrow.PrimitiveTypes.Int32))), member("unknown", arrow.BinaryTypes.String)}
	data := parquetOf(t, fields, func(b *array.RecordBuilder) {
		s := b.Field(0).(*array.StructBuilder)
		s.Append(true)
		s.FieldBuilder(0).(*array.StringBuilder).Append("a")
		s.FieldBuilder(1).(*array.Int32Builder).Append(7)
		s.Append(true)
		s.FieldBuilder(0).AppendNull()
		s.FieldBuilder(1).AppendNull()
		b.Field(1).AppendNulls(2)
	})
	c, err := New(memstore.New(), Options{}).decodeCheckpoint(t.Context(), bytes.NewReader(data), "c")
	if err != nil || len(c.Adds) != 1 || c.Adds[0].Path != "a" || c.Adds[0].Size != 7 {
		t.Fatal(c, err)
	}
}

// TestCheckpointWithDeletionVector: the file is told apart by its vector, and
// the table is refused whatever its protocol says.
func TestCheckpointWithDeletionVector(t *testing.T) {
	text, long := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64
	vector := arrow.StructOf(nullableField("storageType", text), nullableField("pathOrInlineDv", text), nullableField("offset", long))
	data := parquetOf(t, []arrow.Field{nullableField("add", arrow.StructOf(nullableField("path", text), nullableField("deletionVector", vector)))}, func(b *array.RecordBuilder) {
		s := b.Field(0).(*array.StructBuilder)
		s.Append(true)
		s.FieldBuilder(0).(*array.StringBuilder).Append("a")
		v := s.FieldBuilder(1).(*array.StructBuilder)
		v.Append(true)
		v.FieldBuilder(0).(*array.StringBuilder).Append("u")
		v.FieldBuilder(1).(*array.StringBuilder).Append("x")
		v.FieldBuilder(2).(*array.Int64Builder).Append(4)
	})
	c, err := New(memstore.New(), Options{}).decodeCheckpoint(t.Context(), bytes.NewReader(data), "c")
	if err != nil || len(c.Adds) != 1 || c.Adds[0].key() != "a\x00ux@4" {
		t.Fatal(c, err)
	}
	first := first()
	first.Adds = c.Adds
	if err := apply(t, NewState(), first).CheckReadable(); !sameError(err, &tableerr.Unsupported{Feature: "deletionVectors"}) {
		t.Error(err)
	}
}

func FuzzReadCheckpoint(f *testing.F) {
	log := New(memstore.New(), Options{})
	s := apply(f, NewState(), first())
	c := fullCommit()
	c.Removes = c.Removes[:1]
	for _, s := range []*State{s, apply(f, s, c)} {
		data, err := log.encodeCheckpoint(f.Context(), s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
		f.Add(slices.Concat(data[4:len(data)-9], data[len(data)-8:]))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		store := memstore.New()
		put(t, store, CheckpointKey(6), string(data))
		s, err := New(store, Options{}).LoadLatest(t.Context())
		if err != nil {
			if tableerr.TokenOf(err) == "" {
				t.Fatal(err)
			}
			return
		}
		if s.Version() != 6 || len(s.Files()) != s.NumFiles() {
			t.Fatal(s.Version())
		}
	})
}

func BenchmarkLoadCheckpoint(b *testing.B) {
	store := memstore.New()
	log := New(store, Options{})
	c := first()
	for i := range 10_000 {
		a := add(fmt.Sprintf("data/%02x/%032d.parquet", i%256, i), 1)
		a.Stats = `{"numRecords":1000,"minValues":{"time":"2013-01-01T00:00:00.000Z","temp":1.25},"maxValues":{"time":"2013-01-02T00:00:00.000Z","temp":9.25},"nullCount":{"time":0,"temp":3}}`
		a.Tags = map[string]string{"contrail.min": fmt.Sprint(i), "contrail.max": fmt.Sprint(i + 1), "contrail.entity": "single"}
		c.Adds = append(c.Adds, a)
	}
	s := writeNext(b, log, NewState(), c)
	b.Run("write", func(b *testing.B) {
		for range b.N {
			data, err := log.encodeCheckpoint(b.Context(), s)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(len(data)), "bytes")
		}
	})
	if _, err := log.WriteCheckpoint(b.Context(), s); err != nil {
		b.Fatal(err)
	}
	b.Run("load", func(b *testing.B) {
		for range b.N {
			if _, err := log.LoadLatest(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
