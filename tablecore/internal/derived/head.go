package derived

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// The head points at the newest state file, so that a process that knows
// nothing of a table opens it with few reads:
//
//	magic "CTRH"                                      4 bytes
//	version of the layout                             1 byte
//	CRC-32C of all that follows                       4 bytes, little-endian
//	table id                                          uvarint length, bytes
//	version of the table                              uvarint
//	SHA-256 of that version's commit file             32 bytes
//	bytes of the state file up to its first section's end  uvarint
const (
	headMagic   = "CTRH"
	headVersion = 1
	headPrefix  = len(headMagic) + 1 + 4
)

// HeadPath is where the head lies, relative to the table.
const HeadPath = "_contrail/head"

// Head names a state file: that of its version, by StatePath.
type Head struct {
	Of Of
	// First is how many bytes it takes to read the state file's first section.
	First int64
}

// Encode returns the bytes of a head.
func (h Head) Encode() ([]byte, error) {
	data := append([]byte(headMagic), headVersion, 0, 0, 0, 0)
	data, err := h.Of.append(data)
	if err != nil {
		return nil, err
	}
	if h.First < 0 || len(h.Of.TableID) > maxStateHeader {
		return nil, errors.New("no head can be made of this")
	}
	data = binary.AppendUvarint(data, uint64(h.First))
	binary.LittleEndian.PutUint32(data[headPrefix-4:], crc32.Checksum(data[headPrefix:], castagnoli))
	return data, nil
}

// DecodeHead reads a head. The error says what is wrong with it.
func DecodeHead(data []byte) (Head, error) {
	if len(data) < headPrefix || string(data[:len(headMagic)]) != headMagic {
		return Head{}, errDamaged
	}
	if v := data[len(headMagic)]; v != headVersion {
		return Head{}, fmt.Errorf("of version %d", v)
	}
	if crc32.Checksum(data[headPrefix:], castagnoli) != binary.LittleEndian.Uint32(data[headPrefix-4:]) {
		return Head{}, errDamaged
	}
	r := headerReader{rest: data[headPrefix:]}
	h := Head{Of: r.of(), First: r.number(math.MaxInt64)}
	if r.bad || len(r.rest) > 0 {
		return Head{}, errDamaged
	}
	return h, nil
}
