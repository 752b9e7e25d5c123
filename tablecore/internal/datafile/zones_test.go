package datafile

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// zoneFile writes rows of every kind of column whose bounds are kept and opens
// the file.
func zoneFile(t testing.TB, rows string, most int64) *File {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "i", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "small", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
		{Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true}, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "d", Type: &arrow.Decimal128Type{Precision: 20}, Nullable: true}, {Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
	}, nil)
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	defer batch.Release()
	var out bytes.Buffer
	w, err := NewWriter(&out, schema, WriteOptions{MaxRowsPerRowGroup: most})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(batch); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	src := bytes.NewReader(out.Bytes())
	footer, err := ParseFooter(t.Context(), src, "zones")
	if err != nil {
		t.Fatal(err)
	}
	return Open(src, footer, "zones", nil)
}

func TestZones(t *testing.T) {
	f := zoneFile(t, `[{"i":5,"small":-3,"f":1.5,"s":"b","d":"-7"},{"i":-2,"small":9,"f":0,"s":"a","d":"9"},{"i":null,"s":"c","f":2},{"s":null}]`, 2)
	decimal := &arrow.Decimal128Type{Precision: 20}
	for _, c := range []struct {
		group  int
		column string
		typ    arrow.DataType
		want   Zone
	}{
		{0, "i", arrow.PrimitiveTypes.Int64, Zone{RowRange{0, 2}, 0, int64(-2), int64(5)}},
		{1, "i", arrow.PrimitiveTypes.Int64, Zone{RowRange{2, 4}, 2, nil, nil}},
		{0, "small", arrow.PrimitiveTypes.Int8, Zone{RowRange{0, 2}, 0, int64(-3), int64(9)}},
		{0, "f", arrow.PrimitiveTypes.Float64, Zone{RowRange{0, 2}, 0, math.Copysign(0, -1), 1.5}},
		{1, "s", arrow.BinaryTypes.String, Zone{RowRange{2, 4}, 1, []byte("c"), []byte("c")}},
		{0, "d", decimal, Zone{RowRange{0, 2}, 0, decimal128.FromI64(-7), decimal128.FromI64(9)}},
	} {
		got, ok := f.GroupZone(c.group, c.column, c.typ)
		if !ok || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("group %d of %s: %v (%t), want %v", c.group, c.column, got, ok, c.want)
		}
		pages, err := f.PageZones(t.Context(), c.group, c.column, c.typ)
		if err != nil || len(pages) != 1 || fmt.Sprint(pages[0]) != fmt.Sprint(c.want) {
			t.Errorf("pages of group %d of %s: %v (%v), want %v", c.group, c.column, pages, err, c.want)
		}
	}
	for _, c := range []struct {
		column string
		typ    arrow.DataType
	}{{"i", arrow.PrimitiveTypes.Int32}, {"l", arrow.ListOf(arrow.PrimitiveTypes.Int64)}} {
		if z, ok := f.GroupZone(0, c.column, c.typ); ok {
			t.Errorf("%s as %s: %v", c.column, c.typ, z)
		}
		if z, err := f.PageZones(t.Context(), 0, c.column, c.typ); z != nil || err != nil {
			t.Errorf("%s as %s: %v, %v", c.column, c.typ, z, err)
		}
	}
	if z, ok := f.GroupZone(1, "later", arrow.PrimitiveTypes.Int64); !ok || z != (Zone{RowRange{2, 4}, 2, nil, nil}) {
		t.Errorf("a column that the file lacks: %v (%t)", z, ok)
	}
	if z, err := f.PageZones(t.Context(), 1, "later", arrow.PrimitiveTypes.Int64); z != nil || err != nil {
		t.Errorf("pages of a column that the file lacks: %v, %v", z, err)
	}
}

// A NaN is beyond its column's bounds, so there must be none.
func TestZonesBesideNaN(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "f", Type: arrow.PrimitiveTypes.Float64}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.Float64Builder).AppendValues([]float64{1, math.NaN()}, nil)
	batch := b.NewRecordBatch()
	defer batch.Release()
	var out bytes.Buffer
	w, err := NewWriter(&out, schema, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(batch); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	src := bytes.NewReader(out.Bytes())
	footer, err := ParseFooter(t.Context(), src, "nan")
	if err != nil {
		t.Fatal(err)
	}
	f := Open(src, footer, "nan", nil)
	if z, ok := f.GroupZone(0, "f", arrow.PrimitiveTypes.Float64); !ok || z.Min != nil || z.Max != nil {
		t.Errorf("bounds %v beside a NaN", z)
	}
	if z, err := f.PageZones(t.Context(), 0, "f", arrow.PrimitiveTypes.Float64); err != nil || z != nil {
		t.Errorf("pages %v (%v) beside a NaN", z, err)
	}
}

func TestDecimalBounds(t *testing.T) {
	for _, v := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64, -256} {
		var wide [16]byte
		n := decimal128.FromI64(v)
		for i := range 8 {
			wide[i], wide[8+i] = byte(uint64(n.HighBits())>>(56-8*i)), byte(n.LowBits()>>(56-8*i))
		}
		for _, b := range [][]byte{wide[:], wide[7:]} {
			if got := bigEndianDecimal(b); got != n {
				t.Errorf("%d in %d bytes: %s", v, len(b), got.ToString(0))
			}
		}
	}
}
