package datafile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A seal is a checksum in a Thrift structure of a file: the footer, a page's
// header, an offset or a column index. Parquet itself has checksums of the
// pages' bodies alone, and a changed bit elsewhere can move values to other
// rows or give a column another name without a sign of it.
//
// It is the structure's last field, number 32767 of type binary, which
// parquet.thrift keeps for extensions and every reader skips (parquet-format,
// BinaryProtocolExtensions.md). Its bytes are sealMark, which tells it from the
// extensions of others, and the CRC-32C of the structure's bytes before the
// field in eight hexadecimal digits: Polars refuses bytes here that are no text.
const (
	sealField       = 32767
	sealMark        = "contrail crc-32c"
	sealBytes       = len(sealMark) + 8
	sealHeaderBytes = 4 // the field's type and number
)

var (
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)
	errUnsealed = errors.New("a header lacks the checksum that this software writes")
	errSeal     = errors.New("a header does not match its checksum")
)

// sealed puts a seal into the structure b[start:], which ends with its last
// byte.
func sealed(b []byte, start int) []byte {
	b = b[:len(b)-1] // the mark of the structure's end
	sum := checksumText(b[start:])
	b = append(b, thriftBinary)
	b = binary.AppendVarint(b, sealField)
	b = binary.AppendUvarint(b, uint64(sealBytes))
	b = append(b, sealMark...)
	b = append(b, sum...)
	return append(b, 0)
}

func checksumText(b []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(b, castagnoli)) }

// seal reads a field of the outermost structure if it is a seal. The structure
// must begin with the reader's bytes. Extensions of others are passed over.
func (r *thriftReader) seal(id int, typ byte) bool {
	if id != sealField || typ != thriftBinary {
		return false
	}
	end := r.pos - sealHeaderBytes
	extension := r.bytes()
	if len(extension) != sealBytes || string(extension[:len(sealMark)]) != sealMark {
		return true
	}
	if end < 0 || checksumText(r.b[:end]) != string(extension[len(sealMark):]) {
		r.fail(errSeal)
	}
	r.sealed = true
	return true
}
