package rowfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tabledef"
)

// schemaOf makes a schema of name:type texts.
func schemaOf(t *testing.T, texts ...string) *arrow.Schema {
	t.Helper()
	fields := make([]arrow.Field, len(texts))
	for i, text := range texts {
		name, spelled, _ := strings.Cut(text, ":")
		typ, err := tabledef.ParseType(spelled)
		if err != nil {
			t.Fatal(err)
		}
		fields[i] = arrow.Field{Name: name, Type: typ, Nullable: true}
	}
	return arrow.NewSchema(fields, nil)
}

var every = []string{
	"a:int8", "b:int16", "c:int32", "d:int64", "e:uint8", "f:uint16", "g:uint32", "h:uint64", "i:halffloat", "j:float", "k:double", "l:bool",
	"m:string", "n:large_string", "o:string_view", "p:binary", "q:large_binary", "r:binary_view", "s:fixed_size_binary[2]", "t:date32[day]", "u:date64[ms]",
	"v:time32[s]", "w:time32[ms]", "x:time64[us]", "y:time64[ns]", "z:duration[us]", "A:timestamp[s]", "B:timestamp[us, tz=UTC]", "C:timestamp[ns, tz=America/New_York]",
	"D:decimal32(9, 2)", "E:decimal64(18, 2)", "F:decimal128(20, 4)", "G:decimal256(50, 2)", "H:list<item: double>", "I:large_list<item: string>",
	"J:fixed_size_list<item: float>[2]", "K:struct<a: int32, b: string>", "L:map<string, int32>",
	"M:dictionary<values=string, indices=int8, ordered=0>", "N:dictionary<values=binary, indices=int32, ordered=0>",
}

const everyJSON = `{"a":-128,"b":-32768,"c":-2147483648,"d":-9223372036854775808,"e":255,"f":65535,"g":4294967295,"h":18446744073709551615,` +
	`"i":1.5,"j":0.1,"k":-1e-300,"l":true,"m":"a\"b,\u0001é","n":"","o":"x","p":"AAE=","q":"","r":"/w==","s":"AAE=","t":"1969-12-31","u":"2013-01-31",` +
	`"v":3600,"w":1,"x":0,"y":86399999999999,"z":-5,"A":"2013-01-01T00:00:00","B":"1677-01-01T00:00:00.000001Z","C":"2262-01-01T00:00:00.123456789Z",` +
	`"D":"-0.05","E":"9999999999999999.99","F":"1.5000","G":"-123456789012345678901234567890.25","H":[1,null,"NaN"],"I":["a",null],` +
	`"J":[1,"-Infinity"],"K":{"a":1,"b":null},"L":[["k",1],["l",null]],"M":"x","N":"AA=="}` + "\n"

// nulls is a row without a value.
func nulls(schema *arrow.Schema) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, f := range schema.Fields() {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + f.Name + `":null`)
	}
	return b.String() + "}\n"
}

// transcode reads rows of one format and writes them as another.
func transcode(t *testing.T, mem memory.Allocator, schema *arrow.Schema, from, to Format, data []byte) []byte {
	t.Helper()
	r, err := Open(bytes.NewReader(data), OpenOptions{Format: from, Table: schema, Allocator: mem, Text: TextOptions{Null: "NULL", Zone: locationUTC}})
	if err != nil {
		t.Fatalf("%s: %v", from, err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	var out bytes.Buffer
	w, err := Create(&out, r.Schema(), CreateOptions{Format: to, Allocator: mem, Text: TextOptions{Null: "NULL"}})
	if err != nil {
		t.Fatalf("%s: %v", to, err)
	}
	for {
		batch, err := r.Next(context.Background())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", from, err)
		}
		if err := w.Write(batch); err != nil {
			t.Fatalf("%s: %v", to, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatalf("%s: %v", to, err)
	}
	return out.Bytes()
}

// Every type goes through every format and comes back as it was.
func TestEveryTypeThroughEveryFormat(t *testing.T) {
	checked := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer checked.AssertSize(t, 0)
	schema := schemaOf(t, every...)
	rows := everyJSON + nulls(schema)
	for _, format := range Formats {
		schema, rows := schema, rows
		if format == Parquet { // which does not know them; the protocol's plain types have neither
			schema = schemaOf(t, "d:int64", "k:double", "m:string", "p:binary", "B:timestamp[us, tz=UTC]", "t:date32[day]", "l:bool", "F:decimal128(20, 4)", "H:list<item: double>")
			rows = `{"d":1,"k":0.5,"m":"","p":"/w==","B":"2013-01-01T00:00:00Z","t":"2013-01-01","l":false,"F":"1.0000","H":[1,null]}` + "\n" + nulls(schema)
		}
		there := transcode(t, checked, schema, JSONLines, format, []byte(rows))
		back := transcode(t, checked, schema, format, JSONLines, there)
		if string(back) != rows {
			t.Errorf("%s:\n%s\nwant\n%s", format, back, rows)
		}
	}
}

// Line breaks inside quotes are part of the value, byte for byte, wherever a
// read ends; between rows both kinds are one.
func TestLineBreaksInCSV(t *testing.T) {
	schema := schemaOf(t, "a:int64", "b:string")
	file := "a,b\r\n1,\"x\r\ny\"\n2,\"\r\n\n\r\"\r\n3,\"\"\"\r\n\"\"\"\r\n"
	want := `{"a":1,"b":"x\u000d\ny"}` + "\n" + `{"a":2,"b":"\u000d\n\n\u000d"}` + "\n" + `{"a":3,"b":"\"\u000d\n\""}` + "\n"
	if got := transcode(t, memory.NewGoAllocator(), schema, CSV, JSONLines, []byte(file)); string(got) != want {
		t.Errorf("got %s", got)
	}
	for _, slow := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader} {
		rows, err := Open(slow(strings.NewReader(file)), OpenOptions{Format: CSV, Table: schema})
		if err != nil {
			t.Fatal(err)
		}
		batch, err := rows.Next(t.Context())
		if err != nil || batch.Column(1).ValueStr(0) != "x\r\ny" || batch.Column(1).ValueStr(1) != "\r\n\n\r" {
			t.Errorf("%v, %v", batch, err)
		}
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A time without a zone is taken to be in the one assumed, unless its clocks
// skipped the time or showed it twice.
func TestTimesInAnAssumedZone(t *testing.T) {
	schema := schemaOf(t, "t:timestamp[us, tz=UTC]")
	for _, c := range []struct{ zone, text, want string }{
		{"America/New_York", "2013-03-10 01:59:59.999999", "2013-03-10T06:59:59.999999Z"},
		{"America/New_York", "2013-03-10 02:00", "line 2, column t: the time 2013-03-10 02:00 is skipped in America/New_York, where the clocks are set forward"},
		{"America/New_York", "2013-03-10 02:59:59", "is skipped"},
		{"America/New_York", "2013-03-10 03:00", "2013-03-10T07:00:00Z"},
		{"America/New_York", "2013-11-03 00:59:59", "2013-11-03T04:59:59Z"},
		{"America/New_York", "2013-11-03 01:00", "the time 2013-11-03 01:00 comes twice in America/New_York, where the clocks are set back; give it with its offset"},
		{"America/New_York", "2013-11-03 01:59:59", "comes twice"},
		{"America/New_York", "2013-11-03 01:30:00-05", "2013-11-03T06:30:00Z"},
		{"America/New_York", "2013-11-03 02:00", "2013-11-03T07:00:00Z"},
		{"Europe/Berlin", "2013-10-27 02:30", "comes twice"},
		{"Australia/Lord_Howe", "2013-04-07 01:45", "comes twice"}, // by half an hour
		{"Asia/Kolkata", "2013-03-10 02:30", "2013-03-09T21:00:00Z"},
		{"UTC", "2013-03-10 02:30", "2013-03-10T02:30:00Z"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		in, err := Open(strings.NewReader("t\n"+c.text+"\n"), OpenOptions{Format: CSV, Table: schema, Text: TextOptions{Zone: zone}})
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if batch, err := in.Next(t.Context()); err != nil {
			got = err.Error()
		} else {
			got = string(AppendCell(nil, batch.Column(0), 0))
		}
		if got != c.want && !(strings.Contains(got, " in "+c.zone) && strings.Contains(got, c.want)) {
			t.Errorf("%s in %s: %s", c.text, c.zone, got)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A text that is no value of its type is refused, with its place.
func TestTextThatIsNoValue(t *testing.T) {
	for typ, texts := range map[string][]string{
		"int8":                  {"128", "1.0", "", "0x1", " 1", "1_0"},
		"uint64":                {"-1", "18446744073709551616"},
		"double":                {"one", "0x1p3", "1e999", ""},
		"float":                 {"1e39"},
		"bool":                  {"1", "yes", ""},
		"date32[day]":           {"2013-02-30", "2013-1-1", "01.02.2013"},
		"time32[s]":             {"25:00:00", "12:00:00.5", "12:00", "2147483648"},
		"time64[us]":            {"12:00:00.0000001", "12:00:00.0000000000"},
		"timestamp[us, tz=UTC]": {"2013-01-01", "2013-01-01T00:00:00", "2013-01-01T00:00:00.0000001Z", "2013-13-01T00:00:00Z", "yesterday", "1.5", "2013-01-01T00:00:00.0000000000Z", "2013-01-01T00:00:00,0000000000Z"},
		"timestamp[us]":         {"2013-01-01T00:00:00Z", "2013-01-01T00:00:00+02:00"},
		"timestamp[ns, tz=UTC]": {"1600-01-01T00:00:00Z", "2300-01-01T00:00:00Z", "9223372036854775808"},
		"decimal128(4, 2)":      {"100", "1.005", ".", "", "1e2", "--1", "1.2.3", "+-1"},
		"binary":                {"?", "AAE"},
		"fixed_size_binary[2]":  {"AA==", "AAEC"},
		"list<item: int8>":      {"1", "[300]", "[", "{}", "[1] 2"},
		"dictionary<values=binary, indices=int32, ordered=0>": {"?"},
		"dictionary<values=double, indices=int32, ordered=0>": {"1"},
		"fixed_size_list<item: int8>[2]":                      {"[1]"},
		"struct<a: int8>":                                     {"[]", `{"b":1}`, `{"a":"x"}`},
		"map<string, int8>":                                   {"{}", "[1]", `[["a"]]`, "[[null,1]]", `[["a","b"]]`, `[[1,1]]`},
	} {
		schema := schemaOf(t, "v:"+typ)
		for _, text := range texts {
			file := "v\n\"" + strings.ReplaceAll(text, `"`, `""`) + "\"\n"
			err := readAll(strings.NewReader(file), OpenOptions{Format: CSV, Table: schema, Text: TextOptions{Null: "NULL"}})
			var at *Error
			if !errors.As(err, &at) || at.Line != 2 || at.Column != "v" {
				t.Errorf("%s: %q: %v", typ, text, err)
			}
		}
	}
}

func readAll(r io.Reader, o OpenOptions) error {
	checked := memory.NewCheckedAllocator(memory.NewGoAllocator())
	o.Allocator = checked
	in, err := Open(r, o)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = in.Next(context.Background())
	}
	if closeErr := in.Close(); closeErr != nil {
		return closeErr
	}
	if n := checked.CurrentAlloc(); n != 0 {
		return errors.New("memory is left")
	}
	if err == io.EOF {
		return nil
	}
	return err
}

func TestTextFilesThatAreNone(t *testing.T) {
	schema := schemaOf(t, "a:int64", "b:string")
	for _, c := range []struct {
		format    Format
		file, msg string
	}{
		{CSV, "", "the file is empty"},
		{CSV, "a,,b\n", "line 1: the first line names the columns, and one of the names is empty"},
		{CSV, "a,a\n", "line 1, column a: the file names it twice"},
		{CSV, "a,c\n1,2\n", "line 1, column c: the table has no such column; it has a (int64), b (string)"},
		{CSV, "a,b\n1\n", "line 2: the line has another number of cells than the first line"},
		{CSV, "a,b\n1,\"x\n", "line 2: extraneous or missing"},
		{CSV, "a,b\n1,x\"y\n", "line 2: bare"},
		{CSV, "a,b\n1,\"x\ny\"\nz,x\n", "line 4, column a: \"z\" is no whole number of 64 bits"},
		{JSONLines, "[]\n", "line 1: a list where an object of column to value is due"},
		{JSONLines, "{\"a\":1}\n\n{\n", "line 3: no JSON: unexpected EOF"},
		{JSONLines, "{\"a\":1} {\"a\":2}\n", "line 1: no JSON: more than one value"},
		{JSONLines, "{\"c\":1}\n", "line 1, column c: the table has no such column"},
		{JSONLines, "{\"a\":\"x\"}\n", "line 1, column a: \"x\" is no whole number"},
		{JSONLines, "{\"b\":1}\n", "line 1, column b: a number is no string"},
		{JSONLines, "{\"a\":true}\n", "line 1, column a: a boolean is no int64"},
		{JSONLines, "{\"a\":[1]}\n", "line 1, column a: a list is no int64"},
		{JSONLines, "{\"a\":{}}\n", "line 1, column a: an object is no int64"},
	} {
		err := readAll(strings.NewReader(c.file), OpenOptions{Format: c.format, Table: schema})
		if err == nil || !strings.HasPrefix(err.Error(), c.msg) {
			t.Errorf("%s %q: %v", c.format, c.file, err)
		}
	}
	long := io.MultiReader(strings.NewReader(`{"b":"`), io.LimitReader(zeros{}, maxLineBytes))
	if err := readAll(long, OpenOptions{Format: JSONLines, Table: schema}); err == nil || !strings.Contains(err.Error(), "line 1: the line is longer than") {
		t.Errorf("got %v", err)
	}
	long = io.MultiReader(strings.NewReader("a,b\n1,\"x\ny\"\n2,\""), io.LimitReader(zeros{}, maxLineBytes))
	if err := readAll(long, OpenOptions{Format: CSV, Table: schema}); err == nil || !strings.HasPrefix(err.Error(), "line 4: the row is longer than") {
		t.Errorf("got %v", err)
	}
	for _, format := range []Format{Parquet, Arrow} {
		if _, err := Open(io.LimitReader(strings.NewReader(arrowMagic+"00"), 8), OpenOptions{Format: format}); err == nil {
			t.Errorf("%s from a stream is opened", format)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// A reader's own failure is told as it is, at any place.
func TestReadersThatFail(t *testing.T) {
	broken := errors.New("the disk is gone")
	for format, file := range map[Format]string{CSV: "a\n1\n", JSONLines: "{\"a\":1}\n"} {
		for at := range len(file) {
			err := readAll(io.MultiReader(strings.NewReader(file[:at]), failing{broken}), OpenOptions{Format: format, Table: schemaOf(t, "a:int64")})
			if !errors.Is(err, broken) {
				t.Errorf("%s after %d bytes: %v", format, at, err)
			}
		}
	}
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

func TestInfer(t *testing.T) {
	const csv = "\uFEFFi,f,b,d,z,n,s,zip,none,big,long\n1,1,true,2013-01-01,2013-01-01T00:00:00Z,2013-01-01 00:00:00,x,007,,1,1\n-2,.5,FALSE,2013-01-02,2013-01-01 00:00:00.5+02,2013-01-01,1,008,,9223372036854775808,-9223372036854775809\n,,,,,,,,,,\n"
	const lines = `{"i":1,"u":18446744073709551615,"long":18446744073709551616,"f":1,"b":true,"z":"2013-01-01T00:00:00.0000001Z","s":"1"}` + "\n\n" + `{"i":null,"f":0.5,"n":"2013-01-01","s":"2"}` + "\n"
	for _, c := range []struct {
		format Format
		file   string
		zone   bool
		want   string
	}{
		{CSV, csv, false, "i int64, f double, b bool, d date32[day], z timestamp[us, tz=UTC], n timestamp[us], s string, zip string, none string, big uint64, long string"},
		{CSV, csv, true, "i int64, f double, b bool, d date32[day], z timestamp[us, tz=UTC], n timestamp[us, tz=UTC], s string, zip string, none string, big uint64, long string"},
		{JSONLines, lines, false, "i int64, u uint64, long double, f double, b bool, z timestamp[ns, tz=UTC], s string, n date32[day]"},
		{JSONLines, "", false, ""},
	} {
		o := TextOptions{}
		if c.zone {
			o.Zone = locationUTC
		}
		schema, err := Infer(strings.NewReader(c.file), c.format, o)
		if err != nil {
			t.Errorf("%s: %v", c.format, err)
			continue
		}
		var got []string
		for _, f := range schema.Fields() {
			got = append(got, f.Name+" "+tabledef.TypeName(f.Type))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %s", c.format, got)
		}
		if err := readAll(strings.NewReader(c.file), OpenOptions{Format: c.format, Table: schema, Text: o}); err != nil {
			t.Errorf("%s: the rows do not fit the inferred schema: %v", c.format, err)
		}
	}
	for _, file := range []string{`{"a":[]}`, `{"a":{}}`, "[", "1"} {
		if _, err := Infer(strings.NewReader(file), JSONLines, TextOptions{}); err == nil {
			t.Errorf("%s has a schema", file)
		}
	}
	for _, file := range []string{"", "a\n\"", "a\n1,2\n"} {
		if _, err := Infer(strings.NewReader(file), CSV, TextOptions{}); err == nil {
			t.Errorf("%q has a schema", file)
		}
	}
}

// Batches that are larger than a message should be come in pieces.
func TestLargeBatchesAreCut(t *testing.T) {
	checked := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer checked.AssertSize(t, 0)
	schema := schemaOf(t, "a:int64", "s:string")
	b := array.NewRecordBuilder(checked, schema)
	defer b.Release()
	const rows = 40_000
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append(strings.Repeat("x", 500))
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	for _, format := range []Format{Arrow, ArrowStream} {
		var file bytes.Buffer
		w, err := Create(&file, schema, CreateOptions{Format: format, Allocator: checked})
		if err == nil {
			err = errors.Join(w.Write(batch), w.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := Open(bytes.NewReader(file.Bytes()), OpenOptions{Format: format, Allocator: checked})
		if err != nil {
			t.Fatal(err)
		}
		next := int64(0)
		for {
			piece, err := r.Next(context.Background())
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if piece.NumRows() > rows/4 || piece.Column(0).(*array.Int64).Value(0) != next {
				t.Errorf("%s: a piece of %d rows from %d", format, piece.NumRows(), next)
			}
			next += piece.NumRows()
		}
		if next != rows {
			t.Errorf("%s: %d rows", format, next)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestCancelledReading(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for format, file := range map[Format]string{CSV: "a\n1\n", ArrowStream: string(transcode(t, memory.NewGoAllocator(), schemaOf(t, "a:int64"), CSV, ArrowStream, []byte("a\n1\n")))} {
		r, err := Open(strings.NewReader(file), OpenOptions{Format: format, Table: schemaOf(t, "a:int64")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", format, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestFormats(t *testing.T) {
	for name, want := range map[string]Format{"a.CSV": CSV, "a.b.ndjson": JSONLines, "x/a.parquet": Parquet, "a.feather": Arrow, "a.arrows": ArrowStream} {
		if got, err := FormatOf(name); got != want || err != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for _, name := range []string{"a", "csv", "a.txt", ""} {
		if got, err := FormatOf(name); err == nil {
			t.Errorf("%s is %s", name, got)
		}
	}
	if _, err := ParseFormat("CSV"); err == nil {
		t.Error("CSV in capitals is a format")
	}
	if _, err := Open(nil, OpenOptions{Format: "x"}); err == nil {
		t.Error("x is opened")
	}
	if _, err := Create(io.Discard, schemaOf(t, "a:int64"), CreateOptions{Format: "x"}); err == nil {
		t.Error("x is created")
	}
	if _, err := Create(io.Discard, arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.FixedWidthTypes.MonthInterval}}, nil), CreateOptions{Format: Parquet}); err == nil {
		t.Error("Parquet holds intervals")
	}
}

func TestFloatText(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.1: "0.1", 1e21: "1e+21", 1e20: "100000000000000000000", 1e-7: "1e-07", math.MaxFloat64: "1.7976931348623157e+308"} {
		if got, quote := appendFloatText(nil, v, 64); string(got) != want || quote {
			t.Errorf("%g: %s", v, got)
		}
	}
}

// TestHostileArrowSchemas: a schema that claims more fields than its bytes hold, or
// is cut off, is refused before room is made for it.
func TestHostileArrowSchemas(t *testing.T) {
	for _, format := range []Format{Arrow, ArrowStream} {
		var out bytes.Buffer
		w, err := Create(&out, arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}}, nil), CreateOptions{Format: format})
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		whole := out.Bytes()
		for i := range len(whole) - 4 {
			hostile := bytes.Clone(whole)
			binary.LittleEndian.PutUint32(hostile[i:], 1<<30)
			in, err := Open(bytes.NewReader(hostile), OpenOptions{Format: format, Allocator: bounded{memory.NewGoAllocator(), 64 << 20}})
			if err == nil {
				_ = in.Close() // where it does not matter
			}
			if in, err := Open(bytes.NewReader(whole[:i]), OpenOptions{Format: format}); err == nil && format == Arrow {
				_ = in.Close()
				t.Fatalf("%d bytes of a file were opened", i)
			}
		}
	}
}
