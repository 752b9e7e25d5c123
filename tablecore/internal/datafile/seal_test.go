package datafile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tableerr"
)

// unsealed takes the seal off the end of a structure.
func unsealed(b []byte) []byte {
	return append(bytes.Clone(b[:len(b)-sealHeaderBytes-sealBytes-2]), 0)
}

// foreign makes a footer look like another writer's.
func foreign(footer []byte) []byte {
	return bytes.Replace(unsealed(footer), []byte("contrail version"), []byte("somebody version"), 1)
}

// TestAlteredFile flips each bit of a file, sets stretches of it to zero and
// cuts it: what is read is right or the damage is told, in whatever part of the
// file it lies.
func TestAlteredFile(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "s", Type: arrow.BinaryTypes.String}, {Name: "t", Type: arrow.PrimitiveTypes.Int64},
		{Name: "v", Type: arrow.PrimitiveTypes.Float64, Nullable: true}, {Name: "w", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	}, nil)
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema,
		strings.NewReader(`[{"s":"a","t":1,"v":1.5,"w":7},{"s":"a","t":2},{"s":"b","t":1,"v":2.5,"w":8},{"s":"b","t":3,"v":3.5}]`))
	if err != nil {
		t.Fatal(err)
	}
	defer batch.Release()
	whole, _ := writeFile(t, schema, WriteOptions{MaxRowsPerRowGroup: 3}, batch)
	want, err := textOf(t, whole, schema)
	if err != nil || want == "" {
		t.Fatalf("read %q, %v", want, err)
	}
	check := func(what string, raw []byte) {
		t.Helper()
		got, err := textOf(t, raw, schema)
		var corrupt *tableerr.Corrupt
		if err == nil && got != want || err != nil && !errors.As(err, &corrupt) {
			t.Fatalf("%s: read %s, %v", what, got, err)
		}
	}
	for i := range whole {
		for bit := range 8 {
			raw := bytes.Clone(whole)
			raw[i] ^= 1 << bit
			check(fmt.Sprintf("bit %d of byte %d", bit, i), raw)
		}
		raw := bytes.Clone(whole)
		clear(raw[i:min(i+16, len(raw))])
		check(fmt.Sprintf("zeros from byte %d", i), raw)
		check(fmt.Sprintf("cut to %d bytes", i), whole[:i])
	}
}

// textOf reads a file row by row, in ranges that are found through its page
// index, and with the bounds of its pages.
func textOf(t *testing.T, raw []byte, schema *arrow.Schema) (string, error) {
	src := newSource(raw)
	footer, err := ParseFooter(t.Context(), src, "x")
	if err != nil {
		return "", err
	}
	file := Open(src, footer, "x", memory.DefaultAllocator)
	var text strings.Builder
	for group := range footer.RowGroups() {
		zones, err := file.PageZones(t.Context(), group, "t", arrow.PrimitiveTypes.Int64)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&text, zones)
	}
	for row := range file.Rows() {
		rows, err := file.Read(t.Context(), ReadRequest{Fields: schema.Fields(), Ranges: []RowRange{{row, row + 1}}})
		if err != nil {
			return "", err
		}
		for err == nil {
			var batch arrow.RecordBatch
			if batch, err = rows.Next(t.Context()); err == nil {
				err = array.RecordToJSON(batch, &text)
			}
		}
		rows.Release()
		if !errors.Is(err, io.EOF) {
			return "", err
		}
	}
	return text.String(), nil
}

// TestCheckLongFooter checks footers of a few hundred bytes and such as take a
// second read, in turns: they share buffers.
func TestCheckLongFooter(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.PrimitiveTypes.Int64}}, nil)
	for _, length := range []int{10, checkGuess, 20, footerGuess, 30} {
		var b bytes.Buffer
		name := strings.Repeat("n", length)
		if _, err := WriteTable(&b, schema, nil, map[string]string{"name": name}, WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		whole := b.Bytes()
		if err := CheckFooter(t.Context(), newSource(whole), "data/x.parquet"); err != nil {
			t.Errorf("%d bytes: %v", length, err)
		}
		if err := CheckFooter(t.Context(), newSource(bytes.Replace(whole, []byte(name), []byte(name[1:]+"m"), 1)), "data/x.parquet"); !isCorrupt(err, "") {
			t.Errorf("%d bytes, altered: %v", length, err)
		}
	}
}

// TestCheckFooter alters and cuts a file of this software and one of another:
// whether its footer is sound is found out without parsing it, too.
func TestCheckFooter(t *testing.T) {
	own := tickFile(t, 100)
	footer, err := readFooter(exactSource{newSource(own)}, int64(len(own)))
	if err != nil {
		t.Fatal(err)
	}
	start, other := len(own)-tailBytes-len(footer), foreign(footer)
	strange := append(bytes.Clone(own[:start]), other...)
	strange = append(binary.LittleEndian.AppendUint32(strange, uint32(len(other))), magic...)
	for name, whole := range map[string][]byte{"own": own, "another's": strange} {
		for i := start - 1; i <= len(whole); i++ { // the last one changes nothing
			altered := bytes.Clone(whole)
			if i < len(whole) {
				altered[i] ^= 0x41
			}
			for what, raw := range map[string][]byte{"altered": altered, "cut": whole[:i]} {
				_, want := ParseFooter(t.Context(), newSource(raw), "data/x.parquet")
				if err := CheckFooter(t.Context(), newSource(raw), "data/x.parquet"); (err == nil) != (want == nil) || err != nil && !isCorrupt(err, "") {
					t.Fatalf("%s file, %s at %d: %v, want %v", name, what, i, err, want)
				}
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := CheckFooter(ctx, newSource(own), "x"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestForeignExtensions reads structures that hold no seal, or another's
// extension in its place.
func TestForeignExtensions(t *testing.T) {
	header := unsealed((&pageHeader{kind: pageData, compressed: 3, uncompressed: 9, values: 5}).append(nil))
	for _, extension := range []string{"", "x", strings.Repeat("y", sealBytes)} {
		b := append(bytes.Clone(header[:len(header)-1]), thriftBinary, 0xFE, 0xFF, 0x03, byte(len(extension)))
		b = append(append(b, extension...), 0)
		if h, n, err := parsePageHeader(b); err != nil || n != len(b) || h.sealed || h.values != 5 {
			t.Errorf("with extension %q: %+v in %d of %d bytes, %v", extension, h, n, len(b), err)
		}
	}
	if h, _, err := parsePageHeader(header); err != nil || h.sealed {
		t.Errorf("without extension: %+v, %v", h, err)
	}
}
