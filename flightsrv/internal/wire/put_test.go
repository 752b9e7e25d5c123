package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/descriptors"
	"contrail/tablecore/bufpool"
	"contrail/tablecore/tableerr"
)

func metadataOnly(text string) *flight.FlightData {
	return &flight.FlightData{AppMetadata: []byte(text)}
}

func marker(rows int64) *flight.FlightData {
	return &flight.FlightData{AppMetadata: descriptors.EncodeMarker(rows)}
}

func rows(n int64) Ending { return Ending{Rows: &n} }

func TestPutReadsRows(t *testing.T) {
	for name, opts := range map[string][]ipc.Option{"plain": nil, "lz4": {ipc.WithLZ4()}, "zstd": {ipc.WithZstd()}} {
		t.Run(name, func(t *testing.T) {
			checked := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer checked.AssertSize(t, 0)
			o := testOptions()
			o.Allocator = checked
			m := client(t, weather, goBatches(10, 0, 5), opts...)
			m = slices.Insert(m, 1, metadataOnly("hello"))
			m = append(m, metadataOnly("bye"))
			got, err := read(&stream{messages: m, err: io.EOF}, rows(15), o)
			if err != nil || len(got) != 15 || got[14] != 14 {
				t.Fatalf("read %v, %v", got, err)
			}
			if n := o.Budget.Used(); n != 0 {
				t.Errorf("%d bytes of the budget are still taken", n)
			}
		})
	}
}

func TestPutEnds(t *testing.T) {
	three := client(t, weather, goBatches(3))
	cases := []struct {
		name     string
		messages []*flight.FlightData
		ending   Ending
		expected *int64 // of STREAM_INCOMPLETE; nil with want set = marker missing
		want     tableerr.Token
	}{
		{"nothing announced", three, Ending{}, nil, ""},
		{"rows", three, rows(3), nil, ""},
		{"too few", three, rows(4), rows(4).Rows, tableerr.TokenStreamIncomplete},
		{"too many", three, rows(2), rows(2).Rows, tableerr.TokenStreamIncomplete},
		{"marker", append(three[:2:2], marker(3)), Ending{Marker: true}, nil, ""},
		{"marker then metadata", append(three[:2:2], marker(3), metadataOnly("x")), Ending{Marker: true}, nil, ""},
		{"no marker", three, Ending{Marker: true}, nil, tableerr.TokenStreamIncomplete},
		{"marker with other rows", append(three[:2:2], marker(2)), Ending{Marker: true}, rows(2).Rows, tableerr.TokenStreamIncomplete},
		{"marker in the middle", []*flight.FlightData{three[0], marker(0), three[1]}, Ending{Marker: true}, nil, tableerr.TokenStreamIncomplete},
		{"two markers", []*flight.FlightData{three[0], marker(0), three[1], marker(3)}, Ending{Marker: true}, nil, ""},
		{"malformed marker", append(three[:2:2], metadataOnly(`{"commit":true}`)), Ending{Marker: true}, nil, tableerr.TokenInvalid},
		{"marker where none is announced", append(three[:2:2], marker(9)), rows(3), nil, ""},
		{"schema only", three[:1], rows(0), nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := read(&stream{messages: c.messages, err: io.EOF}, c.ending, testOptions())
			if token(err) != c.want {
				t.Fatalf("got %v, want token %q", err, c.want)
			}
			var incomplete *tableerr.StreamIncomplete
			if errors.As(err, &incomplete) {
				got, want := incomplete.ExpectedRows, c.expected
				if (got == nil) != (want == nil) || got != nil && *got != *want {
					t.Errorf("expected_rows is %v, want %v", got, want)
				}
			}
		})
	}
}

func TestPutRefuses(t *testing.T) {
	good := client(t, weather, goBatches(3, 3))
	other := client(t, arrow.NewSchema([]arrow.Field{weather.Field(0), {Name: "hour", Type: arrow.PrimitiveTypes.Int64}}, nil), nil)
	renamed := client(t, arrow.NewSchema([]arrow.Field{{Name: "o", Type: arrow.BinaryTypes.String}}, nil), nil)
	longer := client(t, arrow.NewSchema(append(weather.Fields(), arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int8}), nil), nil)
	garbage := func(m *flight.FlightData, at int, b byte) *flight.FlightData {
		head := slices.Clone(m.DataHeader)
		head[at] = b
		return &flight.FlightData{FlightDescriptor: m.FlightDescriptor, DataHeader: head, DataBody: m.DataBody}
	}
	cases := []struct {
		name     string
		messages []*flight.FlightData
		want     tableerr.Token
		text     string
	}{
		{"empty stream", nil, tableerr.TokenInvalid, "no message"},
		{"no descriptor", []*flight.FlightData{{DataHeader: good[0].DataHeader}}, tableerr.TokenInvalid, "no descriptor"},
		{"no schema", []*flight.FlightData{{FlightDescriptor: good[0].FlightDescriptor}, metadataOnly("x")}, tableerr.TokenInvalid, "before a schema"},
		{"batch in place of the schema", []*flight.FlightData{{FlightDescriptor: good[0].FlightDescriptor}, good[1]}, tableerr.TokenInvalid, "schema is due"},
		{"body without header", []*flight.FlightData{good[0], {DataBody: []byte("x")}}, tableerr.TokenInvalid, "no data header"},
		{"body before the schema", []*flight.FlightData{{FlightDescriptor: good[0].FlightDescriptor, DataBody: []byte("x")}, good[0]}, tableerr.TokenInvalid, "no data header"},
		{"garbage header", []*flight.FlightData{good[0], {DataHeader: []byte("garbage!")}}, tableerr.TokenInvalid, "message 1"},
		{"garbage schema", []*flight.FlightData{{FlightDescriptor: good[0].FlightDescriptor, DataHeader: []byte{1}}}, tableerr.TokenInvalid, "message 0"},
		{"root outside", []*flight.FlightData{good[0], garbage(good[1], 3, 0x7f)}, tableerr.TokenInvalid, "flatbuffer"},
		{"schema changes type", []*flight.FlightData{good[0], good[1], other[0]}, tableerr.TokenSchemaMismatch, `"hour"`},
		{"schema changes name", []*flight.FlightData{good[0], good[1], renamed[0]}, tableerr.TokenSchemaMismatch, `"origin"`},
		{"schema gains a column", []*flight.FlightData{good[0], good[1], longer[0]}, tableerr.TokenSchemaMismatch, `"x"`},
		{"schema twice", []*flight.FlightData{good[0], good[1], good[0]}, tableerr.TokenInvalid, "second schema"},
		{"body cut", []*flight.FlightData{good[0], {DataHeader: good[1].DataHeader, DataBody: good[1].DataBody[:8]}}, tableerr.TokenInvalid, "in a body of 8"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := testOptions()
			_, err := read(&stream{messages: c.messages, err: io.EOF}, Ending{}, o)
			if token(err) != c.want || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("got %v, want %s with %q", err, c.want, c.text)
			}
			if n := o.Budget.Used(); n != 0 {
				t.Errorf("%d bytes of the budget are still taken", n)
			}
		})
	}
}

// A first message below 1 KiB whose compressed buffer claims 2^40 bytes is
// refused before anything is allocated.
func TestPutClaimedLength(t *testing.T) {
	for name, opt := range map[string]ipc.Option{"lz4": ipc.WithLZ4(), "zstd": ipc.WithZstd()} {
		t.Run(name, func(t *testing.T) {
			m := client(t, weather, goBatches(3), opt)
			binary.LittleEndian.PutUint64(m[1].DataBody, 1<<40)
			_, err := read(&stream{messages: m, err: io.EOF}, Ending{}, testOptions())
			var large *tableerr.MessageTooLarge
			switch {
			case name == "zstd" && token(err) == tableerr.TokenInvalid: // the frame says its own size
			case !errors.As(err, &large) || large.LimitBytes != 1<<26 || large.Bytes < 1<<40:
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestPutTransport(t *testing.T) {
	m := client(t, weather, goBatches(3, 3))
	got, err := read(&stream{messages: m[:2], err: errCut}, rows(3), testOptions())
	if !errors.Is(err, errCut) || len(got) != 3 {
		t.Fatalf("a cut stream gives %v, %v", got, err)
	}
	_, err = read(&stream{err: errCut}, Ending{}, testOptions())
	if !errors.Is(err, errCut) {
		t.Fatalf("a cut before the first message gives %v", err)
	}
	panics := receiverFunc(func() (*flight.FlightData, error) { panic("boom") })
	if _, err = read(panics, Ending{}, testOptions()); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Fatalf("a panic gives %v", err)
	}
}

type receiverFunc func() (*flight.FlightData, error)

func (f receiverFunc) Recv() (*flight.FlightData, error) { return f() }

func TestPutTimeouts(t *testing.T) {
	m := client(t, weather, goBatches(3, 3))
	for _, c := range []struct {
		name     string
		messages []*flight.FlightData
		wait     string
	}{
		{"nothing", nil, waitFirstMessage},
		{"descriptor only", []*flight.FlightData{{FlightDescriptor: m[0].FlightDescriptor}}, waitFirstMessage},
		{"schema only", m[:1], waitStall},
		{"silent in the middle", m[:2], waitStall},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := testOptions()
				o.FirstMessageTimeout, o.StallTimeout = 20*time.Millisecond, 30*time.Millisecond
				s := &stream{messages: c.messages, err: io.EOF, silence: make(chan struct{})}
				defer close(s.silence)
				_, err := read(s, Ending{}, o)
				var timedOut *tableerr.TimedOut
				if !errors.As(err, &timedOut) || timedOut.Wait != c.wait {
					t.Fatalf("got %v, want TIMED_OUT of %s", err, c.wait)
				}
				if want := map[string]int64{waitFirstMessage: 20, waitStall: 30}[c.wait]; timedOut.LimitMS != want {
					t.Errorf("limit_ms is %d, want %d", timedOut.LimitMS, want)
				}
			})
		})
	}
}

// A caller that stops waiting can go on later: nothing is lost.
func TestPutContext(t *testing.T) {
	m := client(t, weather, goBatches(3))
	s := &stream{messages: m, err: io.EOF}
	p := NewPut(s, testOptions())
	defer p.Close()
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	ctx := context.Background()
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := p.Descriptor(ctx); return err },
		func(ctx context.Context) error { _, err := p.Schema(ctx); return err },
		func(ctx context.Context) error { _, err := p.Next(ctx); return err },
	} {
		if step(cancelled) != nil { // else the message has won the race
			if err := step(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if p.rows != 3 {
		t.Errorf("%d rows", p.rows)
	}
	if _, err := p.Next(ctx); err != io.EOF {
		t.Errorf("got %v at the end", err)
	}
	if err := p.Drain(ctx); err != nil {
		t.Error(err)
	}
}

func TestPutDrain(t *testing.T) {
	m := client(t, weather, goBatches(3, 3, 3))
	for _, end := range []error{io.EOF, errCut} {
		p := NewPut(&stream{messages: m, err: end}, testOptions())
		ctx := context.Background()
		if _, err := p.Descriptor(ctx); err != nil {
			t.Fatal(err)
		}
		if err := p.Drain(ctx); end == io.EOF && err != nil || end != io.EOF && !errors.Is(err, end) {
			t.Errorf("draining to %v gives %v", end, err)
		}
		p.Close()
		<-p.pump.done
		if _, err := p.Next(ctx); err == nil {
			t.Error("a closed put gives batches")
		}
	}
}

func dictionaryBatch(values ...string) arrow.RecordBatch {
	typ := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	b := array.NewDictionaryBuilder(memory.NewGoAllocator(), typ).(*array.BinaryDictionaryBuilder)
	defer b.Release()
	for _, v := range values {
		if err := b.AppendString(v); err != nil {
			panic(err)
		}
	}
	column := b.NewArray()
	defer column.Release()
	return array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "d", Type: typ, Nullable: true}}, nil), []arrow.Array{column}, int64(len(values)))
}

func TestPutDictionaries(t *testing.T) {
	batches := []arrow.RecordBatch{dictionaryBatch("a", "b"), dictionaryBatch("a", "b", "c"), dictionaryBatch("x")}
	for name, opts := range map[string][]ipc.Option{"replaced": nil, "deltas": {ipc.WithDictionaryDeltas(true)}, "zstd": {ipc.WithZstd()}} {
		t.Run(name, func(t *testing.T) {
			m := client(t, batches[0].Schema(), batches, opts...)
			o := testOptions()
			if _, err := read(&stream{messages: m, err: io.EOF}, rows(6), o); err != nil {
				t.Fatal(err)
			}
			if n := o.Budget.Used(); n != 0 {
				t.Errorf("%d bytes of the budget are still taken", n)
			}
		})
	}
	m := client(t, batches[0].Schema(), batches)
	t.Run("missing", func(t *testing.T) {
		_, err := read(&stream{messages: append(m[:1:1], m[2:]...), err: io.EOF}, Ending{}, testOptions())
		if token(err) != tableerr.TokenInvalid {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("index beyond the dictionary", func(t *testing.T) {
		bad := &flight.FlightData{DataHeader: m[2].DataHeader, DataBody: slices.Clone(m[2].DataBody)}
		for i := range 8 {
			bad.DataBody[i] = 9
		}
		_, err := read(&stream{messages: []*flight.FlightData{m[0], m[1], bad}, err: io.EOF}, Ending{}, testOptions())
		if token(err) != tableerr.TokenInvalid {
			t.Fatalf("got %v", err)
		}
	})
	for repeat, limit := range map[int]int{1: len(m[1].DataHeader), 4: len(m[1].DataHeader) + len(m[1].DataBody)} {
		t.Run("too large", func(t *testing.T) {
			o := testOptions()
			o.MaxDictionaryBytes = int64(limit)
			list := append([]*flight.FlightData{m[0]}, slices.Repeat(m[1:2], repeat)...)
			_, err := read(&stream{messages: list, err: io.EOF}, Ending{}, o)
			if token(err) != tableerr.TokenMessageTooLarge {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// Values that arrow-go's reader takes on trust.
func TestPutMalformedArrays(t *testing.T) {
	offsets := func(body []byte) []byte { return body[:16] } // the first buffer of column origin, without nulls
	for name, spoil := range map[string]func([]byte){
		"offset outside":  func(b []byte) { binary.LittleEndian.PutUint32(offsets(b)[12:], 1<<20) },
		"offset back":     func(b []byte) { binary.LittleEndian.PutUint32(offsets(b)[4:], 9) },
		"offset negative": func(b []byte) { binary.LittleEndian.PutUint32(offsets(b), 1<<31) },
	} {
		t.Run(name, func(t *testing.T) {
			m := client(t, weather, goBatches(3))
			spoil(m[1].DataBody)
			_, err := read(&stream{messages: m, err: io.EOF}, Ending{}, testOptions())
			if token(err) != tableerr.TokenInvalid {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestBudget(t *testing.T) {
	m := client(t, weather, goBatches(100), ipc.WithZstd())
	o := testOptions()
	o.Budget = NewBudget(700)
	_, err := read(&stream{messages: m, err: io.EOF}, Ending{}, o)
	if token(err) != tableerr.TokenQueueTimeout {
		t.Fatalf("got %v", err)
	}
	if n := o.Budget.Used(); n != 0 {
		t.Errorf("%d bytes of the budget are still taken", n)
	}
	o = testOptions()
	o.MaxMessageBytes, o.MaxDictionaryBytes = 1000, 0
	if _, err = read(&stream{messages: m, err: io.EOF}, Ending{}, o); token(err) != tableerr.TokenMessageTooLarge {
		t.Fatalf("got %v", err)
	}
}

// Bodies of a codec's pool are valid as long as an array on them is retained,
// and go back to the pool then.
func TestPutPooledBodies(t *testing.T) {
	o := testOptions()
	o.Bodies = &bufpool.Pool{Poison: true}
	sent := client(t, weather, goBatches(20_000, 20_000, 20_000))
	for _, m := range sent {
		if n := len(m.DataBody); n >= pooledBody {
			body := *o.Bodies.Get(n)
			copy(body, m.DataBody)
			m.DataBody = body
		}
	}
	ctx := context.Background()
	p := NewPut(&stream{messages: sent, err: io.EOF}, o)
	if _, err := p.Descriptor(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Schema(ctx); err != nil {
		t.Fatal(err)
	}
	check := func(b arrow.RecordBatch, first int) {
		t.Helper()
		for i, v := range b.Column(1).(*array.Timestamp).TimestampValues() {
			if int(v) != first+i {
				t.Fatalf("row %d holds %d", first+i, v)
			}
		}
	}
	first, err := p.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	first.Retain()
	second, err := p.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	check(second, 20_000)
	left := second.Column(1).(*array.Timestamp).TimestampValues() // not retained
	if _, err = p.Next(ctx); err != nil {
		t.Fatal(err)
	}
	p.Close()
	check(first, 0)
	first.Release()
	if left[0] == 20_000 {
		t.Error("a released body is not given back")
	}
}
