package convert

import (
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// maxSmallText is the most text that 32-bit offsets address.
const maxSmallText = 1<<31 - 1

// Batch is one aligned batch of a stream.
type Batch struct {
	Rows int
	// FirstRow is the number of the first row over the whole stream.
	FirstRow int64
	// Columns has one array for each stored column, nil where the stream has
	// none. It has AlignedType of the declared type, except that strings and
	// binaries keep the layout they came in when it has offsets (plain, large, or
	// a dictionary of these) and views become plain: nobody has to copy text
	// twice.
	Columns []arrow.Array
}

// Release frees the batch's references.
func (b *Batch) Release() {
	for _, c := range b.Columns {
		if c != nil {
			c.Release()
		}
	}
	b.Columns = nil
}

// Align checks the rows of the next batch of the stream and widens its columns.
// It borrows batch; the result may share its buffers and is released by the
// caller. The first offending row is reported: null in a key column as
// *tableerr.NullKey, null in another column that takes none as
// *tableerr.SchemaMismatch, text that is not UTF-8 and times that cannot be
// stored as *tableerr.Invalid. A batch of other columns than the stream's is a
// *tableerr.SchemaMismatch, one whose views and dictionaries unfold to more than
// the limit *tableerr.MessageTooLarge.
func (a *Aligner) Align(mem memory.Allocator, batch arrow.RecordBatch) (*Batch, error) {
	if err := a.checkBatch(batch); err != nil {
		return nil, err
	}
	mem = &meter{Allocator: mem, limit: a.unfolded, left: a.unfolded}
	out := &Batch{Rows: int(batch.NumRows()), FirstRow: a.rows, Columns: make([]arrow.Array, len(a.columns))}
	for i, c := range a.columns {
		if c.source < 0 {
			continue
		}
		arr, err := a.sound(mem, batch.Column(c.source), c)
		if err != nil {
			out.Release()
			return nil, nameColumn(err, c.field.Name)
		}
		out.Columns[i] = arr
	}
	a.widenAll(mem, out)
	err := a.checkRows(out.Columns, out.Rows)
	if err == nil {
		err = a.settleAll(mem, out)
	}
	if err != nil {
		out.Release()
		return nil, err
	}
	a.rows += batch.NumRows()
	return out, nil
}

// Stored returns the i-th column of an aligned batch in its storage type, to be
// released by the caller. A dictionary that unfolds to more than the limit is
// *tableerr.MessageTooLarge; the other errors are those of ToStorage.
func (a *Aligner) Stored(mem memory.Allocator, b *Batch, i int) (arrow.Array, error) {
	arr := b.Columns[i]
	if !staysDeclared(a.columns[i].field.Type) {
		arr.Retain() // Align has settled it
		return arr, nil
	}
	out, err := ToStorage(&meter{Allocator: mem, limit: a.unfolded, left: a.unfolded}, arr)
	if err != nil {
		return nil, nameColumn(err, a.columns[i].field.Name)
	}
	return out, nil
}

// widenAll brings number columns to their declared width.
func (a *Aligner) widenAll(mem memory.Allocator, b *Batch) {
	for i, c := range a.columns {
		arr := b.Columns[i]
		if arr == nil || widthRank[c.field.Type.ID()].family == 0 || arr.DataType().ID() == c.field.Type.ID() {
			continue
		}
		b.Columns[i] = widen(mem, arr, c.field.Type)
		arr.Release()
	}
}

// sound is the function for a column; dictionaries other than those of texts
// become their values.
func (a *Aligner) sound(mem memory.Allocator, arr arrow.Array, c column) (arrow.Array, error) {
	out, err := sound(mem, arr)
	if err != nil {
		return nil, err
	}
	dict, ok := out.(*array.Dictionary)
	if !ok || isText(c.field.Type) || isTextDictionary(c.field.Type) {
		return out, nil
	}
	defer out.Release()
	return decoded(mem, dict)
}

// settleAll brings the columns that do not stay as declared to their storage
// types.
func (a *Aligner) settleAll(mem memory.Allocator, b *Batch) error {
	for i, c := range a.columns {
		arr := b.Columns[i]
		if arr == nil || staysDeclared(c.field.Type) {
			continue
		}
		out, err := settle(mem, arr, tabledef.StorageType(c.field.Type))
		if err != nil {
			return nameColumn(err, c.field.Name)
		}
		b.Columns[i] = out
		arr.Release()
	}
	return nil
}

// checkBatch makes sure that the batch has the stream's columns.
func (a *Aligner) checkBatch(batch arrow.RecordBatch) error {
	fields := a.stream.Fields()
	if int(batch.NumCols()) != len(fields) {
		return &tableerr.SchemaMismatch{Column: "", Msg: "a batch has another number of columns than its stream"}
	}
	for i, f := range fields {
		arr := batch.Column(i)
		if arrow.TypeEqual(arr.DataType(), f.Type) && int64(arr.Len()) == batch.NumRows() {
			continue
		}
		want, got := tabledef.TypeName(f.Type), tabledef.TypeName(arr.DataType())
		return &tableerr.SchemaMismatch{Column: f.Name, Expected: want, Found: got, Msg: "a batch has another schema than its stream: column " + quote(f.Name)}
	}
	return nil
}

// nameColumn completes an error about an array with the column's name.
func nameColumn(err error, name string) error {
	var invalid *tableerr.Invalid
	if errors.As(err, &invalid) && invalid.Column == "" {
		invalid.Column = name
		invalid.Msg = "column " + quote(name) + ": " + invalid.Msg
	}
	return err
}
