package datafile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// int96File makes a file of one INT96 column, as Spark and Impala once did.
func int96File(t *testing.T, values ...parquet.Int96) []byte {
	t.Helper()
	node, err := schema.NewPrimitiveNode("v", parquet.Repetitions.Required, parquet.Types.Int96, -1, -1)
	if err != nil {
		t.Fatal(err)
	}
	root, err := schema.NewGroupNode("root", parquet.Repetitions.Required, schema.FieldList{node}, -1)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := file.NewParquetWriter(&out, root)
	rg, err := w.AppendRowGroupChecked()
	if err != nil {
		t.Fatal(err)
	}
	column, err := rg.NextColumn()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := column.(*file.Int96ColumnChunkWriter).WriteBatch(values, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(column.Close(), rg.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func int96(days uint32, nanos uint64) (v parquet.Int96) {
	binary.LittleEndian.PutUint64(v[:], nanos)
	binary.LittleEndian.PutUint32(v[8:], days)
	return v
}

func TestInt96(t *testing.T) {
	mem := checkedMem(t)
	us := arrow.Field{Name: "v", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}}
	f := openFile(t, int96File(t, int96(2440588, 1000), int96(2440587, 0), int96(2440588+20000, 86_399_999_999_000)), mem)
	got := readAll(t, f, mem, ReadRequest{Fields: []arrow.Field{us}})
	defer got.Release()
	values := got.Column(0).(*array.Timestamp).TimestampValues()
	if want := []arrow.Timestamp{1, -86_400_000_000, 20001*86_400_000_000 - 1}; !slices.Equal(values, want) {
		t.Errorf("%v, want %v", values, want)
	}
	f = openFile(t, int96File(t, int96(2440588, 1)), mem)
	if err := readError(f, ReadRequest{Fields: []arrow.Field{us}}); !isCorrupt(err, "no whole number of us") {
		t.Error(err)
	}
}

func TestConversions(t *testing.T) {
	ms, ns := &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}, &arrow.TimestampType{Unit: arrow.Nanosecond}
	us := &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	dec9, dec18, dec5s3 := &arrow.Decimal128Type{Precision: 9, Scale: 2}, &arrow.Decimal128Type{Precision: 18, Scale: 2}, &arrow.Decimal128Type{Precision: 9, Scale: 3}
	cases := []struct {
		name       string
		have, want arrow.DataType
		values     string
		result     string // "" where it is refused
		message    string
	}{
		{"wider", arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64, `[-1, null]`, `[-1, null]`, ""},
		{"narrower", arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int16, `[-32768, null]`, `[-32768, null]`, ""},
		{"narrower, out of range", arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int16, `[32768]`, "", "the value 32768 is out of range"},
		{"unsigned", arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Int64, `[4294967295]`, `[4294967295]`, ""},
		{"unsigned, out of range", arrow.PrimitiveTypes.Uint64, arrow.PrimitiveTypes.Int64, `[18446744073709551615]`, "", "out of range"},
		{"float to double", arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, `[1.5, null]`, `[1.5, null]`, ""},
		{"double to float", arrow.PrimitiveTypes.Float64, arrow.PrimitiveTypes.Float32, `[1.5]`, "", "cannot be read as float32"},
		{"milliseconds", ms, us, `[1, null, -5]`, `[1000, null, -5000]`, ""},
		{"milliseconds, out of range", ms, us, `[9223372036854775807]`, "", "in range"},
		{"nanoseconds", ns, us, `[1000, null]`, `[1, null]`, ""},
		{"nanoseconds, not whole", ns, us, `[1001]`, "", "no whole number of us"},
		{"decimal", dec9, dec18, `["1.25", null]`, `["1.25", null]`, ""},
		{"decimal of another scale", dec5s3, dec9, `["1.250"]`, "", "cannot be read as decimal"},
		{"string as binary", arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, `["ab"]`, `["YWI="]`, ""},
		{"binary as string", arrow.BinaryTypes.Binary, arrow.BinaryTypes.String, `["YWI=", "w7w="]`, `["ab", "ü"]`, ""},
		{"binary that is no text", arrow.BinaryTypes.Binary, arrow.BinaryTypes.String, `["gIA="]`, "", "not valid UTF-8"},
		{"text cut in a character", arrow.BinaryTypes.Binary, arrow.BinaryTypes.String, `["ww==", "vA=="]`, "", "not valid UTF-8"},
		{"fixed size as binary", &arrow.FixedSizeBinaryType{ByteWidth: 2}, arrow.BinaryTypes.Binary, `["YWI=", null]`, `["YWI=", null]`, ""},
		{"string as number", arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64, `["1"]`, "", "cannot be read as int64"},
		{"list as number", arrow.ListOf(arrow.PrimitiveTypes.Int64), arrow.PrimitiveTypes.Int64, `[[1]]`, "", "cannot be read as int64"},
		{"number as list", arrow.PrimitiveTypes.Int64, arrow.ListOf(arrow.PrimitiveTypes.Int64), `[1]`, "", "cannot be read as list"},
		{"list as struct", arrow.ListOf(arrow.PrimitiveTypes.Int64), arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64}), `[[1]]`, "", "cannot be read as struct"},
		{"list as map", arrow.ListOf(arrow.PrimitiveTypes.Int64), arrow.MapOf(arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int64), `[[1]]`, "", "cannot be read as map"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			mem := checkedMem(t)
			batch := batchOf(t, mem, c.have, c.values)
			defer batch.Release()
			f := openFile(t, stockWrite(t, batch, 100), mem)
			req := ReadRequest{Fields: []arrow.Field{{Name: "v", Type: c.want, Nullable: true}}}
			if c.result == "" {
				if err := readError(f, req); !isCorrupt(err, c.message) {
					t.Errorf("got %v", err)
				}
				return
			}
			want := batchOf(t, mem, c.want, c.result)
			defer want.Release()
			got := readAll(t, f, mem, req)
			defer got.Release()
			sameBatch(t, want, got)
		})
	}
}

func TestStructChildrenByName(t *testing.T) {
	mem := checkedMem(t)
	have := arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true})
	batch := batchOf(t, mem, have, `[{"a": 1, "b": "x"}, null, {"a": null, "b": "y"}]`)
	defer batch.Release()
	raw, _ := writeFile(t, batch.Schema(), WriteOptions{Mem: mem}, batch)
	f := openFile(t, raw, mem)
	b, c := arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}, arrow.Field{Name: "c", Type: arrow.PrimitiveTypes.Int64, Nullable: true}
	a := arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}
	for want, values := range map[*arrow.StructType]string{
		arrow.StructOf(b, c, a): `[{"b": "x", "a": 1}, null, {"b": "y"}]`,
		arrow.StructOf(c):       `[{"c": null}, null, {"c": null}]`,
	} {
		expected := batchOf(t, mem, want, values)
		got := readAll(t, f, mem, ReadRequest{Fields: []arrow.Field{{Name: "v", Type: want, Nullable: true}}})
		sameBatch(t, expected, got)
		expected.Release()
		got.Release()
	}
	c.Nullable = false
	if err := readError(f, ReadRequest{Fields: []arrow.Field{{Name: "v", Type: arrow.StructOf(c), Nullable: true}}}); !isCorrupt(err, "is missing") {
		t.Error(err)
	}
}
