package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"contrail/descriptors"
)

// condition is a condition of a filter before the column's type is known.
type condition struct {
	column, op string
	values     []literal // one, or those of "in"
	raw        json.RawMessage
}

const filterHelp = `a filter is COLUMN OPERATOR VALUE, such as 'temp > 32', 'wind_dir in (0, 180)' or 'gust is null'; ` +
	`operators are = != < <= > >= in, is null, is not null`

// comparisons in the order in which they are looked for: longer ones first.
var comparisons = []string{"<=", ">=", "!=", "==", "=", "<", ">"}

// parseFilter reads a condition, or the protocol's own form, [column, op, value].
func parseFilter(text string) (condition, error) {
	c, ok := condition{}, false
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "[") {
		c, ok = jsonCondition(text)
	} else {
		c, ok = wordCondition(text)
	}
	if !ok {
		return c, usagef("--filter: %q is not understood: %s", text, filterHelp)
	}
	return c, nil
}

func jsonCondition(text string) (c condition, ok bool) {
	var parts []json.RawMessage
	if json.Unmarshal([]byte(text), &parts) != nil || len(parts) < 2 || len(parts) > 3 {
		return c, false
	}
	if json.Unmarshal(parts[0], &c.column) != nil || json.Unmarshal(parts[1], &c.op) != nil {
		return c, false
	}
	if len(parts) == 3 {
		c.raw = parts[2]
	}
	return c, true
}

func wordCondition(text string) (c condition, ok bool) {
	name, rest, ok := cutWord(text, " \t=!<>")
	if !ok || name.text == "" {
		return c, false
	}
	c.column = name.text
	rest = strings.TrimSpace(rest)
	words := strings.Fields(strings.ToLower(rest))
	switch joined := strings.Join(words, " "); {
	case joined == "is null" || joined == "is not null":
		c.op = joined
		return c, true
	case len(rest) > 2 && strings.EqualFold(rest[:2], "in") && strings.ContainsAny(rest[2:3], " \t(["):
		c.op = "in"
		c.values, ok = parseList(strings.TrimSpace(rest[2:]))
		return c, ok
	}
	for _, op := range comparisons {
		if value, found := strings.CutPrefix(rest, op); found {
			v, ok := parseLiteral(value)
			c.op, c.values = op, []literal{v}
			return c, ok
		}
	}
	return c, false
}

// parseList reads (a, b) or [a, b].
func parseList(text string) ([]literal, bool) {
	if len(text) < 2 || text[0] != '(' || text[len(text)-1] != ')' {
		if len(text) < 2 || text[0] != '[' || text[len(text)-1] != ']' {
			return nil, false
		}
	}
	text = strings.TrimSpace(text[1 : len(text)-1])
	values := []literal{}
	for text != "" {
		v, rest, ok := cutWord(text, ",")
		if !ok {
			return nil, false
		}
		values = append(values, v)
		rest = strings.TrimSpace(rest)
		if rest == "" {
			break
		}
		if rest[0] != ',' {
			return nil, false
		}
		if text = strings.TrimSpace(rest[1:]); text == "" {
			return nil, false
		}
	}
	return values, true
}

// parseLiteral reads the one value that a text is.
func parseLiteral(text string) (literal, bool) {
	text = strings.TrimSpace(text)
	if text == "" {
		return literal{}, false
	}
	v, rest, ok := cutWord(text, "")
	return v, ok && strings.TrimSpace(rest) == ""
}

// cutWord takes the first word of a text: what stands in quotes, which are
// doubled inside, or all before a byte of ends.
func cutWord(text, ends string) (word literal, rest string, ok bool) {
	if text == "" || text[0] != '"' && text[0] != '\'' {
		end := len(text)
		if at := strings.IndexAny(text, ends); at >= 0 {
			end = at
		}
		return literal{text: strings.TrimSpace(text[:end])}, text[end:], true
	}
	quote := text[0]
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		if text[i] != quote {
			b.WriteByte(text[i])
			continue
		}
		if i+1 < len(text) && text[i+1] == quote {
			b.WriteByte(quote)
			i++
			continue
		}
		return literal{b.String(), true}, text[i+1:], true
	}
	return word, "", false // the quote is not closed
}

// typed makes a request's condition of it.
func (c condition) typed(types *tableTypes) descriptors.Condition {
	out := descriptors.Condition{Column: c.column, Op: c.op, Value: c.raw}
	if c.values == nil {
		return out
	}
	columnType := types.of(c.column)
	if c.op != "in" {
		out.Value = c.values[0].json(columnType)
		return out
	}
	list := []byte{'['}
	for i, v := range c.values {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, v.json(columnType)...)
	}
	out.Value = append(list, ']')
	return out
}

// identity is an entity before the columns' types are known.
type identity []identityPart

type identityPart struct {
	column string
	value  literal
	raw    json.RawMessage // in place of value where it was given as JSON
}

// parseEntity reads COLUMN=VALUE[,COLUMN=VALUE…], or a JSON object.
func parseEntity(text string) (identity, error) {
	bad := usagef("--entity: %q is not COLUMN=VALUE[,COLUMN=VALUE…], such as origin=EWR, nor a JSON object", text)
	var id identity
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") {
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &object) != nil {
			return nil, bad
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			id = append(id, identityPart{column: name, raw: object[name]})
		}
		return id, nil
	}
	for rest := text; ; {
		name, after, ok := cutWord(rest, "=,")
		after = strings.TrimSpace(after)
		if !ok || name.text == "" || after == "" || after[0] != '=' {
			return nil, bad
		}
		value, after, ok := cutWord(strings.TrimSpace(after[1:]), ",")
		if !ok {
			return nil, bad
		}
		id = append(id, identityPart{column: name.text, value: value})
		if after = strings.TrimSpace(after); after == "" {
			return id, nil
		}
		if after[0] != ',' {
			return nil, bad
		}
		rest = strings.TrimSpace(after[1:])
	}
}

func (id identity) typed(types *tableTypes) descriptors.Entity {
	entity := make(descriptors.Entity, len(id))
	for i, part := range id {
		entity[i] = descriptors.EntityValue{Column: part.column, Value: part.raw}
		if part.raw == nil {
			entity[i].Value = part.value.json(types.of(part.column))
		}
	}
	return entity
}
