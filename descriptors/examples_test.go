package descriptors

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"contrail/tablecore/tableerr"
)

// example reads a request or answer of the protocol's documents, kept byte for
// byte in testdata/examples.
func example(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func ptr[T any](v T) *T { return &v }

// refusedAt asserts an INVALID about the given field.
func refusedAt(t *testing.T, err error, field string) {
	t.Helper()
	var invalid *tableerr.Invalid
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v, want an Invalid about %q", err, field)
	}
	if invalid.Field != field {
		t.Fatalf("got field %q (%v), want %q", invalid.Field, err, field)
	}
}

func TestExampleRequests(t *testing.T) {
	weatherColumns := []string{"origin", "time_hour", "temp"}
	rawText := func(s string) json.RawMessage { return json.RawMessage(`"` + s + `"`) }
	cases := []struct {
		file  string
		parse func([]byte) (any, error)
		want  any
	}{
		{"append.json", parsePut, &Append{
			Table: "default.weather", Rows: ptr(int64(2159)), ExpectedVersion: ptr(int64(3)), RequestID: "weather-2013-04",
			Compression: "auto", MaxRowsPerRowGroup: ptr(int64(262144)), MaxBytesPerRowGroup: ptr(int64(134217728))}},
		{"append_session.json", parsePut, &Append{Table: "weather", Rows: ptr(int64(26115))}},
		{"update_rows.json", parsePut, &UpdateRows{Table: "default.weather", Columns: []string{"temp", "wind_gust"}, ExpectedVersion: 4, RequestID: "fix-17"}},
		{"scan_plain.json", any1(parseScanCommand), &Scan{
			Table: "default.weather", Columns: weatherColumns,
			Entities: []Entity{{{"origin", rawText("EWR")}}, {{"origin", rawText("JFK")}}},
			Start:    rawText("2013-01-01T00:00:00Z"), End: rawText("2013-01-08T00:00:00Z"),
			Version: ptr(int64(4)), BatchRows: 65536, MaxEndpoints: 1, Profile: ProfileCompat,
			Order: OrderEntityIndex, Compression: CompressionNone}},
		{"scan.json", any1(parseScanCommand), &Scan{
			Table: "default.weather", Columns: weatherColumns,
			Entities: []Entity{{{"origin", rawText("EWR")}}, {{"origin", rawText("JFK")}}},
			Start:    rawText("2013-01-01T00:00:00Z"), End: rawText("2013-01-08T00:00:00Z"),
			Filter:  []Condition{{"temp", ">", json.RawMessage("32.0")}, {"wind_dir", "in", json.RawMessage("[0,180]")}, {"wind_gust", "is null", nil}},
			Version: ptr(int64(4)), Limit: ptr(int64(1000)), Order: OrderEntityIndex, BatchRows: 65536, Compression: CompressionNone,
			MaxEndpoints: 1, Profile: ProfileCompat}},
		{"scan_session.json", any1(parseScanTicket), &Scan{
			Table: "weather", Entities: []Entity{{{"origin", rawText("EWR")}}},
			Start: rawText("2013-01-01T00:00:00Z"), End: rawText("2013-01-08T00:00:00Z")}},
		{"ticket.json", any1(parseScanTicket), &Scan{
			Table: "default.weather", TableID: "9b3f…", Columns: weatherColumns, Version: ptr(int64(4)), Split: &Split{0, 2}}},
		{"scan_since.json", any1(parseScanTicket), &Scan{
			Table: "default.weather", Columns: []string{"origin", "temp"}, Version: ptr(int64(7)), SinceVersion: ptr(int64(4)), Changes: ChangesIgnore}},
		{"latest.json", any1(parseLatest), &Latest{
			Table: "default.weather", Entities: []Entity{{{"origin", rawText("EWR")}}}, At: rawText("2013-06-30T23:00:00Z"),
			Columns: weatherColumns, Version: ptr(int64(4))}},
		{"coverage.json", any1(parseCoverage), &Coverage{
			Table: "default.weather", Entities: []Entity{{{"origin", rawText("EWR")}}},
			Start: rawText("2013-01-01T00:00:00Z"), End: rawText("2014-01-01T00:00:00Z"), Kind: CoverageMissing}},
		{"create_table.json", any1(ParseCreateTable), &CreateTable{
			Table: "default.weather", IndexColumn: "time_hour", IndexGranularity: "1h", EntityColumns: []string{"origin"},
			Uniqueness: "reject", IngestTimeColumn: ptr("_ingest_ts"), Properties: map[string]string{},
			Columns: []Column{{"origin", "string", true}, {"time_hour", "timestamp[us, tz=UTC]", true}, {"temp", "double", false}}}},
		{"create_table_session.json", any1(ParseCreateTable), &CreateTable{
			Table: "weather", IndexColumn: "time_hour", IndexType: "timestamp", IndexGranularity: "1h", EntityColumns: []string{"origin"}}},
		{"describe_table.json", any1(ParseDescribeTable), &DescribeTable{Table: "default.weather", Version: ptr(int64(4))}},
		{"drop_table.json", any1(ParseDropTable), &DropTable{Table: "default.weather"}},
		{"vacuum.json", any1(ParseVacuum), &Vacuum{Table: "default.weather", OlderThan: ptr(time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC))}},
		{"check.json", any1(ParseCheck), &Check{Table: "default.weather"}},
		{"optimize.json", any1(ParseOptimize), &Optimize{Table: "default.weather", Layout: "mixed", TargetFileBytes: ptr(int64(134217728)), MaxFiles: ptr(int64(10000))}},
		{"upgrade.json", any1(ParseUpgrade), &Upgrade{Table: "default.weather", KeepSnapshots: "7d", DryRun: true}},
		{"stage.json", parsePut, &Stage{Table: "default.weather", Rows: ptr(int64(2159)), Compression: "zstd", MaxRowsPerRowGroup: ptr(int64(262144)), MaxBytesPerRowGroup: ptr(int64(134217728))}},
		{"commit_staged.json", any1(ParseCommitStaged), &CommitStaged{Table: "default.weather", RequestID: "weather-2013-04", Staged: []string{"eyJ2IjoxfQ", "eyJ2IjoyfQ"}, ExpectedVersion: ptr(int64(3))}},
		{"abort_staged.json", any1(ParseAbortStaged), &AbortStaged{Table: "default.weather", Staged: []string{"eyJ2IjoxfQ"}}},
		{"rollback.json", any1(ParseRollback), &Rollback{Table: "default.weather", Version: 4, ExpectedVersion: 7}},
		{"add_columns.json", any1(ParseAddColumns), &AddColumns{Table: "default.weather", Columns: []Column{{"quality", "int8", false}}}},
		{"set_properties.json", any1(ParseSetProperties), &SetProperties{Table: "default.weather",
			Properties: map[string]*string{"contrail.retention": ptr("30d"), "team": ptr("ops"), "old": nil}}},
		{"checkpoint.json", any1(ParseCheckpoint), &Checkpoint{Table: "default.weather"}},
		{"list_tables.json", any1(ParseListTables), &ListTables{Namespace: "default"}},
	}
	for _, c := range cases {
		t.Run(c.file, func(t *testing.T) {
			got, err := c.parse(example(t, c.file))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func parsePut(body []byte) (any, error) { return ParsePut(body) }

// any1 widens a parser's result so that parsers fit one table.
func any1[T any](parse func([]byte) (*T, error)) func([]byte) (any, error) {
	return func(body []byte) (any, error) { return parse(body) }
}

func TestExampleMarker(t *testing.T) {
	rows, ok, err := ParseMarker(example(t, "marker.json"))
	if rows != 2159 || !ok || err != nil {
		t.Errorf("got %d, %t, %v", rows, ok, err)
	}
	if got := string(EncodeMarker(2159)); got != `{"commit":true,"rows":2159}` {
		t.Errorf("encoded as %s", got)
	}
}

func TestExampleTicketIsEncodedByteForByte(t *testing.T) {
	want := example(t, "ticket.json")
	scan, err := parseScanTicket(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := scan.Encode()
	if err != nil || string(got) != string(want) {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestPutsAreNoTickets(t *testing.T) {
	for _, op := range []string{OpAppend, OpUpdateRows} {
		_, err := parseScanTicket([]byte(`{"op":"` + op + `","table":"default.weather"}`))
		refusedAt(t, err, "op")
	}
}

func TestExampleAnswers(t *testing.T) {
	metadata, err := json.Marshal(FlightMetadata{"default.weather", "9b3f…", 4, "b1946ac92492d234"})
	if want := example(t, "flight_metadata.json"); err != nil || string(metadata) != string(want) {
		t.Errorf("got %s, %v, want %s", metadata, err, want)
	}
	info, err := EncodeResult(ServerInfo{"contrail", "0.1.0", ProtocolVersion, "0.3.0", 67108864, 3670016, ProfileCompat, nil})
	if want := example(t, "server_info_result.json"); err != nil || string(info) != string(want) {
		t.Errorf("got %s, %v, want %s", info, err, want)
	}
	empty, err := EncodeResult(NewTableList[string](nil))
	if err != nil || string(empty) != `{"result":{"tables":[]}}` {
		t.Errorf("got %s, %v", empty, err)
	}
	if _, err := EncodeResult(make(chan int)); err == nil {
		t.Error("a channel was encoded")
	}
}

func TestExampleError(t *testing.T) {
	message, detail := FormatError(&tableerr.IntervalOverlap{
		About: tableerr.About{Table: "default.weather"}, ConflictCount: 2190, Entity: tableerr.Values{{Name: "origin", Value: "EWR"}},
		Interval: "[2013-01-01T06:00:00Z, 2013-01-01T07:00:00Z)", Version: 1})
	if want := example(t, "overlap_message.txt"); message != string(want) {
		t.Errorf("got  %s\nwant %s", message, want)
	}
	if want := example(t, "overlap_detail.json"); string(detail) != string(want) {
		t.Errorf("got  %s\nwant %s", detail, want)
	}
}
