package predicate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/tableerr"
)

// Entities is a set of entities given by full or partial identities. A nil
// *Entities is the set of all.
type Entities struct {
	layout  *entitykey.Layout
	full    map[string]struct{}
	partial [][]any // one value a column, nil where any will do
	unfit   error   // about the first value that its column cannot hold
}

// ParseEntities reads a request's list of identities: objects of entity column
// to value; types are the columns' declared types in the layout's order. An object that names a part of the columns stands for every entity
// that agrees. INVALID for a column that is none of the entity columns or a
// value of another kind; a value the column cannot hold matches nothing.
func ParseEntities(list []map[string]json.RawMessage, layout *entitykey.Layout, types []arrow.DataType) (*Entities, error) {
	e := &Entities{layout: layout, full: map[string]struct{}{}}
	for i, object := range list {
		field := fmt.Sprintf("entities[%d]", i)
		id, unfit, err := parseIdentity(field, object, layout, types)
		if err != nil {
			return nil, err
		}
		if unfit != "" {
			e.noteUnfit(field, unfit, object[unfit])
			continue
		}
		if slices.Contains(id, nil) {
			e.partial = append(e.partial, id)
			continue
		}
		key, err := layout.Key(id...)
		if err != nil {
			return nil, err
		}
		e.full[key] = struct{}{}
	}
	return e, nil
}

// ParseKey reads the text of one full identity, such as a file's tag, and
// returns its entity key.
func ParseKey(text string, layout *entitykey.Layout, types []arrow.DataType) (string, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return "", err
	}
	id, unfit, err := parseIdentity("entity", object, layout, types)
	if err != nil {
		return "", err
	}
	if unfit != "" || slices.Contains(id, nil) {
		return "", fmt.Errorf("%s is no full identity", text)
	}
	return layout.Key(id...)
}

// parseIdentity returns one value a column, nil where the object does not name
// it; unfit names a column whose type the value lies outside, "" if there is
// none.
func parseIdentity(field string, object map[string]json.RawMessage, layout *entitykey.Layout, types []arrow.DataType) (id []any, unfit string, err error) {
	names := layout.Names()
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(names, name) {
			e := tableerr.InvalidField(field+"."+name, "column %q is no entity column; they are %s", name, columnList(names))
			e.Column = name
			return nil, "", e
		}
	}
	id = make([]any, len(names))
	for i, name := range names {
		raw, given := object[name]
		if !given {
			continue
		}
		value, fits, err := parseEntityValue(field+"."+name, raw, types[i])
		if err != nil {
			var invalid *tableerr.Invalid
			if errors.As(err, &invalid) {
				invalid.Column = name
			}
			return nil, "", err
		}
		if id[i] = value; !fits && unfit == "" {
			unfit = name
		}
	}
	return id, unfit, nil
}

func columnList(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// parseEntityValue reads a value of an entity column's type; fits is false when
// it lies outside the type.
func parseEntityValue(field string, raw json.RawMessage, typ arrow.DataType) (value any, fits bool, err error) {
	switch typ.ID() {
	case arrow.INT32, arrow.INT64, arrow.UINT64:
	default:
		text, ok := jsonText(raw)
		if !ok {
			return nil, false, notA(field, raw, "a text")
		}
		return text, true, nil
	}
	n, err := parseInteger(field, raw)
	if err != nil {
		return nil, false, err
	}
	switch typ.ID() {
	case arrow.UINT64:
		return n.Uint64(), n.IsUint64(), nil
	case arrow.INT32:
		v := n.Int64()
		return int32(v), n.IsInt64() && int64(int32(v)) == v, nil
	default:
		return n.Int64(), n.IsInt64(), nil
	}
}

// noteUnfit remembers a value that its column cannot hold.
func (e *Entities) noteUnfit(field, column string, value json.RawMessage) {
	if e.unfit != nil {
		return
	}
	invalid := tableerr.InvalidField(field+"."+column, "column %q cannot hold %s, so there is no such entity", column, shorten(value))
	invalid.Column, invalid.Value = column, value
	e.unfit = invalid
}

// Fit is INVALID where an identity has a value that its column cannot hold. To
// a scan it is an entity without rows; to a question about entities that have
// none it is a mistake.
func (e *Entities) Fit() error {
	if e == nil {
		return nil
	}
	return e.unfit
}

// Full returns the keys of the full identities, ascending.
func (e *Entities) Full() []string {
	if e == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(e.full))
}

// None says whether the set is certainly empty.
func (e *Entities) None() bool {
	return e != nil && len(e.full) == 0 && len(e.partial) == 0
}

// Match says whether an entity key belongs to the set.
func (e *Entities) Match(key string) bool {
	if e == nil {
		return true
	}
	if _, ok := e.full[key]; ok {
		return true
	}
	if len(e.partial) == 0 {
		return false
	}
	values, err := e.layout.Decode(key)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(e.partial, func(id []any) bool {
		for i, want := range id {
			if want != nil && want != values[i] {
				return false
			}
		}
		return true
	})
}

// Keys returns the entity keys of the set, ascending, if all its identities are
// full; false when they are not known one by one.
func (e *Entities) Keys() (keys []string, ok bool) {
	if e == nil || len(e.partial) > 0 {
		return nil, false
	}
	return slices.Sorted(maps.Keys(e.full)), true
}
