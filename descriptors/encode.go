package descriptors

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"contrail/tablecore/tableerr"
)

// objectWriter writes one JSON object, its members in the order of the calls.
type objectWriter struct {
	buf []byte
	err error
}

func (w *objectWriter) key(name string) {
	if len(w.buf) == 0 {
		w.buf = append(w.buf, '{')
	} else {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(appendString(w.buf, name), ':')
}

func (w *objectWriter) text(name, s string) {
	w.key(name)
	w.buf = appendString(w.buf, s)
}

// filledText leaves an empty text out.
func (w *objectWriter) filledText(name, s string) {
	if s != "" {
		w.text(name, s)
	}
}

func (w *objectWriter) integer(name string, n int64) {
	w.key(name)
	w.buf = strconv.AppendInt(w.buf, n, 10)
}

// positive leaves a zero out.
func (w *objectWriter) positive(name string, n int64) {
	if n != 0 {
		w.integer(name, n)
	}
}

// optional leaves a nil out.
func (w *objectWriter) optional(name string, n *int64) {
	if n != nil {
		w.integer(name, *n)
	}
}

// raw writes a JSON value without its blanks and leaves an absent one out.
func (w *objectWriter) raw(name string, v []byte) {
	if v != nil {
		w.key(name)
		w.compact(name, v)
	}
}

func (w *objectWriter) compact(name string, v []byte) {
	var b bytes.Buffer
	if err := json.Compact(&b, v); err != nil && w.err == nil {
		w.err = &tableerr.Invalid{Field: name, Msg: name + ": is no JSON value", Cause: err}
	}
	w.buf = append(w.buf, b.Bytes()...)
}

func (w *objectWriter) entities(name string, list []Entity) {
	w.key(name)
	w.buf = append(w.buf, '[')
	for i, entity := range list {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.buf = append(w.buf, '{')
		for j, v := range entity {
			if j > 0 {
				w.buf = append(w.buf, ',')
			}
			w.buf = append(appendString(w.buf, v.Column), ':')
			w.compact(name, v.Value)
		}
		w.buf = append(w.buf, '}')
	}
	w.buf = append(w.buf, ']')
}

func (w *objectWriter) finish() ([]byte, error) {
	if w.err != nil {
		return nil, w.err
	}
	if len(w.buf) == 0 {
		w.buf = append(w.buf, '{')
	}
	return append(w.buf, '}'), nil
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, s)
	}
	return append(dst, ']')
}

// appendString appends s as JSON text. It escapes only what JSON demands, so
// that names and times stay readable, and makes bytes that are no UTF-8 the
// replacement character.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\r':
			dst = append(dst, '\\', 'r')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r < 0x20 || r == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// cutRunes cuts s to at most limit bytes between two runes and lets it end in
// an ellipsis where something was cut. limit is at least 3.
func cutRunes(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
