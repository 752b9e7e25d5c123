// Package derived makes, stores and reads what can be computed from the rows of
// a table at any time: for each data file, its coverage and its entity
// directory. It also holds the formats of state files, which keep what is known
// of a version as a whole, and of the head, which names the newest of them;
// package statecache reads and writes these.
//
// The live files are the only truth. What is stored beside them is an
// abbreviation: it carries a checksum and what it was made from, and where it
// is missing, damaged or made for something else it is computed from the rows
// again, never taken as empty (table-format.md, "Derived data").
package derived

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"slices"
	"strings"

	"contrail/tablecore/internal/coverage"
)

// Run is the rows of one entity in a sorted data file.
type Run struct {
	Key         string // entity key
	Start, End  int64  // rows [Start, End) of the file
	First, Last uint64 // ordinals of the first and the last index value
}

// Directory lists the runs of a data file sorted by (entity, index), by key,
// which is also the order of their rows. The newest row of an entity is the
// last one of its run.
type Directory []Run

// Find returns the run of an entity.
func (d Directory) Find(key string) (Run, bool) {
	i, found := slices.BinarySearchFunc(d, key, func(r Run, key string) int { return strings.Compare(r.Key, key) })
	if !found {
		return Run{}, false
	}
	return d[i], true
}

// FileIndex is what is known of the rows of one data file. It is immutable and
// safe for concurrent use.
type FileIndex struct {
	Rows int64
	// Directory is nil for a file with rows that are not sorted by (entity,
	// index).
	Directory Directory
	// Coverage is nil for a table without a granularity.
	Coverage *coverage.Set
}

// Sorted says whether the file's rows are sorted by (entity, index).
func (x *FileIndex) Sorted() bool { return x.Directory != nil || x.Rows == 0 }

// Keys yields the entities of the file's rows, by key. Those of an unsorted file
// of a table without a granularity are not known.
func (x *FileIndex) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range x.Directory {
			if !yield(x.Directory[i].Key) {
				return
			}
		}
		if x.Directory != nil || x.Coverage == nil {
			return
		}
		for i := range x.Coverage.Entities() {
			if !yield(x.Coverage.Key(i)) {
				return
			}
		}
	}
}

// Equal says whether two indexes tell the same.
func (x *FileIndex) Equal(y *FileIndex) bool {
	if x.Rows != y.Rows || !slices.Equal(x.Directory, y.Directory) || x.Sorted() != y.Sorted() || (x.Coverage == nil) != (y.Coverage == nil) {
		return false
	}
	return x.Coverage == nil || bytes.Equal(x.Coverage.AppendEncoded(nil), y.Coverage.AppendEncoded(nil))
}

// Bytes returns about how much memory the index holds.
func (x *FileIndex) Bytes() int64 {
	const runBytes = 48
	n := int64(64)
	for i := range x.Directory {
		n += runBytes + int64(len(x.Directory[i].Key))
	}
	if x.Coverage != nil {
		n += x.Coverage.Bytes()
	}
	return n
}

// FilesDir is where derived data lies that is too large for a footer.
const FilesDir = "_contrail/files/"

// SidecarPath returns the path, relative to the table, of the derived data
// that lies beside the data file with the given path.
func SidecarPath(path string) string {
	sum := sha256.Sum256([]byte(path))
	return FilesDir + hex.EncodeToString(sum[:])[:32]
}
