package datafile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tableerr"
)

var copySchema = arrow.NewSchema([]arrow.Field{
	{Name: "i", Type: arrow.PrimitiveTypes.Int64},
	{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "l", Type: arrow.ListOf(arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true})), Nullable: true},
	{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
}, nil)

// copyOf writes a file anew with columns from where from says, the given ones
// from batch.
func copyOf(f *File, mem memory.Allocator, schema *arrow.Schema, from []Origin, batch arrow.RecordBatch) ([]byte, Written, error) {
	var out bytes.Buffer
	w, err := NewWriter(&out, schema, WriteOptions{Mem: mem})
	if err != nil {
		return nil, Written{}, err
	}
	o, err := f.Original(context.Background())
	if err != nil {
		return nil, Written{}, err
	}
	for i, group := range f.RowGroups() {
		part := batch.NewSlice(group.FirstRow, group.FirstRow+group.Rows)
		err := w.CopyGroup(context.Background(), o, i, from, []arrow.RecordBatch{part})
		part.Release()
		if err != nil {
			_, _ = w.Close()
			return nil, Written{}, err
		}
	}
	written, err := w.Close()
	return out.Bytes(), written, err
}

// only returns some columns of a batch.
func only(batch arrow.RecordBatch, chosen func(i int) bool) arrow.RecordBatch {
	var fields []arrow.Field
	var columns []arrow.Array
	for i, f := range batch.Schema().Fields() {
		if chosen(i) {
			fields, columns = append(fields, f), append(columns, batch.Column(i))
		}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, batch.NumRows())
}

// TestCopyGroups copies each column of files of all codecs beside new values of
// the others, and reads everything back.
func TestCopyGroups(t *testing.T) {
	for codec := Auto; codec <= Uncompressed; codec++ {
		for at := -1; at < copySchema.NumFields(); at++ {
			t.Run(fmt.Sprint(codec, "/", at), func(t *testing.T) {
				mem := checkedMem(t)
				rng := rand.New(rand.NewPCG(uint64(codec), uint64(at+1)))
				old := randomBatch(rng, mem, copySchema, 700)
				defer old.Release()
				fresh := randomBatch(rng, mem, copySchema, 700)
				defer fresh.Release()
				raw, _ := writeFile(t, copySchema, WriteOptions{Mem: mem, Compression: codec, MaxRowsPerRowGroup: 300}, old)
				f := openFile(t, raw, mem)
				from := make([]Origin, copySchema.NumFields())
				columns := make([]arrow.Array, copySchema.NumFields())
				for i := range from {
					if columns[i] = fresh.Column(i); i != at {
						from[i], columns[i] = Copied, old.Column(i)
					}
				}
				rest := only(fresh, func(i int) bool { return from[i] == Given })
				defer rest.Release()
				again, written, err := copyOf(f, mem, copySchema, from, rest)
				if err != nil {
					t.Fatal(err)
				}
				if written.Rows != 700 || written.RowGroups != 3 || written.Bytes != int64(len(again)) {
					t.Errorf("written %+v", written)
				}
				for i, c := range written.Columns {
					if c.Copied != (from[i] == Copied) || c.Copied && (c.Min != nil || c.HasNaN) {
						t.Errorf("column %d: %+v", i, c)
					}
				}
				copyFile := openFile(t, again, mem)
				got := readAll(t, copyFile, mem, ReadRequest{Fields: copySchema.Fields()})
				defer got.Release()
				want := array.NewRecordBatch(copySchema, columns, 700)
				defer want.Release()
				if !array.RecordEqual(got, want) {
					t.Error("other values came back")
				}
				for g := range f.RowGroups() {
					for i, field := range copySchema.Fields() {
						if from[i] == Copied {
							sameZones(t, f, copyFile, g, field)
						}
					}
				}
			})
		}
	}
}

// sameZones compares what two files say of a column in a row group.
func sameZones(t *testing.T, a, b *File, group int, field arrow.Field) {
	t.Helper()
	x, okX := a.GroupZone(group, field.Name, field.Type)
	y, okY := b.GroupZone(group, field.Name, field.Type)
	if okX != okY || fmt.Sprint(x) != fmt.Sprint(y) {
		t.Errorf("%s: %v became %v", field.Name, x, y)
	}
	p, err := a.PageZones(t.Context(), group, field.Name, field.Type)
	q, err2 := b.PageZones(t.Context(), group, field.Name, field.Type)
	if err != nil || err2 != nil || fmt.Sprint(p) != fmt.Sprint(q) {
		t.Errorf("%s: pages %v became %v, %v, %v", field.Name, p, q, err, err2)
	}
}

// TestCanCopy tells columns of the same form from others.
func TestCanCopy(t *testing.T) {
	mem := checkedMem(t)
	batch := randomBatch(rand.New(rand.NewPCG(1, 1)), mem, copySchema, 10)
	defer batch.Release()
	raw, _ := writeFile(t, copySchema, WriteOptions{Mem: mem}, batch)
	f := openFile(t, raw, mem)
	o, err := f.Original(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fields := []arrow.Field{copySchema.Field(3), {Name: "i", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "f", Type: arrow.PrimitiveTypes.Float32, Nullable: true},
		{Name: "new", Type: arrow.PrimitiveTypes.Int8, Nullable: true}, {Name: "s", Type: arrow.BinaryTypes.Binary, Nullable: true}, copySchema.Field(4)}
	w, err := NewWriter(&bytes.Buffer{}, arrow.NewSchema(fields, nil), WriteOptions{Mem: mem})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, false, false, false, true} {
		if got := w.CanCopy(o, i); got != want {
			t.Errorf("column %q: %t", fields[i].Name, got)
		}
	}
	f.footer.zones.own = false
	if o, err := f.Original(t.Context()); o != nil || err != nil {
		t.Errorf("a file of another writer: %v, %v", o, err)
	}
}

// TestCopyRefuses copies from damaged files and gives wrong batches.
func TestCopyRefuses(t *testing.T) {
	mem := checkedMem(t)
	batch := randomBatch(rand.New(rand.NewPCG(1, 1)), mem, copySchema, 400)
	defer batch.Release()
	raw, _ := writeFile(t, copySchema, WriteOptions{Mem: mem}, batch)
	all := []Origin{Copied, Copied, Copied, Copied, Copied}
	none := only(batch, func(int) bool { return false })
	defer none.Release()
	f := openFile(t, raw, mem)
	end := f.footer.chunks[len(f.footer.chunks)-1].end
	for at := int64(len(magic)); at < end; at += 97 {
		broken := bytes.Clone(raw)
		broken[at] ^= 4
		_, _, err := copyOf(openFile(t, broken, mem), mem, copySchema, all, none)
		var corrupt *tableerr.Corrupt
		if !errors.As(err, &corrupt) {
			t.Errorf("byte %d: %v", at, err)
		}
	}
	if _, _, err := copyOf(f, mem, copySchema, []Origin{Copied, Copied, Given, Copied, Copied}, none); err == nil {
		t.Error("a column without values was written")
	}
	short := only(batch, func(i int) bool { return i == 1 })
	defer short.Release()
	if _, _, err := copyOf(f, mem, copySchema, []Origin{Copied, Copied, Given, Copied, Copied}, short); err == nil {
		t.Error("texts were written as numbers")
	}
}
