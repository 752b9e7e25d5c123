package deltalog

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

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
