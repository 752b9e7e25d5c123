package descriptors

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"contrail/tablecore/tableerr"
)

const (
	// maxValueBytes is the longest value of an error's field, as JSON text.
	maxValueBytes = 256
	// minValueBytes is what values are cut to at last.
	minValueBytes = 8
	// maxTextBytes is the longest sentence of an error.
	maxTextBytes = 1024
	// maxTrailerBytes bounds everything an error puts into trailers; clients
	// refuse 8 KiB.
	maxTrailerBytes = 6 << 10
	// trailerOverhead covers names, status numbers and HTTP/2's 32 bytes for
	// each of the trailers, the server's own others included.
	trailerOverhead = 768
)

// FormatError returns an error as clients see it: the message
//
//	TOKEN key=value …: text
//
// whose values are compact JSON, and the detail, a JSON object of token, text
// and fields, which pyarrow hands out as extra_info. Values beyond 256 bytes
// are cut and end in an ellipsis; what was no text before is text then; only in
// the detail a tableerr.Whole stays whole while there is room. Message
// and detail are short enough that all trailers made of them (the message
// twice) stay below 6 KiB.
func FormatError(err tableerr.Error) (message string, detail []byte) {
	return Format(string(err.Token()), err.Text(), err.Fields())
}

// Format is FormatError for conditions that are none of the table core's, such
// as INTERNAL.
func Format(token, text string, fields []tableerr.Field) (message string, detail []byte) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	values := make([][]byte, len(fields))
	for i, f := range fields {
		values[i] = compactJSON(f.Value)
	}
	// Cutting everything to half often enough always ends below the limit:
	// with eight bytes a value the documented fields of any token fit.
	for valueLimit, textLimit := maxValueBytes, maxTextBytes; ; valueLimit, textLimit = valueLimit/2, textLimit/2 {
		message, detail = render(token, cutRunes(text, textLimit), fields, values, valueLimit)
		if trailerBytes(message, detail) <= maxTrailerBytes {
			return message, detail
		}
		if valueLimit <= minValueBytes {
			return render(token, cutRunes(text, textLimit), nil, nil, valueLimit)
		}
	}
}

// render writes message and detail with values cut to limit bytes.
func render(token, text string, fields []tableerr.Field, values [][]byte, limit int) (string, []byte) {
	var head strings.Builder
	var detail objectWriter
	head.WriteString(token)
	detail.text("token", token)
	detail.text("text", text)
	for i, f := range fields {
		v := cutValue(values[i], limit)
		fmt.Fprintf(&head, " %s=%s", f.Key, v)
		if _, whole := f.Value.(tableerr.Whole); whole && limit > minValueBytes {
			v = values[i]
		}
		detail.key(f.Key)
		detail.buf = append(detail.buf, v...)
	}
	head.WriteString(": ")
	head.WriteString(text)
	raw, _ := detail.finish() // nothing in it can fail
	return head.String(), raw
}

// trailerBytes is what the trailers of an error take: the message
// percent-encoded as grpc-message and in base64 for Arrow, the detail in
// base64.
func trailerBytes(message string, detail []byte) int {
	n := trailerOverhead
	for i := 0; i < len(message); i++ {
		if c := message[i]; c < ' ' || c > '~' || c == '%' {
			n += 3
		} else {
			n++
		}
	}
	return n + base64.StdEncoding.EncodedLen(len(message)) + base64.StdEncoding.EncodedLen(len(detail))
}

// compactJSON writes a value as JSON on one line. What JSON cannot say (NaN,
// a channel) becomes text.
func compactJSON(v any) []byte {
	if s, ok := v.(string); ok {
		return appendString(nil, s)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return appendString(nil, fmt.Sprint(v))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// cutValue cuts a JSON value to limit bytes. A cut text stays text; of
// anything else the beginning of its JSON remains, as text.
func cutValue(v []byte, limit int) []byte {
	if len(v) <= limit {
		return v
	}
	s := string(v)
	if v[0] == '"' {
		s = unquote(v)
	}
	// Escapes make the text longer than what it says, so the room for it is
	// found from the front.
	room := limit - len(`""`) - len("…")
	end := 0
	for end < len(s) {
		r, size := utf8.DecodeRuneInString(s[end:])
		if room -= len(appendString(nil, string(r))) - len(`""`); room < 0 {
			break
		}
		end += size
	}
	return appendString(nil, s[:end]+"…")
}
