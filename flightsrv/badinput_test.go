package flightsrv

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"contrail/tablecore/tableerr"
)

func TestBadActions(t *testing.T) {
	f := start(t, Limits{})
	f.must("create_table", createWeather, nil)
	for _, c := range []struct {
		action, body string
		want         tableerr.Token
	}{
		{"no_such_action", "", "INVALID"},
		{"optimize", "{}", "INVALID"},
		{"create_table", createWeather, "TABLE_EXISTS"},
		{"create_table", strings.Replace(createWeather, `"weather"`, `"WEATHER"`, 1), "TABLE_EXISTS"},
		{"create_table", "{", "INVALID"},
		{"create_table", createWeather + "x", "INVALID"},
		{"create_table", `{"table":"x","table":"y"}`, "INVALID"},
		{"create_table", `{"table":"x","index_column":"t","index_type":"int64","index_granularity":1,"colour":"red"}`, "INVALID"},
		{"create_table", strings.Replace(createWeather, "double", "month_day_nano_interval", 1), "INVALID"},
		{"create_table", strings.Replace(createWeather, "double", "dubble", 1), "INVALID"},
		{"create_table", `{"table":"x","index_column":"t","schema_ipc":"AAAA"}`, "INVALID"},
		{"drop_table", `{"table":"nothing"}`, "TABLE_NOT_FOUND"},
		{"drop_table", `{"table":"weather","expected_version":7}`, "VERSION_CONFLICT"},
		{"drop_table", `{}`, "INVALID"},
		{"describe_table", `{"table":"nothing"}`, "TABLE_NOT_FOUND"},
		{"describe_table", `{"table":"weather","version":9}`, "VERSION_NOT_FOUND"},
		{"describe_table", `{"table":"weather","table_id":"other"}`, "TABLE_NOT_FOUND"},
		{"describe_table", `{"table":"` + strings.Repeat("x", 1<<20) + `"}`, "INVALID"},
		{"describe_table", `[]`, "INVALID"},
		{"list_tables", `{"namespace":".."}`, "INVALID"},
		{"list_tables", `{"n":1}`, "INVALID"},
		{"server_info", `{"n":1}`, "INVALID"},
	} {
		_, err := f.act(c.action, c.body)
		wantError(t, c.action+" "+shorten(c.body), err, c.want)
	}
	for _, name := range []string{"..", "a/b", "", "_trash", "a.b.c", ".a", "a.", "x\\u0000", "-x"} {
		body := strings.Replace(createWeather, `"weather"`, `"`+name+`"`, 1)
		_, err := f.act("create_table", body)
		wantError(t, "the name "+name, err, "INVALID")
	}
	if v := f.version(); v != 0 {
		t.Errorf("the table is at version %d", v)
	}
	// A schema as IPC is taken.
	ipcSchema := flight.SerializeSchema(weather, memory.NewGoAllocator())
	f.must("create_table", `{"table":"byipc","index_column":"time_hour","index_granularity":"1h","entity_columns":["origin"],"schema_ipc":"`+
		base64.StdEncoding.EncodeToString(ipcSchema)+`"}`, nil)
}

func shorten(s string) string { return s[:min(len(s), 80)] }

func TestBadScans(t *testing.T) {
	f := start(t, Limits{})
	f.must("create_table", createWeather, nil)
	if _, err := f.put(path("weather"), weatherRows("EWR", 0, 10)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		want tableerr.Token
	}{
		{"", "INVALID"},
		{"not json", "INVALID"},
		{`{"op":"scan","table":"weather"} `, ""},
		{`{"op":"scan","table":"weather"}x`, "INVALID"},
		{`{"op":"scan","table":"weather","table":"weather"}`, "INVALID"},
		{`{"op":"scan","table":"weather","colour":1}`, "INVALID"},
		{`{"op":"append","table":"weather"}`, "INVALID"},
		{`{"op":"scan","table":"nothing"}`, "TABLE_NOT_FOUND"},
		{`{"op":"scan","table":"../weather"}`, "INVALID"},
		{`{"op":"scan","table":"weather","columns":["nothing"]}`, "INVALID"},
		{`{"op":"scan","table":"weather","columns":[]}`, "INVALID"},
		{`{"op":"scan","table":"weather","version":99}`, "VERSION_NOT_FOUND"},
		{`{"op":"scan","table":"weather","table_id":"other"}`, "TABLE_NOT_FOUND"},
		{`{"op":"scan","table":"weather","start":"1970-01-02T00:00:00Z","end":"1970-01-01T00:00:00Z"}`, "INVALID"},
		{`{"op":"scan","table":"weather","start":"noon"}`, "INVALID"},
		{`{"op":"scan","table":"weather","entities":[{"temp":1}]}`, "INVALID"},
	} {
		_, _, _, err := f.get(c.text)
		var trailer metadata.MD
		_, infoErr := f.client.GetFlightInfo(f.context(), command(c.text), grpc.Trailer(&trailer))
		if c.want == "" {
			if err != nil || infoErr != nil {
				t.Errorf("%s gives %v, %v", c.text, err, infoErr)
			}
			continue
		}
		wantError(t, "DoGet "+c.text, err, c.want)
		wantError(t, "GetFlightInfo "+c.text, withTrailer(infoErr, trailer), c.want)
		_, err = f.client.GetSchema(f.context(), command(c.text), grpc.Trailer(&trailer))
		wantError(t, "GetSchema "+c.text, withTrailer(err, trailer), c.want)
	}
	for _, d := range []*flight.FlightDescriptor{path(), path("a", "b", "c"), path("a.b"), path(""), path(".."), {}} {
		var trailer metadata.MD
		_, err := f.client.GetFlightInfo(f.context(), d, grpc.Trailer(&trailer))
		wantError(t, "GetFlightInfo "+d.String(), withTrailer(err, trailer), "INVALID")
		_, err = f.put(d, weatherRows("EWR", 100, 1))
		wantError(t, "DoPut "+d.String(), err, "INVALID")
	}
	if v := f.version(); v != 1 {
		t.Errorf("the table is at version %d", v)
	}
}

// clientMessages encodes a put as a client's library does.
func clientMessages(t *testing.T, d *flight.FlightDescriptor, batches []arrow.RecordBatch, opts ...ipc.Option) []*flight.FlightData {
	t.Helper()
	var out collector
	w := flight.NewRecordWriter(&out, append(opts, ipc.WithSchema(batches[0].Schema()))...)
	w.SetFlightDescriptor(d)
	for _, b := range batches {
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

type collector []*flight.FlightData

func (c *collector) Send(m *flight.FlightData) error {
	*c = append(*c, &flight.FlightData{FlightDescriptor: m.FlightDescriptor, DataHeader: slices.Clone(m.DataHeader), DataBody: slices.Clone(m.DataBody)})
	return nil
}

// send sends messages as they are, ends the stream and returns the answer.
func (f *fixture) send(messages ...*flight.FlightData) (putResult, error) {
	stream, err := f.client.DoPut(f.context())
	if err != nil {
		return putResult{}, err
	}
	for _, m := range messages {
		if err := stream.Send(m); err != nil {
			break // the answer says why
		}
	}
	return answerOf(stream)
}

func TestBadPuts(t *testing.T) {
	f := start(t, Limits{MaxReceiveMessageBytes: 1 << 20})
	f.must("create_table", createWeather, nil)
	append7 := func(fields string) *flight.FlightDescriptor {
		return command(`{"op":"append","table":"weather"` + fields + `}`)
	}
	two := []arrow.RecordBatch{weatherRows("EWR", 0, 5), weatherRows("JFK", 0, 5)}
	good := clientMessages(t, append7(""), two)
	claim := clientMessages(t, append7(""), two[:1], ipc.WithLZ4())[:2]
	binary.LittleEndian.PutUint64(claim[1].DataBody, 1<<40)
	big := clientMessages(t, append7(""), []arrow.RecordBatch{weatherRows("EWR", 0, 100_000)})
	other := clientMessages(t, append7(""), []arrow.RecordBatch{dropColumn(two[0], 2)})
	marker := &flight.FlightData{AppMetadata: []byte(`{"commit":true,"rows":9}`)}
	for _, c := range []struct {
		name     string
		messages []*flight.FlightData
		want     tableerr.Token
	}{
		{"nothing at all", nil, "INVALID"},
		{"no descriptor", []*flight.FlightData{{DataHeader: good[0].DataHeader}}, "INVALID"},
		{"descriptor only", []*flight.FlightData{{FlightDescriptor: append7("")}}, "INVALID"},
		{"unknown table", clientMessages(t, path("nothing"), two), "TABLE_NOT_FOUND"},
		{"unknown key", clientMessages(t, append7(`,"colour":1`), two), "INVALID"},
		{"scan in a put", clientMessages(t, command(`{"op":"scan","table":"weather"}`), two), "INVALID"},
		{"other version", clientMessages(t, append7(`,"expected_version":5`), two), "VERSION_CONFLICT"},
		{"unknown compression", clientMessages(t, append7(`,"compression":"lzma"`), two), "INVALID"},
		{"missing column", other, "SCHEMA_MISMATCH"},
		{"too few rows", clientMessages(t, append7(`,"rows":11`), two), "STREAM_INCOMPLETE"},
		{"too many rows", clientMessages(t, append7(`,"rows":9`), two), "STREAM_INCOMPLETE"},
		{"no marker", clientMessages(t, append7(`,"end":"marker"`), two), "STREAM_INCOMPLETE"},
		{"marker of other rows", append(clientMessages(t, append7(`,"end":"marker"`), two), marker), "STREAM_INCOMPLETE"},
		{"duplicate", clientMessages(t, append7(""), []arrow.RecordBatch{two[0], two[0]}), "DUPLICATE_INTERVAL"},
		{"schema changes", []*flight.FlightData{good[0], good[1], {DataHeader: other[0].DataHeader}}, "SCHEMA_MISMATCH"},
		{"claims 2^40 bytes", claim, "MESSAGE_TOO_LARGE"},
		{"over the limit", big, "MESSAGE_TOO_LARGE"},
		{"garbage", []*flight.FlightData{good[0], {DataHeader: []byte("garbage garbage")}}, "INVALID"},
		{"garbage first", []*flight.FlightData{{FlightDescriptor: append7(""), DataHeader: []byte("garbage")}}, "INVALID"},
		{"body cut", []*flight.FlightData{good[0], {DataHeader: good[1].DataHeader, DataBody: good[1].DataBody[:5]}}, "INVALID"},
	} {
		_, err := f.send(c.messages...)
		wantError(t, c.name, err, c.want)
	}
	if v := f.version(); v != 0 {
		t.Fatalf("the table is at version %d", v)
	}
	// What is odd and allowed.
	empty := weatherRows("EWR", 0, 0)
	odd := clientMessages(t, append7(`,"end":"marker"`), []arrow.RecordBatch{two[0], empty, two[1]})
	odd = slices.Insert(odd, 1, &flight.FlightData{AppMetadata: []byte("hello")})
	odd = append(odd, &flight.FlightData{AppMetadata: []byte(`{"commit":true,"rows":10}`)})
	if r, err := f.send(odd...); err != nil || r.Rows != 10 || r.CommittedVersion != 1 {
		t.Errorf("an odd put gives %+v, %v", r, err)
	}
	if r, err := f.send(clientMessages(t, append7(`,"rows":0`), []arrow.RecordBatch{empty})...); err != nil || r.Rows != 0 || r.CommittedVersion != 1 {
		t.Errorf("a put without rows gives %+v, %v", r, err)
	}
	_, err := f.put(append7(""), weatherRows("EWR", 4, 3))
	wantError(t, "overlap", err, "INTERVAL_OVERLAP")
}

// dropColumn returns the batch without one column.
func dropColumn(b arrow.RecordBatch, i int) arrow.RecordBatch {
	schema := arrow.NewSchema(slices.Delete(slices.Clone(b.Schema().Fields()), i, i+1), nil)
	return array.NewRecordBatch(schema, slices.Delete(slices.Clone(b.Columns()), i, i+1), b.NumRows())
}

// A client that goes away in the middle leaves nothing.
func TestPutCut(t *testing.T) {
	f := start(t, Limits{})
	f.must("create_table", createWeather, nil)
	messages := clientMessages(t, path("weather"), []arrow.RecordBatch{weatherRows("EWR", 0, 50_000), weatherRows("JFK", 0, 5)})
	for cut := 1; cut <= len(messages); cut++ {
		c := f.dial()
		stream, err := c.DoPut(f.context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages[:cut] {
			if err := stream.Send(m); err != nil {
				t.Fatal(err)
			}
		}
		if cut%2 == 0 {
			time.Sleep(5 * time.Millisecond) // let some of it be read
		}
		c.Close()
		f.idle()
		if v := f.version(); v != 0 {
			t.Fatalf("a put cut after %d messages is committed", cut)
		}
	}
	if r, err := f.send(messages...); err != nil || r.Rows != 50_005 {
		t.Errorf("the put as a whole gives %+v, %v", r, err)
	}
}

// A client that is silent is told what it was waited for: its first message, or
// the next one, behind each of the others.
func TestPutTimeouts(t *testing.T) {
	for n := range 3 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			limits, want := Limits{StallTimeout: 300 * time.Millisecond}, `table="default.weather" wait="stall" limit_ms=300`
			if n == 0 {
				limits, want = Limits{FirstMessageTimeout: 300 * time.Millisecond}, `wait="first_message" limit_ms=300`
			}
			f := start(t, limits)
			f.must("create_table", createWeather, nil)
			messages := clientMessages(t, path("weather"), []arrow.RecordBatch{weatherRows("EWR", 0, 5)})
			stream, err := f.client.DoPut(f.context())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range messages[:n] {
				if err := stream.Send(m); err != nil && err != io.EOF { // EOF: so slow a machine that the time is over
					t.Fatal(err)
				}
			}
			_, err = stream.Recv()
			err = withTrailer(err, stream.Trailer())
			wantError(t, "a silent client", err, "TIMED_OUT")
			if !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
			f.idle()
		})
	}
}

// What this server does not implement says so with gRPC's own code.
func TestUnimplemented(t *testing.T) {
	f := start(t, Limits{})
	stream, err := f.client.DoExchange(f.context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = stream.Recv(); status.Code(err) != codes.Unimplemented {
		t.Errorf("DoExchange gives %v", err)
	}
	if _, err := f.client.PollFlightInfo(f.context(), path("x")); status.Code(err) != codes.Unimplemented {
		t.Errorf("PollFlightInfo gives %v", err)
	}
}
