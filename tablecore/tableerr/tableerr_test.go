package tableerr

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

var errCause = errors.New("cause")

// example is an error with its token and fields as JSON.
type example struct {
	err    Error
	token  Token
	fields string
}

// every makes one value of each error type, new ones each time, as a table is
// stamped on them.
func every() []example {
	return []example{
		{InvalidField("start", "bad %d", 1), TokenInvalid, `field="start"`},
		{InvalidColumn("a", "bad"), TokenInvalid, `column="a"`},
		{InvalidType("a", "null", "no"), TokenInvalid, `column="a" type="null"`},
		{InvalidValue("a", 0, 5, "no"), TokenInvalid, `column="a" row=0 value=5`},
		{&StreamIncomplete{Rows: 3}, TokenStreamIncomplete, `expected_rows=null rows=3`},
		{&StreamIncomplete{ExpectedRows: new(int64), Rows: 3}, TokenStreamIncomplete, `expected_rows=0 rows=3`},
		{&SchemaMismatch{Column: "a", Expected: "int32", Msg: "m"}, TokenSchemaMismatch, `column="a" expected="int32" found=null`},
		{&SchemaMismatch{Column: "a", Row: new(int64), Msg: "m"}, TokenSchemaMismatch, `column="a" row=0`},
		{&NullKey{Column: "a", Row: 2}, TokenNullKey, `column="a" row=2`},
		{&DuplicateSourceKey{KeyViolation{RowsSeen: 9, Violations: 1, ExampleKey: Values{{"a", 1}, {"t", "x"}}}}, TokenDuplicateSourceKey,
			`reason="duplicate_source_key" rows_seen=9 violations=1 example_key={"a":1,"t":"x"}`},
		{&UnmatchedSourceKey{KeyViolation{RowsSeen: 9, Violations: 2}}, TokenUnmatchedSourceKey, `reason="unmatched_source_key" rows_seen=9 violations=2 example_key={}`},
		{&AmbiguousTargetKey{KeyViolation{RowsSeen: 9, Violations: 3}}, TokenAmbiguousTargetKey, `reason="ambiguous_target_key" rows_seen=9 violations=3 example_key={}`},
		{&DuplicateInterval{Interval: "[1, 2)", Rows: [2]int64{4, 5}}, TokenDuplicateInterval, `entity={} interval="[1, 2)" rows=[4,5]`},
		{&IntervalOverlap{ConflictCount: 1<<64 - 1, Entity: Values{{"b", 1}, {"a", "x"}}, Interval: "i", Version: 7}, TokenIntervalOverlap,
			`conflict_count=18446744073709551615 entity={"b":1,"a":"x"} interval="i" version=7`},
		{&VersionConflict{Expected: 1, Found: 2}, TokenVersionConflict, `expected=1 found=2`},
		{&TableNotFound{}, TokenTableNotFound, ``},
		{&TableExists{}, TokenTableExists, ``},
		{&VersionNotFound{Version: 1, Current: 0}, TokenVersionNotFound, `version=1 current=0`},
		{&VersionNotFound{Version: -1, Current: 4}, TokenVersionNotFound, `version=null current=4`},
		{&VersionExpired{Version: 1, Current: 3}, TokenVersionExpired, `version=1 current=3`},
		{&RequestIDReused{RequestID: "r", Version: 3}, TokenRequestIDReused, `request_id="r" version=3`},
		{&FormatUnreadable{TableFormat: "9", SupportedFormat: "0.3.0"}, TokenFormatUnreadable, `table_format="9" supported_format="0.3.0"`},
		{&FormatUnwritable{TableFormat: "9", SupportedFormat: "0.3.0"}, TokenFormatUnwritable, `table_format="9" supported_format="0.3.0"`},
		{&FormatUnwritable{TableFormat: "0.1.0", SupportedFormat: "0.3.0", Plain: true}, TokenFormatUnwritable, `table_format="0.1.0" supported_format="0.3.0"`},
		{&CommitUnknown{RequestID: "r", Cause: errCause}, TokenCommitUnknown, `request_id="r"`},
		{&Unsupported{Feature: "f"}, TokenUnsupported, `feature="f"`},
		{&Unsupported{Path: "p"}, TokenUnsupported, `path="p"`},
		{&FileMissing{Path: "p", Version: 1, Cause: errCause}, TokenFileMissing, `path="p" version=1`},
		{&UniquenessViolated{Violations: 2, Entity: Values{{"origin", "EWR"}}, Interval: "[a, b)"}, TokenUniquenessViolated, `violations=2 entity={"origin":"EWR"} interval="[a, b)"`},
		{&NoGranularity{}, TokenNoGranularity, ``},
		{&NotAppendOnly{Version: 4, Operation: "update_rows"}, TokenNotAppendOnly, `version=4 operation="update_rows"`},
		{&VacuumIncomplete{Path: "p", PartialReport: map[string]int{"n": 1}, Cause: errCause}, TokenVacuumIncomplete, `path="p" partial_report={"n":1}`},
		{&ClockBehind{Newest: time.Unix(1, 5e6)}, TokenClockBehind, `newest="1970-01-01T00:00:01.005Z"`},
		{&StorageFull{Cause: errCause}, TokenStorageFull, ``},
		{&StoreUnavailable{Cause: errCause}, TokenStoreUnavailable, ``},
		{&Corrupt{Path: "p", Cause: errCause}, TokenCorrupt, `path="p"`},
		{&MessageTooLarge{LimitBytes: 5}, TokenMessageTooLarge, `limit_bytes=5`},
		{&MessageTooLarge{LimitBytes: 5, Bytes: 6}, TokenMessageTooLarge, `limit_bytes=5 bytes=6`},
		{&TooManyStreams{Limit: 5}, TokenTooManyStreams, `limit=5`},
		{&QueueTimeout{WaitMS: 5}, TokenQueueTimeout, `wait_ms=5`},
		{&TimedOut{Wait: "stall", LimitMS: 5}, TokenTimedOut, `wait="stall" limit_ms=5`},
		{&Draining{}, TokenDraining, ``},
	}
}

func TestEveryError(t *testing.T) {
	for _, c := range every() {
		name := fmt.Sprintf("%T", c.err)
		if c.err.Token() != c.token {
			t.Errorf("%s has token %s", name, c.err.Token())
		}
		if c.err.Error() == "" || c.err.Text() == "" {
			t.Errorf("%s has no text", name)
		}
		var parts []string
		for _, f := range c.err.Fields() {
			value, err := json.Marshal(f.Value)
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, f.Key+"="+string(value))
		}
		if got := strings.Join(parts, " "); got != c.fields {
			t.Errorf("%s has fields %s, want %s", name, got, c.fields)
		}
		wrapped := WithTable(fmt.Errorf("outer: %w", c.err), "default.x")
		if TokenOf(wrapped) != c.token {
			t.Errorf("%s is not found behind a wrapper", name)
		}
		if first := c.err.Fields()[0]; first.Key != "table" || first.Value != "default.x" {
			t.Errorf("%s begins with %v", name, first)
		}
		WithTable(c.err, "default.other")
		if c.err.Fields()[0].Value != "default.x" {
			t.Errorf("%s changed its table", name)
		}
		if u, ok := c.err.(interface{ Unwrap() error }); ok && u.Unwrap() != nil && !errors.Is(c.err, errCause) {
			t.Errorf("%s hides its cause", name)
		}
	}
}

func TestPlainErrors(t *testing.T) {
	if TokenOf(nil) != "" || TokenOf(errCause) != "" {
		t.Error("a plain error has a token")
	}
	if WithTable(nil, "x") != nil || WithTable(errCause, "x") != errCause {
		t.Error("WithTable changes plain errors")
	}
}

// TestSharedError makes sure under the race detector that several callers may
// stamp and read one error.
func TestSharedError(t *testing.T) {
	shared := &FileMissing{Path: "p"}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			err := WithTable(shared, "default.x")
			if !strings.Contains(err.Error(), "default.x") {
				t.Error(err)
			}
		})
	}
	group.Wait()
}
