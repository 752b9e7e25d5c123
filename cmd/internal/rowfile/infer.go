package rowfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// guess is the set of types that every value of a column so far could have.
type guess struct {
	whole, unsigned, number, boolean, zoned, naked, date bool

	digits bool // whole numbers of any size, as text
	seen   bool // a value that is not null
	fine   bool // a time finer than a microsecond
}

var anything = guess{whole: true, unsigned: true, number: true, boolean: true, zoned: true, naked: true, date: true, digits: true}

// Infer looks at all rows of a text file and returns a schema that can hold
// them: for each column the first of int64, uint64, double, bool, date32[day],
// timestamp[us, tz=UTC], timestamp[us] (ns where a time is finer) and string that
// takes every value. Times without a zone have opts.Zone, if that is set. In CSV
// whole numbers with a leading zero, and those that need more than 64 bits, are
// text; a column without a value is string. In JSON lines a text stays a text unless it is a time, and
// nested values are refused, as their types cannot be told.
func Infer(r io.Reader, format Format, opts TextOptions) (*arrow.Schema, error) {
	if format == CSV {
		return inferCSV(r, opts)
	}
	return inferJSON(r, opts)
}

func inferCSV(r io.Reader, opts TextOptions) (*arrow.Schema, error) {
	rows, err := openCSV(r, opts)
	if err != nil {
		return nil, err
	}
	guesses := slices.Repeat([]guess{anything}, len(rows.header))
	for {
		if err := rows.next(); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		for i, cell := range rows.cells {
			if cell != opts.Null {
				guesses[i].see(cell)
			}
		}
	}
	fields := make([]arrow.Field, len(guesses))
	for i, g := range guesses {
		fields[i] = arrow.Field{Name: rows.header[i], Type: g.typ(opts), Nullable: true}
	}
	return arrow.NewSchema(fields, nil), nil
}

func inferJSON(r io.Reader, opts TextOptions) (*arrow.Schema, error) {
	rows := openJSONLines(r, nil, opts)
	var names []string
	guesses := map[string]*guess{}
	for {
		if err := rows.next(); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		for name := range rows.object {
			if guesses[name] == nil {
				names = addNames(names, guesses, rows.lines.Bytes())
				break
			}
		}
		for _, name := range names {
			if err := guesses[name].seeJSON(rows.object[name]); err != nil {
				return nil, &Error{Line: rows.number, Column: name, Msg: err.Error()}
			}
		}
	}
	fields := make([]arrow.Field, len(names))
	for i, name := range names {
		fields[i] = arrow.Field{Name: name, Type: guesses[name].typ(opts), Nullable: true}
	}
	return arrow.NewSchema(fields, nil), nil
}

// addNames adds the keys of an object that are new, in their order, which a map
// does not keep.
func addNames(names []string, guesses map[string]*guess, object []byte) []string {
	d := json.NewDecoder(bytes.NewReader(object))
	_, _ = d.Token() // the object has been decoded once: nothing in it can fail
	for d.More() {
		key, _ := d.Token()
		name, _ := key.(string)
		if guesses[name] == nil {
			g := anything
			guesses[name] = &g
			names = append(names, name)
		}
		var v json.RawMessage
		if d.Decode(&v) != nil {
			break
		}
	}
	return names
}

// see takes the types out that a text is no value of.
func (g *guess) see(text string) {
	g.seen = true
	if g.whole {
		_, err := strconv.ParseInt(text, 10, 64)
		g.whole = err == nil && !leadingZero(text) && text[0] != '+'
	}
	if g.unsigned {
		_, err := strconv.ParseUint(text, 10, 64)
		g.unsigned = err == nil && !leadingZero(text)
	}
	g.digits = g.digits && isDigits(text)
	if g.number {
		_, err := strconv.ParseFloat(text, 64)
		g.number = err == nil && !leadingZero(text) && !strings.ContainsAny(text, "xX_")
	}
	if g.boolean {
		lower := strings.ToLower(text)
		g.boolean = lower == "true" || lower == "false"
	}
	if g.zoned || g.naked || g.date {
		moment, zoned, ok := parseTime(text)
		g.fine = g.fine || moment.Nanosecond()%1000 != 0
		g.zoned, g.naked = g.zoned && ok && zoned, g.naked && ok && !zoned
		g.date = g.date && ok && len(text) == len("2006-01-02")
	}
}

// leadingZero tells texts such as 007, which mean a name and no number.
func leadingZero(text string) bool {
	digits := strings.TrimLeft(text, "+-")
	return len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9'
}

// seeJSON is see for a JSON value, whose kind says more than its text.
func (g *guess) seeJSON(v any) error {
	switch v := v.(type) {
	case nil:
	case bool:
		g.see(strconv.FormatBool(v))
	case json.Number:
		g.see(v.String())
		g.digits = false // it is no text, whatever its size
	case string:
		g.whole, g.unsigned, g.number, g.boolean = false, false, false, false
		g.see(v)
	default:
		return fmt.Errorf("%s, whose type cannot be told; create the table with its columns first", jsonKind(v))
	}
	return nil
}

// typ is the first type that is left.
func (g *guess) typ(opts TextOptions) arrow.DataType {
	unit := arrow.Microsecond
	if g.fine {
		unit = arrow.Nanosecond
	}
	switch {
	case !g.seen:
		return arrow.BinaryTypes.String
	case g.whole:
		return arrow.PrimitiveTypes.Int64
	case g.unsigned:
		return arrow.PrimitiveTypes.Uint64
	case g.number && !g.digits:
		return arrow.PrimitiveTypes.Float64
	case g.boolean:
		return arrow.FixedWidthTypes.Boolean
	case g.date:
		return arrow.FixedWidthTypes.Date32
	case g.zoned, g.naked && opts.Zone != nil:
		return &arrow.TimestampType{Unit: unit, TimeZone: "UTC"}
	case g.naked:
		return &arrow.TimestampType{Unit: unit}
	}
	return arrow.BinaryTypes.String
}
