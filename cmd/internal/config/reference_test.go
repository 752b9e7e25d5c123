package config

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the reference")

func TestReference(t *testing.T) {
	path := filepath.Join("..", "..", "flightsrv", "docs", "configuration.md")
	if *update {
		if err := os.WriteFile(path, Reference(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, Reference()) {
		t.Errorf("%s is not what the code says; run go test ./cmd/internal/config -run Reference -update", path)
	}
}

// What flight-admin reads from the environment does not stop the daemon.
func TestVariablesOfTheCommandLineArePassedOver(t *testing.T) {
	loaded, err := Load(Sources{Environ: []string{"CONTRAIL_SERVER=a:1", "CONTRAIL_TOKEN=x", "CONTRAIL_LISTEN=127.0.0.1:1"}})
	if err != nil || loaded.Listen != "127.0.0.1:1" {
		t.Errorf("got %+v, %v", loaded, err)
	}
}
