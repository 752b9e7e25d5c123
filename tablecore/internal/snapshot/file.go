package snapshot

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/predicate"
	"contrail/tablecore/tabledef"
)

// File is a live data file with what the log says about it.
type File struct {
	Add *deltalog.Add
	// Path is relative to the table, decoded.
	Path string
	// Rows is −1 when the log does not say.
	Rows int64
	// Min and Max are the index ordinals that bound the file's rows; the whole
	// domain when the log does not say, or says it wrongly.
	Min, Max uint64
	// Bounded says that Min and Max are the values of stored rows.
	Bounded bool
	// Single says that all rows belong to the entity with the key Entity.
	Single bool
	Entity string
	// Version is the version that added the file, −1 when unknown.
	Version int64
	// Order is the version that the rows are as new as: Version, or that of the
	// newest of the files that the file was made from.
	Order int64

	stats atomic.Pointer[columnStats] // parsed on demand, see Bounds
}

// fileReader reads add actions. It remembers the identities that it has read:
// many files of one entity each have few different ones.
type fileReader struct {
	snapshot *Snapshot
	types    []arrow.DataType
	keys     map[string]entityKey // by tag
}

// entityKey is what an identity in a tag comes to.
type entityKey struct {
	key   string
	valid bool
}

// file reads an add action into f. Only its path can make it fail: statistics
// and tags that are damaged mean no pruning.
func (r *fileReader) file(f *File, a *deltalog.Add) error {
	path, err := a.File()
	if err != nil {
		return err
	}
	s := r.snapshot
	*f = File{Add: a, Path: path, Rows: numRecords(a.Stats), Max: ^uint64(0), Version: tagInt(a.Tags[tabledef.TagVersion])}
	f.Order = f.Version
	if order, ok := a.Tags[tabledef.TagOrder]; ok {
		f.Order = tagInt(order)
	}
	if s.Def.IndexColumn == "" {
		return nil // tags of a table that was released tell nothing of a plain one
	}
	lowest, okMin := ordinal(a.Tags[tabledef.TagIndexMin], s.Def.IndexType)
	highest, okMax := ordinal(a.Tags[tabledef.TagIndexMax], s.Def.IndexType)
	if okMin && okMax && lowest <= highest {
		f.Min, f.Max, f.Bounded = lowest, highest, true
	}
	if a.Tags[tabledef.TagLayout] == tabledef.LayoutSingle && s.Layout != nil {
		f.Entity, f.Single = r.key(a.Tags[tabledef.TagEntity])
	}
	return nil
}

// key returns the entity key of an identity.
func (r *fileReader) key(text string) (string, bool) {
	known, ok := r.keys[text]
	if ok {
		return known.key, known.valid
	}
	if r.keys == nil {
		r.keys, r.types = map[string]entityKey{}, r.snapshot.EntityTypes()
	}
	key, err := predicate.ParseKey(text, r.snapshot.Layout, r.types)
	r.keys[text] = entityKey{key, err == nil}
	return key, err == nil
}

// Meets says whether the file may hold an index ordinal in [first, last].
func (f *File) Meets(first, last uint64) bool { return f.Min <= last && first <= f.Max }

// numRecords reads the row count out of a file's statistics.
func numRecords(stats string) int64 {
	// Nearly all writers put it first, and a table may have many files.
	if rest, ok := strings.CutPrefix(stats, `{"numRecords":`); ok {
		if digits := strings.IndexAny(rest, ",}"); digits > 0 {
			if n, err := strconv.ParseUint(rest[:digits], 10, 63); err == nil {
				return int64(n)
			}
		}
	}
	var s struct {
		NumRecords *int64 `json:"numRecords"`
	}
	if stats == "" || json.Unmarshal([]byte(stats), &s) != nil || s.NumRecords == nil || *s.NumRecords < 0 {
		return -1
	}
	return *s.NumRecords
}

// tagInt reads a non-negative number, −1 for anything else.
func tagInt(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// ordinal reads a raw index value's text.
func ordinal(text string, index tabledef.IndexType) (uint64, bool) {
	if index == tabledef.IndexUint64 {
		n, err := strconv.ParseUint(text, 10, 64)
		return n, err == nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return uint64(n) ^ 1<<63, err == nil
}

// StorageFields returns the storage fields of the declared columns named.
func StorageFields(def *tabledef.Definition, names []string) []arrow.Field {
	stored := tabledef.StorageSchema(def.Stored)
	fields := make([]arrow.Field, len(names))
	for i, name := range names {
		fields[i] = stored.Field(def.Stored.FieldIndices(name)[0])
	}
	return fields
}
