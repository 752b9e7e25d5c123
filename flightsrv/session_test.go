package flightsrv

import (
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/protobuf/proto"

	"contrail/descriptors"
)

// A whole session: create, append by command and by path, describe, plan, read,
// list, drop.
func TestSession(t *testing.T) {
	f := start(t, Limits{})
	f.must("create_table", createWeather, nil)
	report, err := f.put(command(`{"op":"append","table":"weather","rows":5}`), weatherRows("EWR", 0, 3), weatherRows("JFK", 0, 2))
	if err != nil || report.Rows != 5 || report.CommittedVersion != 1 {
		t.Fatalf("append gives %+v, %v", report, err)
	}
	if report, err = f.put(path("default", "weather"), weatherRows("EWR", 3, 1)); err != nil || report.CommittedVersion != 2 {
		t.Fatalf("append by path gives %+v, %v", report, err)
	}
	rows, schema, stats, err := f.get(`{"op":"scan","table":"weather"}`)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"EWR 1970-01-01T00:00:00Z 0", "EWR 1970-01-01T01:00:00Z 0.5", "EWR 1970-01-01T02:00:00Z 1", "EWR 1970-01-01T03:00:00Z 1.5",
		"JFK 1970-01-01T00:00:00Z 0", "JFK 1970-01-01T01:00:00Z 0.5"}
	if !slices.Equal(rows, want) {
		t.Errorf("rows are %q, want %q", rows, want)
	}
	var counts struct {
		Version, Rows int64
		QueueMS       *int64 `json:"queue_ms"`
	}
	if err := json.Unmarshal([]byte(stats), &counts); err != nil || counts.Version != 2 || counts.Rows != 6 || counts.QueueMS == nil {
		t.Errorf("stats are %s (%v)", stats, err)
	}
	checkSchemas(f, schema)

	var list struct{ Tables []struct{ Table string } }
	f.must("list_tables", "", &list)
	if len(list.Tables) != 1 || list.Tables[0].Table != "default.weather" {
		t.Errorf("list_tables gives %+v", list)
	}
	f.must("drop_table", `{"table":"weather","expected_version":2}`, nil)
	_, _, _, err = f.get(`{"op":"scan","table":"weather"}`)
	wantError(t, "a scan after the drop", err, "TABLE_NOT_FOUND")
}

// The schemas of GetSchema, GetFlightInfo and DoGet, with and without rows, are
// the same.
func checkSchemas(f *fixture, want *arrow.Schema) {
	f.Helper()
	info, err := f.client.GetFlightInfo(f.context(), path("weather"))
	if err != nil {
		f.Fatal(err)
	}
	result, err := f.client.GetSchema(f.context(), path("weather"))
	if err != nil {
		f.Fatal(err)
	}
	for name, raw := range map[string][]byte{"GetFlightInfo": info.Schema, "GetSchema": result.Schema} {
		got, err := flight.DeserializeSchema(raw, memory.NewGoAllocator())
		if err != nil || !got.Equal(want) {
			f.Errorf("%s gives %v (%v), want %v", name, got, err, want)
		}
	}
	rows, empty, _, err := f.get(`{"op":"scan","table":"weather","entities":[]}`)
	if err != nil || len(rows) != 0 || !empty.Equal(want) {
		f.Errorf("a scan without rows gives %v, %v, %v", rows, empty, err)
	}
}

func TestGetFlightInfo(t *testing.T) {
	f := start(t, Limits{})
	now := time.Date(2026, 11, 30, 5, 0, 0, 0, time.UTC)
	f.server.opts.Clock = func() time.Time { return now }
	f.server.opts.Advertise = []string{"grpc://127.0.0.1:1"}
	f.must("create_table", createWeather, nil)
	for i := range 4 {
		if _, err := f.put(path("weather"), weatherRows("EWR", 100*i, 100)); err != nil {
			t.Fatal(err)
		}
	}
	d := command(`{"op":"scan","table":"weather","columns":["temp"],"max_endpoints":2,"start":"1970-01-01T00:00:00Z"}`)
	info, err := f.client.GetFlightInfo(f.context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(info.FlightDescriptor, d) || !info.Ordered || info.TotalBytes != -1 || len(info.Endpoint) == 0 || len(info.Endpoint) > 2 {
		t.Errorf("got %v", info)
	}
	var metadata descriptors.FlightMetadata
	if err := json.Unmarshal(info.AppMetadata, &metadata); err != nil || metadata.Table != "default.weather" || metadata.TableID == "" ||
		metadata.Version != 4 || len(metadata.SchemaID) != 16 {
		t.Errorf("app_metadata is %s", info.AppMetadata)
	}
	total := 0
	for _, e := range info.Endpoint {
		request, err := descriptors.ParseTicket(e.Ticket.Ticket)
		if err != nil {
			t.Fatal(err)
		}
		ticket := request.Scan
		if ticket.Version == nil || *ticket.Version != 4 || ticket.TableID != metadata.TableID || ticket.Table != "default.weather" ||
			(ticket.Split == nil) != (len(info.Endpoint) == 1) {
			t.Errorf("ticket %s (%v)", e.Ticket.Ticket, err)
		}
		if got := e.ExpirationTime.AsTime(); !got.Equal(now.Add(time.Hour)) || len(e.Location) != 1 {
			t.Errorf("endpoint %v", e)
		}
		rows, _, _, err := f.get(string(e.Ticket.Ticket))
		if err != nil {
			t.Error(err)
		}
		total += len(rows)
	}
	if total != 400 {
		t.Errorf("the endpoints give %d rows of 400", total)
	}
	again, err := f.client.GetFlightInfo(f.context(), d)
	if err != nil || !proto.Equal(info, again) {
		t.Errorf("a second plan differs: %v, %v", again, err)
	}
	// The tickets stay at their version.
	if _, err := f.put(path("weather"), weatherRows("JFK", 0, 7)); err != nil {
		t.Fatal(err)
	}
	rows, _, _, err := f.get(string(info.Endpoint[0].Ticket.Ticket))
	if err != nil || len(rows) > 400 {
		t.Errorf("a pinned ticket gives %d rows, %v", len(rows), err)
	}
}

func TestListFlights(t *testing.T) {
	f := start(t, Limits{})
	list := func(criteria string) (paths [][]string) {
		stream, err := f.client.ListFlights(f.context(), &flight.Criteria{Expression: []byte(criteria)})
		if err != nil {
			t.Fatal(err)
		}
		for {
			info, err := stream.Recv()
			if err == io.EOF {
				return paths
			}
			if err != nil {
				t.Fatal(err)
			}
			if info.TotalRecords != -1 || info.TotalBytes != -1 || info.FlightDescriptor.Type != flight.DescriptorPATH {
				t.Errorf("got %v", info)
			}
			paths = append(paths, info.FlightDescriptor.Path)
		}
	}
	if got := list(""); len(got) != 0 {
		t.Errorf("an empty warehouse lists %v", got)
	}
	f.must("create_table", createWeather, nil)
	f.must("create_table", `{"table":"plant.sensors","index_column":"t","index_type":"int64","index_granularity":10}`, nil)
	if got := list(""); len(got) != 2 || !slices.Equal(got[1], []string{"plant", "sensors"}) && !slices.Equal(got[0], []string{"plant", "sensors"}) {
		t.Errorf("all flights are %v", got)
	}
	if got := list("default"); len(got) != 1 || !slices.Equal(got[0], []string{"default", "weather"}) {
		t.Errorf("flights of default are %v", got)
	}
	if got := list("nothing"); len(got) != 0 {
		t.Errorf("flights of nothing are %v", got)
	}
	stream, err := f.client.ListFlights(f.context(), &flight.Criteria{Expression: []byte("../x")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	wantError(t, "a criteria that is a path", withTrailer(err, stream.Trailer()), "INVALID")
}

func TestListActions(t *testing.T) {
	f := start(t, Limits{})
	stream, err := f.client.ListActions(f.context(), &flight.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for {
		a, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, a.Type)
		var d struct {
			Text   string
			Fields []struct {
				Name, Type string
				Required   bool
			}
		}
		if err := json.Unmarshal([]byte(a.Description), &d); err != nil || d.Text == "" || d.Fields == nil {
			t.Errorf("action %s is described as %s (%v)", a.Type, a.Description, err)
		}
		if actions[a.Type] == nil && standard[a.Type] == nil {
			t.Errorf("action %s is listed and not run", a.Type)
		}
	}
	if len(names) != len(actions)+len(standard) {
		t.Errorf("listed are %v", names)
	}
}

func TestServerInfo(t *testing.T) {
	f := start(t, Limits{MaxReceiveMessageBytes: 1 << 20})
	var info descriptors.ServerInfo
	f.must("server_info", "", &info)
	if info.Name != "contrail" || info.ProtocolVersion != 1 || info.MaxReceiveMessageBytes != 1<<20 ||
		info.MaxSendMessageBytes != DefaultMaxSendMessageBytes || info.DefaultProfile != "compat" || info.FormatVersion == "" || info.Version == "" {
		t.Errorf("got %+v", info)
	}
	if info.Served == nil || *info.Served != (descriptors.Served{}) {
		t.Errorf("a new server has served %+v", info.Served)
	}
}

// Every part of a scan that ends well counts; what fails and what is no scan
// does not.
func TestServedCounts(t *testing.T) {
	f := start(t, Limits{})
	f.must("create_table", createWeather, nil)
	if _, err := f.put(path("weather"), weatherRows("EWR", 0, 10)); err != nil {
		t.Fatal(err)
	}
	for _, ticket := range []string{`{"op":"scan","table":"weather"}`, `{"op":"scan","table":"weather","start":14400000000}`, `{"op":"scan","table":"weather","start":180000000000}`,
		`{"op":"scan","table":"none"}`, `{"op":"files","table":"weather"}`} {
		_, _, _, _ = f.get(ticket)
	}
	var info descriptors.ServerInfo
	f.must("server_info", "", &info)
	got := *info.Served
	got.Bytes = 0
	if want := (descriptors.Served{Scans: 3, Rows: 16, Files: 2, FilesSkipped: 1, RowGroups: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCloseSession(t *testing.T) {
	f := start(t, Limits{})
	r, err := f.client.CloseSession(f.context(), &flight.CloseSessionRequest{})
	if err != nil || r.Status != flight.CloseSessionResultClosed {
		t.Errorf("got %v, %v", r, err)
	}
}

// Messages large enough to lie in pooled buffers, which the test poisons when
// they are given back, arrive value by value.
func TestLargeRoundTrip(t *testing.T) {
	f := start(t, Limits{})
	f.must("create_table", createWeather, nil)
	const n = 30_000
	var batches []arrow.RecordBatch
	for i, origin := range []string{"LGA", "EWR", "JFK"} {
		batches = append(batches, weatherRows(origin, i*7, n))
	}
	for name, opts := range map[string][]ipc.Option{"plain": nil, "zstd": {ipc.WithZstd()}, "lz4": {ipc.WithLZ4()}} {
		f.must("create_table", strings.Replace(createWeather, `"weather"`, `"`+name+`"`, 1), nil)
		d := command(`{"op":"append","table":"` + name + `","rows":90000}`)
		if r, err := f.send(clientMessages(t, d, batches, opts...)...); err != nil || r.Rows != 3*n {
			t.Fatalf("%s: append gives %+v, %v", name, r, err)
		}
		for i, origin := range []string{"LGA", "EWR", "JFK"} {
			rows, _, _, err := f.get(`{"op":"scan","table":"` + name + `","columns":["time_hour","temp"],"entities":[{"origin":"` + origin + `"}]}`)
			if err != nil || len(rows) != n {
				t.Fatalf("%s: %s has %d rows, %v", name, origin, len(rows), err)
			}
			for j, row := range rows {
				at := time.Unix(int64(i*7+j)*3600, 0).UTC().Format("2006-01-02T15:04:05Z")
				if want := at + " " + strconv.FormatFloat(float64(i*7+j)/2, 'g', -1, 64); row != want {
					t.Fatalf("%s: row %d of %s is %q, want %q", name, j, origin, row, want)
				}
			}
		}
	}
}
