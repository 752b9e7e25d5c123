package rowfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// maxLineBytes bounds a line of JSON.
const maxLineBytes = 64 << 20

// jsonRecord reads the rows of a file with one JSON object a line.
type jsonRecord struct {
	lines  *bufio.Scanner
	number int64
	object map[string]any
	schema *arrow.Schema // nil while types are inferred
	opts   TextOptions
}

func openJSONLines(r io.Reader, schema *arrow.Schema, opts TextOptions) *jsonRecord {
	j := &jsonRecord{lines: bufio.NewScanner(r), schema: schema, opts: opts}
	j.lines.Buffer(make([]byte, 0, 256<<10), maxLineBytes)
	return j
}

func (j *jsonRecord) next() error {
	for j.lines.Scan() {
		j.number++
		if len(bytes.TrimSpace(j.lines.Bytes())) == 0 {
			continue
		}
		v, err := decodeJSON(bytes.NewReader(j.lines.Bytes()))
		if readErr := j.lines.Err(); err != nil && readErr != nil {
			return readErr // the line is only a part
		}
		if err != nil {
			return &Error{Line: j.number, Msg: "no JSON: " + err.Error(), Cause: err}
		}
		object, ok := v.(map[string]any)
		if !ok {
			return &Error{Line: j.number, Msg: fmt.Sprintf("%s where an object of column to value is due", jsonKind(v))}
		}
		j.object = object
		return j.checkNames()
	}
	if err := j.lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = &Error{Line: j.number + 1, Msg: fmt.Sprintf("the line is longer than %d bytes", maxLineBytes), Cause: err}
		}
		return err
	}
	return io.EOF
}

func (j *jsonRecord) checkNames() error {
	if j.schema == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(j.object)) {
		if !j.schema.HasField(name) {
			return &Error{Line: j.number, Column: name, Msg: "the table has no such column; it has " + fieldNames(j.schema)}
		}
	}
	return nil
}

func (j *jsonRecord) line() int64 { return j.number }

func (j *jsonRecord) bytes() int { return len(j.lines.Bytes()) }

func (j *jsonRecord) appendTo(i int, b array.Builder) error {
	return appendJSON(b, j.object[j.schema.Field(i).Name], j.opts.Zone)
}
