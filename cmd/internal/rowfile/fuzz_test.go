package rowfile

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

var locationUTC = time.UTC

// FuzzText reads any bytes as CSV and JSON lines of every type: they are rows
// that come back the same, or an error, and never a panic.
func FuzzText(f *testing.F) {
	f.Add([]byte(everyJSON), true)
	f.Add([]byte("a,k,B\n1,NaN,2013-01-01T00:00:00Z\n"), false)
	f.Add([]byte("H,K,L\n[1],\"{\"\"a\"\":1}\",\"[[\"\"a\"\",1]]\"\n"), false)
	f.Fuzz(func(t *testing.T, data []byte, lines bool) {
		format := CSV
		if lines {
			format = JSONLines
		}
		schema := schemaOf(t, every...)
		options := OpenOptions{Format: format, Table: schema, Text: TextOptions{Null: "NULL", Zone: locationUTC}}
		if readAll(bytes.NewReader(data), options) != nil {
			return
		}
		in, err := Open(bytes.NewReader(data), options)
		if err != nil {
			t.Fatal(err)
		}
		schema = in.Schema()
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		mem := memory.NewGoAllocator()
		if format == CSV {
			data = transcodeWith(t, options, JSONLines, data)
		}
		first := transcode(t, mem, schema, JSONLines, JSONLines, data)
		if second := transcode(t, mem, schema, JSONLines, JSONLines, first); !bytes.Equal(first, second) {
			t.Errorf("%s\nbecomes\n%s", first, second)
		}
	})
}

// transcodeWith is transcode with the options of a reader.
func transcodeWith(t *testing.T, o OpenOptions, to Format, data []byte) []byte {
	t.Helper()
	in, err := Open(bytes.NewReader(data), o)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := Create(&out, in.Schema(), CreateOptions{Format: to})
	for err == nil {
		batch, readErr := in.Next(t.Context())
		if readErr != nil {
			break
		}
		err = w.Write(batch)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// FuzzInfer infers a schema of any bytes: the rows fit it, or there is none.
func FuzzInfer(f *testing.F) {
	f.Add([]byte("a,b\n1,2013-01-01\n"), false)
	f.Add([]byte(`{"a":1,"b":"2013-01-01T00:00:00Z"}`), true)
	f.Fuzz(func(t *testing.T, data []byte, lines bool) {
		format := CSV
		if lines {
			format = JSONLines
		}
		schema, err := Infer(bytes.NewReader(data), format, TextOptions{})
		if err != nil {
			return
		}
		if err := readAll(bytes.NewReader(data), OpenOptions{Format: format, Table: schema}); err != nil {
			t.Errorf("%v: %v", schema, err)
		}
	})
}

// FuzzBinary reads any bytes as the formats with types: rows or an error, and
// never a panic.
func FuzzBinary(f *testing.F) {
	for i, format := range []Format{Parquet, Arrow, ArrowStream} {
		var out bytes.Buffer
		schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}}, nil)
		w, err := Create(&out, schema, CreateOptions{Format: format})
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			f.Fatal(err)
		}
		f.Add(out.Bytes(), uint8(i))
		f.Add([]byte(arrowMagic+strings.Repeat("\x00", 20)+arrowMagic), uint8(i))
		f.Add([]byte("PAR1"+string(format)+"PAR1"), uint8(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		format := []Format{Parquet, Arrow, ArrowStream}[which%3]
		in, err := Open(bytes.NewReader(data), OpenOptions{Format: format, Allocator: bounded{memory.NewGoAllocator(), 64 << 20}})
		if err != nil {
			return
		}
		for err == nil {
			_, err = in.Next(t.Context())
		}
		_ = in.Close() // of a damaged file it may say so
	})
}
