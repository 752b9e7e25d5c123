package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/rowdigest"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
)

// hashedAside is the number of rows from which a batch is hashed in the
// background.
const hashedAside = 1 << 12

// digestRow is a row of the table that the digest's tests put. A nil payload is
// null.
type digestRow struct {
	origin string
	hour   int64
	n      *int64
	temp   *float64
	note   *string
	raw    []byte
	flag   *bool
}

func digestTable() *tabledef.Definition {
	p := arrow.PrimitiveTypes
	field := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	d := weather(tabledef.UniqueNone, field("n", p.Int64), field("temp", p.Float64), field("note", arrow.BinaryTypes.String),
		field("raw", arrow.BinaryTypes.Binary), field("flag", arrow.FixedWidthTypes.Boolean), field("left_out", p.Int8))
	d.ColumnsAdded = true // so that a stream may leave a column out
	return d
}

// randomRows makes rows with nulls and values that every form can carry.
func randomRows(r *rand.Rand, n int) []digestRow {
	rows := make([]digestRow, n)
	for i := range rows {
		row := digestRow{origin: string(rune('A' + r.IntN(3))), hour: int64(i) * hour}
		if r.IntN(4) > 0 {
			v := int64(r.IntN(256) - 128)
			row.n = &v
		}
		if r.IntN(4) > 0 {
			v := []float64{0, math.Copysign(0, -1), 1.5, math.Inf(1), -2}[r.IntN(5)]
			row.temp = &v
		}
		if r.IntN(4) > 0 {
			v := strings.Repeat("ab", r.IntN(3))
			row.note = &v
		}
		if r.IntN(4) > 0 {
			row.raw = []byte(strings.Repeat("\x00\xff", r.IntN(3)))
		}
		if r.IntN(4) > 0 {
			v := r.IntN(2) == 0
			row.flag = &v
		}
		rows[i] = row
	}
	return rows
}

// form is how a stream carries the rows.
type form struct {
	n, temp, note, raw, origin arrow.DataType
	order                      []int // of the columns
	cuts                       []int // ends of batches, ascending, the last is the number of rows
	junk                       bool  // something lies under nulls, and batches are slices of more
}

var plainForm = form{n: arrow.PrimitiveTypes.Int64, temp: arrow.PrimitiveTypes.Float64, note: arrow.BinaryTypes.String,
	raw: arrow.BinaryTypes.Binary, origin: arrow.BinaryTypes.String, order: []int{0, 1, 2, 3, 4, 5, 6}}

func randomForm(r *rand.Rand, rows int) form {
	p, b := arrow.PrimitiveTypes, arrow.BinaryTypes
	pick := func(types ...arrow.DataType) arrow.DataType { return types[r.IntN(len(types))] }
	dict := &arrow.DictionaryType{IndexType: p.Int8, ValueType: b.String}
	f := form{n: pick(p.Int8, p.Int16, p.Int32, p.Int64), temp: pick(arrow.FixedWidthTypes.Float16, p.Float32, p.Float64),
		note: pick(b.String, b.LargeString, b.StringView, dict), raw: b.Binary, origin: pick(b.String, b.LargeString, dict),
		order: r.Perm(7), junk: r.IntN(2) == 0}
	for range r.IntN(5) {
		f.cuts = append(f.cuts, r.IntN(rows+1))
	}
	slices.Sort(f.cuts)
	f.cuts = append(f.cuts, rows)
	return f
}

// stream makes the rows a stream of this form.
func (f form) stream(t *testing.T, r *rand.Rand, rows []digestRow) *batches {
	t.Helper()
	names := []string{"origin", "hour", "n", "temp", "note", "raw", "flag"}
	types := []arrow.DataType{f.origin, hourTime, f.n, f.temp, f.note, f.raw, arrow.FixedWidthTypes.Boolean}
	var fields []arrow.Field
	for _, i := range f.order {
		fields = append(fields, arrow.Field{Name: names[i], Type: types[i], Nullable: true})
	}
	out := &batches{schema: arrow.NewSchema(fields, nil)}
	if f.cuts == nil {
		f.cuts = []int{len(rows)}
	}
	from := 0
	for _, to := range f.cuts {
		var columns []arrow.Array
		for _, i := range f.order {
			columns = append(columns, f.column(t, r, i, types[i], rows[from:to]))
		}
		out.left = append(out.left, array.NewRecordBatch(out.schema, columns, int64(to-from)))
		from = to
	}
	return out
}

// column renders one column of rows as text and lets the builder read it.
func (f form) column(t *testing.T, r *rand.Rand, i int, typ arrow.DataType, rows []digestRow) arrow.Array {
	t.Helper()
	b := array.NewBuilder(memory.DefaultAllocator, typ)
	defer b.Release()
	put := func(text string) {
		if err := b.AppendValueFromString(text); err != nil {
			t.Fatal(err)
		}
	}
	some := []string{"x", "1970-01-01T05:00:00Z", "7", "3", "junk", "anVuaw==", "true"}[i]
	valid := []bool{}
	if f.junk {
		put(some)
		valid = append(valid, true)
	}
	for _, row := range rows {
		text := row.text(i)
		valid = append(valid, text != nil)
		switch {
		case text != nil:
			put(*text)
		case f.junk && r.IntN(2) == 0:
			put(some)
		default:
			b.AppendNull()
		}
	}
	arr := b.NewArray()
	if !f.junk {
		return arr
	}
	return array.NewSlice(withValidity(arr, valid), 1, int64(len(valid)))
}

// withValidity puts another bitmap over an array's values.
func withValidity(arr arrow.Array, valid []bool) arrow.Array {
	bits := make([]byte, (len(valid)+7)/8)
	nulls := 0
	for i, v := range valid {
		if v {
			bits[i/8] |= 1 << (i % 8)
		} else {
			nulls++
		}
	}
	old := arr.Data()
	buffers := append([]*memory.Buffer{memory.NewBufferBytes(bits)}, old.Buffers()[1:]...)
	if dict := old.Dictionary(); dict != nil {
		return array.MakeFromData(array.NewDataWithDictionary(arr.DataType(), old.Len(), buffers, nulls, 0, dict.(*array.Data)))
	}
	return array.MakeFromData(array.NewData(arr.DataType(), old.Len(), buffers, old.Children(), nulls, 0))
}

// text is the i-th column's value as a builder reads it, nil for null.
func (row digestRow) text(i int) *string {
	var s string
	switch {
	case i == 0:
		return &row.origin
	case i == 1:
		s = arrow.Timestamp(row.hour).ToTime(arrow.Microsecond).Format("2006-01-02T15:04:05.999999Z")
	case i == 2 && row.n != nil:
		s = fmt.Sprint(*row.n)
	case i == 3 && row.temp != nil:
		s = fmt.Sprint(*row.temp)
	case i == 4 && row.note != nil:
		return row.note
	case i == 5 && row.raw != nil:
		s = base64Text(row.raw)
	case i == 6 && row.flag != nil:
		s = fmt.Sprint(*row.flag)
	default:
		return nil
	}
	return &s
}

func base64Text(b []byte) string {
	enc := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	defer enc.Release()
	enc.Append(b)
	arr := enc.NewArray()
	defer arr.Release()
	return arr.ValueStr(0)
}

func digestOf(t *testing.T, rows RowReader) string {
	t.Helper()
	sum, err := rowdigest.Of(context.Background(), OpAppend, digestTable(), memory.DefaultAllocator, rows)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestDigestIsOfTheRows puts the same rows in many forms: other batches, column
// orders, types, dictionaries, junk under nulls.
func TestDigestIsOfTheRows(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		rows := randomRows(r, r.IntN(40))
		want := digestOf(t, plainForm.stream(t, r, rows))
		for range 10 {
			f := randomForm(r, len(rows))
			if got := digestOf(t, f.stream(t, r, rows)); got != want {
				t.Fatalf("seed %d: the form %+v has digest %s, not %s", seed, f, got, want)
			}
		}
	}
}

// TestDigestWhileRunning makes sure that an append's digest is that of a drain,
// also of batches that are hashed in the background.
func TestDigestWhileRunning(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	rows := randomRows(r, 3*hashedAside)
	f := plainForm
	f.cuts = []int{5, hashedAside + 5, 2*hashedAside + 5, len(rows)}
	def := digestTable()
	cfg := start(t, def)
	a, err := NewAppend(&snapshot.Snapshot{Def: def}, f.stream(t, r, rows).schema, AppendConfig{Store: cfg.Store, Mem: cfg.Mem, Now: cfg.Now, Digest: true,
		NewID: func() (string, error) { return "0123", nil }})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Write(context.Background(), f.stream(t, r, rows)); err != nil {
		t.Fatal(err)
	}
	if want := digestOf(t, plainForm.stream(t, r, rows)); a.Digest() != want {
		t.Errorf("the append has digest %s, a drain %s", a.Digest(), want)
	}
}

// TestDigestTellsRowsApart changes one thing at a time.
func TestDigestTellsRowsApart(t *testing.T) {
	n, zero, one, half, minus, empty, a, bc, ab, c := int64(5), int64(0), 1.0, 0.5, math.Copysign(0, -1), "", "a", "bc", "ab", "c"
	positive := 0.0
	base := func() []digestRow {
		return []digestRow{{origin: "A", n: &n, temp: &one, note: &a}, {origin: "B", hour: hour, temp: &positive, note: &bc}, {origin: "C", raw: []byte{1}}}
	}
	r := rand.New(rand.NewPCG(1, 1))
	seen := map[string]string{digestOf(t, plainForm.stream(t, r, base())): "the rows themselves"}
	for name, change := range map[string]func(rows []digestRow) []digestRow{
		"order":            func(rows []digestRow) []digestRow { rows[0], rows[1] = rows[1], rows[0]; return rows },
		"one row less":     func(rows []digestRow) []digestRow { return rows[:2] },
		"one row twice":    func(rows []digestRow) []digestRow { return append(rows, rows[2]) },
		"no rows":          func([]digestRow) []digestRow { return nil },
		"value":            func(rows []digestRow) []digestRow { rows[0].temp = &half; return rows },
		"zero for null":    func(rows []digestRow) []digestRow { rows[1].n = &zero; return rows },
		"null for value":   func(rows []digestRow) []digestRow { rows[0].n = nil; return rows },
		"empty for null":   func(rows []digestRow) []digestRow { rows[2].note = &empty; return rows },
		"null moves":       func(rows []digestRow) []digestRow { rows[1].n, rows[0].n = rows[0].n, nil; return rows },
		"sign of zero":     func(rows []digestRow) []digestRow { rows[1].temp = &minus; return rows },
		"text flows over":  func(rows []digestRow) []digestRow { rows[0].note, rows[1].note = &ab, &c; return rows },
		"key":              func(rows []digestRow) []digestRow { rows[2].origin = "D"; return rows },
		"index":            func(rows []digestRow) []digestRow { rows[2].hour++; return rows },
		"binary":           func(rows []digestRow) []digestRow { rows[2].raw = []byte{1, 0}; return rows },
		"binary is empty":  func(rows []digestRow) []digestRow { rows[2].raw = []byte{}; return rows },
		"binary is absent": func(rows []digestRow) []digestRow { rows[2].raw = nil; return rows },
	} {
		sum := digestOf(t, plainForm.stream(t, r, change(base())))
		if other, taken := seen[sum]; taken {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[sum] = name
	}
	fewer := plainForm
	fewer.order = []int{0, 1, 2, 3, 4, 5}
	if _, taken := seen[digestOf(t, fewer.stream(t, r, base()))]; taken {
		t.Error("a column that is null throughout counts like one that is left out")
	}
	if sum, err := rowdigest.Of(context.Background(), "update_rows", digestTable(), memory.DefaultAllocator, plainForm.stream(t, r, base())); err != nil || seen[sum] != "" {
		t.Errorf("another op has the digest of %s, %v", seen[sum], err)
	}
}

// TestDigestGolden holds the encoding still: ids that are remembered depend on
// it.
func TestDigestGolden(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	if got := digestOf(t, plainForm.stream(t, r, randomRows(r, 100))); got != "aa96cd4cb50e5d13" {
		t.Errorf("the digest of fixed rows is %s: change digestMagic with the encoding, and this text", got)
	}
}

// TestDigestOfOtherRows refuses what the table would not take.
func TestDigestOfOtherRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	rows := randomRows(r, 5)
	wrong := plainForm
	wrong.n = arrow.PrimitiveTypes.Uint64
	for i := range rows {
		rows[i].n = nil
	}
	odd := &tabledef.Definition{}
	for name, err := range map[string]error{
		"type":      second(rowdigest.Of(context.Background(), OpAppend, digestTable(), memory.DefaultAllocator, wrong.stream(t, r, rows))),
		"no schema": second(rowdigest.Of(context.Background(), OpAppend, odd, memory.DefaultAllocator, plainForm.stream(t, r, rows))),
		"null key":  second(rowdigest.Of(context.Background(), OpAppend, digestTable(), memory.DefaultAllocator, nullKeys(t, r, rows))),
	} {
		if !errors.Is(err, rowdigest.ErrOtherRows) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if rowdigest.Fits(wrong.stream(t, r, rows).schema, digestTable()) || rowdigest.Fits(wrong.stream(t, r, rows).schema, odd) || !rowdigest.Fits(plainForm.stream(t, r, rows).schema, digestTable()) {
		t.Error("Fits is wrong")
	}
	broken := errors.New("the client went away")
	if _, err := rowdigest.Of(context.Background(), OpAppend, digestTable(), memory.DefaultAllocator, failing{plainForm.stream(t, r, rows), broken}); !errors.Is(err, broken) {
		t.Errorf("a broken stream: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := rowdigest.Of(ctx, OpAppend, digestTable(), memory.DefaultAllocator, plainForm.stream(t, r, rows)); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled drain: %v", err)
	}
}

func second(_ string, err error) error { return err }

func nullKeys(t *testing.T, r *rand.Rand, rows []digestRow) *batches {
	s := plainForm.stream(t, r, rows)
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendNulls(len(rows))
	columns := slices.Clone(s.left[0].Columns())
	columns[0] = b.NewArray()
	s.left[0] = array.NewRecordBatch(s.schema, columns, int64(len(rows)))
	return s
}

// failing ends a stream with an error.
type failing struct {
	*batches
	err error
}

func (f failing) Next(ctx context.Context) (arrow.RecordBatch, error) {
	b, err := f.batches.Next(ctx)
	if errors.Is(err, io.EOF) {
		err = f.err
	}
	return b, err
}

// BenchmarkDigest measures what a request id costs beside the append itself.
func BenchmarkDigest(b *testing.B) {
	for _, rows := range []int{1_000_000} {
		input := ticks(b, rows, false)
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if _, err := rowdigest.Of(context.Background(), OpAppend, tickDefinition(), memory.DefaultAllocator, &batches{tickSchema, input}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
