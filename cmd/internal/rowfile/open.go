package rowfile

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Source is what can be read at any place.
type Source interface {
	io.Reader
	io.ReaderAt
	io.Seeker
}

// OpenOptions say how a file is read.
type OpenOptions struct {
	Format Format
	// Table is the schema of the table that the rows are for. Text files need
	// it, others do not look at it.
	Table     *arrow.Schema
	Text      TextOptions
	Allocator memory.Allocator // default Go's heap
}

// NeedsSource tells whether a format can be read from a Source only, and not
// from a stream that goes by once.
func (f Format) NeedsSource() bool { return f == Parquet || f == Arrow }

// Open returns a reader of r's rows. r must be a Source for formats that
// NeedsSource. The caller closes the reader, which does not close r.
func Open(r io.Reader, o OpenOptions) (Reader, error) {
	if o.Allocator == nil {
		o.Allocator = memory.NewGoAllocator()
	}
	o.Allocator = bounded{o.Allocator, maxAllocation}
	switch o.Format {
	case CSV:
		return openCSVReader(r, o)
	case JSONLines:
		fields := make([]arrow.Field, o.Table.NumFields())
		for i, f := range o.Table.Fields() {
			fields[i] = plainField(f)
		}
		schema := arrow.NewSchema(fields, nil)
		return newTextReader(schema, openJSONLines(r, schema, o.Text), o.Allocator), nil
	case Arrow, ArrowStream:
		return openArrow(r, o.Allocator)
	case Parquet:
		source, ok := r.(Source)
		if !ok {
			return nil, fmt.Errorf("a %s file cannot be read from a stream", o.Format)
		}
		return openParquet(source, o.Allocator)
	}
	return nil, fmt.Errorf("%q is no format", o.Format)
}

func openCSVReader(r io.Reader, o OpenOptions) (Reader, error) {
	rows, err := openCSV(r, o.Text)
	if err != nil {
		return nil, err
	}
	schema, err := columnsOf(o.Table, rows.header)
	if err != nil {
		return nil, err
	}
	return newTextReader(schema, rows, o.Allocator), nil
}

// maxAllocation bounds one allocation: a damaged file can ask for any number of
// bytes.
const maxAllocation = 2 << 30

// bounded is an allocator that panics where more than limit bytes are asked for
// at once. Decoders of Arrow have no other way to fail; recovered turns it into
// an error.
type bounded struct {
	memory.Allocator
	limit int
}

func (b bounded) Allocate(size int) []byte {
	b.check(size)
	return b.Allocator.Allocate(size)
}

func (b bounded) Reallocate(size int, old []byte) []byte {
	b.check(size)
	return b.Allocator.Reallocate(size, old)
}

func (b bounded) check(size int) {
	if size > b.limit {
		panic(fmt.Sprintf("a part of it claims to have %d bytes", size))
	}
}

// What Arrow IPC files and streams begin with.
const (
	arrowMagic  = "ARROW1"
	streamMagic = "\xff\xff\xff\xff"
)

// openArrow tells file and stream apart by their first bytes.
func openArrow(r io.Reader, mem memory.Allocator) (Reader, error) {
	var head [len(arrowMagic)]byte
	source, seekable := r.(Source)
	if seekable {
		if _, err := source.ReadAt(head[:], 0); err != nil && err != io.EOF {
			return nil, err
		}
	} else {
		buffered := bufio.NewReaderSize(r, 256<<10)
		begin, err := buffered.Peek(len(head))
		if err != nil && err != io.EOF {
			return nil, err
		}
		copy(head[:], begin)
		r = buffered
	}
	switch {
	case strings.HasPrefix(string(head[:]), streamMagic):
		return openArrowStream(r, mem)
	case string(head[:]) != arrowMagic:
		return nil, &Error{Msg: "this is neither an Arrow IPC file nor an Arrow IPC stream"}
	case !seekable:
		return nil, &Error{Msg: "this is an Arrow IPC file, which cannot be read from a stream"}
	}
	return openArrowFile(source, mem)
}
