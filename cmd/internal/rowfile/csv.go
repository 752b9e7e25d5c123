package rowfile

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// csvRecord reads the rows of a CSV file, whose first row names the columns.
type csvRecord struct {
	reader *csv.Reader
	header []string
	cells  []string
	opts   TextOptions
}

const byteOrderMark = "\uFEFF"

// openCSV reads the header.
func openCSV(r io.Reader, opts TextOptions) (*csvRecord, error) {
	buffered := bufio.NewReaderSize(r, 256<<10)
	if mark, err := buffered.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		if _, err := buffered.Discard(len(mark)); err != nil {
			return nil, err
		}
	}
	c := &csvRecord{reader: csv.NewReader(&csvLines{r: buffered}), opts: opts}
	c.reader.ReuseRecord = true
	if opts.Comma != 0 {
		c.reader.Comma = opts.Comma
	}
	if err := c.next(); err != nil {
		if err == io.EOF {
			err = &Error{Msg: "the file is empty; its first line names the columns"}
		}
		return nil, err
	}
	c.header = append([]string{}, c.cells...)
	for i, name := range c.header {
		if name == "" {
			return nil, &Error{Line: 1, Msg: "the first line names the columns, and one of the names is empty"}
		}
		for _, earlier := range c.header[:i] {
			if earlier == name {
				return nil, &Error{Line: 1, Column: name, Msg: "the file names it twice"}
			}
		}
	}
	return c, nil
}

func (c *csvRecord) next() error {
	cells, err := c.reader.Read()
	c.cells = cells
	var at *csv.ParseError
	if errors.As(err, &at) {
		msg := at.Err.Error()
		if errors.Is(err, csv.ErrFieldCount) {
			msg = "the line has another number of cells than the first line"
		}
		return &Error{Line: int64(at.StartLine), Msg: msg, Cause: err}
	}
	return err
}

func (c *csvRecord) line() int64 {
	line, _ := c.reader.FieldPos(0)
	return int64(line)
}

func (c *csvRecord) bytes() int {
	n := 0
	for _, cell := range c.cells {
		n += len(cell) + 1
	}
	return n
}

func (c *csvRecord) appendTo(i int, b array.Builder) error {
	cell := c.cells[i]
	if cell == c.opts.Null {
		b.AppendNull()
		return nil
	}
	if !arrow.IsNested(b.Type().ID()) {
		return appendText(b, cell, c.opts.Zone)
	}
	v, err := decodeJSON(strings.NewReader(cell))
	if err != nil {
		return errors.New("the value of a nested type is due as JSON: " + err.Error())
	}
	return appendJSON(b, v, c.opts.Zone)
}

// decodeJSON reads exactly one JSON value.
func decodeJSON(r io.Reader) (any, error) {
	d := json.NewDecoder(r)
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more than one value")
	}
	return v, nil
}
