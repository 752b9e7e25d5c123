package derived

import (
	"encoding/binary"
	"math"
	"strings"

	"contrail/tablecore/internal/entitykey"
)

// The payload of an entity directory is
//
//	1 if the file is sorted, 0 and nothing more if not   1 byte
//	number of runs                                       uvarint
//	for each run:
//	  key                                                as in a list of package entitykey
//	  rows                                               uvarint
//	  first index ordinal, distance to the last run's    varint, modulo 2^64, from 2^63
//	  last index ordinal less the first                  uvarint
const (
	unsortedFile = 0
	sortedFile   = 1
)

// minRunBytes is the size of the smallest run.
const minRunBytes = 5

func appendDirectory(dst []byte, d Directory) []byte {
	dst = append(dst, sortedFile)
	dst = binary.AppendUvarint(dst, uint64(len(d)))
	lastKey, lastFirst := "", uint64(1<<63)
	for _, r := range d {
		dst = entitykey.AppendAfter(dst, lastKey, r.Key)
		dst = binary.AppendUvarint(dst, uint64(r.End-r.Start))
		dst = binary.AppendVarint(dst, int64(r.First-lastFirst))
		dst = binary.AppendUvarint(dst, r.Last-r.First)
		lastKey, lastFirst = r.Key, r.First
	}
	return dst
}

// readDirectory reads a directory of a file of so many rows, nil for an
// unsorted one. ok is false for anything else than one, whole and alone.
func readDirectory(data []byte, rows int64) (d Directory, ok bool) {
	if len(data) == 1 && data[0] == unsortedFile {
		return nil, true
	}
	if len(data) == 0 || data[0] != sortedFile {
		return nil, false
	}
	r := runReader{rest: data[1:], lastFirst: 1 << 63}
	n, ok := r.uvarint()
	if !ok || n > uint64(len(r.rest)/minRunBytes) {
		return nil, false
	}
	d = make(Directory, 0, n)
	ends := make([]int, 0, n) // of the keys in r.all
	for range n {
		run, ok := r.run(rows)
		if !ok {
			return nil, false
		}
		d, ends = append(d, run), append(ends, r.all.Len())
	}
	// One piece of memory for all keys instead of one each.
	all, start := r.all.String(), 0
	for i, end := range ends {
		d[i].Key = all[start:end]
		start = end
	}
	return d, len(r.rest) == 0 && r.row == rows
}

// runReader reads the runs of a directory.
type runReader struct {
	rest      []byte
	keys      entitykey.ListReader
	all       strings.Builder // the keys one after another
	row       int64
	lastFirst uint64
}

func (r *runReader) uvarint() (uint64, bool) {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		return 0, false
	}
	r.rest = r.rest[n:]
	return v, true
}

// run reads a run, but for its key, which it adds to the others.
func (r *runReader) run(rows int64) (run Run, ok bool) {
	key, rest, ok := r.keys.Next(r.rest)
	if !ok {
		return run, false
	}
	r.rest = rest
	r.all.Write(key)
	n, ok := r.uvarint()
	if !ok || n == 0 || n > uint64(rows-r.row) {
		return run, false
	}
	distance, size := binary.Varint(r.rest)
	if size <= 0 {
		return run, false
	}
	r.rest = r.rest[size:]
	run = Run{Start: r.row, End: r.row + int64(n), First: r.lastFirst + uint64(distance)}
	length, ok := r.uvarint()
	if !ok || length > math.MaxUint64-run.First {
		return run, false
	}
	run.Last = run.First + length
	r.row, r.lastFirst = run.End, run.First
	return run, true
}
