package descriptors

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestEncodedScansAreReadBack(t *testing.T) {
	scans := []*Scan{
		{Table: "t"},
		{Table: "plant.sensors", TableID: "id", Columns: []string{`a "quoted"`, "tab\t", "del\x7f", "nl\n\r", "ß", "\x01"}, Entities: []Entity{},
			Start: json.RawMessage("9007199254740993"), End: json.RawMessage(`"18446744073709551615"`), Version: ptr(int64(0)),
			Profile: ProfileExact, BatchRows: 7, MaxEndpoints: 3, Split: &Split{2, 3}},
		{Table: "t", Entities: []Entity{{}, {{"b", json.RawMessage("true")}, {"a", json.RawMessage("-5")}}}, Version: ptr(int64(1 << 60))},
	}
	for _, want := range scans {
		ticket, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseScanTicket(ticket)
		if err != nil {
			t.Fatalf("%s: %v", ticket, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", ticket, got, want)
		}
	}
}

func TestEncodeDropsBlanksInValues(t *testing.T) {
	s := Scan{Table: "t", Start: json.RawMessage(" 5 ")}
	got, err := s.Encode()
	if err != nil || string(got) != `{"op":"scan","table":"t","start":5}` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestEncodeRefusesWhatIsNoJSON(t *testing.T) {
	_, err := (&Scan{Table: "t", End: json.RawMessage("1,2")}).Encode()
	refusedAt(t, err, "end")
	_, err = (&Scan{Table: "t", Entities: []Entity{{{"a", nil}}}, Start: json.RawMessage("}")}).Encode()
	refusedAt(t, err, "entities")
}

func TestEncodedPutsAreReadBack(t *testing.T) {
	for _, want := range []Put{
		&Append{Table: "t"},
		&UpdateRows{Table: "t", Columns: []string{}},
		&UpdateRows{Table: "t", TableID: "id", Columns: []string{"a", "b.c"}, ExpectedVersion: 7, Rows: ptr(int64(3)), RequestID: "a ~"},
		&UpdateRows{Table: "t", Columns: []string{"a"}, EndMarker: true},
		&Append{Table: "t", TableID: "id", EndMarker: true, ExpectedVersion: ptr(int64(0)), RequestID: "a ~", Compression: "ZSTD",
			MaxRowsPerRowGroup: ptr(int64(1)), MaxBytesPerRowGroup: ptr(int64(2))},
		&Append{Table: "t", Rows: ptr(int64(0))},
	} {
		command, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParsePut(command)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", command, got, err)
		}
	}
}

func TestEntityMap(t *testing.T) {
	e := Entity{{"a", json.RawMessage("1")}, {"b", json.RawMessage(`"x"`)}}
	if got, want := e.Map(), map[string]json.RawMessage{"a": json.RawMessage("1"), "b": json.RawMessage(`"x"`)}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func BenchmarkParseTicket(b *testing.B) {
	ticket := example(b, "scan_plain.json")
	b.ReportAllocs()
	b.SetBytes(int64(len(ticket)))
	for b.Loop() {
		if _, err := parseScanTicket(ticket); err != nil {
			b.Fatal(err)
		}
	}
}

// A request of the largest size costs about as much a byte as a small one.
func BenchmarkParseLargestTicket(b *testing.B) {
	const one = `{"origin":"EWR","plane":1234567},`
	ticket := []byte(scanHead + `"entities":[` + strings.Repeat(one, (MaxRequestBytes-100)/len(one)) + `{}]}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(ticket)))
	for b.Loop() {
		if _, err := parseScanTicket(ticket); err != nil {
			b.Fatal(err)
		}
	}
}
