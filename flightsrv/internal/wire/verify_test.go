package wire

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"
	"github.com/klauspost/compress/zstd"

	"contrail/tablecore/tableerr"
)

// headerSpec says what a hand-made message claims.
type headerSpec struct {
	kind     byte // of the message; 3 = record batch, 2 = dictionary
	noHeader bool
	length   int64
	nodes    [][2]int64 // length, nulls
	buffers  [][2]int64 // offset, length
	codec    int        // -1 = none
	views    []int64
	repeats  int // of one key and value in the message's metadata
}

func int64Pairs(b *flatbuffers.Builder, list [][2]int64) flatbuffers.UOffsetT {
	b.StartVector(16, len(list), 8)
	for i := len(list) - 1; i >= 0; i-- {
		b.Prep(8, 16)
		b.PrependInt64(list[i][1])
		b.PrependInt64(list[i][0])
	}
	return b.EndVector(len(list))
}

// build writes the message.
func (s headerSpec) build() []byte {
	b := flatbuffers.NewBuilder(256)
	nodes, buffers := int64Pairs(b, s.nodes), int64Pairs(b, s.buffers)
	b.StartVector(8, len(s.views), 8)
	for i := len(s.views) - 1; i >= 0; i-- {
		b.PrependInt64(s.views[i])
	}
	views := b.EndVector(len(s.views))
	var compression flatbuffers.UOffsetT
	if s.codec >= 0 {
		b.StartObject(2)
		b.PrependByteSlot(compressionCodec, byte(s.codec), 255)
		compression = b.EndObject()
	}
	b.StartObject(5)
	b.PrependInt64Slot(batchLength, s.length, 0)
	b.PrependUOffsetTSlot(batchNodes, nodes, 0)
	b.PrependUOffsetTSlot(batchBuffers, buffers, 0)
	b.PrependUOffsetTSlot(batchCompression, compression, 0)
	b.PrependUOffsetTSlot(batchVariadic, views, 0)
	content := b.EndObject()
	if s.kind == byte(ipc.MessageDictionaryBatch) {
		b.StartObject(3)
		b.PrependInt64Slot(dictionaryID, 7, 0)
		if !s.noHeader {
			b.PrependUOffsetTSlot(dictionaryData, content, 0)
		}
		b.PrependByteSlot(dictionaryDelta, 1, 0)
		content = b.EndObject()
		s.noHeader = false
	}
	var metadata flatbuffers.UOffsetT
	if s.repeats > 0 {
		text := b.CreateString(strings.Repeat("x", 1000))
		b.StartObject(2)
		b.PrependUOffsetTSlot(keyValueKey, text, 0)
		b.PrependUOffsetTSlot(keyValueValue, text, 0)
		pair := b.EndObject()
		b.StartVector(4, s.repeats, 4)
		for range s.repeats {
			b.PrependUOffsetT(pair)
		}
		metadata = b.EndVector(s.repeats)
	}
	b.StartObject(5)
	b.PrependByteSlot(messageHeaderType, s.kind, 0)
	if !s.noHeader {
		b.PrependUOffsetTSlot(messageHeader, content, 0)
	}
	b.PrependUOffsetTSlot(messageMetadata, metadata, 0)
	b.Finish(b.EndObject())
	return b.FinishedBytes()
}

func lengthPrefixed(size int64, rest string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(size)), rest...)
}

func TestVerify(t *testing.T) {
	with := func(change func(*headerSpec)) headerSpec {
		s := headerSpec{kind: 3, length: 2, nodes: [][2]int64{{2, 0}}, buffers: [][2]int64{{0, 0}, {0, 16}}, codec: -1}
		change(&s)
		return s
	}
	body := make([]byte, 16)
	for _, c := range []struct {
		name string
		spec headerSpec
		body []byte
		want string // "" = accepted
	}{
		{"good", with(func(*headerSpec) {}), body, ""},
		{"good dictionary", with(func(s *headerSpec) { s.kind = 2 }), body, ""},
		{"some metadata", with(func(s *headerSpec) { s.repeats = 1 }), body, ""},
		{"tensor", with(func(s *headerSpec) { s.kind = 4 }), body, "kind 4"},
		{"no kind", with(func(s *headerSpec) { s.kind = 0 }), body, "kind 0"},
		{"no header", with(func(s *headerSpec) { s.noHeader = true }), body, "flatbuffer"},
		{"dictionary without data", with(func(s *headerSpec) { s.kind, s.noHeader = 2, true }), body, "flatbuffer"},
		{"negative rows", with(func(s *headerSpec) { s.length = -1 }), body, "-1 rows"},
		{"negative array", with(func(s *headerSpec) { s.nodes = [][2]int64{{-1, 0}} }), body, "array 0"},
		{"negative nulls", with(func(s *headerSpec) { s.nodes = [][2]int64{{2, -1}} }), body, "array 0"},
		{"more nulls than rows", with(func(s *headerSpec) { s.nodes = [][2]int64{{2, 3}} }), body, "array 0"},
		{"buffer behind the body", with(func(s *headerSpec) { s.buffers[1] = [2]int64{8, 16} }), body, "buffer 1"},
		{"buffer before the body", with(func(s *headerSpec) { s.buffers = [][2]int64{{-8, 8}} }), body, "buffer 0"},
		{"buffer of negative length", with(func(s *headerSpec) { s.buffers = [][2]int64{{0, -8}} }), body, "buffer 0"},
		{"buffer end overflows", with(func(s *headerSpec) { s.buffers = [][2]int64{{8, math.MaxInt64}} }), body, "buffer 0"},
		{"buffers overlap a thousandfold", with(func(s *headerSpec) {
			s.buffers = nil
			for range 1000 {
				s.buffers = append(s.buffers, [2]int64{0, 16})
			}
		}), body, "more than 1000 bytes"},
		{"metadata unfolds", with(func(s *headerSpec) { s.repeats = 10_000 }), body, "flatbuffer"},
		{"unknown codec", with(func(s *headerSpec) { s.codec = 9 }), body, "codec 9"},
		{"lz4", with(func(s *headerSpec) { s.codec, s.buffers = codecLZ4Frame, [][2]int64{{0, 16}} }), lengthPrefixed(100, "whatever"), ""},
		{"as it is", with(func(s *headerSpec) { s.codec, s.buffers = codecZstd, [][2]int64{{0, 16}} }), lengthPrefixed(-1, "12345678"), ""},
		{"empty compressed", with(func(s *headerSpec) { s.codec, s.buffers = codecZstd, [][2]int64{{0, 0}} }), body, ""},
		{"no length", with(func(s *headerSpec) { s.codec, s.buffers = codecZstd, [][2]int64{{0, 7}} }), body, "7 bytes"},
		{"negative length", with(func(s *headerSpec) { s.codec, s.buffers = codecZstd, [][2]int64{{0, 16}} }), lengthPrefixed(-2, "12345678"), "-2 bytes"},
		{"claims too much", with(func(s *headerSpec) { s.codec, s.buffers = codecLZ4Frame, [][2]int64{{0, 16}} }), lengthPrefixed(1<<40, "12345678"), "more than 1000 bytes"},
		{"claims overflow", with(func(s *headerSpec) { s.codec, s.buffers = codecLZ4Frame, [][2]int64{{0, 16}, {0, 16}} }), lengthPrefixed(math.MaxInt64, "12345678"), "more than 1000 bytes"},
		{"not zstd", with(func(s *headerSpec) { s.codec, s.buffers = codecZstd, [][2]int64{{0, 16}} }), lengthPrefixed(8, "12345678"), "zstd frame"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := verify(c.spec.build(), c.body, 1000)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if c.spec.kind == 2 && err == nil && (h.dictionary != 7 || !h.delta || h.rows != 2 || h.expanded != 16) {
				t.Errorf("got %+v", h)
			}
		})
	}
}

// Whatever single byte of a header is changed, or where it is cut: it is refused
// or accepted, without a panic.
func TestVerifyDamaged(t *testing.T) {
	m := client(t, weather, goBatches(3))
	for _, head := range [][]byte{m[0].DataHeader, m[1].DataHeader, headerSpec{kind: 2, codec: codecZstd, views: []int64{1}, repeats: 2}.build()} {
		for i := range head {
			for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff} {
				damaged := append([]byte(nil), head...)
				damaged[i] = b
				if h, err := verify(damaged, m[1].DataBody, 1<<20); err == nil && h.kind != ipc.MessageSchema {
					_ = h.fits(layout{nodes: 3, buffers: 7, views: 1}) //nolint:errcheck // must not panic
				}
			}
			verify(head[:i], m[1].DataBody, 1<<20) //nolint:errcheck // must not panic
		}
	}
}

func TestFits(t *testing.T) {
	spec := headerSpec{kind: 3, codec: -1, nodes: [][2]int64{{0, 0}, {0, 0}}, buffers: make([][2]int64, 5), views: []int64{1}}
	for _, c := range []struct {
		name string
		l    layout
		view int64
		ok   bool
	}{
		{"exact", layout{nodes: 2, buffers: 4, views: 1}, 1, true},
		{"more than needed", layout{nodes: 1, buffers: 2, views: 0}, 1, true},
		{"too few arrays", layout{nodes: 3, buffers: 4, views: 1}, 1, false},
		{"too few buffers", layout{nodes: 2, buffers: 5, views: 1}, 1, false},
		{"too few views", layout{nodes: 2, buffers: 4, views: 2}, 1, false},
		{"a negative view", layout{nodes: 2, buffers: 4, views: 1}, -1, false},
		{"a view of many buffers", layout{nodes: 2, buffers: 4, views: 1}, 1 << 40, false},
	} {
		spec.views[0] = c.view
		h, err := verify(spec.build(), nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.fits(c.l); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestZstdFrames(t *testing.T) {
	encode := func(text string, opts ...zstd.EOption) []byte {
		w, err := zstd.NewWriter(nil, opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		return w.EncodeAll([]byte(text), nil)
	}
	text := strings.Repeat("some text ", 1000)
	long := strings.Repeat("x", 300_000)
	good := encode(text)
	// A frame with a window descriptor, without a content size: magic, flags,
	// window, and one raw last block of 1 byte.
	windowed := func(exponent byte) []byte {
		return []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, (exponent - 10) << 3, 0x09, 0, 0, 'x'}
	}
	for _, c := range []struct {
		name  string
		frame []byte
		size  int64
		ok    bool
	}{
		{"small", encode("x"), 1, true},
		{"text", good, int64(len(text)), true},
		{"with repeats", encode(long), int64(len(long)), true},
		{"no checksum", encode(text, zstd.WithEncoderCRC(false)), int64(len(text)), true},
		{"two bytes of size", encode(text[:600]), 600, true},
		{"another size", good, int64(len(text)) + 1, false},
		{"two frames", append(good, good...), int64(len(text)), false},
		{"trailing byte", append(good[:len(good):len(good)], 0), int64(len(text)), false},
		{"a skippable frame", []byte{0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}, 0, false},
		{"window of 8 MiB", windowed(23), 1, true},
		{"window of 16 MiB", windowed(24), 1, false},
		{"window of 16 MiB for 16 MiB", windowed(24), 1 << 24, true},
		{"window of 2 TiB", windowed(41), 1, false},
		{"reserved block", []byte{0x28, 0xb5, 0x2f, 0xfd, 0x20, 1, 0x07, 0, 0}, 1, false},
	} {
		if err := checkZstdFrame(c.frame, c.size); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for i := range good {
		if err := checkZstdFrame(good[:i], int64(len(text))); err == nil {
			t.Errorf("a frame cut at %d is taken", i)
		}
	}
}

func TestLayouts(t *testing.T) {
	texts := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	deep := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.ListOf(texts)}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "null", Type: arrow.Null},
		{Name: "view", Type: arrow.BinaryTypes.BinaryView},
		{Name: "list", Type: arrow.ListOf(texts)},
		{Name: "fixed", Type: arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int8)},
		{Name: "struct", Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.BinaryTypes.LargeString}, arrow.Field{Name: "b", Type: deep})},
		{Name: "map", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32)},
	}, nil)
	head := client(t, schema, nil)[0].DataHeader
	got, err := layoutsOf(schema, head)
	if err != nil {
		t.Fatal(err)
	}
	// null 1/0; view 1/2; list and its indices 2/4; fixed and its items 2/3; struct
	// with text and indices 3/6; map, entries, key and value 4/8.
	if want := (layout{nodes: 13, buffers: 23, views: 1}); got.batch != want {
		t.Errorf("the batch has %+v, want %+v", got.batch, want)
	}
	var counts []layout
	for _, l := range got.dictionaries {
		counts = append(counts, l)
	}
	if len(counts) != 3 { // of the list, of the struct, and of the lists in its values
		t.Errorf("dictionaries %+v", got.dictionaries)
	}
	for name, typ := range map[string]arrow.DataType{
		"union":      arrow.SparseUnionOf([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int8}}, []arrow.UnionTypeCode{0}),
		"run ends":   arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int8),
		"dictionary": &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int8)},
	} {
		odd := arrow.NewSchema([]arrow.Field{{Name: "x", Type: typ}}, nil)
		if _, err := layoutsOf(odd, client(t, odd, nil)[0].DataHeader); !errors.Is(err, errUnread) {
			t.Errorf("%s gives %v", name, err)
		}
	}
	// Such a schema is handed out, so that the table can refuse it; rows are not.
	runs := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int8)}}, nil)
	column := array.MakeArrayOfNull(memory.DefaultAllocator, runs.Field(0).Type, 1)
	defer column.Release()
	batch := array.NewRecordBatch(runs, []arrow.Array{column}, 1)
	defer batch.Release()
	_, err = read(&stream{messages: client(t, runs, []arrow.RecordBatch{batch}), err: io.EOF}, Ending{}, testOptions())
	if token(err) != tableerr.TokenInvalid || !strings.Contains(err.Error(), errUnread.Error()) {
		t.Errorf("rows of run ends give %v", err)
	}
	if _, err := layoutsOf(weather, head); err == nil {
		t.Error("the message of another schema is taken")
	}
	if _, err := layoutsOf(weather, nil); err == nil {
		t.Error("no message is taken")
	}
	if _, err := layoutsOf(dictionaryBatch("a").Schema(), client(t, arrow.NewSchema([]arrow.Field{{Name: "d", Type: arrow.PrimitiveTypes.Int8}}, nil), nil)[0].DataHeader); err == nil {
		t.Error("a message without the dictionary is taken")
	}
}

func TestValidateText(t *testing.T) {
	mem := memory.NewGoAllocator()
	for _, typ := range []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.LargeBinary} {
		a, _, err := array.FromJSON(mem, typ, strings.NewReader(`["YWFh", null, "YmJi", ""]`))
		if err != nil {
			t.Fatal(err)
		}
		if err := validateColumn(a); err != nil {
			t.Errorf("%v: %v", typ, err)
		}
		if err := validateColumn(array.NewSlice(a, 1, 3)); err != nil {
			t.Errorf("a slice of %v: %v", typ, err)
		}
		if err := validateColumn(array.NewSlice(a, 1, 1)); err != nil {
			t.Errorf("nothing of %v: %v", typ, err)
		}
		claimed := array.NewData(typ, 4, a.Data().Buffers(), nil, 2, 0)
		if err := validateColumn(array.MakeFromData(claimed)); err == nil {
			t.Errorf("%v: a false number of nulls is taken", typ)
		}
	}
}

// The allocator's panic is an error for whoever reads, and Reallocate counts.
func TestCappedAllocator(t *testing.T) {
	budget := NewBudget(1000)
	a := newCappedAllocator(memory.NewGoAllocator(), 600, budget)
	b := a.Allocate(100)
	b = a.Reallocate(500, b)
	b = a.Reallocate(200, b)
	if budget.Used() != 200 {
		t.Errorf("%d bytes are counted", budget.Used())
	}
	for _, grow := range []func(){func() { a.Allocate(401) }, func() { a.Reallocate(601, b) }, func() { a.Allocate(-1) }} {
		err := caught(grow)
		var large *tableerr.MessageTooLarge
		if !errors.As(err, &large) {
			t.Errorf("got %v", err)
		}
	}
	other := newCappedAllocator(memory.NewGoAllocator(), 5000, budget)
	if err := caught(func() { other.Allocate(900) }); token(err) != tableerr.TokenQueueTimeout {
		t.Errorf("got %v", err)
	}
	a.close()
	if budget.Used() != 0 {
		t.Errorf("%d bytes are counted after the end", budget.Used())
	}
	a.Free(b)
	a.close()
	if budget.Used() != 0 {
		t.Errorf("%d bytes are counted after a late free", budget.Used())
	}
}

func caught(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicError(r)
		}
	}()
	f()
	return nil
}

func TestPanicError(t *testing.T) {
	if err := panicError(errCut); err != errCut {
		t.Errorf("got %v", err)
	}
	if err := panicError("text"); err.Error() != "text" {
		t.Errorf("got %v", err)
	}
}

// Streams of every nested type arrive.
func TestPutNested(t *testing.T) {
	for _, c := range []struct{ typ, json string }{
		{"list", `[[1, null], null, []]`}, {"struct", `[{"a": "x"}, null, {"a": null}]`}, {"map", `[[{"key": "k", "value": 1}], null, []]`}, {"null", `[null, null, null]`},
	} {
		typ := map[string]arrow.DataType{"list": arrow.LargeListOf(arrow.PrimitiveTypes.Int32), "struct": arrow.StructOf(arrow.Field{Name: "a", Type: arrow.BinaryTypes.String, Nullable: true}),
			"map": arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64), "null": arrow.Null}[c.typ]
		a, _, err := array.FromJSON(memory.NewGoAllocator(), typ, strings.NewReader(c.json))
		if err != nil {
			t.Fatal(err)
		}
		schema, batch := oneColumn("n", a)
		if _, err := read(&stream{messages: client(t, schema, []arrow.RecordBatch{batch}), err: io.EOF}, rows(3), testOptions()); err != nil {
			t.Errorf("%s: %v", c.typ, err)
		}
	}
}
