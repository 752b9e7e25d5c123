package newfile

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"contrail/tablecore/internal/datafile"
)

func TestStats(t *testing.T) {
	utc, local := &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, &arrow.TimestampType{Unit: arrow.Microsecond}
	dec := &arrow.Decimal128Type{Precision: 20}
	p := arrow.PrimitiveTypes
	cases := []struct {
		t        arrow.DataType
		min, max any
		nan      bool
		low      string // "" = left out
		high     string
	}{
		{p.Int8, int8(-3), int8(4), false, `-3`, `4`},
		{p.Int16, int16(-3), int16(4), false, `-3`, `4`},
		{p.Int32, int32(-3), int32(4), false, `-3`, `4`},
		{p.Int64, int64(math.MinInt64), int64(math.MaxInt64), false, `-9223372036854775808`, `9223372036854775807`},
		{p.Int64, nil, nil, false, ``, ``},
		{p.Float32, float32(0.1), float32(2), false, `0.10000000149011612`, `2`},
		{p.Float64, 0.1, 1e300, false, `0.1`, `1e+300`},
		{p.Float64, 0.1, 1e300, true, `0.1`, ``},
		{p.Float64, math.Inf(-1), math.Inf(1), false, ``, ``},
		{p.Float64, math.Copysign(0, -1), 0.0, false, ``, `0`},
		{arrow.BinaryTypes.String, "a\"b", "é", false, `"a\"b"`, `"é"`},
		{arrow.BinaryTypes.Binary, []byte("a"), []byte("b"), false, ``, ``},
		{arrow.FixedWidthTypes.Boolean, false, true, false, ``, ``},
		{p.Date32, arrow.Date32(-1), arrow.Date32(20000), false, `"1969-12-31"`, `"2024-10-04"`},
		{p.Date32, arrow.Date32(-800000), arrow.Date32(3000000), false, ``, ``},
		{utc, arrow.Timestamp(-1), arrow.Timestamp(1357020000123000), false, `"1969-12-31T23:59:59.999999Z"`, `"2013-01-01T06:00:00.123Z"`},
		{local, arrow.Timestamp(0), arrow.Timestamp(math.MaxInt64), false, `"1970-01-01T00:00:00.000"`, ``},
		{dec, decimal128.FromU64(7), decimal128.FromU64(1 << 53), false, `7`, `9007199254740992`},
		{dec, decimal128.FromU64(7), decimal128.FromU64(math.MaxUint64), false, `7`, ``},
		{&arrow.Decimal128Type{Precision: 20, Scale: 3}, decimal128.FromI64(-5), decimal128.FromI64(999999999999999), false, `-0.005`, `999999999999.999`},
		{&arrow.Decimal128Type{Precision: 20, Scale: 3}, decimal128.FromI64(-1e15), decimal128.FromI64(1e15), false, ``, ``},
	}
	for i, c := range cases {
		column := datafile.ColumnStats{Name: "v", Min: c.min, Max: c.max, HasNaN: c.nan, NullCount: 2}
		got := stats(9, []datafile.ColumnStats{column}, arrow.NewSchema([]arrow.Field{{Name: "v", Type: c.t}}, nil), said{})
		side := func(text string) string {
			if text == "" {
				return "{}"
			}
			return `{"v":` + text + `}`
		}
		want := `{"numRecords":9,"minValues":` + side(c.low) + `,"maxValues":` + side(c.high) + `,"nullCount":{"v":2}}`
		if got != want {
			t.Errorf("case %d: got %s, want %s", i, got, want)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("case %d: %s is no JSON", i, got)
		}
	}
}

func TestStatsCoverTheFirstColumns(t *testing.T) {
	var columns []datafile.ColumnStats
	var fields []arrow.Field
	for i := range 40 {
		name := fmt.Sprintf("c%02d", i)
		// A nested column has no statistics and takes no place.
		columns = append(columns, datafile.ColumnStats{Name: name + " nested"})
		fields = append(fields, arrow.Field{Name: name + " nested", Type: arrow.ListOf(arrow.PrimitiveTypes.Int8)})
		columns = append(columns, datafile.ColumnStats{Name: name, Min: int64(i), Max: int64(i)})
		fields = append(fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64})
	}
	var got struct{ MinValues, MaxValues, NullCount map[string]int64 }
	if err := json.Unmarshal([]byte(stats(1, columns, arrow.NewSchema(fields, nil), said{})), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.MinValues) != 32 || len(got.MaxValues) != 32 || len(got.NullCount) != 32 || got.MaxValues["c31"] != 31 {
		t.Errorf("got %v", got)
	}
}
