package tablecore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/predicate"
	"contrail/tablecore/internal/scan"
	"contrail/tablecore/tabledef"
)

// EntityFilter is a full or partial identity: entity column to JSON value.
type EntityFilter = map[string]json.RawMessage

// Split is one of several parts of a scan.
type Split = scan.Split

// SplitInfo describes one part of a scan.
type SplitInfo = scan.SplitInfo

// ScanOptions say which rows and columns of which version are read. Values are
// JSON because what they mean depends on the columns' types. The zero value
// reads all columns but the insertion-time column of all rows of the newest
// version.
type ScanOptions struct {
	Columns    []string        // nil = all but the insertion-time column
	Entities   []EntityFilter  // nil = all, empty = none
	Start, End json.RawMessage // half-open range on the index, nil = open
	Filter     []Condition     // all must hold
	Version    *int64          // nil = newest
	AsOf       *time.Time      // the newest version committed at or before it, in place of Version
	// SinceVersion, where it is set, gives only the rows that appends have added
	// behind this version, up to the one that is read. A commit in between that
	// changed or removed rows is NOT_APPEND_ONLY, or with Changes ChangesIgnore
	// passed over. Commits that change no row, and retention, always are.
	SinceVersion *int64
	Changes      string
	TableID      string // "" = whatever table has the name
	Limit        *int64 // the first rows of the order, nil = all
	Order        string // "entity_index" (default) or "unordered"
	NewestFirst  bool   // by index descending over all entities, then by entity
	Profile      string // "compat" (default), "exact" or "spark"
	BatchRows    int    // upper bound, 0 = 65,536
	Split        *Split // nil = the whole scan

	unpruned bool // look at every row, for tests
}

// Condition is one condition of a filter: Column, Op and, but for "is null" and
// "is not null", Value in JSON, which for "in" is a list. The operators are = (or
// ==) != < <= > >=, in, is null, is not null. Numbers compare by value, texts
// and binaries by bytes; NaN is above everything and equals itself, +0 equals
// −0; a null satisfies only "is null".
type Condition = predicate.Condition

// ScanPlan is a scan of one version, ready to run. The same options on the
// same version give the same plan in every process. It is safe for concurrent
// use.
type ScanPlan struct {
	table *Table
	id    string
	plan  *scan.Plan
}

// PlanScan resolves a scan against a version of the table and prunes the files
// by what the log says. Beyond the check whether the version is current it
// reads nothing but, with SinceVersion, the commits behind that.
func (t *Table) PlanScan(ctx context.Context, o ScanOptions) (*ScanPlan, error) {
	s, err := t.at(ctx, At{Version: o.Version, AsOf: o.AsOf, TableID: o.TableID})
	if err != nil {
		return nil, t.wrap(err)
	}
	if s, err = t.appended(ctx, s, o); err != nil {
		return nil, t.wrap(storeError(err))
	}
	plan, err := scan.NewPlan(s, t.files, t.warehouse.opts.Allocator, scan.Request{
		Columns: o.Columns, Entities: o.Entities, AllEntities: o.Entities == nil, Start: o.Start, End: o.End,
		Filter: o.Filter, Limit: o.Limit, Order: o.Order, NewestFirst: o.NewestFirst, Unpruned: o.unpruned,
		Profile: o.Profile, BatchRows: o.BatchRows, Split: o.Split})
	if err != nil {
		return nil, t.wrap(err)
	}
	return &ScanPlan{t, s.Def.ID, plan}, nil
}

// Table is the name of the table that is read.
func (p *ScanPlan) Table() tabledef.Name { return p.table.name }

// TableID is the identity of the table that is read.
func (p *ScanPlan) TableID() string { return p.id }

// Version is the version that is read.
func (p *ScanPlan) Version() int64 { return p.plan.Version() }

// Schema is the schema of every batch.
func (p *ScanPlan) Schema() *arrow.Schema { return p.plan.Schema() }

// SchemaID is a short fingerprint of Schema: 16 hex digits.
func (p *ScanPlan) SchemaID() string { return schemaID(p.plan.Schema()) }

func schemaID(s *arrow.Schema) string {
	form, err := tabledef.EncodeSchemaIPC(s) // Arrow's own fingerprint is empty for some types
	if err != nil {
		form = []byte(s.String()) // cannot be: a table's schema was encoded before
	}
	sum := sha256.Sum256(form)
	return hex.EncodeToString(sum[:8])
}

// Ordered says whether the rows come in an order that was asked for, and the
// splits with them.
func (p *ScanPlan) Ordered() bool { return p.plan.Ordered() }

// Rows is the number of rows the scan gives, −1 when it is not known without
// reading.
func (p *ScanPlan) Rows() int64 { return p.plan.Rows() }

// Splits divides the scan into at most max parts of about equal size, in the
// scan's order. Each is run by planning with Split{i, len(splits)}. With max 1
// nothing is read; else the entity directories of the files are. A scan with a
// limit or with NewestFirst has one part.
func (p *ScanPlan) Splits(ctx context.Context, max int) ([]SplitInfo, error) {
	if max <= 1 {
		return []SplitInfo{{Rows: p.plan.Rows(), Bytes: -1}}, nil
	}
	splits, err := p.plan.Splits(ctx, max)
	return splits, p.table.wrap(storeError(err))
}

// Open begins to run the plan. The caller releases the reader.
func (p *ScanPlan) Open(ctx context.Context) (*ScanReader, error) {
	release := p.table.pins.read(p.Version())
	r, err := p.plan.Open(ctx)
	if err != nil {
		release()
		return nil, p.table.wrap(storeError(err))
	}
	return &ScanReader{p, r, release}, nil
}

// ScanReader is the stream of a plan's batches. It belongs to one goroutine.
type ScanReader struct {
	plan   *ScanPlan
	reader *scan.Reader
	unpin  func() // lets the version be expired
}

// Next returns the next batch, or io.EOF. The batch is valid until the next
// call of Next or Release.
func (r *ScanReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	batch, err := r.reader.Next(ctx)
	return batch, r.plan.table.wrap(storeError(err))
}

// Release gives back what the reader holds.
func (r *ScanReader) Release() {
	r.reader.Release()
	r.unpin()
}

// ScanStats count what a scan did.
type ScanStats struct {
	Version          int64 `json:"version"`
	Rows             int64 `json:"rows"`
	Bytes            int64 `json:"bytes"` // of the batches' Arrow buffers
	Files            int64 `json:"files"`
	FilesSkipped     int64 `json:"files_skipped"`
	RowGroups        int64 `json:"row_groups"`
	RowGroupsSkipped int64 `json:"row_groups_skipped"` // of the files that were read
	QueueMS          int64 `json:"queue_ms"`           // filled in by the server
}

// Stats returns the counts so far.
func (r *ScanReader) Stats() ScanStats {
	s := r.reader.Stats()
	return ScanStats{Version: r.plan.Version(), Rows: s.Rows, Bytes: s.Bytes, Files: s.Files, FilesSkipped: s.FilesSkipped,
		RowGroups: s.RowGroups, RowGroupsSkipped: s.RowGroupsSkipped}
}
