package descriptors

import (
	"encoding/base64"
	"encoding/json"
	"iter"
	"math"
	"strconv"
	"strings"
)

// value is one JSON value that checkSyntax has accepted, without blanks around
// it, so the readers below look only at what it says.
type value []byte

// trimmed returns the value of an accepted body.
func trimmed(body []byte) value {
	start, end := skipBlanks(body, 0), len(body)
	for end > start && isBlank(body[end-1]) {
		end--
	}
	return value(body[start:end])
}

// kind names the value's JSON kind as errors say it.
func (v value) kind() string {
	switch v[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "text"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func (v value) isNull() bool { return v[0] == 'n' }

// wrongKind reports a value of another kind than is due.
func (v value) wrongKind(due string) *fault {
	return faultf("is %s where %s is due", v.kind(), due)
}

// members walks an object's keys and values in their order.
func (v value) members() iter.Seq2[string, value] {
	return func(yield func(string, value) bool) {
		for pos := skipBlanks(v, 1); v[pos] != '}'; {
			end := skipValue(v, pos)
			key := unquote(v[pos:end])
			pos = skipBlanks(v, end)   // the colon
			pos = skipBlanks(v, pos+1) // the value
			end = skipValue(v, pos)
			if !yield(key, v[pos:end]) {
				return
			}
			if pos = skipBlanks(v, end); v[pos] == ',' {
				pos = skipBlanks(v, pos+1)
			}
		}
	}
}

// elements walks an array.
func (v value) elements() iter.Seq2[int, value] {
	return func(yield func(int, value) bool) {
		for i, pos := 0, skipBlanks(v, 1); v[pos] != ']'; i++ {
			end := skipValue(v, pos)
			if !yield(i, v[pos:end]) {
				return
			}
			if pos = skipBlanks(v, end); v[pos] == ',' {
				pos = skipBlanks(v, pos+1)
			}
		}
	}
}

// text reads a text that may be empty.
func (v value) text() (string, *fault) {
	if v[0] != '"' {
		return "", v.wrongKind("text")
	}
	return unquote(v), nil
}

// filledText reads a text that is not empty, for fields in which the empty
// text already stands for "left out".
func (v value) filledText() (string, *fault) {
	s, f := v.text()
	if f == nil && s == "" {
		f = faultf("is an empty text")
	}
	return s, f
}

// word reads one of a few fixed words.
func (v value) word(words ...string) (string, *fault) {
	s, f := v.text()
	if f != nil {
		return "", f
	}
	for _, w := range words {
		if s == w {
			return s, nil
		}
	}
	due := strconv.Quote(words[0])
	for _, w := range words[1:] {
		due += " or " + strconv.Quote(w)
	}
	return "", faultf("is %s where %s is due", strconv.Quote(cutRunes(s, maxPathKeyBytes)), due)
}

// boolean reads true or false.
func (v value) boolean() (bool, *fault) {
	switch v[0] {
	case 't':
		return true, nil
	case 'f':
		return false, nil
	}
	return false, v.wrongKind("true or false")
}

// integer reads an int64 of at least least, given as number or decimal text.
func (v value) integer(least int64) (int64, *fault) {
	digits, f := v.integerText()
	if f != nil {
		return 0, f
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < least {
		return 0, faultf("is %s where an integer from %d to %d is due", cutRunes(digits, maxPathKeyBytes), least, int64(math.MaxInt64))
	}
	return n, nil
}

// integerText returns the digits of an integer of any size.
func (v value) integerText() (string, *fault) {
	digits := string(v)
	switch v[0] {
	case '"':
		if digits = unquote(v); !isInteger(digits) {
			return "", faultf("is the text %s where an integer is due", strconv.Quote(cutRunes(digits, maxPathKeyBytes)))
		}
	case '{', '[', 't', 'f', 'n':
		return "", v.wrongKind("an integer")
	}
	if !isInteger(digits) {
		return "", faultf("is %s where an integer is due", cutRunes(digits, maxPathKeyBytes))
	}
	return digits, nil
}

// textList reads a list of texts; an empty list is not nil.
func (v value) textList() ([]string, *fault) {
	if v[0] != '[' {
		return nil, v.wrongKind("a list")
	}
	list := []string{}
	for i, e := range v.elements() {
		s, f := e.text()
		if f != nil {
			return nil, f.inIndex(i)
		}
		list = append(list, s)
	}
	return list, nil
}

// textMap reads an object of texts. Null members count as left out.
func (v value) textMap() (map[string]string, *fault) {
	if v[0] != '{' {
		return nil, v.wrongKind("an object")
	}
	m := map[string]string{}
	for key, e := range v.members() {
		if e.isNull() {
			continue
		}
		s, f := e.text()
		if f != nil {
			return nil, f.inKey(key)
		}
		m[key] = s
	}
	return m, nil
}

// textChange reads an object of texts in which a null says something, too.
func (v value) textChange() (map[string]*string, *fault) {
	change, f := v.textMap()
	if f != nil {
		return nil, f
	}
	m := make(map[string]*string, len(change))
	for key := range v.members() {
		if s, ok := change[key]; ok {
			m[key] = &s
		} else {
			m[key] = nil
		}
	}
	return m, nil
}

// base64 reads bytes given as padded standard base64.
func (v value) base64() ([]byte, *fault) {
	s, f := v.filledText()
	if f != nil {
		return nil, f
	}
	if strings.ContainsAny(s, "\r\n") { // which the decoder passes over
		return nil, faultf("is base64 broken into lines")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil {
		f = faultf("is not base64: %v", err)
		f.cause = err
		return nil, f
	}
	return raw, nil
}

// scalar returns a column's value as it stands: its meaning depends on the
// column's type.
func (v value) scalar() (json.RawMessage, *fault) {
	switch v[0] {
	case '{', '[', 'n':
		return nil, v.wrongKind("one value")
	}
	return json.RawMessage(v), nil
}

// bound returns an end of a range: an integer, or text such as a time.
func (v value) bound() (json.RawMessage, *fault) {
	switch v[0] {
	case '{', '[', 't', 'f', 'n':
		return nil, v.wrongKind("a number or text")
	}
	return json.RawMessage(v), nil
}

// isInteger tells whether s is a decimal integer as JSON writes it.
func isInteger(s string) bool {
	if s != "" && s[0] == '-' {
		s = s[1:]
	}
	if s == "" || s[0] == '0' && len(s) > 1 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// unquote returns what an accepted text says.
func unquote(quoted []byte) string {
	s := scanner{data: quoted}
	text, _ := s.text()
	return string(text)
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func skipBlanks(data []byte, pos int) int {
	for pos < len(data) && isBlank(data[pos]) {
		pos++
	}
	return pos
}

// skipValue returns the position behind the accepted value at pos.
func skipValue(data []byte, pos int) int {
	depth := 0
	for ; pos < len(data); pos++ {
		switch c := data[pos]; {
		case c == '"':
			for pos++; data[pos] != '"'; pos++ {
				if data[pos] == '\\' {
					pos++
				}
			}
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth == 0 {
				return pos
			}
			depth--
		case c == ',' || c == ':' || isBlank(c):
			if depth == 0 {
				return pos
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return pos + 1
		}
	}
	return pos
}
