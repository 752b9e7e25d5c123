package predicate

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/tableerr"
)

var (
	entityFields = []arrow.Field{
		{Name: "site", Type: arrow.BinaryTypes.String}, {Name: "unit", Type: arrow.PrimitiveTypes.Int32},
		{Name: "serial", Type: arrow.PrimitiveTypes.Uint64}, {Name: "code", Type: arrow.PrimitiveTypes.Int64}}
	entityTypes = []arrow.DataType{arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Uint64, arrow.PrimitiveTypes.Int64}
)

func parse(t *testing.T, text string) (*Entities, error) {
	t.Helper()
	layout, err := entitykey.NewLayout(entityFields)
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	return ParseEntities(list, layout, entityTypes)
}

func TestEntitiesMatch(t *testing.T) {
	layout, _ := entitykey.NewLayout(entityFields)
	key, err := layout.Key("a\x00b", int32(-5), uint64(1<<64-1), int64(7))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`[{"site":"a\u0000b","unit":-5,"serial":18446744073709551615,"code":7}]`:     true,
		`[{"site":"a\u0000b","unit":"-5","serial":"18446744073709551615","code":7}]`: true,
		`[{"site":"a\u0000b","unit":-5,"serial":18446744073709551615,"code":8}]`:     false,
		`[{"unit":-5}]`:                   true,
		`[{"unit":5},{"code":7}]`:         true,
		`[{"unit":5}]`:                    false,
		`[{}]`:                            true,
		`[]`:                              false,
		`[{"unit":4294967291}]`:           false, // −5 if it wrapped
		`[{"serial":-1}]`:                 false,
		`[{"code":99999999999999999999}]`: false,
	} {
		e, err := parse(t, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := e.Match(key); got != want {
			t.Errorf("%s matches: %v, want %v", text, got, want)
		}
	}
	var all *Entities
	if all.None() || !all.Match(key) {
		t.Error("the nil set is not the set of all")
	}
	if e, _ := parse(t, `[]`); !e.None() {
		t.Error("an empty list is not none")
	}
	if e, _ := parse(t, `[{}]`); e.Match("junk") {
		t.Error("bytes that are no key match")
	}
}

func TestEntitiesRefusals(t *testing.T) {
	for text, column := range map[string]string{
		`[{"place":"x"}]`:   "place",
		`[{"site":5}]`:      "site",
		`[{"site":null}]`:   "site",
		`[{"unit":"five"}]`: "unit",
		`[{"unit":1.5}]`:    "unit",
		`[{"unit":true}]`:   "unit",
		`[{"serial":[1]}]`:  "serial",
	} {
		_, err := parse(t, text)
		var invalid *tableerr.Invalid
		if !errors.As(err, &invalid) || invalid.Column != column {
			t.Errorf("%s: got %v, want INVALID about column %s", text, err, column)
		}
	}
}

func TestParseKey(t *testing.T) {
	layout, _ := entitykey.NewLayout(entityFields[:1])
	got, err := ParseKey(`{"site":"EWR"}`, layout, entityTypes[:1])
	want, _ := layout.Key("EWR")
	if err != nil || got != want {
		t.Fatalf("got %q, %v, want %q", got, err, want)
	}
	for _, text := range []string{`{}`, `x`, `{"site":1}`, `{"other":"x"}`} {
		if _, err := ParseKey(text, layout, entityTypes[:1]); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}
