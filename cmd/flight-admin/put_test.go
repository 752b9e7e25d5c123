package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A command that is run again adds nothing, also from standard input; one
// without a request id meets the table's rules.
func TestAppendAgainAddsNothing(t *testing.T) {
	for _, p := range places(t) {
		p.createWeather(t)
		file := write(t, "a.csv", weatherCSV(5))
		if got := p.must(t, "append", "weather", file); got != "default.weather: appended 5 rows in 1 file as version 1\n" {
			t.Errorf("%s: %s", p.name, got)
		}
		const again = "default.weather: version 1 holds these 5 rows already; nothing was added\n"
		if got := p.must(t, "append", "weather", file); got != again {
			t.Errorf("%s: %s", p.name, got)
		}
		if o := p.doWith(t, strings.NewReader(weatherCSV(5)), "append", "weather", "-", "--format", "csv"); o.stdout != again {
			t.Errorf("%s: %+v", p.name, o)
		}
		if o := p.do(t, "append", "weather", file, "--no-request-id"); o.status != exitRefused {
			t.Errorf("%s: %+v", p.name, o)
		}
		if got := p.must(t, "append", "weather", write(t, "none.csv", weatherCSV(0))); got != "default.weather: no row to append; it stays at version 1\n" {
			t.Errorf("%s: %s", p.name, got)
		}
	}
}

// Standard input goes straight through where nothing needs it twice, and by
// way of a file where something does.
func TestAppendStandardInput(t *testing.T) {
	for _, p := range places(t) {
		p.createWeather(t)
		p.must(t, "append", "weather", write(t, "a.csv", weatherCSV(5)))
		for i, format := range []string{"csv", "jsonl", "parquet", "arrow", "arrows"} {
			rows := p.must(t, "scan", "weather", "--format", format)
			for j, id := range []string{"--no-request-id", "--request-id=x", "--json"} {
				table := fmt.Sprintf("copy%d%d", i, j)
				p.must(t, "create", table, "--index-column", "time_hour", "--index-granularity", "1h", "--entity-columns", "origin")
				o := p.doWith(t, strings.NewReader(rows), "append", table, "-", "--format", format, id)
				if o.status != exitOK || o.stderr != "" {
					t.Errorf("%s: %s %s: %+v", p.name, format, id, o)
				}
				if got, want := p.must(t, "scan", table, "--format", "csv"), weatherCSV(5); got != want {
					t.Errorf("%s: %s %s: got\n%s", p.name, format, id, got)
				}
			}
		}
	}
}

// Whatever is wrong with an input, wherever it is: nothing of it is stored.
func TestDamagedInputStoresNothing(t *testing.T) {
	p := embeddedPlace(t)
	p.createWeather(t)
	p.must(t, "create", "copy", "--index-column", "time_hour", "--index-granularity", "1h", "--entity-columns", "origin")
	p.must(t, "append", "weather", write(t, "a.csv", weatherCSV(40_000)))
	folder := t.TempDir()
	refused := func(t *testing.T, format string, damaged []byte) {
		t.Helper()
		path := filepath.Join(folder, "damaged."+format)
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		o := p.do(t, "append", "copy", path)
		if o.status != exitInvalid || !strings.HasPrefix(o.stderr, "flight-admin: INVALID: "+path+": ") {
			t.Errorf("%s of %d bytes: %+v", format, len(damaged), o)
		}
	}
	for _, format := range []string{"parquet", "arrow", "arrows"} {
		path := filepath.Join(folder, "whole."+format)
		p.must(t, "scan", "weather", "--output", path)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []int{0, 1, len(whole) / 3, len(whole) / 2, len(whole) - 9, len(whole) - 8, len(whole) - 1} {
			refused(t, format, whole[:part])
		}
		refused(t, format, bytes.Repeat([]byte{'x'}, 1000))
	}
	csv := weatherCSV(40_000)
	for _, damage := range []string{"EWR,2012-12-31T23:00:00Z\n", "EWR,2012-12-31T23:00:00Z,\"1\n", "EWR,2012-12-31T23:00:00Z,1,2\n"} {
		refused(t, "csv", []byte(csv+damage))
	}
	refused(t, "csv", []byte("\n"))
	refused(t, "csv", nil)
	refused(t, "jsonl", []byte(`{"origin":"EWR"`))
	refused(t, "jsonl", []byte("{\"origin\":\"EWR\",\"time_hour\":\"2013-01-01T00:00:00Z\"}\n[]\n"))
	if got := p.must(t, "tables"); !strings.Contains(got, "default.copy           0") {
		t.Errorf("something was stored:\n%s", got)
	}
}

// The bytes that are sent are those whose digest is the request id.
func TestInputThatIsWrittenMeanwhile(t *testing.T) {
	path := write(t, "a.csv", weatherCSV(3))
	a := &app{}
	in, err := a.openInput(path, &fileFlags{comma: ","})
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("EWR,2013-05-01T00:00:00Z,1\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := in.unchanged(); err == nil || !strings.Contains(err.Error(), "was written to while it was read") {
		t.Errorf("got %v", err)
	}
}

// The table's types read text; a column that it has not is refused with those
// that it has.
func TestAppendTextByTheTablesTypes(t *testing.T) {
	p := embeddedPlace(t)
	p.must(t, "create", "t", "--index-column", "at", "--index-granularity", "1s", "--column", "at:timestamp[ms, tz=UTC]", "--column", "code:string",
		"--column", "price:decimal128(10, 2)", "--column", "tags:list<item: int8>", "--column", "ok:bool", "--column", "kind:dictionary<values=string, indices=int32, ordered=0>")
	p.must(t, "append", "t", write(t, "a.csv", "code,at,price,tags,ok,kind\n007,2013-01-01 05:00:00.25+01,1.5,\"[1,null]\",TRUE,a\n,2013-01-01T05:00:01Z,,,,\n"))
	p.must(t, "append", "t", write(t, "a.jsonl", `{"at":"2013-01-01T05:00:02Z","tags":[],"price":"-0.05","kind":"b"}`+"\n"))
	p.must(t, "append", "t", write(t, "b.csv", "at;code;price;tags;ok;kind\n2013-01-01 06:00:03;NA;NA;NA;NA;NA\n"), "--comma", ";", "--null", "NA", "--assume-zone", "Europe/Berlin")
	want := `{"at":"2013-01-01T04:00:00.25Z","code":"007","price":"1.50","tags":[1,null],"ok":true,"kind":"a"}
{"at":"2013-01-01T05:00:01Z","code":null,"price":null,"tags":null,"ok":null,"kind":null}
{"at":"2013-01-01T05:00:02Z","code":null,"price":"-0.05","tags":[],"ok":null,"kind":"b"}
{"at":"2013-01-01T05:00:03Z","code":null,"price":null,"tags":null,"ok":null,"kind":null}
`
	if got := p.must(t, "scan", "t", "--format", "jsonl"); got != want {
		t.Errorf("got\n%s", got)
	}
	p.must(t, "create", "u", "--index-column", "at", "--index-granularity", "1s", "--column", "at:timestamp[ms, tz=UTC]",
		"--column", "price:decimal128(10, 2)", "--column", "tags:list<item: int8>")
	for file, line := range map[string]string{
		"at,size\n": "line 1, column size: the table has no such column; it has at (timestamp[ms, tz=UTC]), price (decimal128(10, 2))",
		"at,at\n":   "line 1, column at: the file names it twice",
		"at,price,tags\n2013-01-01T05:00:00.0001Z,,\n": `line 2, column at: "2013-01-01T05:00:00.0001Z" is no timestamp[ms, tz=UTC]: it is finer than the unit`,
		"at,price,tags\n2013-01-01T05:00:00,,\n":       "line 2, column at: the time has no zone and its column has one; say which is meant with --assume-zone",
		"at,price,tags\n2013-01-01T06:00Z,1.005,":      `line 2, column price: "1.005" is no decimal128(10, 2)`,
		"at,price,tags\n2013-01-01T06:00Z,,[300]":      `line 2, column tags: [0]: "300" is no whole number of 8 bits`,
		"at,price,tags\n2013-01-01T06:00Z,,1 2":        "line 2, column tags: the value of a nested type is due as JSON: more than one value",
	} {
		path := write(t, "bad.csv", file)
		if o := p.do(t, "append", "u", path); o.status != exitInvalid || !strings.HasPrefix(o.stderr, "flight-admin: INVALID: "+path+": "+line) {
			t.Errorf("%q: %+v", file, o)
		}
	}
}

// An update takes the columns that are wanted, and is safe to repeat.
func TestUpdate(t *testing.T) {
	for _, p := range places(t) {
		p.createWeather(t)
		p.must(t, "append", "weather", write(t, "a.csv", weatherCSV(3)))
		p.must(t, "add-columns", "weather", "--column", "note:string")
		file := write(t, "fix.csv", "note,origin,temp,time_hour\nwarm,EWR,70.5,2013-01-01T01:00:00Z\n")
		for range 2 {
			if got := p.must(t, "update", "weather", file, "--columns", "temp", "--expected-version", "2"); got != "default.weather: updated 1 row in 1 segment as version 3\n" {
				t.Errorf("%s: %s", p.name, got)
			}
		}
		if o := p.do(t, "update", "weather", file, "--columns", "note", "--expected-version", "2"); o.status != exitConflict {
			t.Errorf("%s: %+v", p.name, o)
		}
		p.must(t, "update", "weather", file, "--columns", "note", "--expected-version", "current")
		want := "origin,time_hour,temp,note\nEWR,2013-01-01T00:00:00Z,39.02,\nEWR,2013-01-01T01:00:00Z,70.5,warm\nEWR,2013-01-01T02:00:00Z,39.02,\n"
		if got := p.must(t, "scan", "weather", "--format", "csv"); got != want {
			t.Errorf("%s: got\n%s", p.name, got)
		}
		missing := write(t, "missing.csv", "origin,time_hour,temp\nEWR,2014-01-01T01:00:00Z,70.5\n")
		if o := p.do(t, "update", "weather", missing, "--expected-version", "current"); o.status != exitRefused || !strings.Contains(o.stderr, "UNMATCHED_SOURCE_KEY") {
			t.Errorf("%s: %+v", p.name, o)
		}
	}
}

// Text for a table without a schema gives the index the type that the table has,
// also where the values look like another one.
func TestIndexOfATableWithoutASchema(t *testing.T) {
	numbers, dates := write(t, "n.csv", "at,v\n1,10\n0,\n"), write(t, "d.jsonl", `{"at":"2013-01-02","v":1}`+"\n")
	for _, p := range places(t) {
		for i, c := range []struct{ file, index, want string }{
			{numbers, "--index-type=uint64 --index-granularity=1", "at,v\n0,\n1,10\n"},
			{numbers, "--index-type=int64 --index-granularity=1", "at,v\n0,\n1,10\n"},
			{dates, "--index-granularity=1d", "at,v\n2013-01-02T00:00:00,1\n"},
			{dates, "--index-granularity=1d --assume-zone=Europe/Berlin", "at,v\n2013-01-01T23:00:00Z,1\n"},
		} {
			zone := []string{}
			flags := strings.Fields(c.index)
			if strings.HasPrefix(flags[len(flags)-1], "--assume-zone") {
				zone = flags[len(flags)-1:]
			}
			for j, from := range [][]string{nil, {"--schema-from", c.file}} {
				name := fmt.Sprintf("t%d%d", i, j)
				p.must(t, append(append([]string{"create", name, "--index-column", "at"}, flags...), from...)...)
				p.must(t, append([]string{"append", name, c.file}, zone...)...)
				if got := p.must(t, "scan", name, "--format", "csv"); got != c.want {
					t.Errorf("%s %s: %s", c.index, from, got)
				}
			}
		}
	}
}

// Without a range gaps ends with the last row, also where that is the last value
// of the index, or a time whose year has more than four digits.
func TestGapsUpToTheLastRow(t *testing.T) {
	for _, p := range places(t) {
		p.must(t, "create", "n", "--index-column", "n", "--index-granularity", "10", "--column", "n:uint64")
		p.must(t, "append", "n", write(t, "n.csv", "n\n18446744073709551595\n18446744073709551615\n"))
		if got := p.must(t, "gaps", "n", "--format", "csv"); got != "start,end,intervals\n18446744073709551600,18446744073709551610,1\n" {
			t.Errorf("%s: %s", p.name, got)
		}
		if got := p.must(t, "gaps", "n", "--start", "0", "--plot"); !strings.Contains(got, "18446744073709551616\n") {
			t.Errorf("%s: %s", p.name, got)
		}
		p.must(t, "create", "t", "--index-column", "t", "--index-granularity", "1d", "--column", "t:timestamp[s]")
		p.must(t, "append", "t", write(t, "t.csv", "t\n9999-12-30T00:00:00\n253402300800\n"))
		if got := p.must(t, "gaps", "t", "--format", "csv"); got != "start,end,intervals\n9999-12-31T00:00:00,253402300800,1\n" {
			t.Errorf("%s: %s", p.name, got)
		}
	}
}
