package descriptors

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// parseScanCommand and parseScanTicket read what must be a scan.
func parseScanCommand(body []byte) (*Scan, error) { return scanOf(ParseCommand(body)) }

func parseScanTicket(body []byte) (*Scan, error) { return scanOf(ParseTicket(body)) }

func scanOf(r *Read, err error) (*Scan, error) {
	if err != nil {
		return nil, err
	}
	return r.Scan, nil
}

func TestListings(t *testing.T) {
	moment := time.Date(2013, 1, 1, 6, 0, 0, 5000, time.UTC)
	for _, want := range []*Listing{
		{Op: OpTables},
		{Op: OpHistory, Table: "default.weather", TableID: "id"},
		{Op: OpFiles, Table: "weather", Version: ptr(int64(0))},
		{Op: OpEntities, Table: "weather", TableID: "id", AsOf: &moment},
	} {
		ticket, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		for _, parse := range []func([]byte) (*Read, error){ParseTicket, ParseCommand} {
			got, err := parse(ticket)
			if err != nil || got.Scan != nil || !reflect.DeepEqual(got.Listing, want) {
				t.Errorf("%s: got %+v, %v", ticket, got, err)
			}
		}
	}
}

func TestListingRefusals(t *testing.T) {
	for _, c := range []struct{ body, field string }{
		{`{"op":"tables","table":"x"}`, "table"},
		{`{"op":"history","table":"x","version":1}`, "version"},
		{`{"op":"history"}`, "table"},
		{`{"op":"files","table":"x","version":1,"as_of":"2013-01-01T00:00:00Z"}`, "as_of"},
		{`{"op":"files","table":"x","as_of":"2013-01-01T00:00:00"}`, "as_of"},
		{`{"op":"entities","table":"x","as_of":5}`, "as_of"},
		{`{"op":"entities","table":"x","split":null,"limit":1}`, "split"},
		{`{"op":"files","table":"x","version":-1}`, "version"},
		{`{"op":5}`, "op"},
		{`{"table":"x"}`, "op"},
		{`{"op":"lost","table":"x"}`, "op"},
	} {
		_, err := ParseTicket([]byte(c.body))
		refusedAt(t, err, c.field)
	}
	_, err := ParsePut([]byte(`{"op":"files","table":"x"}`))
	refusedAt(t, err, "op")
}

func TestExplain(t *testing.T) {
	body := []byte(`{"op":"explain","table":"default.weather","filter":[["temp",">",1.5]],"limit":3}`)
	want := &Scan{Table: "default.weather", Filter: []Condition{{"temp", ">", json.RawMessage("1.5")}}, Limit: ptr(int64(3)), Explain: true}
	got, err := parseScanTicket(body)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if again, err := got.Encode(); err != nil || string(again) != string(body) {
		t.Fatalf("encoded as %s, %v", again, err)
	}
	_, err = ParseTicket([]byte(`{"op":"explain","table":"x","version":1,"split":{"index":0,"count":1}}`))
	refusedAt(t, err, "split")
}

func TestFilterForms(t *testing.T) {
	got, err := parseScanCommand([]byte(scanHead + `"filter":[ ["a","==",1] ,["b","in",[1, "x"]],["c","is null"],["d","is not null"],["",">=",true]]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Condition{{"a", "=", json.RawMessage("1")}, {"b", "in", json.RawMessage(`[1,"x"]`)}, {"c", "is null", nil}, {"d", "is not null", nil}, {"", ">=", json.RawMessage("true")}}
	if !reflect.DeepEqual(got.Filter, want) {
		t.Errorf("got %+v", got.Filter)
	}
	for _, c := range []struct{ filter, field string }{
		{`{}`, "filter"},
		{`[5]`, "filter[0]"},
		{`[["a"]]`, "filter[0]"},
		{`[[]]`, "filter[0]"},
		{`[["a","="]]`, "filter[0]"},
		{`[["a","=",1],["a","=",null]]`, "filter[1][2]"},
		{`[["a","=",[1]]]`, "filter[0][2]"},
		{`[["a","=",{}]]`, "filter[0][2]"},
		{`[["a","=",1,2]]`, "filter[0][3]"},
		{`[["a","is null",1]]`, "filter[0][2]"},
		{`[["a","in",1]]`, "filter[0][2]"},
		{`[["a","in",[1,null]]]`, "filter[0][2][1]"},
		{`[["a","in",[[1]]]]`, "filter[0][2][0]"},
		{`[[5,"=",1]]`, "filter[0][0]"},
		{`[["a",5,1]]`, "filter[0][1]"},
		{`[["a","like","x"]]`, "filter[0][1]"},
		{`[["a","IN",[]]]`, "filter[0][1]"},
	} {
		_, err := parseScanCommand([]byte(scanHead + `"filter":` + c.filter + `}`))
		refusedAt(t, err, c.field)
	}
}

func TestScanChoices(t *testing.T) {
	for _, c := range []struct{ field, body string }{
		{"as_of", `"version":1,"as_of":"2013-01-01T00:00:00Z"`},
		{"as_of", `"as_of":"yesterday"`},
		{"since_version", `"since_version":-1`},
		{"since_version", `"since_version":true`},
		{"changes", `"changes":"ignore"`},
		{"changes", `"since_version":1,"changes":"all"`},
		{"limit", `"limit":-1`},
		{"order", `"order":"sorted"`},
		{"newest_first", `"newest_first":1`},
		{"newest_first", `"newest_first":true,"order":"unordered"`},
		{"compression", `"compression":"LZ4"`},
	} {
		_, err := parseScanCommand([]byte(scanHead + c.body + `}`))
		refusedAt(t, err, c.field)
	}
}
