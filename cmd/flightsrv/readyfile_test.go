package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReadyFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "address")
	for _, address := range []string{"127.0.0.1:1", "127.0.0.1:2"} { // the second replaces
		if err := writeReadyFile(path, address); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(path)
		if err != nil || string(raw) != address+"\n" {
			t.Errorf("got %q, %v", raw, err)
		}
	}
	for range 2 { // the second finds nothing to remove
		if err := removeReadyFile(path); err != nil {
			t.Error(err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestReadyFileInAnAbsentFolder(t *testing.T) {
	if err := writeReadyFile(filepath.Join(t.TempDir(), "none", "address"), "a"); err == nil {
		t.Error("it was written")
	}
}

func TestReadyFileOverAFolder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "address")
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeReadyFile(path, "a"); err == nil {
		t.Error("it was written")
	}
	if err := removeReadyFile(path); err == nil {
		t.Error("a folder was removed")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
