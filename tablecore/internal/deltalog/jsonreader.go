package deltalog

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth limits the nesting of JSON values, those that are skipped included.
const maxDepth = 512

var errEnd = errors.New("unexpected end of JSON")

// jsonReader is a pull parser over one JSON document (RFC 8259). It exists
// because encoding/json matches field names without regard to case, so that
// `{"PATH": …}` would set a path, and because the log's hot path wants one
// pass without intermediate maps.
//
// Each method reads one value at the current position. The input must be valid
// UTF-8; the caller checks that once for the whole document.
type jsonReader struct {
	data  []byte
	pos   int
	depth int
}

func (r *jsonReader) errorf(format string, args ...any) error {
	return fmt.Errorf("at byte %d: %s", r.pos, fmt.Sprintf(format, args...))
}

// peek skips white space and returns the next byte without consuming it, or 0
// at the end.
func (r *jsonReader) peek() byte {
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\r', '\n':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

// end reports whether only white space is left, as an error if not.
func (r *jsonReader) end() error {
	if r.peek(); r.pos < len(r.data) {
		return r.errorf("data after the JSON value")
	}
	return nil
}

func (r *jsonReader) expect(c byte) error {
	if got := r.peek(); got != c {
		if r.pos >= len(r.data) {
			return errEnd
		}
		return r.errorf("%q where %q is expected", got, c)
	}
	r.pos++
	return nil
}

func (r *jsonReader) literal(text string) bool {
	if len(r.data)-r.pos < len(text) || string(r.data[r.pos:r.pos+len(text)]) != text {
		return false
	}
	r.pos += len(text)
	return true
}

// null consumes a null if one comes next.
func (r *jsonReader) null() bool { return r.peek() == 'n' && r.literal("null") }

// object calls member for each member of an object. The key is valid during
// the call only; member must read exactly the value. A null counts as an
// object without members.
func (r *jsonReader) object(member func(key []byte) error) error {
	if r.null() {
		return nil
	}
	if err := r.open('{'); err != nil {
		return err
	}
	if r.peek() == '}' {
		return r.shut()
	}
	for {
		key, err := r.text()
		if err != nil {
			return err
		}
		if err := r.expect(':'); err != nil {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
		more, err := r.more('}')
		if err != nil || !more {
			return err
		}
	}
}

// array calls element before each element of an array; element must read
// exactly one value. A null counts as an empty array.
func (r *jsonReader) array(element func() error) error {
	if r.null() {
		return nil
	}
	if err := r.open('['); err != nil {
		return err
	}
	if r.peek() == ']' {
		return r.shut()
	}
	for {
		if err := element(); err != nil {
			return err
		}
		more, err := r.more(']')
		if err != nil || !more {
			return err
		}
	}
}

func (r *jsonReader) open(c byte) error {
	if err := r.expect(c); err != nil {
		return err
	}
	if r.depth++; r.depth > maxDepth {
		return r.errorf("nested deeper than %d", maxDepth)
	}
	return nil
}

func (r *jsonReader) shut() error {
	r.pos++
	r.depth--
	return nil
}

// more consumes a comma (true) or the closing bracket (false).
func (r *jsonReader) more(closing byte) (bool, error) {
	switch r.peek() {
	case ',':
		r.pos++
		return true, nil
	case closing:
		return false, r.shut()
	}
	if r.pos >= len(r.data) {
		return false, errEnd
	}
	return false, r.errorf("%q where ',' or %q is expected", r.data[r.pos], closing)
}

// text reads a string. The result points into the input where the string has
// no escapes.
func (r *jsonReader) text() ([]byte, error) {
	if err := r.expect('"'); err != nil {
		return nil, err
	}
	start := r.pos
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; {
		case c == '"':
			r.pos++
			return r.data[start : r.pos-1], nil
		case c == '\\':
			return r.escaped(start)
		case c < 0x20:
			return nil, r.errorf("control character in a string")
		}
		r.pos++
	}
	return nil, errEnd
}

// escaped reads on after the first backslash of a string that began at start.
func (r *jsonReader) escaped(start int) ([]byte, error) {
	out := append(make([]byte, 0, 2*(r.pos-start)+16), r.data[start:r.pos]...)
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; {
		case c == '"':
			r.pos++
			return out, nil
		case c == '\\':
			var err error
			if out, err = r.escape(out); err != nil {
				return nil, err
			}
		case c < 0x20:
			return nil, r.errorf("control character in a string")
		default:
			out = append(out, c)
			r.pos++
		}
	}
	return nil, errEnd
}

// escape reads one escape sequence. A surrogate without its partner becomes
// U+FFFD.
func (r *jsonReader) escape(out []byte) ([]byte, error) {
	if r.pos+1 >= len(r.data) {
		return nil, errEnd
	}
	c := r.data[r.pos+1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return r.unicode(out)
	default:
		return nil, r.errorf("unknown escape \\%c", c)
	}
	r.pos += 2
	return append(out, c), nil
}

func (r *jsonReader) unicode(out []byte) ([]byte, error) {
	first, err := r.codeUnit()
	if err != nil {
		return nil, err
	}
	if !utf16.IsSurrogate(first) {
		return utf8.AppendRune(out, first), nil
	}
	if r.pos+1 < len(r.data) && r.data[r.pos] == '\\' && r.data[r.pos+1] == 'u' {
		at := r.pos
		second, err := r.codeUnit()
		if err != nil {
			return nil, err
		}
		if pair := utf16.DecodeRune(first, second); pair != utf8.RuneError {
			return utf8.AppendRune(out, pair), nil
		}
		r.pos = at
	}
	return utf8.AppendRune(out, utf8.RuneError), nil
}

// codeUnit reads \uXXXX.
func (r *jsonReader) codeUnit() (rune, error) {
	if r.pos+6 > len(r.data) {
		return 0, errEnd
	}
	var v rune
	for _, c := range r.data[r.pos+2 : r.pos+6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, r.errorf("%q in a \\u escape", c)
		}
		v = v<<4 | rune(c)
	}
	r.pos += 6
	return v, nil
}

// str reads a string; null is the empty one.
func (r *jsonReader) str() (string, error) {
	if r.null() {
		return "", nil
	}
	b, err := r.text()
	return string(b), err
}

// boolean reads true or false; null is false.
func (r *jsonReader) boolean() (bool, error) {
	switch {
	case r.peek() == 't' && r.literal("true"):
		return true, nil
	case r.peek() == 'f' && r.literal("false"), r.null():
		return false, nil
	}
	return false, r.errorf("not a boolean")
}

// integer reads a whole number of 64 bits, exactly; null is nil.
func (r *jsonReader) integer() (*int64, error) {
	if r.null() {
		return nil, nil
	}
	raw, err := r.number()
	if err != nil {
		return nil, err
	}
	v, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return nil, r.errorf("%q is not a whole number of 64 bits", clip(raw))
	}
	return &v, nil
}

// whole is integer with null as 0.
func (r *jsonReader) whole() (int64, error) {
	v, err := r.integer()
	if v == nil {
		return 0, err
	}
	return *v, nil
}

// number reads a number's text after RFC 8259's grammar.
func (r *jsonReader) number() ([]byte, error) {
	c := r.peek()
	start := r.pos
	if c == '-' {
		r.pos++
	}
	if r.pos < len(r.data) && r.data[r.pos] == '0' {
		r.pos++
	} else if !r.digits() {
		return nil, r.errorf("not a number")
	}
	if r.pos < len(r.data) && r.data[r.pos] == '.' {
		if r.pos++; !r.digits() {
			return nil, r.errorf("a number ends in its point")
		}
	}
	if r.pos < len(r.data) && (r.data[r.pos] == 'e' || r.data[r.pos] == 'E') {
		r.pos++
		if r.pos < len(r.data) && (r.data[r.pos] == '+' || r.data[r.pos] == '-') {
			r.pos++
		}
		if !r.digits() {
			return nil, r.errorf("a number's exponent has no digits")
		}
	}
	return r.data[start:r.pos], nil
}

func (r *jsonReader) digits() bool {
	start := r.pos
	for r.pos < len(r.data) && r.data[r.pos] >= '0' && r.data[r.pos] <= '9' {
		r.pos++
	}
	return r.pos > start
}

// raw reads any value and returns its text, which points into the input.
func (r *jsonReader) raw() ([]byte, error) {
	r.peek()
	start := r.pos
	err := r.skip()
	return r.data[start:r.pos], err
}

// skip reads any value.
func (r *jsonReader) skip() error {
	var err error
	switch c := r.peek(); {
	case c == '{':
		err = r.object(func([]byte) error { return r.skip() })
	case c == '[':
		err = r.array(r.skip)
	case c == '"':
		_, err = r.text()
	case c == 't' && r.literal("true"), c == 'f' && r.literal("false"), c == 'n' && r.literal("null"):
	case c == 0 && r.pos >= len(r.data):
		err = errEnd
	default:
		_, err = r.number()
	}
	return err
}

// clip shortens text for a message.
func clip(b []byte) string {
	const most = 64
	if len(b) <= most {
		return string(b)
	}
	return string(b[:most]) + "…"
}
