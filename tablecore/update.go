package tablecore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/attempt"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/rowdigest"
	"contrail/tablecore/internal/scratch"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/txn"
	"contrail/tablecore/internal/update"
	"contrail/tablecore/tableerr"
)

// UpdateOptions are the settings of one update.
type UpdateOptions struct {
	// Columns are the columns that get the stream's values: at least one, none
	// twice, no key column. Their order means nothing.
	Columns []string
	// ExpectedVersion is the only version that the update may follow.
	ExpectedVersion int64
	// RequestID, when not empty, makes the update safe to repeat, as
	// AppendOptions.RequestID does for appends. It is looked up before the
	// version is checked.
	RequestID string
	// TableID, when not empty, must be the table's identity.
	TableID string
}

// check refuses what is wrong whatever the table.
func (o UpdateOptions) check() error {
	if o.ExpectedVersion < 0 {
		return tableerr.InvalidField("expected_version", "expected_version is a number from 0 up, not %d", o.ExpectedVersion).WithValue(o.ExpectedVersion)
	}
	if o.RequestID != "" {
		return checkRequestID(o.RequestID)
	}
	return nil
}

// CheckUpdate makes the checks of an update that precede the rows: the table's
// format, request_id, the version, the columns and the stream's schema.
// UpdateRows repeats them.
func (t *Table) CheckUpdate(ctx context.Context, schema *arrow.Schema, o UpdateOptions) error {
	_, err := t.prepareUpdate(ctx, schema, o)
	return t.wrap(err)
}

// UpdateRows gives the stored rows that a stream names the stream's values, as
// one commit, all or nothing. The stream has all entity columns, the index
// column and the chosen columns, in any order; each of its rows names the one
// stored row with the same entity and the same index value. The order of the
// checks, and the error of each, are those of table-semantics.md; no row is read
// before the version was checked. An update never follows another version than
// the expected one, so another writer's commit is VERSION_CONFLICT whatever it
// did. After an error other than COMMIT_UNKNOWN nothing of the update is left.
func (t *Table) UpdateRows(ctx context.Context, rows RowReader, o UpdateOptions) (*UpdateReport, error) {
	defer t.delicate.begin()()
	stream := &stream{RowReader: rows}
	report, err := t.updateRows(ctx, stream, o)
	if !stream.failed {
		err = storeError(err)
	}
	return report, t.wrap(err)
}

// preparedUpdate is an update after the checks that precede its rows: a new
// one, or the repetition of one that is in the table.
type preparedUpdate struct {
	*update.Update
	repeats *snapshot.Request // nil unless the table knows the request id
	base    *snapshot.Snapshot
}

func (t *Table) prepareUpdate(ctx context.Context, schema *arrow.Schema, o UpdateOptions) (*preparedUpdate, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s, err := t.newestWritable(ctx, o.TableID)
	if err != nil {
		return nil, err
	}
	if s.State.AppendOnly() {
		return nil, &tableerr.Unsupported{Feature: deltalog.FeatureAppendOnly, Msg: "the table takes appends only (delta.appendOnly)"}
	}
	if o.RequestID != "" {
		if r := s.Request(o.RequestID, t.warehouse.opts.Clock().UnixMilli()); r != nil {
			return &preparedUpdate{repeats: r, base: s}, checkUpdateRepetition(r, s, schema, o.Columns)
		}
	}
	if o.ExpectedVersion != s.Version() {
		return nil, &tableerr.VersionConflict{Expected: o.ExpectedVersion, Found: s.Version()}
	}
	u, err := update.New(s, schema, o.Columns, update.Config{
		Store: t.store, Files: t.files, Mem: t.warehouse.opts.Allocator, Rows: t.warehouse.rows, MemoryBudget: t.warehouse.opts.MemoryBudget, Scratch: scratch.Dir(t.warehouse.opts.Scratch),
		Now: t.warehouse.opts.Clock, NewID: t.warehouse.newUUID, Software: t.warehouse.opts.Software, Digest: o.RequestID != ""})
	if err != nil {
		return nil, err
	}
	return &preparedUpdate{Update: u, base: s}, nil
}

// checkUpdateRepetition refuses, before any row is read, an update that cannot
// be the one that a request id is remembered for.
func checkUpdateRepetition(r *snapshot.Request, s *snapshot.Snapshot, schema *arrow.Schema, columns []string) error {
	def, err := update.Definition(s.Def, columns)
	if r.Op != update.Op || err != nil || !rowdigest.Fits(schema, def) {
		return reused(r)
	}
	return nil
}

func (t *Table) updateRows(ctx context.Context, rows RowReader, o UpdateOptions) (*UpdateReport, error) {
	p, err := t.prepareUpdate(ctx, rows.Schema(), o)
	if err != nil {
		return nil, err
	}
	if p.repeats != nil {
		return t.replayUpdate(ctx, p, rows, o)
	}
	attempt := t.attempts.Begin()
	defer attempt.End(ctx)
	if err := p.Write(ctx, rows); err != nil {
		return nil, err
	}
	if p.Rows() == 0 {
		return t.emptyUpdate(ctx, o)
	}
	return t.publishUpdate(ctx, p.Update, o, attempt)
}

// replayUpdate reads a stream whose request id is known to its end, and answers
// with the first report if it holds the rows of the first update.
func (t *Table) replayUpdate(ctx context.Context, p *preparedUpdate, rows RowReader, o UpdateOptions) (*UpdateReport, error) {
	def, err := update.Definition(p.base.Def, o.Columns)
	if err != nil {
		return nil, reused(p.repeats)
	}
	digest, err := rowdigest.Of(ctx, update.DigestOp(o.Columns), def, t.warehouse.opts.Allocator, rows)
	if errors.Is(err, rowdigest.ErrOtherRows) {
		return nil, reused(p.repeats)
	}
	if err != nil {
		return nil, err
	}
	return t.firstUpdate(ctx, p.repeats, digest)
}

// firstUpdate returns the report of the update that a request id is remembered
// for, if it was this one.
func (t *Table) firstUpdate(ctx context.Context, r *snapshot.Request, digest string) (*UpdateReport, error) {
	report := &UpdateReport{}
	if err := t.readFirst(ctx, r, update.Op, digest, report); err != nil {
		return nil, err
	}
	return report, nil
}

// emptyUpdate answers a stream without rows: it commits nothing, but only on
// the version that was expected.
func (t *Table) emptyUpdate(ctx context.Context, o UpdateOptions) (*UpdateReport, error) {
	s, err := t.at(ctx, At{TableID: o.TableID})
	if err != nil {
		return nil, err
	}
	if o.ExpectedVersion != s.Version() {
		return nil, &tableerr.VersionConflict{Expected: o.ExpectedVersion, Found: s.Version()}
	}
	return &UpdateReport{StartingVersion: s.Version(), CommittedVersion: s.Version(), NoOp: true}, nil
}

// publishUpdate commits what an attempt has written.
func (t *Table) publishUpdate(ctx context.Context, u *update.Update, o UpdateOptions, by *attempt.Attempt) (*UpdateReport, error) {
	edit, report, err := t.updateEdit(u, o)
	if err != nil {
		u.Discard(ctx)
		return nil, err
	}
	u.Remember()
	edit.Present = by.Check
	landed, err := t.txn.Publish(ctx, edit)
	if err == nil {
		return report, nil
	}
	if landed == nil && tableerr.TokenOf(err) != tableerr.TokenCommitUnknown {
		u.Discard(ctx)
	}
	if known := knownRequest(err); known != nil {
		return t.firstUpdate(ctx, known, edit.Request.Digest)
	}
	return nil, err
}

// updateEdit describes the commit of an update and its report.
func (t *Table) updateEdit(u *update.Update, o UpdateOptions) (*txn.Edit, *UpdateReport, error) {
	id, err := t.warehouse.newUUID()
	if err != nil {
		return nil, nil, err
	}
	report := newUpdateReport(u)
	text, err := json.Marshal(report)
	if err != nil {
		return nil, nil, err
	}
	edit := &txn.Edit{ID: id, Operation: update.Op, RequestID: cmp.Or(o.RequestID, id), Row: txn.RowPinned, ExpectedVersion: &o.ExpectedVersion, Base: u.Base()}
	if o.RequestID != "" {
		edit.Request = &snapshot.Request{ID: o.RequestID, Op: update.Op, Digest: u.Digest()}
	}
	edit.Revalidate = func(_ context.Context, s *snapshot.Snapshot) error {
		if s.Version() != u.Base().Version() {
			return &tableerr.VersionConflict{Expected: o.ExpectedVersion, Found: s.Version()}
		}
		return nil // the version that was opened anew is the one the update was made for
	}
	edit.Commit = func(s *snapshot.Snapshot) (*deltalog.Commit, error) {
		return u.Commit(s, txn.Extra(update.Op, edit.RequestID, text))
	}
	return edit, report, nil
}

func newUpdateReport(u *update.Update) *UpdateReport {
	r := &UpdateReport{StartingVersion: u.Base().Version(), CommittedVersion: u.Base().Version() + 1, RowsUpdated: u.Rows(),
		SegmentsRewritten: int64(len(u.Files()))}
	for _, f := range u.Files() {
		r.SourceFileBytes += f.SourceBytes
		r.ReplacementFileBytes += f.Bytes
	}
	return r
}
