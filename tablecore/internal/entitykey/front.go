package entitykey

import (
	"bytes"
	"encoding/binary"
)

// A list of ascending keys is stored front-coded: each key as the number of
// bytes it shares with the one before it, the number of bytes that follow, and
// those bytes.

// MaxListBytes bounds the keys that a stored list may unfold into.
const MaxListBytes = 256 << 20

// AppendAfter appends a key to a list in which last came before it, "" for the
// first one.
func AppendAfter(dst []byte, last, key string) []byte {
	shared := 0
	for shared < min(len(last), len(key)) && last[shared] == key[shared] {
		shared++
	}
	dst = binary.AppendUvarint(dst, uint64(shared))
	dst = binary.AppendUvarint(dst, uint64(len(key)-shared))
	return append(dst, key[shared:]...)
}

// ListReader reads a list of keys, whose bytes may be hostile.
type ListReader struct {
	key     []byte
	started bool
	total   int
}

// Next reads one key off the front of data and returns it with what follows.
// The key is valid until the next call. ok is false for damage: keys that do
// not ascend, and lists beyond MaxListBytes, are damaged too.
func (r *ListReader) Next(data []byte) (key, rest []byte, ok bool) {
	shared, n := binary.Uvarint(data)
	if n <= 0 || shared > uint64(len(r.key)) {
		return nil, nil, false
	}
	data = data[n:]
	size, n := binary.Uvarint(data)
	if n <= 0 || size > uint64(len(data)-n) {
		return nil, nil, false
	}
	own, rest := data[n:n+int(size)], data[n+int(size):]
	// The shared part is equal, so the rest decides; a key that ends where
	// the last one ended, or sooner, is not above it.
	if r.started && bytes.Compare(own, r.key[shared:]) <= 0 {
		return nil, nil, false
	}
	r.started = true
	r.key = append(r.key[:shared], own...)
	if r.total += len(r.key); r.total > MaxListBytes {
		return nil, nil, false
	}
	return r.key, rest, true
}
