package main

import (
	"bufio"
	"io"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/mattn/go-runewidth"

	"contrail/cmd/internal/rowfile"
)

// sampleRows decide the widths of a table's columns. Later rows that need more
// stand out, so that a table of any length needs little memory.
const sampleRows = 1000

// maxCell is the widest cell of a table; the rest of a longer text is left out.
const maxCell = 80

// textTable writes rows for people: columns in line, numbers to the right.
type textTable struct {
	w      *bufio.Writer
	header []string
	right  []bool
	held   [][]string
	widths []int // nil until they are settled
	shows  []int // of a batch's columns
}

func newTextTable(w io.Writer, header []string, right []bool) *textTable {
	return &textTable{w: bufio.NewWriter(w), header: header, right: right}
}

// newBatchTable is a table for batches of a schema, without some columns.
func newBatchTable(w io.Writer, schema *arrow.Schema, hide ...string) *textTable {
	t := newTextTable(w, nil, nil)
	for i, f := range schema.Fields() {
		if slices.Contains(hide, f.Name) {
			continue
		}
		t.shows = append(t.shows, i)
		t.header = append(t.header, f.Name)
		id := f.Type.ID()
		t.right = append(t.right, arrow.IsInteger(id) || arrow.IsFloating(id) || arrow.IsDecimal(id))
	}
	return t
}

// Write implements rowfile.Writer.
func (t *textTable) Write(batch arrow.RecordBatch) error {
	for row := range int(batch.NumRows()) {
		cells := make([]string, len(t.shows))
		for i, at := range t.shows {
			column := batch.Column(at)
			if column.IsNull(row) {
				cells[i] = "-"
			} else {
				cells[i] = string(rowfile.AppendCell(nil, column, row))
			}
		}
		if err := t.add(cells); err != nil {
			return err
		}
	}
	return nil
}

// add takes a row of cells, which it keeps.
func (t *textTable) add(cells []string) error {
	for i := range cells {
		cells[i] = shown(cells[i])
	}
	if t.widths != nil {
		return t.line(cells)
	}
	if t.held = append(t.held, cells); len(t.held) < sampleRows {
		return nil
	}
	return t.settle()
}

// settle fixes the widths and writes what was held back.
func (t *textTable) settle() error {
	t.widths = make([]int, len(t.header))
	for _, cells := range append(t.held, t.header) {
		for i, cell := range cells {
			t.widths[i] = max(t.widths[i], runewidth.StringWidth(cell))
		}
	}
	held := t.held
	if strings.Join(t.header, "") != "" {
		held = append([][]string{t.header}, held...)
	}
	t.held = nil
	for _, cells := range held {
		if err := t.line(cells); err != nil {
			return err
		}
	}
	return nil
}

func (t *textTable) line(cells []string) error {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteString("  ")
		}
		pad := strings.Repeat(" ", max(0, t.widths[i]-runewidth.StringWidth(cell)))
		if t.right[i] {
			b.WriteString(pad + cell)
		} else {
			b.WriteString(cell + pad)
		}
	}
	_, err := t.w.WriteString(strings.TrimRight(b.String(), " ") + "\n")
	return err
}

// Close implements rowfile.Writer.
func (t *textTable) Close() error {
	if t.widths == nil {
		if err := t.settle(); err != nil {
			return err
		}
	}
	return t.w.Flush()
}

// shown is a text as it may stand in a table: printable, and cut where it is too
// long.
func shown(text string) string { return runewidth.Truncate(printable(text), maxCell, "…") }

// printable is a text as it may go to a terminal: one line without control
// characters, which could move its cursor.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u202e' {
			return '\uFFFD'
		}
		return r
	}, text)
}
