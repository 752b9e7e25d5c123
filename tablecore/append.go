package tablecore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/attempt"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/ingest"
	"contrail/tablecore/internal/scratch"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/txn"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// RowReader is a stream of batches. Next returns io.EOF at the end; a batch is
// valid until the next call of Next. Any other error ends the append with that
// error and nothing stored.
type RowReader interface {
	Schema() *arrow.Schema
	Next(ctx context.Context) (arrow.RecordBatch, error)
}

// AppendOptions are the settings of one append. The zero value means the
// defaults.
type AppendOptions struct {
	// ExpectedVersion is the only version the append may follow.
	ExpectedVersion *int64
	// RequestID, when not empty, makes the append safe to repeat: of all
	// appends to the table with this id, in whatever process, one is committed,
	// and each other with the same rows is answered with its report, for 7 days
	// or until 100,000 newer ids. Other rows are REQUEST_ID_REUSED. A stream
	// without rows commits nothing and is not remembered.
	RequestID string
	// Compression is auto (default), zstd, snappy, lz4_raw or uncompressed, in
	// any case.
	Compression string
	// Limits of a row group; nil means 262,144 rows and 128 MiB.
	MaxRowsPerRowGroup, MaxBytesPerRowGroup *int64
	// TableID, when not empty, must be the table's identity.
	TableID string
}

// checkPositive refuses what is no number from 1 up.
func checkPositive(field string, value int64) error {
	if value >= 1 {
		return nil
	}
	return tableerr.InvalidField(field, "%s is a number from 1 up, not %d", field, value).WithValue(value)
}

// writeOptions validates the settings of an append.
func (o AppendOptions) writeOptions() (datafile.WriteOptions, error) {
	w := datafile.WriteOptions{MaxRowsPerRowGroup: datafile.DefaultRowsPerRowGroup, MaxBytesPerRowGroup: datafile.DefaultBytesPerRowGroup}
	var err error
	if w.Compression, err = datafile.ParseCompression(o.Compression); err != nil {
		return w, tableerr.InvalidField("compression", "%s", err).WithValue(o.Compression)
	}
	for _, limit := range []struct {
		field string
		value *int64
		use   *int64
	}{{"max_rows_per_row_group", o.MaxRowsPerRowGroup, &w.MaxRowsPerRowGroup}, {"max_bytes_per_row_group", o.MaxBytesPerRowGroup, &w.MaxBytesPerRowGroup}} {
		if limit.value == nil {
			continue
		}
		if err := checkPositive(limit.field, *limit.value); err != nil {
			return w, err
		}
		*limit.use = *limit.value
	}
	if o.RequestID != "" {
		return w, checkRequestID(o.RequestID)
	}
	return w, nil
}

// checkRequestID refuses ids that are not 1 to 128 printable ASCII characters.
func checkRequestID(id string) error {
	bad := len(id) > 128
	for i := 0; i < len(id) && !bad; i++ {
		bad = id[i] < ' ' || id[i] > '~'
	}
	if bad {
		return tableerr.InvalidField("request_id", "a request id has 1 to 128 printable ASCII characters")
	}
	return nil
}

// CheckAppend makes the checks that precede the rows: the table's format, the
// settings, request_id, expected_version and the stream's schema. Append
// repeats them.
func (t *Table) CheckAppend(ctx context.Context, schema *arrow.Schema, o AppendOptions) error {
	_, err := t.prepareAppend(ctx, schema, o, t.txn.Follow)
	return t.wrap(err)
}

// prepared is an append after the checks that precede its rows: a new one, or
// the repetition of one that is in the table.
type prepared struct {
	*ingest.Append
	repeats *snapshot.Request    // nil unless the table knows the request id
	def     *tabledef.Definition // of the version that knows it
}

// prepareAppend makes the checks that precede the rows. Where nothing has to be
// compared with the newest version it first tries the one that likely returns. A
// refusal is given on the newest version only.
func (t *Table) prepareAppend(ctx context.Context, schema *arrow.Schema, o AppendOptions, likely func(context.Context) (*snapshot.Snapshot, error)) (*prepared, error) {
	write, err := o.writeOptions()
	if o.ExpectedVersion == nil && o.RequestID == "" && err == nil {
		s, err := likely(ctx)
		if err != nil {
			return nil, err
		}
		// Only the newest version tells whether there is a schema to adopt: files
		// written to a stream's own schema do not fit one that another has brought.
		if s.Def.Stored != nil {
			if p, err := t.prepareOn(s, schema, o, write); err == nil {
				return p, nil
			}
		}
	}
	s, refreshErr := t.txn.Refresh(ctx)
	if refreshErr != nil {
		return nil, refreshErr
	}
	if formatErr := s.CheckWritable(); formatErr != nil {
		return nil, formatErr
	}
	if err != nil {
		return nil, err
	}
	return t.prepareOn(s, schema, o, write)
}

// inMemory returns the newest version in memory, which is enough for who publishes:
// then it is found out what is newer.
func (t *Table) inMemory(context.Context) (*snapshot.Snapshot, error) { return t.txn.Current(), nil }

// prepareOn makes the checks on one version.
func (t *Table) prepareOn(s *snapshot.Snapshot, schema *arrow.Schema, o AppendOptions, write datafile.WriteOptions) (*prepared, error) {
	if err := s.CheckWritable(); err != nil {
		return nil, err
	}
	if err := checkID(s, o.TableID); err != nil {
		return nil, err
	}
	if o.RequestID != "" {
		if r := s.Request(o.RequestID, t.warehouse.opts.Clock().UnixMilli()); r != nil {
			return &prepared{repeats: r, def: s.Def}, checkRepetition(r, s.Def, schema)
		}
	}
	if err := checkExpected(s, o.ExpectedVersion); err != nil {
		return nil, err
	}
	cfg := t.appendConfig(write)
	cfg.Digest = o.RequestID != ""
	a, err := ingest.NewAppend(s, schema, cfg)
	if err != nil {
		return nil, err
	}
	return &prepared{Append: a}, nil
}

// appendConfig is what an append with some settings works with.
func (t *Table) appendConfig(write datafile.WriteOptions) ingest.AppendConfig {
	return ingest.AppendConfig{
		Store: t.store, Files: t.files, Mem: t.warehouse.opts.Allocator, Rows: t.warehouse.rows, MemoryBudget: t.warehouse.opts.MemoryBudget, Budget: t.warehouse.budget,
		Scratch: scratch.Dir(t.warehouse.opts.Scratch),
		Write:   write, Now: t.warehouse.opts.Clock, NewID: t.warehouse.newUUID, Software: t.warehouse.opts.Software,
	}
}

// Append stores the rows of a stream as one commit, all or nothing. The order
// of its checks, and the error of each, are those of table-semantics.md; after
// an error other than COMMIT_UNKNOWN nothing of the append is left. An append
// whose request id the table knows is read to its end and answered with the
// first one's report.
func (t *Table) Append(ctx context.Context, rows RowReader, o AppendOptions) (*AppendReport, error) {
	defer t.undisturbed(o.ExpectedVersion)()
	stream := &stream{RowReader: rows}
	report, err := t.append(ctx, stream, o)
	if !stream.failed {
		err = storeError(err)
	}
	return report, t.wrap(err)
}

// stream notes whether the caller's rows failed, so that their error is not
// taken for one of the store.
type stream struct {
	RowReader
	failed bool
}

// Next implements RowReader.
func (s *stream) Next(ctx context.Context) (arrow.RecordBatch, error) {
	batch, err := s.RowReader.Next(ctx)
	s.failed = s.failed || err != nil && !errors.Is(err, io.EOF)
	return batch, err
}

func (t *Table) append(ctx context.Context, rows RowReader, o AppendOptions) (*AppendReport, error) {
	p, err := t.prepareAppend(ctx, rows.Schema(), o, t.inMemory)
	if err != nil {
		return nil, err
	}
	if p.repeats != nil {
		return t.replayAppend(ctx, p, rows)
	}
	attempt := t.attempts.Begin()
	defer attempt.End(ctx)
	if err := p.Write(ctx, rows); err != nil {
		return nil, err
	}
	if p.Rows() == 0 {
		return t.emptyAppend(ctx, p.Append, o)
	}
	return t.publishAppend(ctx, p.Append, o, attempt)
}

// emptyAppend answers a stream without rows. It commits nothing, so there is
// nothing that a request id could be remembered with.
func (t *Table) emptyAppend(ctx context.Context, a *ingest.Append, o AppendOptions) (*AppendReport, error) {
	s, err := t.at(ctx, At{TableID: o.TableID})
	if err != nil {
		return nil, err
	}
	if err := checkExpected(s, o.ExpectedVersion); err != nil {
		return nil, err
	}
	if err := a.Revalidate(ctx, s); err != nil {
		return nil, err // another writer has brought a schema meanwhile
	}
	return newAppendReport(s.Version(), a, o), nil
}

// publishAppend commits what an attempt has written, or answers with the report
// of who was quicker with the same request id.
func (t *Table) publishAppend(ctx context.Context, a *ingest.Append, o AppendOptions, by *attempt.Attempt) (*AppendReport, error) {
	report, err := t.publish(ctx, a, o, func(edit *txn.Edit) { edit.Present = by.Check })
	if known := knownRequest(err); known != nil {
		return t.firstReport(ctx, known, ingest.OpAppend, a.Digest())
	}
	return report, err
}

// publish makes the checks that follow the rows and commits them by an edit that
// refine completes. After an error, but for COMMIT_UNKNOWN, the append is
// discarded.
func (t *Table) publish(ctx context.Context, a *ingest.Append, o AppendOptions, refine func(*txn.Edit)) (*AppendReport, error) {
	edit, report, err := t.appendEdit(a, o)
	if err == nil {
		err = t.checkWritten(ctx, a, o)
	}
	if err != nil {
		a.Discard(ctx)
		return nil, err
	}
	refine(edit)
	a.Remember()
	landed, err := t.txn.Publish(ctx, edit)
	if err == nil {
		return report, nil
	}
	if landed == nil && tableerr.TokenOf(err) != tableerr.TokenCommitUnknown {
		a.Discard(ctx)
	}
	return nil, err
}

// checkWritten checks what was written against the version that the append
// began with, or plans the replacement of rows for the newest version in memory.
// A refusal is given on the newest version only: where there is a newer one
// Publish finds it, and judges.
func (t *Table) checkWritten(ctx context.Context, a *ingest.Append, o AppendOptions) error {
	s, check := a.Base(), a.Revalidate
	if a.Overwrites() {
		s, check = t.txn.Current(), a.Plan
		if o.ExpectedVersion != nil && s.Version() != *o.ExpectedVersion {
			return nil
		}
	}
	err := check(ctx, s)
	if err == nil {
		return nil
	}
	if newest, failed := t.txn.Refresh(ctx); failed == nil && newest.Version() > s.Version() {
		return nil
	}
	return err
}

// appendEdit describes the commit of an append and its report, whose version
// is filled in each time the commit is made.
func (t *Table) appendEdit(a *ingest.Append, o AppendOptions) (*txn.Edit, *AppendReport, error) {
	id, err := t.warehouse.newUUID()
	if err != nil {
		return nil, nil, err
	}
	report := newAppendReport(a.Base().Version(), a, o)
	edit := &txn.Edit{ID: id, Operation: ingest.OpAppend, RequestID: cmp.Or(o.RequestID, id),
		Row: txn.RowAppend, ExpectedVersion: o.ExpectedVersion, Base: a.Base(), Revalidate: a.Revalidate}
	if a.Overwrites() {
		edit.Row, edit.Replan = txn.RowOverwrite, a.Plan
	}
	if o.RequestID != "" {
		edit.Request = &snapshot.Request{ID: o.RequestID, Op: ingest.OpAppend, Digest: a.Digest()}
	}
	edit.Commit = func(s *snapshot.Snapshot) (*deltalog.Commit, error) {
		report.CommittedVersion, report.RowsReplaced = s.Version()+1, a.RowsReplaced()
		text, err := json.Marshal(report)
		if err != nil {
			return nil, err
		}
		return a.Commit(s, txn.Extra(ingest.OpAppend, edit.RequestID, text))
	}
	return edit, report, nil
}

func newAppendReport(version int64, a *ingest.Append, o AppendOptions) *AppendReport {
	r := emptyReport(version, a.Settings(), o)
	r.Rows = a.Rows()
	for _, f := range a.Files() {
		r.DataFiles = append(r.DataFiles, DataFileReport{Path: f.Path, Rows: f.Rows, RowGroups: f.RowGroups, Bytes: f.Bytes})
	}
	return r
}

// emptyReport is the report of an append without rows.
func emptyReport(version int64, w datafile.WriteOptions, o AppendOptions) *AppendReport {
	r := &AppendReport{StartingVersion: version, CommittedVersion: version, DataFiles: []DataFileReport{},
		Compression: w.Compression.String(), MaxRowsPerRowGroup: w.MaxRowsPerRowGroup, MaxBytesPerRowGroup: w.MaxBytesPerRowGroup}
	if o.RequestID != "" {
		r.RequestID = &o.RequestID
	}
	return r
}
