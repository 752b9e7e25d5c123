package datafile

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"

	"contrail/tablecore/bufpool"
	"contrail/tablecore/tableerr"
)

// FuzzReadTable reads arbitrary bytes as a file. Files of arrow-go are the
// seeds, since ours have checksums that stop most damage early.
func FuzzReadTable(f *testing.F) {
	// Small files leave the fuzzer more tries.
	fields := append(flatSchema().Fields(), nestedSchema().Fields()...)
	for i := 0; i < len(fields); i += 4 {
		schema := arrow.NewSchema(fields[i:min(len(fields), i+4)], nil)
		batch := randomBatch(rand.New(rand.NewPCG(1, 1)), memory.DefaultAllocator, schema, 10)
		f.Add(stockWrite(f, batch, 6, parquet.WithPageIndexEnabled(true)))
		f.Add(stockWrite(f, batch, 100, parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithCompression(compress.Codecs.Snappy)))
		f.Add(stockWrite(f, batch, 100, parquet.WithDictionaryDefault(false), parquet.WithCompression(compress.Codecs.Zstd)))
		raw, _ := writeFile(f, schema, WriteOptions{MaxRowsPerRowGroup: 6}, batch)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		mem := &limitedMem{Allocator: checkedMem(t), t: t, left: 8 * DefaultBatchBytes}
		src := newSource(raw)
		footer, err := ParseFooter(context.Background(), src, "x")
		if err != nil {
			mustBeCorrupt(t, err)
			return
		}
		file := Open(src, footer, "x", bufpool.Poison(mem))
		for _, field := range footer.StorageSchema().Fields() {
			readUpTo(t, file, ReadRequest{Fields: []arrow.Field{field}, BatchRows: 7})
			if n := footer.Rows(); n > 3 {
				readUpTo(t, file, ReadRequest{Fields: []arrow.Field{field}, Ranges: []RowRange{{1, 2}, {n / 2, n/2 + 1}, {n - 1, n}}, Join: true})
			}
		}
	})
}

// readUpTo reads batches until an error or until it has seen enough.
func readUpTo(t *testing.T, f *File, req ReadRequest) {
	rows, err := f.Read(context.Background(), req)
	if err != nil {
		mustBeCorrupt(t, err)
		return
	}
	defer rows.Release()
	for range 50 {
		batch, err := rows.Next(context.Background())
		if err == io.EOF {
			return
		}
		if err != nil {
			mustBeCorrupt(t, err)
			return
		}
		validate(t, batch)
	}
}

func mustBeCorrupt(t *testing.T, err error) {
	t.Helper()
	var corrupt *tableerr.Corrupt
	var large *tableerr.MessageTooLarge
	if !errors.As(err, &corrupt) && !errors.As(err, &large) {
		t.Fatalf("%T: %v", err, err)
	}
}

// validate touches everything that a batch claims to hold.
func validate(t *testing.T, batch arrow.RecordBatch) {
	t.Helper()
	for i, c := range batch.Columns() {
		if int64(c.Len()) != batch.NumRows() {
			t.Fatalf("column %d has %d of %d rows", i, c.Len(), batch.NumRows())
		}
		if v, ok := c.(interface{ ValidateFull() error }); ok {
			if err := v.ValidateFull(); err != nil {
				t.Fatal(err)
			}
		}
		if n := c.Len(); n > 0 {
			_ = c.ValueStr(0)
			_ = c.ValueStr(n - 1)
			if !array.Equal(c, c) {
				_ = n // a NaN
			}
		}
	}
}

// FuzzValues decodes arbitrary bytes as a page of each physical type and
// encoding.
func FuzzValues(f *testing.F) {
	for kind := range 8 {
		for _, encoding := range []int{encPlain, encRLEDict, encRLE, encDeltaBinary, encDeltaLength, encDeltaByteArr, encByteStreamSpl} {
			f.Add(uint8(kind), uint8(encoding), appendDelta(nil, []int64{1, 5, 2, 1 << 40}), []byte{3, 0x55, 8, 1})
			f.Add(uint8(kind), uint8(encoding), []byte{2, 16, 1, 3, 0xAA, 0xAA}, []byte{200, 1, 1})
			f.Add(uint8(kind), uint8(encoding), []byte("\x03\x00\x00\x00abc\x00\x00\x00\x00\x02\x00\x00\x00xy"), []byte{16, 1})
		}
	}
	f.Fuzz(func(t *testing.T, kind, encoding uint8, body, defs []byte) {
		mem := checkedMem(t)
		physical := parquet.Type(kind % 8)
		leaf := &leafInfo{physical: physical, width: []int{0, 4, 8, 12, 4, 8, 0, 5}[kind%8], maxDef: 1}
		d, err := newValueDecoder(leaf, mem, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer d.release()
		const entries = 300
		_ = d.setDictionary(3, body)
		if d.setPage(int(encoding%12), body, entries) != nil {
			return
		}
		levels := newHybrid(defs, 1)
		valid := make([]byte, (entries+7)/8)
		for at := 0; at < entries; at += 50 {
			present, err := levels.readBits(valid, at, 50)
			if err != nil {
				return
			}
			if at == 100 {
				err = d.skip(present)
				clear(valid)
			} else {
				err = d.read(50, present, valid, at)
			}
			if err != nil {
				return
			}
		}
		n := d.slots()
		data := newData(d.arrowType(), n, 0, append([]*memory.Buffer{nil}, d.take()...))
		defer data.Release()
		arr := array.MakeFromData(data)
		defer arr.Release()
		for i := range n {
			_ = arr.ValueStr(i)
		}
	})
}

// FuzzFooter parses arbitrary bytes as a footer.
func FuzzFooter(f *testing.F) {
	for _, full := range []*arrow.Schema{flatSchema(), nestedSchema()} {
		schema := arrow.NewSchema(full.Fields()[:6], nil)
		batch := randomBatch(rand.New(rand.NewPCG(1, 1)), memory.DefaultAllocator, schema, 5)
		raw, _ := writeFile(f, schema, WriteOptions{}, batch)
		footer, err := readFooter(exactSource{newSource(raw)}, int64(len(raw)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(footer)
		f.Add(foreign(footer)) // changes to it are not caught by the seal
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		footer, err := parseFooter(raw, 1<<30, "x")
		if err != nil {
			return
		}
		for _, g := range footer.RowGroups() {
			if g.Rows < 0 || g.FirstRow < 0 || g.Bytes < 0 {
				t.Fatalf("%+v", g)
			}
		}
	})
}

// FuzzPageHeader parses arbitrary bytes as each structure of a file that is
// read on its own.
func FuzzPageHeader(f *testing.F) {
	for _, h := range []pageHeader{{kind: pageData, compressed: 3, uncompressed: 9, values: 5}, {kind: pageDictionary, hasCRC: true, crc: 77}} {
		f.Add(h.append(nil))
		f.Add(unsealed(h.append(nil)))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if h, n, err := parsePageHeader(raw); err == nil && (n > len(raw) || h.compressed < 0 || h.uncompressed < 0) {
			t.Fatalf("%+v of %d bytes in %d", h, n, len(raw))
		}
		_, _ = parseOffsetIndex(raw, &chunkInfo{start: 4, end: 1000}, 100, false)
		_, _ = parseColumnIndex(raw, false)
		_, _ = checkFooter(raw)
	})
}
