package config

import (
	"encoding/json"
	"strings"
	"testing"
)

func loadForPrint(t *testing.T) *Loaded {
	t.Helper()
	l, err := Load(Sources{Environ: []string{"CONTRAIL_ADVERTISE=grpc://loader:hunter2@a:1", "CONTRAIL_WAREHOUSE=a & b"}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestPrintedText(t *testing.T) {
	var out strings.Builder
	if err := loadForPrint(t).WriteText(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) != len(keys)+2 {
		t.Errorf("%d lines", len(lines))
	}
	found := 0
	for _, line := range lines {
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "listen "):
			found++
			if len(fields) != 3 || fields[1] != `"127.0.0.1:8815"` || fields[2] != "default" {
				t.Errorf("got %q", line)
			}
		case strings.HasPrefix(line, "advertise "):
			found++
			if fields[1] != `["grpc://loader:***@a:1"]` || !strings.HasSuffix(line, "environment CONTRAIL_ADVERTISE") {
				t.Errorf("got %q", line)
			}
		}
	}
	if found != 2 {
		t.Errorf("got %s", out.String())
	}
}

func TestPrintedJSON(t *testing.T) {
	var out strings.Builder
	if err := loadForPrint(t).WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var list []Setting
	if err := json.Unmarshal([]byte(out.String()), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != len(keys) || list[0] != (Setting{"listen", "127.0.0.1:8815", "default"}) || list[1].Value != "a & b" {
		t.Errorf("got %+v", list)
	}
	if strings.Contains(out.String(), "hunter2") || !strings.Contains(out.String(), "a & b") {
		t.Errorf("got %s", out.String())
	}
}

func TestErrorsMaskSecrets(t *testing.T) {
	for _, variable := range []string{"CONTRAIL_WAREHOUSE=s3://key:hunter2@bucket", "CONTRAIL_STORE=https://key:hunter2@bucket"} {
		_, err := Load(Sources{Environ: []string{variable}})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %v", err)
		}
	}
}

func TestShownValuesAreShort(t *testing.T) {
	if got := shown(strings.Repeat("ä", 1000)); len(got) > 300 || !strings.HasSuffix(got, "…") {
		t.Errorf("got %q", got)
	}
	if got := shown(map[any]any{1: 2}); got != "map[1:2]" {
		t.Errorf("got %q", got)
	}
}
