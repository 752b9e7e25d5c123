package rowfile

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore/tabledef"
)

// appendJSON appends a JSON value, decoded with UseNumber, as a value of the
// builder's type. null is a null.
func appendJSON(b array.Builder, v any, zone *time.Location) error {
	if v == nil {
		b.AppendNull()
		return nil
	}
	switch b := b.(type) {
	case *array.StructBuilder:
		return appendObject(b, v, zone)
	case *array.MapBuilder: // before the list that it is inside
		return appendMap(b, v, zone)
	case array.ListLikeBuilder:
		return appendList(b, v, zone)
	}
	text, ok := scalarText(b.Type(), v)
	if !ok {
		return fmt.Errorf("%s is no %s", jsonKind(v), tabledef.TypeName(b.Type()))
	}
	return appendText(b, text, zone)
}

// scalarText returns the text of a JSON value whose kind the type takes.
func scalarText(t arrow.DataType, v any) (string, bool) {
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v), t.ID() == arrow.BOOL
	case json.Number:
		switch t.ID() {
		case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW, arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW, arrow.FIXED_SIZE_BINARY, arrow.BOOL, arrow.DATE32, arrow.DATE64:
			return "", false
		}
		return v.String(), true
	case string:
		return v, t.ID() != arrow.BOOL
	}
	return "", false
}

func jsonKind(v any) string {
	switch v.(type) {
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case string:
		return "a text"
	case []any:
		return "a list"
	}
	return "an object"
}

func appendObject(b *array.StructBuilder, v any, zone *time.Location) error {
	object, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%s is no %s", jsonKind(v), tabledef.TypeName(b.Type()))
	}
	fields := b.Type().(*arrow.StructType).Fields()
	for name := range object {
		if _, known := b.Type().(*arrow.StructType).FieldIdx(name); !known {
			return fmt.Errorf("%s is no field of %s", name, tabledef.TypeName(b.Type()))
		}
	}
	b.Append(true)
	for i, f := range fields {
		if err := appendJSON(b.FieldBuilder(i), object[f.Name], zone); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

func appendList(b array.ListLikeBuilder, v any, zone *time.Location) error {
	list, ok := v.([]any)
	if !ok {
		return fmt.Errorf("%s is no %s", jsonKind(v), tabledef.TypeName(b.Type()))
	}
	if fixed, isFixed := b.Type().(*arrow.FixedSizeListType); isFixed && int(fixed.Len()) != len(list) {
		return fmt.Errorf("a list of %d is no %s", len(list), tabledef.TypeName(b.Type()))
	}
	b.Append(true)
	for i, e := range list {
		if err := appendJSON(b.ValueBuilder(), e, zone); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

// appendMap takes a list of pairs, [[key, value], …], as writers make it: keys
// need not be texts.
func appendMap(b *array.MapBuilder, v any, zone *time.Location) error {
	pairs, ok := v.([]any)
	if !ok {
		return fmt.Errorf("%s is no %s, which is a list of pairs", jsonKind(v), tabledef.TypeName(b.Type()))
	}
	b.Append(true)
	for i, e := range pairs {
		pair, ok := e.([]any)
		if !ok || len(pair) != 2 || pair[0] == nil {
			return fmt.Errorf("[%d]: %s is no pair of a key and a value", i, jsonKind(e))
		}
		if err := appendJSON(b.KeyBuilder(), pair[0], zone); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
		if err := appendJSON(b.ItemBuilder(), pair[1], zone); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}
