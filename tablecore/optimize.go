package tablecore

import (
	"context"
	"encoding/json"
	"errors"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/ingest"
	"contrail/tablecore/internal/interval"
	"contrail/tablecore/internal/maintain"
	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/internal/scratch"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/txn"
	"contrail/tablecore/tableerr"
)

// The layouts of an optimized table.
const (
	LayoutMixed  = "mixed"
	LayoutEntity = "entity"
)

// optimizeMemory is what the rows that an optimize sorts may take before they go
// to scratch files, in bytes.
const optimizeMemory = 384 << 20

// OptimizeOptions say what the files of a table are to be like. The zero value
// means the defaults.
type OptimizeOptions struct {
	// Layout is mixed (default): files are cut by ranges of the index; or entity:
	// each file holds one entity.
	Layout string
	// TargetFileBytes is the size that files aim at; nil means the table's
	// property, or 128 MiB.
	TargetFileBytes *int64
	// MaxFiles is how many files the layout entity may make; nil means 10,000.
	// More are INVALID.
	MaxFiles *int64
	// DryRun only says what would happen. The files and bytes that would come out
	// are estimated.
	DryRun bool
	// ExpectedVersion, when set, is the only version that the optimize may
	// follow, also when there is nothing to do.
	ExpectedVersion *int64
	// TableID, when not empty, must be the table's identity.
	TableID string
	// Progress, when set, is told how many of the files have been rewritten.
	Progress func(Progress)
}

// OptimizeReport is the result of an optimize. It counts the files that were
// rewritten, with their rows and entities, and those that took their place.
type OptimizeReport struct {
	StartingVersion  int64 `json:"starting_version"`
	CommittedVersion int64 `json:"committed_version"`
	FilesIn          int   `json:"files_in"`
	FilesOut         int   `json:"files_out"`
	BytesIn          int64 `json:"bytes_in"`
	BytesOut         int64 `json:"bytes_out"`
	Rows             int64 `json:"rows"`
	Entities         int   `json:"entities"`
	NoOp             bool  `json:"no_op"`
	DryRun           bool  `json:"dry_run"`
}

// count fills in what an optimize takes and makes.
func (r *OptimizeReport) count(c maintain.Counts) {
	r.FilesIn, r.FilesOut, r.BytesIn, r.BytesOut, r.Rows, r.Entities = c.FilesIn, c.FilesOut, c.BytesIn, c.BytesOut, c.Rows, c.Entities
}

// config validates the options.
func (o OptimizeOptions) config() (maintain.OptimizeConfig, error) {
	var c maintain.OptimizeConfig
	switch o.Layout {
	case "", LayoutMixed:
	case LayoutEntity:
		c.ByEntity = true
	default:
		return c, tableerr.InvalidField("layout", "layout is mixed or entity, not %q", o.Layout).WithValue(o.Layout)
	}
	for _, size := range []struct {
		field string
		value *int64
	}{{"target_file_bytes", o.TargetFileBytes}, {"max_files", o.MaxFiles}} {
		if size.value == nil {
			continue
		}
		if err := checkPositive(size.field, *size.value); err != nil {
			return c, err
		}
	}
	if o.TargetFileBytes != nil {
		c.TargetBytes = *o.TargetFileBytes
	}
	if o.MaxFiles != nil {
		c.MaxFiles = int(min(*o.MaxFiles, 1<<31-1))
	}
	return c, nil
}

// Optimize rewrites the files that are small, too large, not sorted, or overlap
// others, into files that are cut by ranges of the index, sorted by (entity,
// index) inside and near the target size. No row changes. It is one commit, made
// after those of others that came meanwhile; files that they have replaced stay as
// they are. Errors: VERSION_CONFLICT (with ExpectedVersion, or after a rollback or
// upgrade), INVALID, FORMAT_UNWRITABLE, UNSUPPORTED, FILE_MISSING, CORRUPT,
// STORAGE_FULL; after an error other than COMMIT_UNKNOWN nothing is left.
func (t *Table) Optimize(ctx context.Context, o OptimizeOptions) (*OptimizeReport, error) {
	defer t.undisturbed(o.ExpectedVersion)()
	report, err := t.optimize(ctx, o)
	if err != nil {
		return nil, t.wrap(storeError(err))
	}
	return report, nil
}

func (t *Table) optimize(ctx context.Context, o OptimizeOptions) (*OptimizeReport, error) {
	s, err := t.newestWritable(ctx, o.TableID)
	if err != nil {
		return nil, err
	}
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	if err := checkExpected(s, o.ExpectedVersion); err != nil {
		return nil, err
	}
	plan := maintain.PlanOptimize(s, config)
	report := &OptimizeReport{StartingVersion: s.Version(), CommittedVersion: s.Version(), NoOp: plan.Empty(), DryRun: o.DryRun}
	if plan.Empty() {
		return report, nil
	}
	if o.DryRun {
		counts, divided, err := plan.Foresee(ctx, t.files)
		if err == nil && divided > plan.MaxFiles() {
			err = manyFiles(divided, plan.MaxFiles())
		}
		report.count(counts)
		return report, err
	}
	return report, t.runOptimize(ctx, plan, o, report)
}

// runOptimize writes and commits a plan and completes its report.
func (t *Table) runOptimize(ctx context.Context, plan *maintain.Optimize, o OptimizeOptions, report *OptimizeReport) error {
	w := t.rewriter()
	if o.Progress != nil {
		total := int64(plan.Planned().FilesIn)
		w.Progress = func(done int) {
			o.Progress(Progress{Step: "rewrite_files", Done: int64(done), Total: &total, Unit: "files"})
		}
	}
	err := t.rewriteFiles(ctx, plan, w, rewriting{operation: maintain.OpOptimize, expected: o.ExpectedVersion, report: func(s *snapshot.Snapshot) any {
		report.CommittedVersion = s.Version() + 1
		report.count(plan.Counts(s))
		return report
	}})
	if errors.Is(err, maintain.ErrNothingLeft) {
		report.NoOp = true
		report.count(maintain.Counts{})
		version := t.txn.Current().Version()
		report.StartingVersion, report.CommittedVersion = version, version
		return nil
	}
	return err
}

// rewriting is how a rewriting of files stands in the log.
type rewriting struct {
	operation string
	expected  *int64
	// written, where it is set, is called when the files are there and about to be
	// committed.
	written func()
	// report is the report of the commit that follows s.
	report func(s *snapshot.Snapshot) any
}

// rewriteFiles writes the files of a plan and commits them. Unless they may have
// been committed, those that were not are removed. maintain.ErrNothingLeft where
// others have replaced all that was to be rewritten.
func (t *Table) rewriteFiles(ctx context.Context, plan *maintain.Optimize, w maintain.Rewriter, r rewriting) error {
	id, err := t.warehouse.newUUID()
	if err != nil {
		return err
	}
	attempt := t.attempts.Begin()
	defer attempt.End(ctx)
	if err := plan.Write(ctx, w); err != nil {
		return err
	}
	if r.written != nil {
		r.written()
	}
	s, err := t.txn.Publish(ctx, &txn.Edit{ID: id, Operation: r.operation, RequestID: id, Base: plan.Base(),
		Row: txn.RowRewrite, ExpectedVersion: r.expected, Revalidate: plan.Revalidate, Present: attempt.Check,
		Commit: func(s *snapshot.Snapshot) (*deltalog.Commit, error) {
			text, err := json.Marshal(r.report(s))
			if err != nil {
				return nil, err
			}
			return plan.Commit(s, txn.Extra(r.operation, id, text)), nil
		}})
	switch {
	case err == nil:
		plan.Committed(ctx, s, w)
	case s == nil && tableerr.TokenOf(err) != tableerr.TokenCommitUnknown:
		plan.Discard(ctx, t.store)
	}
	return err
}

// rewriter is what the table's files are rewritten with.
func (t *Table) rewriter() maintain.Rewriter {
	return maintain.Rewriter{Store: t.store, Files: t.files, Mem: t.warehouse.opts.Allocator, Sort: t.sortRows, Merge: t.mergeFiles}
}

// sortRows writes rows as sorted files.
func (t *Table) sortRows(ctx context.Context, rows maintain.RowReader, s maintain.Sorting) ([]newfile.File, error) {
	config, err := t.sortConfig(s)
	if err != nil {
		return nil, err
	}
	result, err := ingest.Run(ctx, config, rows)
	var tooMany *ingest.TooManyFilesError
	if errors.As(err, &tooMany) {
		return nil, manyFiles(tooMany.Files, tooMany.Limit)
	}
	if err != nil {
		return nil, err
	}
	return result.Files, nil
}

// mergeFiles writes the rows of sorted files as sorted files; false where it
// cannot.
func (t *Table) mergeFiles(ctx context.Context, s *snapshot.Snapshot, files []*snapshot.File, to maintain.Sorting) ([]newfile.File, bool, error) {
	config, err := t.sortConfig(to)
	if err != nil {
		return nil, false, err
	}
	return ingest.Merge(ctx, config, ingest.SortedFiles{Snapshot: s, Cache: t.files, List: files})
}

// sortConfig is how rewritten rows are cut, sorted and encoded: as appends are, but
// for what can be made much smaller, so that they are read as fast.
func (t *Table) sortConfig(s maintain.Sorting) (ingest.Config, error) {
	domain, err := interval.New(s.Def.IndexType, s.Def.IndexUnit(), s.Def.Granularity)
	opts := t.warehouse.opts
	return ingest.Config{Store: t.store, Def: s.Def, Domain: domain, Mem: opts.Allocator, Rows: t.warehouse.rows,
		MemoryBudget: min(opts.MemoryBudget, optimizeMemory), Budget: t.warehouse.budget, Scratch: scratch.Dir(opts.Scratch),
		Write: datafile.WriteOptions{Compression: datafile.Cold}, Now: opts.Clock, NewID: t.warehouse.newUUID, Software: opts.Software,
		Shape: ingest.Shape{FileRows: s.FileRows, ByEntity: s.ByEntity, MaxFiles: s.MaxFiles}}, err
}

// manyFiles refuses a layout entity of more files than are allowed.
func manyFiles(files, limit int) error {
	return tableerr.InvalidField("max_files", "the layout entity would make %d files or more, more than %d", files, limit).WithValue(limit)
}
