package rowfile

import (
	"fmt"
	"io"
)

// csvLines hands a CSV file to encoding/csv, and makes up for two habits of it:
// it makes one byte of the two of a line break \r\n inside quotes, which is a
// value changed, and it takes rows of any length, which a quote that nobody
// closes makes of the rest of the file.
//
// A break inside quotes goes out as \r\r\n, of which \r\n is left.
type csvLines struct {
	r      io.Reader
	in     [32 << 10]byte
	out    []byte // what is read, from at on
	at     int
	quoted bool
	last   byte
	line   int64 // lines that have ended
	start  int64 // those before the row
	row    int   // bytes of the row
}

// Read implements io.Reader.
func (c *csvLines) Read(p []byte) (int, error) {
	if c.at == len(c.out) {
		n, err := c.r.Read(c.in[:])
		c.out, c.at = c.out[:0], 0
		for _, b := range c.in[:n] {
			if err := c.take(b); err != nil {
				return 0, err
			}
		}
		if n == 0 {
			return 0, err
		}
		if err != nil { // it comes again with the next call
			c.r = failed{err}
		}
	}
	n := copy(p, c.out[c.at:])
	c.at += n
	return n, nil
}

// take adds a byte of the file to what is read.
func (c *csvLines) take(b byte) error {
	if b == '\n' && c.last == '\r' && c.quoted {
		c.out = append(c.out, '\r')
	}
	c.out = append(c.out, b)
	c.last = b
	if c.row++; c.row > maxLineBytes {
		return &Error{Line: c.start + 1, Msg: fmt.Sprintf("the row is longer than %d bytes; is a quote missing?", maxLineBytes)}
	}
	switch b {
	case '"':
		c.quoted = !c.quoted
	case '\n':
		if c.line++; !c.quoted {
			c.start, c.row = c.line, 0
		}
	}
	return nil
}

// failed is a reader at its end.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }
