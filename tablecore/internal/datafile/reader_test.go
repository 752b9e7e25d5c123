package datafile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"

	"contrail/tablecore/tableerr"
)

// countingSource counts what is read, and fails after so many reads.
type countingSource struct {
	Source
	reads, bytes int
	failAt       int
}

var errStore = errors.New("the store is gone")

func (c *countingSource) ReadAt(p []byte, off int64) (int, error) {
	c.reads++
	c.bytes += len(p)
	if c.failAt > 0 && c.reads >= c.failAt {
		return 0, errStore
	}
	return c.Source.ReadAt(p, off)
}

func tickFile(t testing.TB, rows int) []byte {
	return writeTicks(t, ticks(rows, 20, true), WriteOptions{MaxRowsPerRowGroup: 100_000})
}

func TestPointReadTouchesFewPages(t *testing.T) {
	mem := checkedMem(t)
	raw := tickFile(t, 300_000)
	src := &countingSource{Source: newSource(raw)}
	footer, err := ParseFooter(context.Background(), src, "x")
	if err != nil {
		t.Fatal(err)
	}
	f := Open(src, footer, "x", mem)
	for _, warm := range []bool{false, true} {
		src.bytes = 0
		rows, err := f.Read(context.Background(), ReadRequest{Fields: tickSchema.Fields(), Ranges: []RowRange{{150_000, 150_100}}})
		if err != nil {
			t.Fatal(err)
		}
		batch, err := rows.Next(context.Background())
		if err != nil || batch.NumRows() != 100 || rows.FirstRow() != 150_000 {
			t.Fatal(batch, err)
		}
		if n := rows.RowGroupsRead(); n != 1 {
			t.Errorf("%d row groups read", n)
		}
		if _, err := rows.Next(context.Background()); err != io.EOF {
			t.Error(err)
		}
		rows.Release()
		// One page of each column out of four in each of three row groups.
		if limit := len(raw) / 8; src.bytes > limit {
			t.Errorf("warm=%v: %d bytes read, more than %d", warm, src.bytes, limit)
		}
	}
	src.bytes = 0
	if n := drain(t, f, ReadRequest{Fields: tickSchema.Fields()[:1]}); n != 300_000 {
		t.Fatal(n)
	}
	if src.bytes > len(raw)/2 {
		t.Errorf("one column read %d bytes of %d", src.bytes, len(raw))
	}
}

func TestFirstRowAndBatches(t *testing.T) {
	raw := tickFile(t, 250_000)
	f := openFile(t, raw, nil)
	for _, join := range []bool{false, true} {
		rows, err := f.Read(context.Background(), ReadRequest{Fields: tickSchema.Fields()[2:3], Join: join, BatchRows: 1000,
			Ranges: []RowRange{{10, 10}, {99_500, 100_200}, {100_200, 100_250}, {249_999, 250_000}}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for {
			batch, err := rows.Next(context.Background())
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(rows.FirstRow(), "+", batch.NumRows()))
		}
		want := "[99500+700 100200+50 249999+1]"
		if join {
			want = "[99500+751]"
		}
		if fmt.Sprint(got) != want || rows.RowGroupsRead() != 3 {
			t.Errorf("join=%v: %v, %d row groups", join, got, rows.RowGroupsRead())
		}
		rows.Release()
	}
}

func TestColumnsMissingInTheFile(t *testing.T) {
	mem := checkedMem(t)
	batch := batchOf(t, mem, arrow.PrimitiveTypes.Int64, `[1, 2, null]`)
	defer batch.Release()
	raw, _ := writeFile(t, batch.Schema(), WriteOptions{Mem: mem}, batch)
	f := openFile(t, raw, mem)
	extra := arrow.Field{Name: "new", Type: arrow.BinaryTypes.String, Nullable: true}
	got := readAll(t, f, mem, ReadRequest{Fields: []arrow.Field{extra, batch.Schema().Field(0)}})
	defer got.Release()
	if got.Column(0).NullN() != 3 || !array.Equal(got.Column(1), batch.Column(0)) {
		t.Errorf("%v", got)
	}
	none := readAll(t, f, mem, ReadRequest{Ranges: []RowRange{{1, 3}}})
	defer none.Release()
	if none.NumRows() != 2 {
		t.Errorf("%d rows without columns", none.NumRows())
	}
	extra.Nullable = false
	required := batch.Schema().Field(0)
	required.Nullable = false
	for _, field := range []arrow.Field{extra, required} {
		if err := readError(f, ReadRequest{Fields: []arrow.Field{field}}); !isCorrupt(err, "may not be null") {
			t.Errorf("%s: %v", field.Name, err)
		}
	}
}

func readError(f *File, req ReadRequest) error {
	rows, err := f.Read(context.Background(), req)
	if err != nil {
		return err
	}
	defer rows.Release()
	for err == nil {
		_, err = rows.Next(context.Background())
	}
	return err
}

func isCorrupt(err error, text string) bool {
	var c *tableerr.Corrupt
	return errors.As(err, &c) && c.Path == "data/x.parquet" && strings.Contains(err.Error(), text)
}

func TestRangesThatCannotBeRead(t *testing.T) {
	f := openFile(t, tickFile(t, 100), nil)
	for _, ranges := range [][]RowRange{{{-1, 2}}, {{0, 101}}, {{5, 3}}, {{5, 9}, {8, 10}}} {
		if _, err := f.Read(context.Background(), ReadRequest{Ranges: ranges}); err == nil || !strings.Contains(err.Error(), "ranges must ascend") {
			t.Errorf("%v: %v", ranges, err)
		}
	}
}

func TestCancelledReads(t *testing.T) {
	raw := tickFile(t, 100)
	f := openFile(t, raw, nil)
	ctx, cancel := context.WithCancel(context.Background())
	rows, err := f.Read(ctx, ReadRequest{Fields: tickSchema.Fields()})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Release()
	cancel()
	if _, err := rows.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Next: %v", err)
	}
	if _, err := f.Read(ctx, ReadRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Read: %v", err)
	}
	if _, err := ParseFooter(ctx, newSource(raw), "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("ParseFooter: %v", err)
	}
}

func TestStoreErrorsAreNotDamage(t *testing.T) {
	raw := tickFile(t, 5000)
	reads := 0
	for failAt := 1; ; failAt++ {
		src := &countingSource{Source: newSource(raw), failAt: failAt}
		err := ReadTable(context.Background(), src, "x", nil, nil, func(arrow.RecordBatch) error { return nil })
		if err == nil {
			break
		}
		var c *tableerr.Corrupt
		if !errors.Is(err, errStore) || errors.As(err, &c) {
			t.Fatalf("read %d: %v", failAt, err)
		}
		reads++
	}
	if reads < 3 {
		t.Errorf("only %d reads", reads)
	}
}

func TestReadTableStopsWhereItsCallerDoes(t *testing.T) {
	stop := errors.New("stop")
	err := ReadTable(context.Background(), newSource(tickFile(t, 100)), "x", []string{"price", "absent"}, nil, func(b arrow.RecordBatch) error {
		if b.NumCols() != 1 {
			t.Errorf("%d columns", b.NumCols())
		}
		return stop
	})
	if err != stop {
		t.Error(err)
	}
}

// TestDamage flips each byte of a file in turn: the result is the same data or
// an error, and data pages are never read wrong.
func TestDamage(t *testing.T) {
	batches := ticks(300, 3, true)
	raw := writeTicks(t, batches, WriteOptions{})
	want := readAll(t, openFile(t, raw, nil), memory.DefaultAllocator, ReadRequest{Fields: tickSchema.Fields()})
	start := bytes.Index(raw, []byte(magic)) + len(magic)
	f := openFile(t, raw, nil)
	end := f.footer.chunk(0, len(f.footer.leaves)-1).end
	for i := start; i < len(raw); i++ {
		damagedFile := slices.Clone(raw)
		damagedFile[i] ^= 0x41
		src := newSource(damagedFile)
		footer, err := ParseFooter(context.Background(), src, "data/x.parquet")
		if err != nil {
			if !isCorrupt(err, "") {
				t.Fatalf("byte %d: %v", i, err)
			}
			continue
		}
		err = readError(Open(src, footer, "data/x.parquet", nil), ReadRequest{Fields: tickSchema.Fields()})
		if err == io.EOF && int64(i) < end {
			got := readAll(t, Open(src, footer, "data/x.parquet", nil), memory.DefaultAllocator, ReadRequest{Fields: tickSchema.Fields()})
			sameBatch(t, want, got) // a byte that says nothing
		} else if err != io.EOF && !isCorrupt(err, "") {
			t.Fatalf("byte %d: %v", i, err)
		}
	}
}

func TestTruncatedFiles(t *testing.T) {
	raw := tickFile(t, 200)
	for n := range len(raw) {
		if _, err := ParseFooter(context.Background(), newSource(raw[:n]), "data/x.parquet"); !isCorrupt(err, "") {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	lying := slices.Clone(raw)
	binary.LittleEndian.PutUint32(lying[len(lying)-8:], math.MaxUint32)
	if _, err := ParseFooter(context.Background(), newSource(lying), "data/x.parquet"); !isCorrupt(err, "footer claims") {
		t.Error(err)
	}
}

// limitedMem fails a test that takes too much.
type limitedMem struct {
	memory.Allocator
	t    testing.TB
	left int
}

func (m *limitedMem) Allocate(n int) []byte {
	if m.left -= n; m.left < 0 {
		m.t.Fatalf("%d bytes too much were taken", -m.left)
	}
	return m.Allocator.Allocate(n)
}

func (m *limitedMem) Reallocate(n int, b []byte) []byte {
	if m.left -= n - len(b); m.left < 0 {
		m.t.Fatalf("%d bytes too much were taken", -m.left)
	}
	return m.Allocator.Reallocate(n, b)
}

func (m *limitedMem) Free(b []byte) { m.left += len(b); m.Allocator.Free(b) }

func TestBatchesOfLongValuesStaySmall(t *testing.T) {
	mem := checkedMem(t)
	dict := dictOf(mem, []string{strings.Repeat("long", 50_000), "short"}, -1, slices.Repeat([]int32{0, 0, 1, 0}, 1000)...)
	defer dict.Release()
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.BinaryTypes.String}, {Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	numbers := array.NewInt64Builder(mem)
	for i := range dict.Len() {
		numbers.Append(int64(i))
	}
	n := numbers.NewArray()
	numbers.Release()
	defer n.Release()
	batch := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "v", Type: dictString}, schema.Field(1)}, nil), []arrow.Array{dict, n}, int64(dict.Len()))
	defer batch.Release()
	raw, _ := writeFile(t, schema, WriteOptions{Mem: mem}, batch)
	if len(raw) > 1<<20 {
		t.Fatalf("the file takes %d bytes", len(raw))
	}
	f := openFile(t, raw, &limitedMem{Allocator: mem, t: t, left: 4 * DefaultBatchBytes})
	rows, err := f.Read(context.Background(), ReadRequest{Fields: schema.Fields()})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Release()
	next := int64(0)
	for {
		b, err := rows.Next(context.Background())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range b.Column(1).(*array.Int64).Int64Values() {
			if v != next || (len(b.Column(0).(*array.String).Value(i)) == 5) != (next%4 == 2) {
				t.Fatalf("row %d is wrong", next)
			}
			next++
		}
	}
	if next != int64(dict.Len()) {
		t.Errorf("%d rows", next)
	}
}

func TestBombs(t *testing.T) {
	leaf := &leafInfo{physical: parquet.Types.Int64, width: 8, maxDef: 1}
	huge := pageHeader{kind: pageData, uncompressed: math.MaxInt32, compressed: 9, values: math.MaxInt32}
	for _, codec := range []compress.Compression{compress.Codecs.Snappy, compress.Codecs.Zstd, compress.Codecs.Gzip, compress.Codecs.Lz4Raw, compress.Codecs.Uncompressed} {
		raw := append(huge.append(nil), make([]byte, 9)...)
		cursor := pageCursor{src: exactSource{newSource(raw)}, leaf: leaf}
		cursor.open(&chunkInfo{end: int64(len(raw)), codec: codec})
		if _, _, err := cursor.next(0, nil); err == nil || !strings.Contains(err.Error(), "claims") {
			t.Errorf("%s: %v", codec, err)
		}
	}
	short := pageHeader{kind: pageData, uncompressed: 10, compressed: math.MaxInt32}
	raw := short.append(nil)
	cursor := pageCursor{src: exactSource{newSource(raw)}, leaf: leaf}
	cursor.open(&chunkInfo{end: int64(len(raw))})
	if _, _, err := cursor.next(0, nil); err == nil || !strings.Contains(err.Error(), "has 0 left") {
		t.Errorf("a page beyond its chunk: %v", err)
	}
	deep := bytes.Repeat([]byte{0x1c}, 100)
	if _, err := checkFooter(deep); err == nil {
		t.Error("a footer 100 deep was accepted")
	}
	// A list of a million empty structures.
	w := thriftWriter{}
	w.field(4, thriftList)
	w.b = append(w.b, 0xFC)
	w.b = binary.AppendUvarint(w.b, 1_000_000)
	if _, err := checkFooter(append(append(w.b, make([]byte, 1_000_000)...), 0)); err == nil || !strings.Contains(err.Error(), "structures") {
		t.Errorf("a footer of empty structures: %v", err)
	}
}

func TestDeepSchemaIsRefused(t *testing.T) {
	typ := arrow.DataType(arrow.PrimitiveTypes.Int64)
	for range maxSchemaDepth {
		typ = arrow.StructOf(arrow.Field{Name: "s", Type: typ})
	}
	_, err := NewWriter(&bytes.Buffer{}, arrow.NewSchema([]arrow.Field{{Name: "v", Type: typ}}, nil), WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, _ := NewWriter(&bytes.Buffer{}, arrow.NewSchema([]arrow.Field{{Name: "v", Type: typ}}, nil), WriteOptions{})
	if _, err := w.Close(); err == nil || !strings.Contains(err.Error(), "nested deeper") {
		t.Errorf("got %v", err)
	}
}

func TestTableRoundTrip(t *testing.T) {
	mem := checkedMem(t)
	typ := arrow.MapOf(arrow.BinaryTypes.String, arrow.BinaryTypes.String)
	batch := batchOf(t, mem, typ, `[[{"key": "a", "value": "1"}], null, []]`)
	defer batch.Release()
	var out bytes.Buffer
	size, err := WriteTable(&out, batch.Schema(), []arrow.RecordBatch{batch, batch}, map[string]string{"k": "v"}, WriteOptions{Mem: mem})
	if err != nil || size != int64(out.Len()) {
		t.Fatal(size, err)
	}
	if v, _ := openFile(t, out.Bytes(), mem).Meta("k"); v != "v" {
		t.Errorf("metadata %q", v)
	}
	rows := int64(0)
	err = ReadTable(context.Background(), newSource(out.Bytes()), "x", nil, mem, func(b arrow.RecordBatch) error {
		rows += b.NumRows()
		if !arrow.TypeEqual(b.Column(0).DataType(), typ) {
			t.Errorf("type %s", b.Column(0).DataType())
		}
		return nil
	})
	if err != nil || rows != 6 {
		t.Error(rows, err)
	}
	if _, err := WriteTable(&out, arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.Null, Nullable: true}}, nil), nil, nil, WriteOptions{}); err == nil {
		t.Error("a column of nulls was accepted")
	}
	if _, err := WriteTable(&out, flatSchema(), []arrow.RecordBatch{batch}, nil, WriteOptions{}); err == nil {
		t.Error("a batch of another schema was accepted")
	}
}
