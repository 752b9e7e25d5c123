package snapshot

import (
	"encoding/json"
	"math/big"
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

	stats atomic.Pointer[columnStats] // parsed on demand, see Bounds
}

// newFile reads an add action. Only its path can make it fail: statistics and
// tags that are damaged mean no pruning.
func (s *Snapshot) newFile(a *deltalog.Add) (*File, error) {
	path, err := a.File()
	if err != nil {
		return nil, err
	}
	f := &File{Add: a, Path: path, Rows: numRecords(a.Stats), Max: ^uint64(0), Version: tagInt(a.Tags[tabledef.TagVersion])}
	lowest, okMin := ordinal(a.Tags[tabledef.TagIndexMin], s.Def.IndexType)
	highest, okMax := ordinal(a.Tags[tabledef.TagIndexMax], s.Def.IndexType)
	if okMin && okMax && lowest <= highest {
		f.Min, f.Max, f.Bounded = lowest, highest, true
	}
	if a.Tags[tabledef.TagLayout] == tabledef.LayoutSingle && s.Layout != nil {
		if f.Entity, err = predicate.ParseKey(a.Tags[tabledef.TagEntity], s.Layout, s.EntityTypes()); err == nil {
			f.Single = true
		}
	}
	return f, nil
}

// Meets says whether the file may hold an index ordinal in [first, last].
func (f *File) Meets(first, last uint64) bool { return f.Min <= last && first <= f.Max }

// numRecords reads the row count out of a file's statistics.
func numRecords(stats string) int64 {
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
	n, ok := new(big.Int).SetString(text, 10)
	if !ok || !n.IsInt64() || n.Sign() < 0 {
		return -1
	}
	return n.Int64()
}

// ordinal reads a raw index value's text.
func ordinal(text string, index tabledef.IndexType) (uint64, bool) {
	n, ok := new(big.Int).SetString(text, 10)
	switch {
	case !ok:
		return 0, false
	case index == tabledef.IndexUint64:
		return n.Uint64(), n.IsUint64()
	default:
		return uint64(n.Int64()) ^ 1<<63, n.IsInt64()
	}
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
