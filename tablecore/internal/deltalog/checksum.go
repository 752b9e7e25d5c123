package deltalog

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"

	"contrail/tablecore/tabledef"
)

// A commit that Contrail writes carries a checksum, because JSON alone does not
// show damage: a changed digit in the bounds of a data file would hide rows,
// and a file cut behind a line would lose them. It is the last member of
// commitInfo, the CRC-32C of the whole file with the eight digits of the
// checksum taken as zeros and the value of the format version left out: that
// is judged before anything else, damage included. Commits of other writers have
// none and are taken as they are.
const checksumKey = "contrailChecksum"

var (
	checksumMark  = []byte(`"` + checksumKey + `":"`)
	checksumZeros = []byte("00000000")
	versionMark   = []byte(`"` + tabledef.KeyFormatVersion + `":`)
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
	rest := data[at+len(checksumZeros):]
	from, to := findVersion(rest)
	sum = crc32.Update(sum, castagnoli, rest[:from])
	sum = crc32.Update(sum, castagnoli, rest[to:])
	return fmt.Appendf(nil, "%08x", sum)
}

// findVersion returns where the value of the format version stands in the lines
// of a commit; where there is none that is an empty range.
func findVersion(data []byte) (from, to int) {
	at := bytes.Index(data, versionMark)
	if at < 0 {
		return 0, 0
	}
	from = at + len(versionMark)
	if length := bytes.IndexAny(data[from:], ",}\n"); length >= 0 {
		return from, from + length
	}
	return from, from
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
