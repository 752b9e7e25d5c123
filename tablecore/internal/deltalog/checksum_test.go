package deltalog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// TestDamagedCommit flips every bit of a commit and cuts it at every length:
// each is told, unless it is in the name of the checksum, which leaves the
// commit as it was.
func TestDamagedCommit(t *testing.T) {
	data, err := EncodeCommit(fullCommit())
	if err != nil {
		t.Fatal(err)
	}
	name := bytes.Index(data, checksumMark)
	check := func(what string, at int, damaged []byte) {
		t.Helper()
		c, err := ParseCommit(3, damaged)
		var corrupt *tableerr.Corrupt
		switch {
		case errors.As(err, &corrupt):
			if corrupt.Path != CommitKey(3) {
				t.Fatalf("%s: the error names %q", what, corrupt.Path)
			}
		case err != nil || at < name || at >= name+len(checksumMark):
			t.Fatalf("%s was taken as %+v, %v", what, c, err)
		}
	}
	for i := range data {
		for bit := range 8 {
			damaged := bytes.Clone(data)
			damaged[i] ^= 1 << bit
			check(fmt.Sprintf("bit %d of byte %d", bit, i), i, damaged)
		}
		check(fmt.Sprintf("a commit of %d bytes", i), -1, data[:i])
	}
}

// TestFormatVersionOutsideTheChecksum: the format version is judged before
// anything else, so a commit with another one is whole.
func TestFormatVersionOutsideTheChecksum(t *testing.T) {
	commit := fullCommit()
	commit.Metadata.Configuration[tabledef.KeyFormatVersion] = "0.3.0"
	data, err := EncodeCommit(commit)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{`"1.0.0"`, `"abc"`, `3`, `""`, `"0.3.0-with a long text behind it"`} {
		other := bytes.Replace(data, []byte(`:"0.3.0"`), []byte(":"+value), 1)
		c, err := ParseCommit(3, other)
		if err != nil || c.Metadata.Configuration[tabledef.KeyFormatVersion] != strings.Trim(value, `"`) {
			t.Errorf("%s: %+v, %v", value, c, err)
		}
		if _, err := ParseCommit(3, bytes.Replace(other, []byte(`"size":`), []byte(`"size":1`), 1)); err == nil {
			t.Errorf("%s: other damage was taken", value)
		}
	}
}

// TestForeignCommit takes commits without a checksum.
func TestForeignCommit(t *testing.T) {
	for _, data := range []string{
		`{"commitInfo":{"operation":"WRITE"}}`,
		`{"commitInfo":{"operation":"contrailChecksum"}}`,
		`{"commitInfo":{"contrailChecksum":7}}`,
		`{"txn":{"appId":"a\"contrailChecksum\":\"00000000","version":1}}`,
	} {
		if _, err := ParseCommit(1, []byte(data)); err != nil {
			t.Errorf("%s: %v", data, err)
		}
	}
}
