package ingest

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/interval"
	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/internal/rowdigest"
	"contrail/tablecore/internal/scratch"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/txn"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// AppendConfig is what an Append works with.
type AppendConfig struct {
	Store        objstore.Store
	Files        *filecache.Files
	Mem          memory.Allocator
	Rows         memory.Allocator // of the rows, nil for Mem
	MemoryBudget int64
	Budget       *Budget       // of all appends, nil for no such limit
	Scratch      scratch.Space // nil refuses what finds no memory
	Write        datafile.WriteOptions
	Now          func() time.Time
	NewID        func() (string, error)
	Software     string
	// Digest asks for a digest of the rows.
	Digest bool
}

// OpAppend is the op of an append, in digests and where request ids are
// remembered.
const OpAppend = "append"

// Append is one append on its way from a stream to a commit. Its steps are
// NewAppend, Write, Revalidate (Plan in a table that overwrites), Remember,
// Commit (Revalidate, perhaps Plan, and Commit again after a lost race) and,
// unless it was published, Discard. It belongs to one goroutine at a time.
type Append struct {
	cfg     AppendConfig
	base    *snapshot.Snapshot
	def     *tabledef.Definition // of the rows that are written
	adopts  *arrow.Schema        // the stream's, where def's schema comes from it
	sent    *arrow.Schema        // the stream's, nil where there is none
	digest  *rowdigest.Digest    // nil when none is asked for
	aligner *convert.Aligner     // of the stream that Write is to read
	result  *Result
	checked map[string]bool // files that have no row in the append's intervals
	// replaced are the committed files that the append writes anew, by path: its
	// plan. See overwrite.go.
	replaced map[string]*replacement
	// parts are what an append of rows staged before is made of, nil for one that
	// writes its own. See staged.go.
	parts []Part
}

// NewAppend checks a stream's schema against the table, or adopts it where the
// table has none.
func NewAppend(s *snapshot.Snapshot, schema *arrow.Schema, cfg AppendConfig) (*Append, error) {
	a := &Append{cfg: cfg, base: s, def: s.Def, sent: schema, checked: map[string]bool{}, replaced: map[string]*replacement{}}
	if s.Def.Stored == nil {
		if err := tabledef.CheckAdoption(schema, s.Def); err != nil {
			return nil, err
		}
		a.def, a.adopts = s.Def.WithSchema(schema), schema
	}
	var err error
	if a.aligner, err = convert.NewAligner(schema, a.def); err == nil && cfg.Digest {
		a.digest = rowdigest.New(OpAppend, a.def, a.aligner)
	}
	return a, err
}

// Write reads a stream of NewAppend's schema to its end, once, and writes the
// data files. After an error nothing is left.
func (a *Append) Write(ctx context.Context, rows RowReader) error {
	domain, err := interval.New(a.def.IndexType, a.def.IndexUnit(), a.def.Granularity)
	if err != nil {
		return err
	}
	a.result, err = Run(ctx, Config{Store: a.cfg.Store, Def: a.def, Domain: domain, Mem: a.cfg.Mem, Rows: a.cfg.Rows, MemoryBudget: a.cfg.MemoryBudget,
		Budget: a.cfg.Budget, Scratch: a.cfg.Scratch, Write: a.cfg.Write, Now: a.cfg.Now, NewID: a.cfg.NewID, Software: a.cfg.Software, Digest: a.digest,
		Aligner: a.aligner}, rows)
	return err
}

// Discard removes what was written, but not what was staged before.
func (a *Append) Discard(ctx context.Context) {
	if a.parts == nil {
		a.result.Discard(ctx, a.cfg.Store)
	}
	for _, r := range a.replaced {
		r.discard(ctx, a)
	}
}

// Base is the snapshot the append was first checked against.
func (a *Append) Base() *snapshot.Snapshot { return a.base }

// Settings are the write options in force.
func (a *Append) Settings() datafile.WriteOptions { return a.cfg.Write }

// Digest is that of the rows that were written, "" where none was asked for.
func (a *Append) Digest() string {
	if a.digest == nil {
		return ""
	}
	return a.digest.Sum()
}

// Rows is the number of rows that were written.
func (a *Append) Rows() int64 { return a.result.Rows }

// Files are the data files that were written.
func (a *Append) Files() []newfile.File { return a.result.Files }

// Revalidate checks the append against a snapshot: that the table still takes
// rows of this form, and that none of its intervals holds a row already, or
// that the plan still says which do (else txn.ErrReplan). Files that were
// compared before are not read again.
func (a *Append) Revalidate(ctx context.Context, s *snapshot.Snapshot) error {
	if err := a.checkTable(s); err != nil {
		return err
	}
	switch {
	case a.result.Coverage == nil:
		return nil
	case a.Overwrites():
		return a.checkPlan(ctx, s)
	case s.Def.Uniqueness == tabledef.UniqueNone:
		return nil
	}
	return a.checkOverlap(ctx, s)
}

// checkTable makes sure that the table may be written and takes rows of the
// append's form.
func (a *Append) checkTable(s *snapshot.Snapshot) error {
	if err := s.CheckWritable(); err != nil {
		return err
	}
	if err := a.checkParts(s.Def); err != nil {
		return err
	}
	return a.checkDefinition(s)
}

// checkDefinition makes sure that the files written fit a table that may have
// changed since: the same keys and types, and what it has gained may be left
// out.
func (a *Append) checkDefinition(s *snapshot.Snapshot) error {
	now := s.Def
	if now.ID != a.def.ID {
		return &tableerr.TableNotFound{}
	}
	if now.IndexColumn != a.def.IndexColumn || now.IndexType != a.def.IndexType || now.Granularity != a.def.Granularity ||
		!slices.Equal(now.EntityColumns, a.def.EntityColumns) || (now.Uniqueness == tabledef.UniqueOverwrite) != a.Overwrites() {
		return &tableerr.VersionConflict{Expected: a.base.Version(), Found: s.Version()} // other keys, other intervals, or another meaning
	}
	if now.Stored == nil {
		if a.adopts == nil {
			return &tableerr.VersionConflict{Expected: a.base.Version(), Found: s.Version()} // nothing to compare with
		}
		return nil
	}
	if a.nullOnly(now) {
		return &tableerr.VersionConflict{Expected: a.base.Version(), Found: s.Version()} // sent again, the stream is taken
	}
	return checkColumns(a.def, now)
}

// nullOnly says whether the files written have a column that the table has lost
// since, and that the stream did not send.
func (a *Append) nullOnly(now *tabledef.Definition) bool {
	return a.sent != nil && slices.ContainsFunc(a.def.Stored.Fields(), func(f arrow.Field) bool {
		return !now.Stored.HasField(f.Name) && !a.sent.HasField(f.Name)
	})
}

// checkColumns makes sure that files written under one definition fit a table
// with another: the same types, and what the table has gained may be left out.
func checkColumns(written, now *tabledef.Definition) error {
	for _, f := range now.Stored.Fields() {
		mine := written.Stored.FieldIndices(f.Name)
		if len(mine) == 0 {
			if f.Nullable && now.ColumnsAdded {
				continue
			}
			return mismatch(f.Name, tabledef.TypeName(f.Type), "")
		}
		if m := written.Stored.Field(mine[0]); !arrow.TypeEqual(m.Type, f.Type) || m.Nullable && !f.Nullable {
			return mismatch(f.Name, tabledef.TypeName(f.Type), tabledef.TypeName(m.Type))
		}
	}
	for _, f := range written.Stored.Fields() {
		if !now.Stored.HasField(f.Name) {
			return mismatch(f.Name, "", tabledef.TypeName(f.Type))
		}
	}
	return nil
}

func mismatch(column, expected, found string) error {
	return &tableerr.SchemaMismatch{Column: column, Expected: expected, Found: found,
		Msg: "column " + strconv.Quote(column) + " was changed by another writer since the rows were written"}
}

// checkOverlap compares the append's coverage with that of the files whose
// bounds meet it.
func (a *Append) checkOverlap(ctx context.Context, s *snapshot.Snapshot) error {
	var total coverage.Overlap
	first, last := a.span(s)
	for f := range s.Meeting(first, last) {
		found, err := a.overlap(ctx, s, f, first, last)
		if err != nil {
			return err
		}
		if found.Count > 0 {
			total = total.Plus(found)
		}
	}
	if total.Count == 0 {
		return nil
	}
	return &tableerr.IntervalOverlap{ConflictCount: total.Count, Entity: s.Layout.Values(total.Key), Interval: s.Domain.Text(total.ID), Version: s.Version()}
}

// overlap compares the append's coverage, which lies between the ordinals first
// and last, with a file's. Files without any overlap are not read again.
func (a *Append) overlap(ctx context.Context, s *snapshot.Snapshot, f *snapshot.File, first, last uint64) (coverage.Overlap, error) {
	if !f.Meets(first, last) || a.checked[f.Path] || !a.mayHold(f) {
		return coverage.Overlap{}, nil
	}
	index, err := a.cfg.Files.Index(ctx, s, f)
	if err != nil {
		return coverage.Overlap{}, err
	}
	found := coverage.Intersect(a.result.Coverage, index.Coverage)
	a.checked[f.Path] = found.Count == 0
	return found, nil
}

// mayHold is false for a file of one entity that the append has no row of.
func (a *Append) mayHold(f *snapshot.File) bool {
	if !f.Single {
		return true
	}
	_, found := a.result.Coverage.Find(f.Entity)
	return found
}

// span returns the ends of the intervals that the append's first and last rows
// lie in, so that a file costs two comparisons.
func (a *Append) span(s *snapshot.Snapshot) (first, last uint64) {
	lo, hi := uint64(math.MaxUint64), uint64(0)
	for _, f := range a.result.Files {
		lo, hi = min(lo, f.MinIndex), max(hi, f.MaxIndex)
	}
	first, _ = s.Domain.Bounds(s.Domain.ID(lo))
	_, last = s.Domain.Bounds(s.Domain.ID(hi))
	return first, last
}

// Commit returns the actions of the commit that follows s.
func (a *Append) Commit(s *snapshot.Snapshot, extra map[string]json.RawMessage) (*deltalog.Commit, error) {
	c := &deltalog.Commit{Info: &deltalog.CommitInfo{Operation: "WRITE", OperationParameters: map[string]string{"mode": "Append", "partitionBy": "[]"}, Extra: extra}}
	if a.adopts != nil && s.Def.Stored == nil {
		if err := a.adopt(c, s); err != nil {
			return nil, err
		}
	}
	for i := range a.result.Files {
		c.Adds = append(c.Adds, a.result.Files[i].AddAt(s.Version()+1))
	}
	a.addReplacements(c, s.Version()+1)
	return c, nil
}

// adopt adds the stream's schema to what s says of the table, which others may
// have changed since the append began.
func (a *Append) adopt(c *deltalog.Commit, s *snapshot.Snapshot) error {
	def := s.Def.WithSchema(a.adopts)
	described, _, err := txn.Describe(def)
	if err != nil {
		return err
	}
	metadata := *s.State.Metadata()
	metadata.SchemaString = described.SchemaString
	metadata.Configuration = maps.Clone(metadata.Configuration)
	maps.Copy(metadata.Configuration, described.Configuration)
	c.Metadata = &metadata
	if was := s.State.Protocol(); txn.HasNaiveTime(def.Stored) {
		if needs := was.WithTimestampNtz(); needs != was {
			c.Protocol = needs
		}
	}
	return nil
}

// Remember hands what is known of the written files to the cache, so that the
// appends published next need not read them. Of files that were staged before
// the cache knows what has been read.
func (a *Append) Remember() {
	if a.parts != nil {
		return
	}
	for i := range a.result.Files {
		a.cfg.Files.Keep(a.def, a.result.Files[i].Path, &a.result.Files[i].Index)
	}
}
