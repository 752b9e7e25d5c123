package derived

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"

	"contrail/tablecore/tabledef"
)

// maxInlineText is how long the base64 text of a block in a footer may be.
const maxInlineText = 64 << 10

// maxPayload bounds a payload, whose length takes four bytes.
const maxPayload = math.MaxUint32 / 2

var errTooLarge = errors.New("the derived data of a file is larger than 2 GiB")

// Packed is the derived data of one data file, ready to be stored.
type Packed struct {
	// KV belongs into the data file's key-value metadata.
	KV map[string]string
	// Sidecar is nil when all of it is there. Else it returns, for the size of
	// the finished data file, what belongs under SidecarPath.
	Sidecar func(size int64) []byte
}

// Pack encodes a file's index. What is small goes into the file's own footer,
// what is large into an object beside it: the footer is read on each cold scan
// of the file, the coverage only when rows are added.
func Pack(def *tabledef.Definition, x FileIndex) (Packed, error) {
	if x.Rows < 0 {
		return Packed{}, errors.New("a data file has a negative number of rows")
	}
	p := Packed{KV: map[string]string{}}
	o := originOf(def, x.Rows)
	large := map[kind][]byte{}
	for _, k := range []kind{kindEntities, kindCoverage} {
		payload, ok := x.payload(k)
		if !ok {
			continue
		}
		if block := appendBlock(nil, k, o, payload); base64.StdEncoding.EncodedLen(len(block)) <= maxInlineText {
			p.KV[k.key()] = base64.StdEncoding.EncodeToString(block)
			continue
		}
		if uint64(len(payload)) > maxPayload {
			return Packed{}, errTooLarge
		}
		large[k] = payload
	}
	if len(large) > 0 {
		p.Sidecar = func(size int64) []byte { return sidecar(large, o, size) }
	}
	return p, nil
}

// Beside encodes all of the index of a finished data file of so many bytes, for
// an object beside it: what belongs under SidecarPath where the file's own footer
// lacks it.
func Beside(def *tabledef.Definition, x FileIndex, size int64) ([]byte, error) {
	all := map[kind][]byte{}
	for _, k := range []kind{kindEntities, kindCoverage} {
		if payload, ok := x.payload(k); ok {
			if uint64(len(payload)) > maxPayload {
				return nil, errTooLarge
			}
			all[k] = payload
		}
	}
	return sidecar(all, originOf(def, x.Rows), size), nil
}

// payload encodes one part of an index; ok is false when there is none.
func (x *FileIndex) payload(k kind) (payload []byte, ok bool) {
	switch {
	case k == kindEntities && x.Sorted():
		return appendDirectory(nil, x.Directory), true
	case k == kindEntities:
		return []byte{unsortedFile}, true
	case x.Coverage == nil:
		return nil, false
	default:
		return x.Coverage.AppendEncoded(nil), true
	}
}

// sidecar returns blocks, each behind its length as four little-endian bytes.
func sidecar(payloads map[kind][]byte, o origin, size int64) []byte {
	o.size = size
	var out []byte
	for _, k := range []kind{kindEntities, kindCoverage} {
		payload, ok := payloads[k]
		if !ok {
			continue
		}
		start := len(out)
		out = appendBlock(append(out, 0, 0, 0, 0), k, o, payload)
		binary.LittleEndian.PutUint32(out[start:], uint32(len(out)-start-4))
	}
	return out
}

// sidecarBlock returns the block of a kind in a sidecar, nil when it has none.
func sidecarBlock(data []byte, k kind) []byte {
	for len(data) >= 4 {
		n := binary.LittleEndian.Uint32(data)
		if uint64(n) > uint64(len(data)-4) {
			return nil
		}
		block := data[4 : 4+n]
		if len(block) > len(magic) && block[len(magic)] == byte(k) {
			return block
		}
		data = data[4+n:]
	}
	return nil
}
