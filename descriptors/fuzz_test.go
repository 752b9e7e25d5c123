package descriptors

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"unicode/utf8"

	"contrail/tablecore/tableerr"
)

// seedExamples adds every example of the protocol's documents to the corpus,
// together with a few hostile ones.
func seedExamples(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "examples", "*.json"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	for _, s := range []string{"", "{", `{"op":"scan","op":"scan"}`, `{"a":[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]}`, `{"\ud83d\ude00":"\ud83d"}`, "\xff", `{"op":null}`} {
		f.Add([]byte(s))
	}
}

// wellRefused asserts the shape of every refusal and that it can be sent.
func wellRefused(t *testing.T, err error) {
	t.Helper()
	var invalid *tableerr.Invalid
	if !errors.As(err, &invalid) || invalid.Field == "" || invalid.Msg == "" {
		t.Fatalf("refused by %#v", err)
	}
	checkFormat(t, string(invalid.Token()), invalid.Text(), invalid.Fields())
}

func FuzzDescriptor(f *testing.F) {
	seedExamples(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		if read, err := ParseCommand(body); err != nil {
			wellRefused(t, err)
		} else {
			readBack(t, read)
		}
		a, err := ParsePut(body)
		if err != nil {
			wellRefused(t, err)
			return
		}
		command, err := a.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ParsePut(command); err != nil || !reflect.DeepEqual(a, again) {
			t.Fatalf("%s: got %+v, %v, want %+v", command, again, err, a)
		}
	})
}

func FuzzTicket(f *testing.F) {
	seedExamples(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		read, err := ParseTicket(body)
		if err != nil {
			wellRefused(t, err)
			return
		}
		readBack(t, read)
	})
}

// encodeRead writes what a Read holds.
func encodeRead(r *Read) ([]byte, error) {
	switch {
	case r.Listing != nil:
		return r.Listing.Encode()
	case r.Latest != nil:
		return r.Latest.Encode()
	case r.Coverage != nil:
		return r.Coverage.Encode()
	}
	return r.Scan.Encode()
}

// readBack asserts that an accepted request survives the way through a ticket.
func readBack(t *testing.T, read *Read) {
	t.Helper()
	ticket, err := encodeRead(read)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseTicket(ticket)
	if err != nil {
		t.Fatalf("%s: %v", ticket, err)
	}
	second, err := encodeRead(again)
	if err != nil || string(second) != string(ticket) || !reflect.DeepEqual(read, again) {
		t.Fatalf("%s became %s, %v", ticket, second, err)
	}
}

func FuzzMarker(f *testing.F) {
	seedExamples(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		rows, ok, err := ParseMarker(body)
		switch {
		case err != nil:
			wellRefused(t, err)
		case ok:
			if again, ok, err := ParseMarker(EncodeMarker(rows)); again != rows || !ok || err != nil {
				t.Fatalf("%d became %d, %t, %v", rows, again, ok, err)
			}
		}
	})
}

func fuzzBody(f *testing.F, parse func([]byte) (any, error)) {
	seedExamples(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := parse(body); err != nil {
			wellRefused(t, err)
		}
	})
}

func FuzzCreateTable(f *testing.F)   { fuzzBody(f, any1(ParseCreateTable)) }
func FuzzAddColumns(f *testing.F)    { fuzzBody(f, any1(ParseAddColumns)) }
func FuzzSetProperties(f *testing.F) { fuzzBody(f, any1(ParseSetProperties)) }
func FuzzCheckpoint(f *testing.F)    { fuzzBody(f, any1(ParseCheckpoint)) }
func FuzzUpgrade(f *testing.F)       { fuzzBody(f, any1(ParseUpgrade)) }
func FuzzCommitStaged(f *testing.F)  { fuzzBody(f, any1(ParseCommitStaged)) }
func FuzzAbortStaged(f *testing.F)   { fuzzBody(f, any1(ParseAbortStaged)) }
func FuzzRollback(f *testing.F)      { fuzzBody(f, any1(ParseRollback)) }
func FuzzVacuum(f *testing.F)        { fuzzBody(f, any1(ParseVacuum)) }
func FuzzCheck(f *testing.F)         { fuzzBody(f, any1(ParseCheck)) }
func FuzzDropTable(f *testing.F)     { fuzzBody(f, any1(ParseDropTable)) }
func FuzzListTables(f *testing.F)    { fuzzBody(f, any1(ParseListTables)) }
func FuzzDescribeTable(f *testing.F) { fuzzBody(f, any1(ParseDescribeTable)) }
func FuzzServerInfo(f *testing.F) {
	fuzzBody(f, func(body []byte) (any, error) { return nil, ParseServerInfo(body) })
}

// FuzzSyntax compares the strict scanner with encoding/json: it accepts a
// subset, and what it accepts means the same.
func FuzzSyntax(f *testing.F) {
	seedExamples(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		if checkSyntax(body) != nil {
			return
		}
		if !json.Valid(body) || !utf8.Valid(body) {
			t.Fatalf("%q was accepted", body)
		}
		sameMeaning(t, trimmed(body))
	})
}

// sameMeaning walks a value with the readers and with encoding/json.
func sameMeaning(t *testing.T, v value) {
	t.Helper()
	switch v[0] {
	case '"':
		var want string
		if err := json.Unmarshal(v, &want); err != nil || unquote(v) != want {
			t.Fatalf("%s: got %q, want %q (%v)", v, unquote(v), want, err)
		}
	case '{':
		var want map[string]json.RawMessage
		if err := json.Unmarshal(v, &want); err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		n := 0
		for key, member := range v.members() {
			if string(want[key]) != string(member) {
				t.Fatalf("%s: %q is %s, want %s", v, key, member, want[key])
			}
			sameMeaning(t, member)
			n++
		}
		if n != len(want) {
			t.Fatalf("%s: %d members, want %d", v, n, len(want))
		}
	case '[':
		var want []json.RawMessage
		if err := json.Unmarshal(v, &want); err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		n := 0
		for i, element := range v.elements() {
			if string(want[i]) != string(element) {
				t.Fatalf("%s: %d is %s, want %s", v, i, element, want[i])
			}
			sameMeaning(t, element)
			n++
		}
		if n != len(want) {
			t.Fatalf("%s: %d elements, want %d", v, n, len(want))
		}
	}
}

func FuzzFormat(f *testing.F) {
	f.Add("a text", "value", 3)
	f.Add("\xff\n", "日本…", 40)
	f.Fuzz(func(t *testing.T, text, v string, n int) {
		var fields []tableerr.Field
		for range n % 64 {
			fields = append(fields, tableerr.Field{Key: "key", Value: v}, tableerr.Field{Key: "list", Value: []string{v, v}})
		}
		checkFormat(t, "TOKEN", text, fields)
	})
}

func FuzzPath(f *testing.F) {
	f.Add("a", "b")
	f.Add(".", "")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, path := range [][]string{{a}, {a, b}, {a, b, a}} {
			if _, err := TableOfPath(path); err != nil {
				wellRefused(t, err)
			}
		}
	})
}
