package check

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
)

// tags compares the tags of a file with its key columns.
func (r *fileReader) tags(ctx context.Context, index *derived.FileIndex) error {
	low, high := r.indexer.Bounds()
	switch {
	case index.Rows == 0:
	case r.info.Bounded && (r.info.Min != low || r.info.Max != high):
		f := r.finding(Error, BadStatistics, "the index values go from %v to %v, the log says from %v to %v", r.snap.IndexValue(low), r.snap.IndexValue(high),
			r.snap.IndexValue(r.info.Min), r.snap.IndexValue(r.info.Max))
		f.Column = r.snap.Def.IndexColumn
		if err := r.add(f); err != nil {
			return err
		}
	case r.own() && !r.info.Bounded:
		f := r.finding(Warning, BadStatistics, "the log does not have the bounds of its index values")
		f.Column = r.snap.Def.IndexColumn
		if err := r.add(f); err != nil {
			return err
		}
	}
	if r.info.Single && !onlyEntity(index, r.info.Entity) {
		if err := r.error(BadStatistics, "the log says that all rows are of %s, they are not", r.identity(r.info.Entity)); err != nil {
			return err
		}
	}
	if r.own() && r.info.Add.Tags[tabledef.TagLayout] == tabledef.LayoutSingle && !r.info.Single {
		if err := r.error(BadStatistics, "the entity that the log names for all its rows is none of the table"); err != nil {
			return err
		}
	}
	if r.info.Add.Tags[tabledef.TagSorted] == "true" && !index.Sorted() {
		return r.disorder(ctx)
	}
	return nil
}

// onlyEntity says whether all rows are of one entity, as far as an index tells.
func onlyEntity(index *derived.FileIndex, key string) bool {
	switch {
	case index.Rows == 0:
		return true
	case index.Directory != nil:
		return len(index.Directory) == 1 && index.Directory[0].Key == key
	case index.Coverage != nil:
		return index.Coverage.Entities() == 1 && index.Coverage.Key(0) == key
	}
	return true
}

// identity is an entity in a message.
func (c *checker) identity(key string) string {
	text, err := json.Marshal(c.snap.Layout.Values(key))
	if err != nil {
		return "an entity"
	}
	return string(text)
}

// disorder tells where a file that is said to be sorted is not.
func (r *fileReader) disorder(ctx context.Context) error {
	f := r.finding(Error, BadOrder, "the log says that its rows are sorted by entity and index, they are not")
	lastKey, lastOrdinal, some := "", uint64(0), false
	err := r.scanKeys(ctx, func(row int64, key string, ordinal uint64) bool {
		if some && (key < lastKey || key == lastKey && ordinal < lastOrdinal) {
			f.Row = &row
			return false
		}
		lastKey, lastOrdinal, some = key, ordinal, true
		return true
	})
	if err != nil {
		return err
	}
	return r.add(f)
}

// scanKeys reads the key columns again, until visit has seen enough.
func (r *fileReader) scanKeys(ctx context.Context, visit func(row int64, key string, ordinal uint64) bool) error {
	fields := make([]arrow.Field, len(r.keys))
	for i, at := range r.keys {
		fields[i] = r.fields[at]
	}
	coder := entitykey.NewCoder(r.snap.Layout)
	var codes []uint32
	var ordinals []uint64
	enough := false
	return r.file.Each(ctx, datafile.ReadRequest{Fields: fields}, func(first int64, batch arrow.RecordBatch) error {
		if enough {
			return nil
		}
		columns := batch.Columns()
		var err error
		if codes, err = coder.AppendCodes(codes[:0], columns[:len(columns)-1], int(batch.NumRows())); err != nil {
			return err
		}
		if ordinals, err = r.snap.Domain.AppendOrdinals(ordinals[:0], columns[len(columns)-1]); err != nil {
			return err
		}
		for i, code := range codes {
			if !visit(first+int64(i), coder.Key(code), ordinals[i]) {
				enough = true
				break
			}
		}
		return nil
	})
}

// derived compares the stored coverage and entity directory with the computed
// ones.
func (r *fileReader) derived(ctx context.Context, index *derived.FileIndex) error {
	stored, why, err := derived.Stored(ctx, r.cfg.Store, r.file, r.info.Path, r.snap.Def)
	if err != nil {
		return err
	}
	f := r.finding(Warning, BadCoverage, "%s; it is computed from the rows each time", why)
	switch {
	case why == "" && stored.Equal(index):
		return nil
	case why == "":
		f = r.finding(Error, BadCoverage, "the coverage or the entity directory that is stored is not that of the rows")
	}
	if r.cfg.Repair {
		if f.Repaired, err = r.repairIndex(ctx, index); err != nil {
			return err
		}
	}
	return r.add(f)
}

// repairIndex writes the index beside the file. A wrong one in the file's own
// footer, which is believed first, stays.
func (r *fileReader) repairIndex(ctx context.Context, index *derived.FileIndex) (bool, error) {
	data, err := derived.Beside(r.snap.Def, *index, r.size)
	if err != nil {
		return false, err
	}
	if err := r.cfg.Store.Put(ctx, derived.SidecarPath(r.info.Path), data); err != nil {
		return false, fmt.Errorf("writing the derived data of %s: %w", r.info.Path, err)
	}
	stored, why, err := derived.Stored(ctx, r.cfg.Store, r.file, r.info.Path, r.snap.Def)
	if err != nil || why != "" || !stored.Equal(index) {
		return false, err
	}
	r.cfg.Files.Keep(r.snap.Def, r.info.Path, index)
	return true, nil
}

// intervals looks for intervals with more than one row, in the file and in those
// before it.
func (r *fileReader) intervals(ctx context.Context, index *derived.FileIndex, seen *overlaps) error {
	if r.snap.Def.Uniqueness == tabledef.UniqueNone || index.Coverage == nil || index.Rows == 0 {
		return nil
	}
	if total := index.Coverage.Total(); total < uint64(index.Rows) {
		if err := r.repeated(ctx, uint64(index.Rows)-total); err != nil {
			return err
		}
	}
	low, high := r.indexer.Bounds()
	return seen.add(ctx, r.info, index.Coverage, low, high)
}

// repeated tells of rows of a file that lie in an interval with another one.
func (r *fileReader) repeated(ctx context.Context, rows uint64) error {
	f := r.finding(Error, DuplicateInterval, "%d of its rows lie in an interval that has a row already", rows)
	lastKey, lastID, some := "", uint64(0), false
	err := r.scanKeys(ctx, func(row int64, key string, ordinal uint64) bool {
		id := r.snap.Domain.ID(ordinal)
		if some && key == lastKey && id == lastID {
			f.Row = &row
			f.Text += fmt.Sprintf(", such as %s of %s", r.snap.Domain.Text(id), r.identity(key))
			return false
		}
		lastKey, lastID, some = key, id, true
		return true
	})
	if err != nil {
		return err
	}
	return r.add(f)
}

// overlaps looks for intervals that have rows in several files. Files come by
// their lowest index value, so what lies below the next one's can be forgotten.
type overlaps struct {
	*checker
	files []*snapshot.File
	parts []*coverage.Set // of files, the larger ones first
	high  uint64          // the highest ordinal in files
}

// add takes the next file with what it covers.
func (o *overlaps) add(ctx context.Context, f *snapshot.File, set *coverage.Set, low, high uint64) error {
	if len(o.files) > 0 && o.snap.Domain.ID(low) > o.snap.Domain.ID(o.high) {
		o.files, o.parts, o.high = nil, nil, 0
	}
	var common coverage.Overlap
	for _, part := range o.parts {
		common = common.Plus(coverage.Intersect(part, set))
	}
	if common.Count > 0 {
		if err := o.tellOverlap(ctx, f, common); err != nil {
			return err
		}
	}
	o.files, o.high = append(o.files, f), max(o.high, high)
	o.parts = append(o.parts, set)
	for n := len(o.parts); n > 1 && o.parts[n-2].Bytes() <= 2*o.parts[n-1].Bytes(); n = len(o.parts) {
		joined, err := coverage.Union(o.parts[n-2:]...)
		if err != nil {
			return err
		}
		o.parts = append(o.parts[:n-2], joined)
	}
	return nil
}

func (o *overlaps) tellOverlap(ctx context.Context, f *snapshot.File, common coverage.Overlap) error {
	text := fmt.Sprintf("%d intervals also have a row in another file, such as %s of %s", common.Count, o.snap.Domain.Text(common.ID), o.identity(common.Key))
	for _, other := range o.files {
		x, err := o.cfg.Files.Index(ctx, o.snap, other)
		if _, damaged := damage(err); err != nil && !damaged {
			return err
		}
		if err == nil && x.Coverage != nil && x.Coverage.Contains(common.Key, common.ID) {
			text += " in " + other.Path
			break
		}
	}
	return o.checker.add(Finding{Severity: Error, Kind: DuplicateInterval, Path: f.Path, Text: text})
}
