package descriptors

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"contrail/tablecore/tableerr"
)

// Bounds of a request.
const (
	// MaxRequestBytes is the largest descriptor, ticket or action body. A
	// FlightInfo echoes its descriptor and carries tickets of about the same
	// size, and Go and Rust clients refuse 4 MiB.
	MaxRequestBytes = 4 << 20
	// MaxDepth is the deepest nesting of arrays and objects in a request.
	MaxDepth = 16
	// maxNumberBytes bounds a number's text: nothing that a column holds needs
	// more, and parsing exact numbers costs more than linear time.
	maxNumberBytes = 512
	// maxExponentDigits bounds a number's exponent, so that exact arithmetic on
	// 1e999999999 can not be asked for.
	maxExponentDigits = 4
	// maxPathKeyBytes is where a key is cut in an error's path.
	maxPathKeyBytes = 64
)

// fault is what is wrong with a request and where. The path is relative to
// the value that was looked at; callers put their own step before it. The
// message is a sentence whose subject is the path.
type fault struct {
	path  string
	msg   string
	cause error
}

func faultf(format string, args ...any) *fault {
	return &fault{msg: fmt.Sprintf(format, args...)}
}

// inKey puts an object's key before the path.
func (f *fault) inKey(key string) *fault {
	step, plain := key, isPlainKey(key)
	if !plain {
		step = "[" + string(appendString(nil, cutRunes(key, maxPathKeyBytes))) + "]"
	}
	switch {
	case f.path == "" || f.path[0] == '[':
		f.path = step + f.path
	default:
		f.path = step + "." + f.path
	}
	return f
}

// inIndex puts an array's index before the path.
func (f *fault) inIndex(i int) *fault {
	step := "[" + strconv.Itoa(i) + "]"
	if f.path == "" || f.path[0] == '[' {
		f.path = step + f.path
	} else {
		f.path = step + "." + f.path
	}
	return f
}

// invalid turns the fault into the error of a whole request. root names the
// request itself where no field of it is to blame.
func (f *fault) invalid(root string) *tableerr.Invalid {
	field := f.path
	if field == "" {
		field = root
	}
	return &tableerr.Invalid{Field: field, Msg: field + " " + f.msg, Cause: f.cause}
}

// isPlainKey tells whether a key may stand in a path without quotes.
func isPlainKey(key string) bool {
	if key == "" || len(key) > maxPathKeyBytes {
		return false
	}
	for i := 0; i < len(key); i++ {
		c := key[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// checkSyntax reads the whole body once and refuses everything that is not one
// well-formed JSON value: the readers behind it then walk the bytes without
// looking for errors of form again.
func checkSyntax(body []byte) *fault {
	if len(body) > MaxRequestBytes {
		return faultf("has %d bytes, more than the %d that a request may have", len(body), MaxRequestBytes)
	}
	if !utf8.Valid(body) {
		return faultf("is not valid UTF-8")
	}
	s := scanner{data: body}
	s.blanks()
	if s.pos == len(body) {
		return faultf("is empty where a JSON object is due")
	}
	if f := s.value(0); f != nil {
		return f
	}
	s.blanks()
	if s.pos != len(body) {
		return faultf("has trailing bytes after the JSON value, at byte %d", s.pos)
	}
	return nil
}

// scanner checks JSON by recursive descent; MaxDepth bounds the recursion.
type scanner struct {
	data []byte
	pos  int
}

func (s *scanner) blanks() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end (a NUL byte is no JSON anyway).
func (s *scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

// malformed reports that the bytes at the position are no JSON.
func (s *scanner) malformed(due string) *fault {
	if s.pos >= len(s.data) {
		return faultf("is malformed JSON: it ends at byte %d where %s is due", s.pos, due)
	}
	r, _ := utf8.DecodeRune(s.data[s.pos:])
	return faultf("is malformed JSON: %q stands at byte %d where %s is due", r, s.pos, due)
}

func (s *scanner) value(depth int) *fault {
	switch c := s.peek(); {
	case c == '{':
		return s.object(depth + 1)
	case c == '[':
		return s.array(depth + 1)
	case c == '"':
		_, f := s.text()
		return f
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(s.data[s.pos:], []byte(word)) {
			s.pos += len(word)
			return nil
		}
	}
	return s.malformed("a value")
}

func (s *scanner) object(depth int) *fault {
	if depth > MaxDepth {
		return faultf("is nested more than %d deep", MaxDepth)
	}
	s.pos++
	s.blanks()
	if s.peek() == '}' {
		s.pos++
		return nil
	}
	var keys keySet
	for {
		if s.peek() != '"' {
			return s.malformed("a key")
		}
		quoted, f := s.text()
		if f != nil {
			return f
		}
		key := string(quoted)
		if !keys.add(key) {
			return faultf("is given twice").inKey(key)
		}
		s.blanks()
		if s.peek() != ':' {
			return s.malformed("a colon").inKey(key)
		}
		s.pos++
		s.blanks()
		if f := s.value(depth); f != nil {
			return f.inKey(key)
		}
		s.blanks()
		switch s.peek() {
		case ',':
			s.pos++
			s.blanks()
		case '}':
			s.pos++
			return nil
		default:
			return s.malformed("a comma or the end of the object")
		}
	}
}

func (s *scanner) array(depth int) *fault {
	if depth > MaxDepth {
		return faultf("is nested more than %d deep", MaxDepth)
	}
	s.pos++
	s.blanks()
	if s.peek() == ']' {
		s.pos++
		return nil
	}
	for i := 0; ; i++ {
		if f := s.value(depth); f != nil {
			return f.inIndex(i)
		}
		s.blanks()
		switch s.peek() {
		case ',':
			s.pos++
			s.blanks()
		case ']':
			s.pos++
			return nil
		default:
			return s.malformed("a comma or the end of the array")
		}
	}
}

// number checks the grammar of RFC 8259, section 6, and our bounds.
func (s *scanner) number() *fault {
	start := s.pos
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if s.digits() == 0 {
		return s.malformed("a digit")
	}
	if s.peek() == '.' {
		s.pos++
		if s.digits() == 0 {
			return s.malformed("a digit")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		switch n := s.digits(); {
		case n == 0:
			return s.malformed("a digit")
		case n > maxExponentDigits:
			return faultf("is a number with an exponent of more than %d digits", maxExponentDigits)
		}
	}
	if n := s.pos - start; n > maxNumberBytes {
		return faultf("is a number of %d characters, more than %d", n, maxNumberBytes)
	}
	return nil
}

// digits passes over decimal digits and returns how many there were.
func (s *scanner) digits() int {
	start := s.pos
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.pos++
	}
	return s.pos - start
}

// text reads a string and returns what it says, where it can as a part of the
// data. It refuses escapes that stand for no character (lone surrogates), which
// encoding/json replaces silently.
func (s *scanner) text() ([]byte, *fault) {
	s.pos++
	start := s.pos
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			return s.data[start : s.pos-1], nil
		case c == '\\':
			return s.escapedText(start)
		case c < 0x20:
			return nil, s.malformed("a character other than a control character")
		default:
			s.pos++
		}
	}
	return nil, s.malformed("the end of a text")
}

// escapedText continues text at the first backslash.
func (s *scanner) escapedText(start int) ([]byte, *fault) {
	out := append([]byte(nil), s.data[start:s.pos]...)
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			return out, nil
		case c == '\\':
			r, f := s.escape()
			if f != nil {
				return nil, f
			}
			out = utf8.AppendRune(out, r)
		case c < 0x20:
			return nil, s.malformed("a character other than a control character")
		default:
			out = append(out, c)
			s.pos++
		}
	}
	return nil, s.malformed("the end of a text")
}

// escape reads one escape sequence, a surrogate pair as one.
func (s *scanner) escape() (rune, *fault) {
	s.pos++
	c := s.peek()
	if c == 'u' {
		return s.unicodeEscape()
	}
	i := bytes.IndexByte([]byte(`"\/bfnrt`), c)
	if c == 0 || i < 0 {
		return 0, s.malformed("an escape character")
	}
	s.pos++
	return rune("\"\\/\b\f\n\r\t"[i]), nil
}

func (s *scanner) unicodeEscape() (rune, *fault) {
	at := s.pos - 1
	high, f := s.hex4()
	if f != nil || !utf16.IsSurrogate(high) {
		return high, f
	}
	if s.peek() == '\\' && s.pos+1 < len(s.data) && s.data[s.pos+1] == 'u' {
		s.pos++
		low, f := s.hex4()
		if f != nil {
			return 0, f
		}
		if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
			return r, nil
		}
	}
	return 0, faultf(`is malformed JSON: the escape at byte %d is half a surrogate pair`, at)
}

// hex4 reads the u and the four digits of an escape.
func (s *scanner) hex4() (rune, *fault) {
	s.pos++
	var r rune
	for range 4 {
		c := s.peek()
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, s.malformed("a hexadecimal digit")
		}
		r = r<<4 | rune(c)
		s.pos++
	}
	return r, nil
}

// keySet finds a repeated key; most objects are small.
type keySet struct {
	few  [8]string
	n    int
	many map[string]struct{}
}

// add reports whether the key is new.
func (k *keySet) add(key string) bool {
	if k.many != nil {
		if _, taken := k.many[key]; taken {
			return false
		}
		k.many[key] = struct{}{}
		return true
	}
	for _, other := range k.few[:k.n] {
		if other == key {
			return false
		}
	}
	if k.n < len(k.few) {
		k.few[k.n] = key
		k.n++
		return true
	}
	k.many = make(map[string]struct{}, 2*len(k.few))
	for _, other := range k.few {
		k.many[other] = struct{}{}
	}
	k.many[key] = struct{}{}
	return true
}
