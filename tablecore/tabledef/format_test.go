package tabledef

import (
	"errors"
	"strings"
	"testing"

	"contrail/tablecore/tableerr"
)

func TestParseFormat(t *testing.T) {
	for text, want := range map[string]string{
		"0.1.0": "0.1.0", "10.20.30": "10.20.30", "0.0.0": "0.0.0", "4294967295.0.0": "4294967295.0.0",
		"3": "0.3.0", "0": "0.0.0", "03": "0.3.0", // an integer, in words or as JSON
		"": "", "abc": "", "0.3": "", "0.3.0.0": "", "v0.3.0": "", "0.3.0-rc1": "", "0.3.0+1": "", "-1": "", "+3": "", "3.0": "", "3e0": "",
		" 0.3.0": "", "0.3.0\n": "", "00.3.0": "", "0.03.0": "", "0.-3.0": "", "4294967296": "", "0.4294967296.0": "", "０.3.0": "", "0x3": "", "null": "",
	} {
		v, ok := parseFormat(text)
		if ok != (want != "") || ok && v.String() != want {
			t.Errorf("%q is %s, %t", text, v, ok)
		}
	}
}

// TestFormatCompatibility is the table of the format's document: what software
// may do to tables of other versions, in both directions.
func TestFormatCompatibility(t *testing.T) {
	const both, read, none = "read and write", "read", "refuse"
	for _, c := range []struct{ software, table, may string }{
		// before 1.0 a minor bump stops older software from doing either
		{"0.3.0", "0.1.0", both}, {"0.3.0", "0.2.9", both}, {"0.3.0", "0.3.0", both}, {"0.3.0", "0.3.9", both},
		{"0.3.9", "0.3.0", both}, {"0.3.0", "0.4.0", none}, {"0.3.0", "0.10.0", none}, {"0.3.0", "1.0.0", none},
		{"0.3.0", "1.1.0", none}, {"0.3.0", "10.0.0", none}, {"0.1.0", "0.2.0", none},
		// from 1.0 a minor bump stops it from writing, a major bump from reading
		{"1.0.0", "0.1.0", both}, {"1.0.0", "0.9.0", both}, {"1.0.0", "1.0.0", both}, {"1.0.0", "1.0.7", both},
		{"1.0.0", "1.1.0", read}, {"1.0.0", "1.10.3", read}, {"1.0.0", "2.0.0", none}, {"1.1.0", "1.0.0", both},
		{"1.9.0", "2.0.0", none}, {"2.0.0", "1.9.0", both}, {"2.0.0", "0.3.0", both}, {"2.3.0", "2.4.0", read},
	} {
		table, ok := parseFormat(c.table)
		software, ok2 := parseFormat(c.software)
		got := none
		switch reads, writes := table.readableBy(software), table.writableBy(software); {
		case reads && writes:
			got = both
		case reads:
			got = read
		}
		if !ok || !ok2 || got != c.may {
			t.Errorf("software of %s may %s tables of %s, want %s", c.software, got, c.table, c.may)
		}
	}
}

func TestReadableFormat(t *testing.T) {
	if v, err := ReadableFormat(nil); err != nil || v.String() != "0.1.0" {
		t.Errorf("absent: %s, %v", v, err)
	}
	for _, text := range []string{"abc", "", "0.4.0", "1.0.0"} {
		_, err := ReadableFormat(map[string]string{KeyFormatVersion: text})
		var unreadable *tableerr.FormatUnreadable
		if !errors.As(err, &unreadable) || unreadable.TableFormat != text || unreadable.SupportedFormat != CurrentFormat.String() ||
			!strings.Contains(err.Error(), "other Delta readers may still read it") {
			t.Errorf("%q: %v", text, err)
		}
	}
	err := FormatVersion{CurrentFormat.Major, CurrentFormat.Minor + 1, 0}.CheckWritable()
	var unwritable *tableerr.FormatUnwritable
	if !errors.As(err, &unwritable) || unwritable.SupportedFormat != CurrentFormat.String() || !strings.Contains(err.Error(), "other Delta readers may still read it") {
		t.Errorf("got %v", err)
	}
}

// FuzzParseFormat makes sure that what is taken for a version is written as one.
func FuzzParseFormat(f *testing.F) {
	for _, text := range []string{"0.3.0", "3", "abc", "1.2.3.4", "00.1.2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, ok := parseFormat(text)
		if again, ok2 := parseFormat(v.String()); ok && (!ok2 || again != v) {
			t.Errorf("%q is %s, and that %s", text, v, again)
		}
	})
}
