package maintain

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// CheckRows reads the key columns of a plain Delta table that is to be adopted.
// NULL_KEY for a null in one of them, UNIQUENESS_VIOLATED where rows share an
// interval; the row of a null counts over the files in the log's order. Then the
// commit also gives the files their bounds. What it learns of each file is kept
// for those who read it next. told hears how many files were read.
//
// Memory is that of the coverage of the files whose index ranges overlap.
func (u *Upgrade) CheckRows(ctx context.Context, files *filecache.Files, told func(done, total int64)) error {
	if !u.adopts() {
		return nil
	}
	next, err := u.Next()
	if err != nil {
		return err
	}
	c := checker{next: next, files: files, unique: next.Def.Uniqueness != tabledef.UniqueNone}
	adds := make([]*deltalog.Add, len(next.Files))
	for i, f := range next.Files {
		if adds[i], err = c.file(ctx, f); err != nil {
			return err
		}
		told(int64(i+1), int64(len(next.Files)))
	}
	if err := c.verdict(ctx); err != nil {
		return err
	}
	u.adds, u.next = adds, nil
	return nil
}

// checker reads the keys of one file after another.
type checker struct {
	next   *snapshot.Snapshot
	files  *filecache.Files
	unique bool
	rows   int64 // of the files read
	spans  []span
	tally  tally
}

// span is from which to which interval a file has rows.
type span struct {
	file        *snapshot.File
	first, last uint64
}

// file reads the keys of a file and returns its action with what the log is to
// say of them.
func (c *checker) file(ctx context.Context, f *snapshot.File) (*deltalog.Add, error) {
	file, err := c.files.Open(ctx, c.next, f)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	indexer, err := derived.NewIndexer(c.next.Def)
	if err != nil {
		return nil, err
	}
	if c.unique {
		indexer.NoteDuplicates()
	}
	fields := snapshot.StorageFields(c.next.Def, append(slices.Clone(c.next.Def.EntityColumns), c.next.Def.IndexColumn))
	for i := range fields {
		fields[i].Nullable = true
	}
	err = file.Each(ctx, datafile.ReadRequest{Fields: fields}, func(first int64, batch arrow.RecordBatch) error {
		if err := checkKeys(batch, c.rows+first); err != nil {
			return err
		}
		if err := indexer.Add(batch); err != nil {
			return &tableerr.Corrupt{Path: f.Path, Msg: fmt.Sprintf("its key columns, from row %d on: %v", first, err), Cause: err}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	index, err := indexer.Finish()
	if err != nil {
		return nil, err
	}
	index.Rows = file.Rows()
	c.rows += index.Rows
	low, high := indexer.Bounds()
	if c.unique && index.Rows > 0 {
		if key, id, found := indexer.Duplicate(); found {
			c.tally.note(coverage.Overlap{Count: uint64(index.Rows) - index.Coverage.Total(), Key: key, ID: id})
		}
		c.spans = append(c.spans, span{f, c.next.Domain.ID(low), c.next.Domain.ID(high)})
	}
	c.files.Keep(c.next.Def, f.Path, &index)
	return c.describe(f, newfile.Contents{Min: low, Max: high, Index: index}), nil
}

// checkKeys refuses a null in a batch of key columns, whose first row has a
// number. The earliest row is told.
func checkKeys(batch arrow.RecordBatch, first int64) error {
	var found *tableerr.NullKey
	for i, column := range batch.Columns() {
		for row := 0; column.NullN() > 0 && row < column.Len(); row++ {
			if column.IsNull(row) {
				if found == nil || first+int64(row) < found.Row {
					found = &tableerr.NullKey{Column: batch.ColumnName(i), Row: first + int64(row)}
				}
				break
			}
		}
	}
	if found == nil {
		return nil // not a typed nil
	}
	return found
}

// describe returns a file's action with the tags that say how its rows lie under
// the new keys, in place of those that an earlier adoption gave it.
func (c *checker) describe(f *snapshot.File, rows newfile.Contents) *deltalog.Add {
	add := *f.Add
	add.DataChange = false
	add.Tags = maps.Clone(f.Add.Tags)
	for _, key := range []string{tabledef.TagIndexMin, tabledef.TagIndexMax, tabledef.TagSorted, tabledef.TagLayout, tabledef.TagEntity, tabledef.TagTarget} {
		delete(add.Tags, key)
	}
	if rows.Index.Rows == 0 {
		return &add
	}
	if add.Tags == nil {
		add.Tags = map[string]string{}
	}
	maps.Copy(add.Tags, newfile.KeyTags(c.next.Def, c.next.Layout, rows))
	return &add
}

// verdict is the error for rows that share an interval, of one file or of several.
func (c *checker) verdict(ctx context.Context) error {
	slices.SortStableFunc(c.spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	for _, s := range c.spans {
		index, err := c.files.Index(ctx, c.next, s.file)
		if err != nil {
			return err
		}
		if err := c.tally.add(index.Coverage, s.first, s.last); err != nil {
			return err
		}
	}
	if err := c.tally.settle(); err != nil {
		return err
	}
	found := c.tally.found
	if found.Count == 0 {
		return nil
	}
	return &tableerr.UniquenessViolated{Violations: found.Count, Entity: c.next.Layout.Values(found.Key), Interval: c.next.Domain.Text(found.ID)}
}

// tally counts the rows that are too many in files that come in the order of
// their first intervals. Coverages wait in it as in a binary counter, each the
// union of at least twice as many files as the next, so that a file is merged a
// logarithmic number of times; they are let go when the next file lies behind all
// of them, and so do those to come.
type tally struct {
	parts []*coverage.Set
	files uint   // that the parts are of
	last  uint64 // the highest interval of these
	found coverage.Overlap
}

func (t *tally) note(o coverage.Overlap) { t.found = t.found.Plus(o) }

// add takes the coverage of a file, which reaches from one interval to another.
func (t *tally) add(set *coverage.Set, first, last uint64) (err error) {
	if t.files > 0 && first > t.last {
		if err := t.settle(); err != nil {
			return err
		}
	}
	t.files++
	for range bits.TrailingZeros(t.files) {
		at := len(t.parts) - 1
		if set, err = t.join(t.parts[at], set); err != nil {
			return err
		}
		t.parts = t.parts[:at]
	}
	t.parts, t.last = append(t.parts, set), max(t.last, last)
	return nil
}

// join merges two coverages and counts what they have in common.
func (t *tally) join(a, b *coverage.Set) (*coverage.Set, error) {
	t.note(coverage.Intersect(a, b))
	return coverage.Union(a, b)
}

// settle merges what waits.
func (t *tally) settle() error {
	for len(t.parts) > 1 {
		last := len(t.parts) - 1
		set, err := t.join(t.parts[last-1], t.parts[last])
		if err != nil {
			return err
		}
		t.parts = append(t.parts[:last-1], set)
	}
	t.parts, t.files, t.last = nil, 0, 0
	return nil
}
