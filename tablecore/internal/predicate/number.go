// Package predicate turns what a request says about rows into conditions the
// engine can evaluate: values in JSON into values of a column's type, range
// bounds into index ordinals, and lists of identities into a set of entities.
//
// It is pure: no I/O. A value the column's type does not understand is INVALID
// and names its place in the request; a value that is only out of the column's
// reach is no error and simply compares beyond every stored value.
package predicate

import (
	"bytes"
	"encoding/json"
	"math/big"
	"regexp"

	"contrail/tablecore/tableerr"
)

var integerText = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,99})$`)

// parseInteger reads a JSON number or a decimal text that is a whole number of
// at most 100 digits.
func parseInteger(field string, raw json.RawMessage) (*big.Int, error) {
	text := string(bytes.TrimSpace(raw))
	if s, ok := jsonText(raw); ok {
		text = s
	}
	if !integerText.MatchString(text) {
		return nil, notA(field, raw, "a whole number")
	}
	n, _ := new(big.Int).SetString(text, 10)
	return n, nil
}

// jsonText returns the text of a JSON string.
func jsonText(raw json.RawMessage) (string, bool) {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// notA is the refusal of a value of the wrong kind.
func notA(field string, raw json.RawMessage, want string) error {
	e := tableerr.InvalidField(field, "%s takes %s, not %s", field, want, shorten(raw))
	e.Value = json.RawMessage(raw)
	if !json.Valid(raw) {
		e.Value = string(raw)
	}
	return e
}

// shorten keeps messages readable.
func shorten(raw json.RawMessage) string {
	const most = 80
	if len(raw) > most {
		return string(bytes.ToValidUTF8(raw[:most], nil)) + "…"
	}
	return string(raw)
}
