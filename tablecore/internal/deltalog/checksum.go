package deltalog

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

// A commit that Contrail writes carries a checksum, because JSON alone does not
// show damage: a changed digit in the bounds of a data file would hide rows,
// and a file cut behind a line would lose them. It is the last member of
// commitInfo, the CRC-32C of the whole file with the eight digits of the
// checksum taken as zeros. Commits of other writers have none and are taken as
// they are.
const checksumKey = "contrailChecksum"

var (
	checksumMark  = []byte(`"` + checksumKey + `":"`)
	checksumZeros = []byte("00000000")
	castagnoli    = crc32.MakeTable(crc32.Castagnoli)
)

// findChecksum returns where the digits of the checksum stand, -1 where there
// is none. A text inside JSON cannot look like the mark: its quotes would be
// escaped.
func findChecksum(data []byte) int {
	line, _, _ := bytes.Cut(data, []byte{'\n'})
	at := bytes.LastIndex(line, checksumMark)
	if at < 0 || len(line)-at < len(checksumMark)+len(checksumZeros) {
		return -1
	}
	return at + len(checksumMark)
}

// checksumOf returns the digits that belong at a place in a commit.
func checksumOf(data []byte, at int) []byte {
	sum := crc32.Update(0, castagnoli, data[:at])
	sum = crc32.Update(sum, castagnoli, checksumZeros)
	sum = crc32.Update(sum, castagnoli, data[at+len(checksumZeros):])
	return fmt.Appendf(nil, "%08x", sum)
}

// seal fills in the checksum of a commit that has room for one.
func seal(data []byte) {
	if at := findChecksum(data); at >= 0 {
		copy(data[at:], checksumOf(data, at))
	}
}

// verify compares a commit with its checksum, if it has one.
func verify(data []byte) error {
	at := findChecksum(data)
	if at >= 0 && !bytes.Equal(data[at:at+len(checksumZeros)], checksumOf(data, at)) {
		return errors.New("its bytes do not have the checksum they were written with")
	}
	return nil
}
