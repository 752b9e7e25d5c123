package snapshot

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/predicate"
	"contrail/tablecore/tabledef"
)

func TestStatValues(t *testing.T) {
	us, naive := arrow.FixedWidthTypes.Timestamp_us, &arrow.TimestampType{Unit: arrow.Microsecond}
	dec := &arrow.Decimal128Type{Precision: 20, Scale: 2}
	wide := &arrow.Decimal256Type{Precision: 50, Scale: 2}
	long := strings.Repeat("x", 32)
	for _, c := range []struct {
		raw              string
		stored, declared arrow.DataType
		own, isMax       bool
		want             any
	}{
		{"9007199254740993", arrow.PrimitiveTypes.Int64, nil, false, true, int64(9007199254740993)},
		{"1.5", arrow.PrimitiveTypes.Int64, nil, true, true, nil},
		{"", arrow.PrimitiveTypes.Int64, nil, true, true, nil},
		{"null", arrow.PrimitiveTypes.Int8, nil, true, true, nil},
		{"1.5", arrow.PrimitiveTypes.Float32, nil, true, true, 1.5},
		{"0.234", arrow.PrimitiveTypes.Float32, nil, false, false, float64(float32(0.234))}, // which is below 0.234
		{"1.5", arrow.PrimitiveTypes.Float64, nil, false, true, nil},                        // a NaN may be above it
		{"1.5", arrow.PrimitiveTypes.Float64, nil, false, false, 1.5},
		{`"NaN"`, arrow.PrimitiveTypes.Float64, nil, true, false, nil},
		{"1.50", dec, nil, true, true, decimal128.FromI64(150)},
		{"1.505", dec, nil, true, true, decimal128.FromI64(151)},
		{"1.505", dec, nil, true, false, decimal128.FromI64(150)},
		{"1.5", dec, nil, false, true, nil}, // may have gone through a double
		{"1e60", dec, nil, true, true, nil},
		{"x", dec, nil, true, true, nil},
		{`"1970-01-02"`, arrow.FixedWidthTypes.Date32, nil, false, true, int64(1)},
		{`"1970-01"`, arrow.FixedWidthTypes.Date32, nil, false, true, nil},
		{`"1970-01-01T00:00:01.000Z"`, us, nil, true, true, int64(1000000)},
		{`"1970-01-01T00:00:01.000Z"`, us, nil, false, true, int64(1001000)},
		{`"1970-01-01T00:00:01.000Z"`, us, nil, false, false, int64(999000)},
		{`"1970-01-01T00:00:01.000001"`, naive, nil, true, false, int64(1000001)},
		{`"yesterday"`, us, nil, true, false, nil},
		{"5", us, nil, true, false, nil},
		{`"a"`, arrow.BinaryTypes.String, arrow.BinaryTypes.String, false, true, []byte("a")},
		{`"` + long + `"`, arrow.BinaryTypes.String, arrow.BinaryTypes.String, false, true, nil}, // may have been cut
		{`"` + long + `"`, arrow.BinaryTypes.String, arrow.BinaryTypes.String, true, true, []byte(long)},
		{`"` + long + `"`, arrow.BinaryTypes.String, arrow.BinaryTypes.String, false, false, []byte(long)},
		{"5", arrow.BinaryTypes.String, arrow.BinaryTypes.String, true, false, nil},
		{`"1.5"`, arrow.BinaryTypes.String, wide, true, false, nil}, // text does not order decimals
		{"true", arrow.FixedWidthTypes.Boolean, nil, true, false, nil},
	} {
		got := statValue(json.RawMessage(c.raw), c.stored, c.declared, c.own, c.isMax)
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s as %s (own %t, max %t): %v, want %v", c.raw, c.stored, c.own, c.isMax, got, c.want)
		}
	}
}

// boundsOf returns what a file with these statistics says of a column.
func boundsOf(t *testing.T, stats, column string, tags map[string]string) (predicate.Bounds, bool) {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "t", Type: &arrow.TimestampType{Unit: arrow.Second, TimeZone: "UTC"}}, {Name: "x", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	s := &Snapshot{Def: &tabledef.Definition{IndexColumn: "t", IndexType: tabledef.IndexTimestamp, Stored: schema}}
	f := &File{}
	if err := (&fileReader{snapshot: s}).file(f, &deltalog.Add{Path: "f", Stats: stats, Tags: tags}); err != nil {
		t.Fatal(err)
	}
	first, ok := s.Bounds(f, column)
	if again, same := s.Bounds(f, column); fmt.Sprint(again) != fmt.Sprint(first) || same != ok {
		t.Errorf("asked twice, %v and %v", first, again)
	}
	return first, ok
}

func TestBounds(t *testing.T) {
	const stats = `{"numRecords":3,"minValues":{"x":1},"maxValues":{"x":7},"nullCount":{"x":1,"t":{"a":0}}}`
	tags := map[string]string{tabledef.TagIndexMin: "-2", tabledef.TagIndexMax: "5"}
	if b, ok := boundsOf(t, stats, "x", nil); !ok || b != (predicate.Bounds{Rows: 3, Nulls: 1, Min: int64(1), Max: int64(7)}) {
		t.Errorf("got %+v, %t", b, ok)
	}
	if b, ok := boundsOf(t, stats, "t", tags); !ok || b != (predicate.Bounds{Rows: 3, Min: int64(-2000000), Max: int64(5000000)}) {
		t.Errorf("got %+v, %t of the index", b, ok)
	}
	tags[tabledef.TagIndexMax] = "9223372036854775807"
	if b, ok := boundsOf(t, stats, "t", tags); !ok || b.Min != nil || b.Max != nil {
		t.Errorf("got %+v, %t of an index beyond what is stored", b, ok)
	}
	for _, c := range []struct{ stats, column string }{
		{"", "x"}, {"{", "x"}, {stats, "nope"}, {stats, "t"}, {`{"numRecords":3,"tightBounds":false,"minValues":{"x":1},"nullCount":{"x":0}}`, "x"},
	} {
		if b, ok := boundsOf(t, c.stats, c.column, nil); ok {
			t.Errorf("%s of %s: %+v", c.column, c.stats, b)
		}
	}
	if n := NumRecords(stats); n != 3 {
		t.Errorf("%d records", n)
	}
}
