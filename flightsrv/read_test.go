package flightsrv

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"contrail/descriptors"
	"contrail/tablecore/tableerr"
)

// Every listing answers all three calls with one schema, and its ticket reads
// what the FlightInfo is about.
func TestListingCalls(t *testing.T) {
	f := start(t, Limits{})
	f.fill(10)
	if _, err := f.put(path("weather"), weatherRows("JFK", 0, 5)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command string
		rows    int
		pinned  string // what the ticket says of the version
	}{
		{`{"op":"tables"}`, 1, ""},
		{`{"op":"history","table":"weather"}`, 3, ""},
		{`{"op":"files","table":"weather"}`, 2, `"version":2`},
		{`{"op":"files","table":"weather","version":1}`, 1, `"version":1`},
		{`{"op":"entities","table":"weather"}`, 2, `"version":2`},
		{`{"op":"explain","table":"weather","entities":[{"origin":"EWR"}],"filter":[["temp",">=",0]]}`, 2, `"version":2`},
		{`{"op":"latest","table":"weather"}`, 2, `"version":2`},
		{`{"op":"latest","table":"weather","entities":[{"origin":"JFK"}],"columns":["temp"],"version":1}`, 0, `"version":1`},
		{`{"op":"coverage","table":"weather","kind":"covered","start":"1970-01-01T00:00:00Z"}`, 2, `"version":2`},
		{`{"op":"coverage","table":"weather","kind":"last_window","n":3,"version":1}`, 1, `"version":1`},
	} {
		info, err := f.client.GetFlightInfo(f.context(), command(c.command))
		if err != nil {
			t.Errorf("%s: %v", c.command, err)
			continue
		}
		schema, err := f.client.GetSchema(f.context(), command(c.command))
		if err != nil || string(schema.Schema) != string(info.Schema) {
			t.Errorf("%s: the schemas differ (%v)", c.command, err)
		}
		want, err := flight.DeserializeSchema(info.Schema, memory.NewGoAllocator())
		if err != nil {
			t.Fatal(err)
		}
		if len(info.Endpoint) != 1 || !info.Ordered || info.TotalRecords != -1 || !strings.Contains(string(info.AppMetadata), `"schema_id":"`) {
			t.Errorf("%s: %v", c.command, info)
			continue
		}
		ticket := string(info.Endpoint[0].Ticket.Ticket)
		if !strings.Contains(ticket, c.pinned) || strings.Contains(c.command, "weather") != strings.Contains(ticket, `"table_id"`) {
			t.Errorf("%s: ticket %s", c.command, ticket)
		}
		for _, text := range []string{ticket, c.command} {
			rows, got, stats, err := f.get(text)
			if err != nil || len(rows) != c.rows || !got.Equal(want) || !strings.Contains(stats, `"rows":`) {
				t.Errorf("%s: %d rows, %v, %s, %v", text, len(rows), got, stats, err)
			}
		}
	}
	rows, _, _, err := f.get(`{"op":"explain","table":"weather","entities":[{"origin":"EWR"}]}`)
	if text := strings.Join(rows, "\n"); err != nil || !strings.Contains(text, "true kept 1 1") || !strings.Contains(text, "false entity 1 0") {
		t.Errorf("explained as %s (%v)", text, err)
	}
}

func TestListingRefusals(t *testing.T) {
	f := start(t, Limits{})
	f.fill(1)
	for ticket, token := range map[string]tableerr.Token{
		`{"op":"history","table":"nowhere"}`:                                                  tableerr.TokenTableNotFound,
		`{"op":"files","table":"weather","table_id":"x"}`:                                     tableerr.TokenTableNotFound,
		`{"op":"files","table":"weather","version":9}`:                                        tableerr.TokenVersionNotFound,
		`{"op":"entities","table":"a/b"}`:                                                     tableerr.TokenInvalid,
		`{"op":"entities","table":"weather","as_of":"1970-01-01T00:00:00Z"}`:                  tableerr.TokenVersionNotFound,
		`{"op":"scan","table":"weather","as_of":"9000-01-01T00:00:00Z"}`:                      tableerr.TokenInvalid,
		`{"op":"explain","table":"weather","filter":[["temp","=",null]]}`:                     tableerr.TokenInvalid,
		`{"op":"latest","table":"nowhere"}`:                                                   tableerr.TokenTableNotFound,
		`{"op":"latest","table":"weather","columns":["pressure"]}`:                            tableerr.TokenInvalid,
		`{"op":"coverage","table":"nowhere","kind":"missing"}`:                                tableerr.TokenTableNotFound,
		`{"op":"coverage","table":"weather","kind":"missing","start":5,"end":5}`:              tableerr.TokenInvalid,
		`{"op":"scan","table":"weather","filter":[["temp","=","x"]]}`:                         tableerr.TokenInvalid,
		`{"op":"scan","table":"weather","limit":5,"version":1,"split":{"index":0,"count":2}}`: tableerr.TokenInvalid,
	} {
		_, _, _, err := f.get(ticket)
		wantError(t, ticket, err, token)
	}
}

func TestScanChoicesOnTheWire(t *testing.T) {
	f := start(t, Limits{})
	f.fill(1000)
	for _, c := range []struct {
		more string
		rows int
	}{
		{`"limit":7`, 7},
		{`"limit":0`, 0},
		{`"newest_first":true,"limit":3`, 3},
		{`"order":"unordered"`, 1000},
		{`"filter":[["temp",">=",0],["origin","in",["EWR","XXX"]]],"limit":10`, 10},
		{`"filter":[["temp","is null"]]`, 0},
	} {
		ticket := strings.TrimSuffix(wholeScan, "}") + "," + c.more + "}"
		rows, _, _, err := f.get(ticket)
		if err != nil || len(rows) != c.rows {
			t.Errorf("%s: %d rows, %v", ticket, len(rows), err)
		}
	}
	info, err := f.client.GetFlightInfo(f.context(), command(`{"op":"scan","table":"weather","order":"unordered"}`))
	if err != nil || info.Ordered || info.TotalRecords != 1000 {
		t.Errorf("unordered: %v, %v", info, err)
	}
	info, err = f.client.GetFlightInfo(f.context(), command(`{"op":"scan","table":"weather","limit":5,"max_endpoints":9}`))
	if err != nil || len(info.Endpoint) != 1 || info.TotalRecords != 5 {
		t.Errorf("limited: %v, %v", info, err)
	}
}

// A compressed scan has the same rows, in smaller messages.
func TestCompressedScan(t *testing.T) {
	f := start(t, Limits{})
	f.fill(5000)
	bytes := func(ticket string) (n int) {
		stream, err := f.client.DoGet(f.context(), &flight.Ticket{Ticket: []byte(ticket)})
		if err != nil {
			t.Fatal(err)
		}
		for {
			m, err := stream.Recv()
			if err == io.EOF {
				return n
			}
			if err != nil {
				t.Fatal(err)
			}
			n += len(m.DataBody)
		}
	}
	plain, _, _, err := f.get(wholeScan)
	if err != nil {
		t.Fatal(err)
	}
	for _, profile := range []string{"compat", "exact"} {
		for _, codec := range []string{"none", "lz4", "zstd"} {
			ticket := `{"op":"scan","table":"weather","profile":"` + profile + `","compression":"` + codec + `"}`
			rows, _, _, err := f.get(ticket)
			if err != nil || strings.Join(rows, "\n") != strings.Join(plain, "\n") {
				t.Errorf("%s %s: %d rows, %v", profile, codec, len(rows), err)
			}
			if codec != "none" && bytes(ticket) >= bytes(wholeScan) {
				t.Errorf("%s does not make it smaller", codec)
			}
		}
	}
}

func TestRenewFlightEndpoint(t *testing.T) {
	f := start(t, Limits{})
	now := time.Date(2026, 11, 30, 5, 0, 0, 0, time.UTC)
	f.server.opts.Clock = func() time.Time { return now }
	f.fill(5)
	info, err := f.client.GetFlightInfo(f.context(), command(wholeScan))
	if err != nil {
		t.Fatal(err)
	}
	old := info.Endpoint[0]
	now = now.Add(10 * time.Minute)
	renewed, err := f.client.RenewFlightEndpoint(f.context(), &flight.RenewFlightEndpointRequest{Endpoint: old})
	if err != nil || string(renewed.Ticket.Ticket) != string(old.Ticket.Ticket) || !renewed.ExpirationTime.AsTime().Equal(now.Add(time.Hour)) {
		t.Errorf("renewed as %v, %v", renewed, err)
	}
	now = now.Add(-24 * time.Hour)
	again, err := f.client.RenewFlightEndpoint(f.context(), &flight.RenewFlightEndpointRequest{Endpoint: renewed})
	if err != nil || !again.ExpirationTime.AsTime().Equal(renewed.ExpirationTime.AsTime()) {
		t.Errorf("renewed with an earlier clock as %v, %v", again, err)
	}
	now = now.Add(48 * time.Hour)
	f.must("drop_table", `{"table":"weather"}`, nil)
	body, err := proto.Marshal(&flight.RenewFlightEndpointRequest{Endpoint: old})
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		body  []byte
		token tableerr.Token
	}{
		"a dropped table": {body, tableerr.TokenTableNotFound},
		"no message":      {[]byte{0xFF}, tableerr.TokenInvalid},
		"no endpoint":     {nil, tableerr.TokenInvalid},
	} {
		_, err := f.act(flight.RenewFlightEndpointActionType, string(c.body))
		wantError(t, what, err, c.token)
	}
	if _, err := f.client.RenewFlightEndpoint(f.context(), &flight.RenewFlightEndpointRequest{
		Endpoint: &flight.FlightEndpoint{Ticket: &flight.Ticket{Ticket: []byte("{}")}, ExpirationTime: timestamppb.New(now)}}); err == nil {
		t.Error("a ticket of nothing was renewed")
	}
}

// CancelFlightInfo ends what the same connection reads, and nobody else's.
func TestCancelFlightInfo(t *testing.T) {
	f := start(t, Limits{})
	f.fill(400_000)
	info, err := f.client.GetFlightInfo(f.context(), command(wholeScan))
	if err != nil {
		t.Fatal(err)
	}
	mine, err := f.client.DoGet(f.context(), info.Endpoint[0].Ticket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mine.Recv(); err != nil {
		t.Fatal(err)
	}
	other := f.dial(smallWindow()...)
	defer other.Close()
	theirs, err := other.DoGet(f.context(), info.Endpoint[0].Ticket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.Recv(); err != nil {
		t.Fatal(err)
	}
	answer, err := other.CancelFlightInfo(f.context(), &flight.CancelFlightInfoRequest{Info: info})
	if err != nil || answer.Status != flight.CancelStatusCancelled {
		t.Fatalf("got %v, %v", answer, err)
	}
	if end(theirs) == io.EOF {
		t.Error("a cancelled read ended well")
	}
	if err := end(mine); err != io.EOF {
		t.Errorf("another connection's read ended with %v", err)
	}
	settle(t, "the end of all reads", func() bool {
		f.server.streams.mu.Lock()
		defer f.server.streams.mu.Unlock()
		return len(f.server.streams.running) == 0
	})
	for what, body := range map[string]string{"no message": "\xff", "no info": ""} {
		_, err := f.act(flight.CancelFlightInfoActionType, body)
		wantError(t, what, err, tableerr.TokenInvalid)
	}
	strange := &flight.CancelFlightInfoRequest{Info: &flight.FlightInfo{Endpoint: []*flight.FlightEndpoint{{Ticket: &flight.Ticket{Ticket: []byte("x")}}}}}
	if _, err := f.client.CancelFlightInfo(f.context(), strange); err == nil {
		t.Error("a ticket of another server was cancelled")
	}
}

// end reads a stream to its end and returns how it ended.
func end(stream flight.FlightService_DoGetClient) error {
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
}

// A commit's own time, not the clock's, is what as_of is compared with: two
// commits of one millisecond lie one apart, so the second may be ahead of now.
func TestDescribeAsOf(t *testing.T) {
	f := start(t, Limits{})
	f.fill(1)
	var now, then struct {
		Version     int64
		CommittedAt string `json:"committed_at"`
	}
	f.must(descriptors.ActionDescribeTable, `{"table":"weather"}`, &now)
	f.must(descriptors.ActionDescribeTable, `{"table":"weather","as_of":"`+now.CommittedAt+`"}`, &then)
	if then.Version != 1 || then != now {
		t.Errorf("got %+v, want %+v", then, now)
	}
	_, err := f.act(descriptors.ActionDescribeTable, `{"table":"weather","as_of":"1970-01-01T00:00:00Z"}`)
	wantError(t, "before the table", err, tableerr.TokenVersionNotFound)
}
