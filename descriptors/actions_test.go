package descriptors

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/requests.md")

func TestReferenceIsCurrent(t *testing.T) {
	path := filepath.Join("docs", "requests.md")
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
		t.Error("docs/requests.md differs from the field tables; run with -update")
	}
}

func TestActionDescriptions(t *testing.T) {
	for _, a := range Actions() {
		var d struct {
			Text   string
			Fields []map[string]any
		}
		if err := json.Unmarshal([]byte(a.Description()), &d); err != nil {
			t.Fatal(err)
		}
		if d.Text != a.Text || d.Text == "" || d.Fields == nil || len(d.Fields) != len(a.Fields) {
			t.Errorf("%s: %s", a.Name, a.Description())
		}
	}
	drop := Actions()[1].Description()
	if want := `{"text":"Moves a table's directory into the trash and frees its name.","fields":[{"name":"table","type":"string","required":true},` +
		`{"name":"dry_run","type":"bool","required":false},{"name":"expected_version","type":"int64","required":false},{"name":"table_id","type":"string","required":false}]}`; drop != want {
		t.Errorf("got %s", drop)
	}
}

func TestUnknownActions(t *testing.T) {
	for _, name := range []string{"optimize", "CancelFlightInfo", "explode", ""} {
		refusedAt(t, UnknownAction(name), "action")
	}
}
