package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"contrail/descriptors"
)

var weatherTypes = &tableTypes{index: "time_hour", columns: map[string]string{
	"origin": "string", "time_hour": "timestamp[us, tz=UTC]", "temp": "double", "wind dir": "int64", "ok": "bool", "price": "decimal128(10, 2)"}}

func TestFilters(t *testing.T) {
	for text, want := range map[string]string{
		"temp > 32":                      `["temp",">",32]`,
		"temp>=-1.5":                     `["temp",">=",-1.5]`,
		"temp == NaN":                    `["temp","==","NaN"]`,
		"temp != 1e3":                    `["temp","!=",1e3]`,
		"origin = 007":                   `["origin","=","007"]`,
		"origin='it''s > \"'":            `["origin","=","it's > \""]`,
		`"wind dir" in (0, 180,"x")`:     `["wind dir","in",[0,180,"x"]]`,
		"origin IN [EWR,JFK]":            `["origin","in",["EWR","JFK"]]`,
		"origin in ()":                   `["origin","in",[]]`,
		"temp is null":                   `["temp","is null"]`,
		"temp IS  NOT   NULL":            `["temp","is not null"]`,
		"ok = true":                      `["ok","=",true]`,
		"ok = yes":                       `["ok","=","yes"]`,
		"price < 1.50":                   `["price","<","1.50"]`,
		"time_hour <= 2013-01-01":        `["time_hour","<=","2013-01-01"]`,
		"time_hour = 5":                  `["time_hour","=",5]`,
		"unknown = 5":                    `["unknown","=","5"]`,
		`["temp",">",32]`:                `["temp",">",32]`,
		`["temp", "is null"]`:            `["temp","is null"]`,
		`[ "origin", "in", ["a", "b"] ]`: `["origin","in",["a", "b"]]`,
	} {
		c, err := parseFilter(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		d := c.typed(weatherTypes)
		got := fmt.Sprintf("[%q,%q", d.Column, d.Op)
		if d.Value != nil {
			got += "," + string(d.Value)
		}
		if got += "]"; got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
	for _, text := range []string{"", "temp", "= 1", "temp 1", "temp >", "temp in", "temp in 1", "temp in (1", "temp in (1,)", "temp in (1 2, 'x)", "temp = 'x", "temp = 'x' y", "[1]", "[1,2,3,4]", `["temp"]`, `"" = 1`} {
		if c, err := parseFilter(text); err == nil {
			t.Errorf("%s is %+v", text, c)
		}
	}
}

func TestEntities(t *testing.T) {
	for text, want := range map[string]string{
		"origin=EWR":                        `[{"origin":"EWR"}]`,
		` origin = "a,b=c" , wind dir = 5 `: `[{"origin":"a,b=c","wind dir":5}]`,
		`origin=`:                           `[{"origin":""}]`,
		`{"wind dir":"5","origin":"x"}`:     `[{"origin":"x","wind dir":"5"}]`,
	} {
		id, err := parseEntity(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		raw, err := (&descriptors.Scan{Table: "t", Entities: []descriptors.Entity{id.typed(weatherTypes)}}).Encode()
		if err != nil || !strings.Contains(string(raw), `"entities":`+want) {
			t.Errorf("%s: %s, %v", text, raw, err)
		}
	}
	for _, text := range []string{"", "EWR", "=EWR", "origin=EWR,", "origin=\"x", "origin=\"x\"y", "{", "[]"} {
		if id, err := parseEntity(text); err == nil {
			t.Errorf("%s is %+v", text, id)
		}
	}
}

// FuzzFilter: whatever is taken makes a request that the wire contract takes or
// refuses by the condition's name, and nothing panics.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{"temp > 32", "a in (1, 'x''y')", `["a","=",1]`, `"a b" is not null`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseFilter(text)
		if err != nil {
			return
		}
		d := c.typed(weatherTypes)
		if d.Value != nil && !json.Valid(d.Value) {
			t.Errorf("%q becomes %s", text, d.Value)
		}
	})
}

// FuzzEntity is FuzzFilter for entities.
func FuzzEntity(f *testing.F) {
	for _, text := range []string{"a=b", `a="x,""y",b=2`, `{"a":1}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := parseEntity(text)
		if err != nil {
			return
		}
		for _, v := range id.typed(weatherTypes) {
			if !json.Valid(v.Value) {
				t.Errorf("%q becomes %s", text, v.Value)
			}
		}
	})
}

func TestTableForPeople(t *testing.T) {
	var b strings.Builder
	table := newTextTable(&b, []string{"name", "n"}, []bool{false, true})
	for _, row := range [][]string{{"日本", "1"}, {"a\x1b[2Jb\n", "100"}, {strings.Repeat("x", 100), "5"}} {
		if err := table.add(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if lines[1] != "日本"+strings.Repeat(" ", maxCell-4)+"    1" || !strings.HasPrefix(lines[2], "a\uFFFD[2Jb\uFFFD ") || !strings.HasPrefix(lines[3], strings.Repeat("x", maxCell-1)+"…    5") {
		t.Errorf("got\n%s", b.String())
	}
	b.Reset()
	table = newTextTable(&b, []string{"n"}, []bool{true})
	for i := range 2*sampleRows + 1 {
		if err := table.add([]string{fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Close(); err != nil || strings.Count(b.String(), "\n") != 2*sampleRows+2 || !strings.HasSuffix(b.String(), "\n1999\n2000\n") {
		t.Errorf("%v: got %d lines", err, strings.Count(b.String(), "\n"))
	}
}

func TestBehind(t *testing.T) {
	for value, want := range map[string]string{
		`"2013-01-01T00:00:00Z"`: `"2013-01-01T00:00:00.000000001Z"`, `"2013-01-01T00:00:00.5"`: `"2013-01-01T00:00:00.500000001"`,
		`"0000-12-31T23:59:59.999999999Z"`: `"0001-01-01T00:00:00Z"`, `"9999-12-31T23:59:59.999999999"`: `"+010000-01-01T00:00:00"`,
		`"-000001-02-28T00:00:00Z"`: `"-000001-02-28T00:00:00.000000001Z"`, `"+292277026-02-28T00:00:00"`: `"+292277026-02-28T00:00:00.000000001"`,
		`"2013-01-01"`: "", `"+010000"`: "", `"Z"`: "", `"abcd-01-01T00:00:00Z"`: "",
		"5": "6", "-1": "0", "18446744073709551615": "18446744073709551616", "18446744073709551614": "18446744073709551615", `"x"`: "", "null": "",
	} {
		if got := string(behind(json.RawMessage(value))); got != want {
			t.Errorf("%s: %s", value, got)
		}
	}
}

func TestBars(t *testing.T) {
	var bar [plotWidth]float64
	for i := range 30 {
		bar[i] = 1
	}
	bar[30] = 0.5
	if got := draw(&bar); got != strings.Repeat("█", 30)+"▒"+strings.Repeat("·", 29) {
		t.Errorf("got %s", got)
	}
}
