package snapshot

import (
	"strings"
	"testing"

	"contrail/tablecore/internal/deltalog"
)

func TestParseRequest(t *testing.T) {
	const digest = "0123456789abcdef"
	for app, want := range map[string]*Request{
		"contrail/" + digest + "/append/x":           {ID: "x", Op: "append", Digest: digest},
		"contrail/" + digest + "/append/a/b c/":      {ID: "a/b c/", Op: "append", Digest: digest},
		"contrail/" + digest + "/update_rows/append": {ID: "append", Op: "update_rows", Digest: digest},
		"contrail/" + digest + "//x":                 {ID: "x", Digest: digest},
		"contrail/" + digest + "/append/":            nil,
		"contrail/" + digest + "/append":             nil,
		"contrail/" + digest[1:] + "/append/x":       nil,
		"contrail/x/y/z":                             nil,
		"contrail/":                                  nil,
		"spark/" + digest + "/append/x":              nil,
		"":                                           nil,
	} {
		got := parseRequest(&deltalog.Txn{AppID: app, Version: 7})
		if (got == nil) != (want == nil) || got != nil && (got.ID != want.ID || got.Op != want.Op || got.Digest != want.Digest || got.Version != 7 || got.AppID() != app) {
			t.Errorf("%q is read as %+v, want %+v", app, got, want)
		}
	}
}

// FuzzParseRequest makes sure that what is read of an application, whoever
// wrote it, is written the same.
func FuzzParseRequest(f *testing.F) {
	for _, app := range []string{"", "contrail/", "contrail/0123456789abcdef/append/a/b", "contrail/0123456789abcdef//", "contrail////"} {
		f.Add(app)
	}
	f.Fuzz(func(t *testing.T, app string) {
		if r := parseRequest(&deltalog.Txn{AppID: app}); r != nil && (r.AppID() != app || r.ID == "" || strings.Contains(r.Op, "/")) {
			t.Errorf("%q is read as %+v", app, r)
		}
	})
}
