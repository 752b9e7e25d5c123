package derived

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"contrail/tablecore/tabledef"
)

// A block of derived data is
//
//	magic "CTRL"                                     4 bytes
//	kind, 'C' coverage or 'E' entity directory       1 byte
//	version of the block's layout                    1 byte
//	CRC-32C of all that follows                      4 bytes, little-endian
//	digest of the keys and the granularity           8 bytes
//	table id                                         uvarint length, bytes
//	rows of the data file                            uvarint
//	bytes of the data file, 0 in its own footer      uvarint
//	payload
//
// The digest is there because interval ids and keys mean nothing without the
// columns and the width they were made with, and both can change while the
// table id stays: by undoing an adoption and adopting again.
const (
	magic        = "CTRL"
	blockVersion = 1
	prefixBytes  = len(magic) + 2 + 4
	digestBytes  = 8
)

// kind is what a block holds.
type kind byte

const (
	kindCoverage kind = 'C'
	kindEntities kind = 'E'
)

// Keys of a data file's metadata under which blocks lie, in base64.
const (
	KeyCoverage = "contrail.coverage"
	KeyEntities = "contrail.entities"
)

func (k kind) key() string {
	if k == kindCoverage {
		return KeyCoverage
	}
	return KeyEntities
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// origin is what a block was made from.
type origin struct {
	digest  [digestBytes]byte
	tableID string
	rows    int64
	size    int64 // 0 in a footer
}

func originOf(def *tabledef.Definition, rows int64) origin {
	o := origin{tableID: def.ID, rows: rows}
	h := sha256.New()
	fmt.Fprintf(h, "%q %s %s %s", def.IndexColumn, def.IndexType, def.IndexUnit(), def.Granularity)
	for _, name := range def.EntityColumns {
		typ := ""
		if def.Stored != nil {
			for _, i := range def.Stored.FieldIndices(name) {
				typ = tabledef.TypeName(def.Stored.Field(i).Type)
			}
		}
		fmt.Fprintf(h, " %q %s", name, typ)
	}
	copy(o.digest[:], h.Sum(nil))
	return o
}

// appendBlock appends a block to dst.
func appendBlock(dst []byte, k kind, o origin, payload []byte) []byte {
	start := len(dst)
	dst = append(dst, magic...)
	dst = append(dst, byte(k), blockVersion, 0, 0, 0, 0)
	dst = append(dst, o.digest[:]...)
	dst = binary.AppendUvarint(dst, uint64(len(o.tableID)))
	dst = append(dst, o.tableID...)
	dst = binary.AppendUvarint(dst, uint64(o.rows))
	dst = binary.AppendUvarint(dst, uint64(o.size))
	dst = append(dst, payload...)
	own := dst[start:]
	binary.LittleEndian.PutUint32(own[prefixBytes-4:], crc32.Checksum(own[prefixBytes:], castagnoli))
	return dst
}

// openBlock returns the payload of a block that is of the kind and from the
// origin wanted; else why says what is wrong with it.
func openBlock(block []byte, k kind, want origin) (payload []byte, why string) {
	if len(block) < prefixBytes+digestBytes || string(block[:len(magic)]) != magic || block[len(magic)] != byte(k) {
		return nil, "damaged"
	}
	if v := block[len(magic)+1]; v != blockVersion {
		return nil, fmt.Sprintf("of version %d", v)
	}
	rest := block[prefixBytes:]
	if crc32.Checksum(rest, castagnoli) != binary.LittleEndian.Uint32(block[prefixBytes-4:]) {
		return nil, "damaged"
	}
	if !bytes.Equal(rest[:digestBytes], want.digest[:]) {
		return nil, "made with other keys or another granularity"
	}
	rest = rest[digestBytes:]
	n, size := binary.Uvarint(rest)
	if size <= 0 || n > uint64(len(rest)-size) {
		return nil, "damaged"
	}
	if string(rest[size:size+int(n)]) != want.tableID {
		return nil, "of another table"
	}
	rest = rest[size+int(n):]
	for _, number := range []int64{want.rows, want.size} {
		n, size := binary.Uvarint(rest)
		if size <= 0 {
			return nil, "damaged"
		}
		if n != uint64(number) {
			return nil, "of another file"
		}
		rest = rest[size:]
	}
	return rest, ""
}
