package descriptors

import (
	"reflect"
	"testing"
)

func parseLatest(ticket []byte) (*Latest, error) {
	r, err := ParseTicket(ticket)
	if err != nil {
		return nil, err
	}
	return r.Latest, nil
}

func parseCoverage(ticket []byte) (*Coverage, error) {
	r, err := ParseTicket(ticket)
	if err != nil {
		return nil, err
	}
	return r.Coverage, nil
}

// TestSeriesRequestsAreEncodedAsTheyAreRead covers every field of both.
func TestSeriesRequestsAreEncodedAsTheyAreRead(t *testing.T) {
	for _, body := range []string{
		`{"op":"latest","table":"default.weather"}`,
		`{"op":"latest","table":"default.weather","table_id":"9b3f","columns":["b","a"],"entities":[],"at":5,"version":0}`,
		`{"op":"latest","table":"default.weather","entities":[{"origin":"EWR"},{}],"as_of":"2013-01-01T00:00:00Z"}`,
		`{"op":"coverage","table":"default.weather","kind":"summary"}`,
		`{"op":"coverage","table":"default.weather","table_id":"9b3f","entities":[],"start":"x","end":9,"kind":"last_window","n":1,"version":3}`,
		`{"op":"coverage","table":"default.weather","entities":[{"a":1,"b":"2"}],"kind":"covered","as_of":"2013-01-01T00:00:00.5Z"}`,
	} {
		for _, parse := range []func([]byte) (*Read, error){ParseTicket, ParseCommand} {
			read, err := parse([]byte(body))
			if err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			got, err := encodeRead(read)
			if err != nil || string(got) != body {
				t.Errorf("got %s, %v, want %s", got, err, body)
			}
			if again, err := parse(got); err != nil || !reflect.DeepEqual(again, read) {
				t.Errorf("%s: read back as %+v, %v", body, again, err)
			}
		}
	}
	if _, err := (&Latest{Table: "t", At: []byte("{")}).Encode(); err == nil {
		t.Error("a broken value was encoded")
	}
	if _, err := (&Coverage{Table: "t", Start: []byte("{")}).Encode(); err == nil {
		t.Error("a broken value was encoded")
	}
}

func TestSeriesRequestsAreStrict(t *testing.T) {
	for _, c := range []struct{ body, field string }{
		{`{"op":"latest"}`, "table"},
		{`{"op":"latest","table":""}`, "table"},
		{`{"op":"latest","table":"t","columns":[]}`, "columns"},
		{`{"op":"latest","table":"t","columns":["a","a"]}`, "columns[1]"},
		{`{"op":"latest","table":"t","entities":{}}`, "entities"},
		{`{"op":"latest","table":"t","entities":[{"a":null}]}`, "entities[0].a"},
		{`{"op":"latest","table":"t","entities":[{"a":[1]}]}`, "entities[0].a"},
		{`{"op":"latest","table":"t","at":true}`, "at"},
		{`{"op":"latest","table":"t","version":-1}`, "version"},
		{`{"op":"latest","table":"t","version":true}`, "version"},
		{`{"op":"latest","table":"t","as_of":"yesterday"}`, "as_of"},
		{`{"op":"latest","table":"t","version":1,"as_of":"2013-01-01T00:00:00Z"}`, "as_of"},
		{`{"op":"latest","table":"t","limit":1}`, "limit"},
		{`{"op":"latest","table":"t","table_id":5}`, "table_id"},
		{`{"op":"coverage","table":"t"}`, "kind"},
		{`{"op":"coverage","table":"t","kind":"gaps"}`, "kind"},
		{`{"op":"coverage","table":"t","kind":3}`, "kind"},
		{`{"op":"coverage","table":"t","kind":"missing","n":1}`, "n"},
		{`{"op":"coverage","table":"t","kind":"last_window"}`, "n"},
		{`{"op":"coverage","table":"t","kind":"last_window","n":0}`, "n"},
		{`{"op":"coverage","table":"t","kind":"last_window","n":1.5}`, "n"},
		{`{"op":"coverage","table":"t","kind":"last_window","n":99999999999999999999}`, "n"},
		{`{"op":"coverage","table":"t","kind":"missing","start":[]}`, "start"},
		{`{"op":"coverage","table":"t","kind":"missing","end":false}`, "end"},
		{`{"op":"coverage","table":"t","kind":"missing","entities":5}`, "entities"},
		{`{"op":"coverage","table":"t","kind":"missing","version":1,"as_of":"2013-01-01T00:00:00Z"}`, "as_of"},
		{`{"op":"coverage","table":"t","kind":"missing","at":1}`, "at"},
	} {
		_, err := ParseTicket([]byte(c.body))
		refusedAt(t, err, c.field)
		_, err = ParseCommand([]byte(c.body))
		refusedAt(t, err, c.field)
	}
	_, err := ParsePut([]byte(`{"op":"coverage","table":"t"}`))
	refusedAt(t, err, "op")
}
