package tabledef

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tableerr"
)

var update = flag.Bool("update", false, "rewrite docs/properties.md")

func TestReferenceIsCurrent(t *testing.T) {
	path := filepath.Join("..", "docs", "properties.md")
	if *update {
		if err := os.WriteFile(path, Reference(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(raw, Reference()) {
		t.Error("docs/properties.md differs from the registry; run with -update")
	}
}

// TestRegistry makes sure that what the registry says of each property makes
// sense and agrees with what tables hold.
func TestRegistry(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Registry {
		switch {
		case seen[p.Key], !reservedKey(p.Key), p.Text == "":
			t.Errorf("%+v", p)
		case p.Default != "" && !p.Kind.accepts(p.Default):
			t.Errorf("%s has the default %q", p.Key, p.Default)
		}
		if v, ok := parseFormat(p.Since); !ok || !v.readableBy(CurrentFormat) {
			t.Errorf("%s exists since %q", p.Key, p.Since)
		}
		seen[p.Key] = true
		if found, ok := PropertyOf(p.Key); !ok || found != p {
			t.Errorf("%s is %+v", p.Key, found)
		}
	}
	if _, ok := PropertyOf("team"); ok {
		t.Error("a user's property is known")
	}
	d := definitionOf(t, Request{})
	configuration, err := d.Configuration()
	if err != nil {
		t.Fatal(err)
	}
	for key := range configuration {
		if !seen[key] {
			t.Errorf("tables hold %s, which the registry does not list", key)
		}
	}
}

// definitionOf makes the definition of a small table; the request adds to it.
func definitionOf(t *testing.T, r Request) *Definition {
	t.Helper()
	r.IndexColumn, r.IndexType, r.IndexGranularity = "ts", "timestamp", "1h"
	d, err := New("id", r)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func pointer(s string) *string { return &s }

func TestCheckProperties(t *testing.T) {
	for _, c := range []struct {
		key   string
		value *string
		field string // that the refusal names, "" where there is none
	}{
		{"team", pointer("ops"), ""},
		{"team", pointer(""), ""},
		{"team", nil, ""},
		{"Größe in m²", pointer("π"), ""},
		{strings.Repeat("k", 255), pointer(strings.Repeat("v", 4096)), ""},
		{strings.Repeat("k", 256), pointer("v"), "properties"},
		{"team", pointer(strings.Repeat("v", 4097)), "properties.team"},
		{"", pointer("v"), "properties"},
		{" team", pointer("v"), "properties. team"},
		{"team\n", nil, "properties.team\n"},
		{"te\x00am", pointer("v"), "properties.te\x00am"},
		{"te\xffam", pointer("v"), "properties.te\xffam"},
		{"team", pointer("\xff"), "properties.team"},

		{"contrail.retention", pointer("30d"), ""},
		{"contrail.retention", nil, ""},
		{"contrail.retention", pointer(""), "properties.contrail.retention"},
		{"contrail.retention", pointer("30"), "properties.contrail.retention"},
		{"contrail.retention", pointer("0d"), "properties.contrail.retention"},
		{"contrail.retention", pointer("-1d"), "properties.contrail.retention"},
		{"contrail.retention", pointer("1 month"), "properties.contrail.retention"},
		{"contrail.snapshot-retention", pointer("60m"), ""},
		{"contrail.snapshot-retention", pointer("59m"), "properties.contrail.snapshot-retention"},
		{"contrail.snapshot-retention", pointer("4294967295w"), ""},
		{"contrail.maintenance", pointer("off"), ""},
		{"contrail.maintenance", pointer("Off"), "properties.contrail.maintenance"},
		{"contrail.maintenance", pointer("false"), "properties.contrail.maintenance"},
		{"contrail.target-file-bytes", pointer("1"), ""},
		{"contrail.target-file-bytes", pointer("0"), "properties.contrail.target-file-bytes"},
		{"contrail.target-file-bytes", pointer("128MB"), "properties.contrail.target-file-bytes"},
		{"contrail.target-file-bytes", pointer("9223372036854775808"), "properties.contrail.target-file-bytes"},
		{"delta.appendOnly", pointer("true"), ""},
		{"delta.appendOnly", pointer("TRUE"), "properties.delta.appendOnly"},

		{"contrail.index-column", pointer("ts"), "properties.contrail.index-column"},
		{"contrail.uniqueness", nil, "properties.contrail.uniqueness"},
		{"contrail.format-version", pointer("0.3.0"), "properties.contrail.format-version"},
		{"contrail.columns-added", nil, "properties.contrail.columns-added"},
		{"delta.enableInCommitTimestamps", pointer("false"), "properties.delta.enableInCommitTimestamps"},
		{"delta.deletedFileRetentionDuration", pointer("interval 1 day"), "properties.delta.deletedFileRetentionDuration"},
		{"delta.columnMapping.mode", pointer("name"), "properties.delta.columnMapping.mode"},
		{"contrail.no-such", nil, "properties.contrail.no-such"},
		{"Contrail.Retention", pointer("30d"), "properties.Contrail.Retention"},
		{"DELTA.appendOnly", nil, "properties.DELTA.appendOnly"},
	} {
		err := CheckProperties(PropertyChange{c.key: c.value}, time.Hour)
		var invalid *tableerr.Invalid
		switch {
		case c.field == "" && err != nil, c.field != "" && !errors.As(err, &invalid):
			t.Errorf("%q: got %v", c.key, err)
		case c.field != "" && invalid.Field != c.field:
			t.Errorf("%q: the refusal is about %q: %v", c.key, invalid.Field, err)
		case c.field != "" && !strings.Contains(err.Error(), "propert") && !strings.Contains(err.Error(), "key"):
			t.Errorf("%q: %v", c.key, err)
		}
	}
}

// TestPropertiesDecideAlike makes sure that of several bad properties always the
// same is told.
func TestPropertiesDecideAlike(t *testing.T) {
	change := PropertyChange{"contrail.b": nil, "contrail.a": nil, "delta.c": nil, "ok": nil}
	for range 20 {
		if err := CheckProperties(change, 0); !strings.Contains(fmt.Sprint(err), "contrail.a") {
			t.Fatal(err)
		}
	}
}

func TestWithProperties(t *testing.T) {
	d := definitionOf(t, Request{Properties: map[string]string{"team": "ops", "old": "1"}})
	changed, err := d.WithProperties(PropertyChange{"team": pointer("dev"), "old": nil, "gone": nil, KeyRetention: pointer("30d")})
	if err != nil || !maps.Equal(changed.Properties, map[string]string{"team": "dev", KeyRetention: "30d"}) {
		t.Errorf("got %v, %v", changed.Properties, err)
	}
	if !maps.Equal(d.Properties, map[string]string{"team": "ops", "old": "1"}) {
		t.Errorf("the old definition has %v", d.Properties)
	}
	many := PropertyChange{}
	for i := range 1000 {
		many[fmt.Sprint(i)] = pointer("")
	}
	if _, err := d.WithProperties(many); tableerr.TokenOf(err) != tableerr.TokenInvalid {
		t.Errorf("1002 properties: %v", err)
	}
	many["team"], many["old"] = nil, nil
	if _, err := d.WithProperties(many); err != nil {
		t.Error(err)
	}
}

func TestCreateProperties(t *testing.T) {
	r := Request{IndexColumn: "ts", IndexType: "timestamp", IndexGranularity: "1h", LeastSnapshotRetention: time.Hour}
	for value, ok := range map[string]bool{"1h": true, "59m": false} {
		r.Properties = map[string]string{KeyRetainSnapshot: value}
		if _, err := New("id", r); (err == nil) != ok {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestSnapshotRetention(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 7 * 24 * time.Hour, "90m": 90 * time.Minute, "nonsense": 7 * 24 * time.Hour, "4294967295w": math.MaxInt64, "3 ns": 3,
	} {
		d := &Definition{Properties: map[string]string{}}
		if text != "" {
			d.Properties[KeyRetainSnapshot] = text
		}
		if got := d.SnapshotRetention(); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// TestRetentionTicks rounds up, and cuts no time of centuries down to the 292
// years of a Duration, which would drop rows that are to be kept.
func TestRetentionTicks(t *testing.T) {
	for _, c := range []struct {
		text string
		unit arrow.TimeUnit
		want uint64
	}{
		{"", arrow.Microsecond, 0}, {"nonsense", arrow.Microsecond, 0},
		{"10h", arrow.Microsecond, 36_000_000_000}, {"3ns", arrow.Nanosecond, 3},
		{"1ns", arrow.Second, 1}, {"1001us", arrow.Millisecond, 2}, {"1000us", arrow.Millisecond, 1},
		{"26100w", arrow.Second, 26100 * 7 * 86400}, {"26100w", arrow.Microsecond, 26100 * 7 * 86400 * 1e6},
		{"4294967295w", arrow.Second, math.MaxUint32 * 7 * 86400}, {"4294967295w", arrow.Nanosecond, math.MaxUint64},
		{"4294967295w", arrow.Microsecond, math.MaxUint64}, {"4294967295d", arrow.Millisecond, math.MaxUint32 * 86400 * 1000},
	} {
		d := &Definition{IndexColumn: "ts", Properties: map[string]string{}}
		d.Stored = arrow.NewSchema([]arrow.Field{{Name: "ts", Type: &arrow.TimestampType{Unit: c.unit}}}, nil)
		if c.text != "" {
			d.Properties[KeyRetention] = c.text
		}
		if got := d.RetentionTicks(); got != c.want {
			t.Errorf("%q in %s is %d, want %d", c.text, c.unit, got, c.want)
		}
	}
}
