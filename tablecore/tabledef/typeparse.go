package tabledef

import (
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tableerr"
)

// maxTypeText bounds the text of one type, in bytes.
const maxTypeText = 64 << 10

// otherNames are further spellings that ParseType understands.
var otherNames = map[string]arrow.DataType{
	"float16":    arrow.FixedWidthTypes.Float16,
	"float32":    arrow.PrimitiveTypes.Float32,
	"float64":    arrow.PrimitiveTypes.Float64,
	"date32":     arrow.FixedWidthTypes.Date32,
	"date64":     arrow.FixedWidthTypes.Date64,
	"utf8":       arrow.BinaryTypes.String,
	"large_utf8": arrow.BinaryTypes.LargeString,
}

// parameterless maps every spelling of a type without parameters to the type.
var parameterless = func() map[string]arrow.DataType {
	m := make(map[string]arrow.DataType, len(simpleTypes)+len(otherNames))
	for _, s := range simpleTypes {
		m[s.name] = s.dt
	}
	for name, dt := range otherNames {
		m[name] = dt
	}
	return m
}()

// ParseType reads the text form of a type: what Python prints, and the short
// names float16, float32, float64, date32, date64, utf8, large_utf8. Blanks
// after "," and ":" don't matter, a dictionary may leave out "ordered". It
// reads types that no table stores too; CheckSchema refuses those. Errors are
// *tableerr.Invalid about the field "type".
func ParseType(text string) (arrow.DataType, error) {
	if len(text) > maxTypeText {
		return nil, tableerr.InvalidField("type", "a type's text has at most %d bytes, this one has %d", maxTypeText, len(text))
	}
	p := typeParser{text: text, rest: text}
	dt, err := p.parse(0)
	if err != nil {
		return nil, err
	}
	p.blanks()
	if p.rest != "" {
		return nil, p.fail("there is text after its end")
	}
	return dt, nil
}

// typeParser is a recursive-descent parser; rest is what it has not read yet.
type typeParser struct {
	text, rest string
}

func (p *typeParser) fail(why string) error {
	shown := p.text
	if len(shown) > 80 {
		shown = strings.ToValidUTF8(shown[:80], "") + "…"
	}
	return tableerr.InvalidField("type", "type %q is not understood: %s (at byte %d)", shown, why, len(p.text)-len(p.rest)).WithValue(shown)
}

func (p *typeParser) blanks() { p.rest = strings.TrimLeft(p.rest, " \t") }

// take reads one literal with the blanks before it.
func (p *typeParser) take(literal string) bool {
	p.blanks()
	if !strings.HasPrefix(p.rest, literal) {
		return false
	}
	p.rest = p.rest[len(literal):]
	return true
}

func (p *typeParser) want(literal string) error {
	if !p.take(literal) {
		return p.fail(strconv.Quote(literal) + " is missing")
	}
	return nil
}

// word reads a type's name.
func (p *typeParser) word() string {
	p.blanks()
	n := 0
	for n < len(p.rest) {
		c := p.rest[n]
		if c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			break
		}
		n++
	}
	w := p.rest[:n]
	p.rest = p.rest[n:]
	return w
}

// parse reads one type; depth counts the nested types around it.
func (p *typeParser) parse(depth int) (arrow.DataType, error) {
	p.blanks()
	before := p.rest
	name := p.word()
	switch {
	case strings.HasPrefix(p.rest, "<"):
		return p.parseNested(name, depth+1)
	case strings.HasPrefix(p.rest, "("):
		return p.parseDecimal(name)
	case strings.HasPrefix(p.rest, "[") && name == "timestamp":
		return p.parseTimestamp()
	case strings.HasPrefix(p.rest, "[") && name == "fixed_size_binary":
		n, err := p.size()
		if err != nil {
			return nil, err
		}
		return &arrow.FixedSizeBinaryType{ByteWidth: int(n)}, nil
	case strings.HasPrefix(p.rest, "["):
		// A unit that belongs to the name: time32[ms], date32[day].
		end := strings.IndexByte(p.rest, ']')
		if end < 0 {
			return nil, p.fail(`"]" is missing`)
		}
		name = before[:len(name)+end+1]
		p.rest = p.rest[end+1:]
	}
	dt, ok := parameterless[name]
	if !ok {
		p.rest = before
		return nil, p.fail("there is no such type")
	}
	return dt, nil
}

// size reads "[n]" with n from 1 to 2^31-1.
func (p *typeParser) size() (int32, error) {
	if err := p.want("["); err != nil {
		return 0, err
	}
	n, err := p.number()
	if err != nil {
		return 0, err
	}
	if n < 1 {
		return 0, p.fail("a size is below 1")
	}
	return n, p.want("]")
}

// number reads a decimal integer of 32 bits.
func (p *typeParser) number() (int32, error) {
	p.blanks()
	n := 0
	for n < len(p.rest) && (p.rest[n] >= '0' && p.rest[n] <= '9' || n == 0 && p.rest[n] == '-') {
		n++
	}
	v, err := strconv.ParseInt(p.rest[:n], 10, 64)
	if err != nil || v < math.MinInt32 || v > math.MaxInt32 {
		return 0, p.fail("a number is missing or out of range")
	}
	p.rest = p.rest[n:]
	return int32(v), nil
}

func (p *typeParser) parseTimestamp() (arrow.DataType, error) {
	p.rest = p.rest[1:]
	units := map[string]arrow.TimeUnit{"s": arrow.Second, "ms": arrow.Millisecond, "us": arrow.Microsecond, "ns": arrow.Nanosecond}
	unit, ok := units[p.word()]
	if !ok {
		return nil, p.fail("a timestamp's unit is s, ms, us or ns")
	}
	t := &arrow.TimestampType{Unit: unit}
	if p.take(",") {
		if err := p.want("tz="); err != nil {
			return nil, err
		}
		end := strings.IndexByte(p.rest, ']')
		if end < 1 {
			return nil, p.fail("the zone is missing")
		}
		t.TimeZone = strings.TrimSpace(p.rest[:end])
		p.rest = p.rest[end:]
	}
	return t, p.want("]")
}

func (p *typeParser) parseDecimal(name string) (arrow.DataType, error) {
	p.rest = p.rest[1:]
	precision, err := p.number()
	if err != nil {
		return nil, err
	}
	if err := p.want(","); err != nil {
		return nil, err
	}
	scale, err := p.number()
	if err != nil {
		return nil, err
	}
	if err := p.want(")"); err != nil {
		return nil, err
	}
	most := map[string]int32{"decimal32": 9, "decimal64": 18, "decimal128": 38, "decimal256": 76}[name]
	if most == 0 {
		return nil, p.fail("there is no such type")
	}
	if precision < 1 || precision > most {
		return nil, p.fail("its precision is from 1 to " + strconv.Itoa(int(most)))
	}
	switch name {
	case "decimal32":
		return &arrow.Decimal32Type{Precision: precision, Scale: scale}, nil
	case "decimal64":
		return &arrow.Decimal64Type{Precision: precision, Scale: scale}, nil
	case "decimal128":
		return &arrow.Decimal128Type{Precision: precision, Scale: scale}, nil
	default:
		return &arrow.Decimal256Type{Precision: precision, Scale: scale}, nil
	}
}

// parseNested reads what stands between "<" and ">", and the size after it.
func (p *typeParser) parseNested(name string, depth int) (arrow.DataType, error) {
	if depth > MaxTypeDepth {
		return nil, p.fail("it is nested deeper than " + strconv.Itoa(MaxTypeDepth) + " levels")
	}
	p.rest = p.rest[1:]
	switch name {
	case "struct":
		return p.parseStruct(depth)
	case "map":
		return p.parseMap(depth)
	case "dictionary":
		return p.parseDictionary(depth)
	case "run_end_encoded":
		return p.parseRunEnd(depth)
	}
	build := map[string]func(arrow.Field) arrow.DataType{
		"list":            func(f arrow.Field) arrow.DataType { return arrow.ListOfField(f) },
		"large_list":      func(f arrow.Field) arrow.DataType { return arrow.LargeListOfField(f) },
		"list_view":       func(f arrow.Field) arrow.DataType { return arrow.ListViewOfField(f) },
		"large_list_view": func(f arrow.Field) arrow.DataType { return arrow.LargeListViewOfField(f) },
		"fixed_size_list": func(f arrow.Field) arrow.DataType { return arrow.FixedSizeListOfField(1, f) },
	}[name]
	if build == nil {
		return nil, p.fail("there is no such nested type")
	}
	f, err := p.field(depth)
	if err != nil {
		return nil, err
	}
	if err := p.want(">"); err != nil {
		return nil, err
	}
	if name != "fixed_size_list" {
		return build(f), nil
	}
	n, err := p.size()
	if err != nil {
		return nil, err
	}
	return arrow.FixedSizeListOfField(n, f), nil
}

// field reads "name: type" and an optional "not null". A name that holds one
// of <>,:()[] cannot be said in text.
func (p *typeParser) field(depth int) (arrow.Field, error) {
	p.blanks()
	end := strings.IndexAny(p.rest, "<>,:()[]")
	if end < 1 || p.rest[end] != ':' {
		return arrow.Field{}, p.fail("a child's name and \":\" are missing")
	}
	f := arrow.Field{Name: strings.TrimRight(p.rest[:end], " \t"), Nullable: true}
	p.rest = p.rest[end+1:]
	var err error
	if f.Type, err = p.parse(depth); err != nil {
		return arrow.Field{}, err
	}
	if p.take("not null") {
		f.Nullable = false
	}
	return f, nil
}

func (p *typeParser) parseStruct(depth int) (arrow.DataType, error) {
	var fields []arrow.Field
	if p.take(">") {
		return arrow.StructOf(), nil
	}
	for {
		f, err := p.field(depth)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
		if p.take(">") {
			return arrow.StructOf(fields...), nil
		}
		if err := p.want(","); err != nil {
			return nil, err
		}
	}
}

func (p *typeParser) parseMap(depth int) (arrow.DataType, error) {
	key, err := p.parse(depth)
	if err != nil {
		return nil, err
	}
	if err := p.want(","); err != nil {
		return nil, err
	}
	item, err := p.parse(depth)
	if err != nil {
		return nil, err
	}
	m := arrow.MapOf(key, item)
	if p.take(",") {
		if err := p.want("keys_sorted"); err != nil {
			return nil, err
		}
		m.KeysSorted = true
	}
	return m, p.want(">")
}

func (p *typeParser) parseDictionary(depth int) (arrow.DataType, error) {
	if err := p.want("values="); err != nil {
		return nil, err
	}
	values, err := p.parse(depth)
	if err != nil {
		return nil, err
	}
	if err := p.want(","); err != nil {
		return nil, err
	}
	if err := p.want("indices="); err != nil {
		return nil, err
	}
	indices, err := p.parse(depth)
	if err != nil {
		return nil, err
	}
	if !arrow.IsInteger(indices.ID()) {
		return nil, p.fail("a dictionary's indices are integers")
	}
	d := &arrow.DictionaryType{IndexType: indices, ValueType: values}
	if p.take(",") {
		if err := p.want("ordered="); err != nil {
			return nil, err
		}
		d.Ordered = p.take("1")
		if !d.Ordered && !p.take("0") {
			return nil, p.fail("ordered is 0 or 1")
		}
	}
	return d, p.want(">")
}

func (p *typeParser) parseRunEnd(depth int) (arrow.DataType, error) {
	if err := p.want("run_ends:"); err != nil {
		return nil, err
	}
	ends, err := p.parse(depth)
	if err != nil {
		return nil, err
	}
	switch ends.ID() {
	case arrow.INT16, arrow.INT32, arrow.INT64:
	default:
		return nil, p.fail("run ends are int16, int32 or int64")
	}
	if err := p.want(","); err != nil {
		return nil, err
	}
	if err := p.want("values:"); err != nil {
		return nil, err
	}
	values, err := p.parse(depth)
	if err != nil {
		return nil, err
	}
	return arrow.RunEndEncodedOf(ends, values), p.want(">")
}
