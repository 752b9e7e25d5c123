package tablecore

import (
	"context"
	"encoding/json"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/ingest"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/txn"
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
	RequestID       string
	// Compression is auto (default), zstd, snappy, lz4_raw or uncompressed, in
	// any case.
	Compression string
	// Limits of a row group; nil means 262,144 rows and 128 MiB.
	MaxRowsPerRowGroup, MaxBytesPerRowGroup *int64
	// TableID, when not empty, must be the table's identity.
	TableID string
}

// writeOptions validates the settings of an append.
func (o AppendOptions) writeOptions() (datafile.WriteOptions, error) {
	w := datafile.WriteOptions{MaxRowsPerRowGroup: datafile.DefaultRowsPerRowGroup, MaxBytesPerRowGroup: datafile.DefaultBytesPerRowGroup}
	var err error
	if w.Compression, err = datafile.ParseCompression(o.Compression); err != nil {
		e := tableerr.InvalidField("compression", "%s", err)
		e.Value = o.Compression
		return w, e
	}
	for _, limit := range []struct {
		field string
		value *int64
		use   *int64
	}{{"max_rows_per_row_group", o.MaxRowsPerRowGroup, &w.MaxRowsPerRowGroup}, {"max_bytes_per_row_group", o.MaxBytesPerRowGroup, &w.MaxBytesPerRowGroup}} {
		if limit.value == nil {
			continue
		}
		if *limit.value < 1 {
			return w, tableerr.InvalidField(limit.field, "%s is a number from 1 up, not %d", limit.field, *limit.value)
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
// settings, expected_version and the stream's schema. Append repeats them.
func (t *Table) CheckAppend(ctx context.Context, schema *arrow.Schema, o AppendOptions) error {
	_, err := t.prepareAppend(ctx, schema, o)
	return t.wrap(err)
}

// prepareAppend makes the checks that precede the rows. Without an expected
// version it first tries the snapshot in memory: publishing finds out what is
// newer. A refusal is given on the newest version only.
func (t *Table) prepareAppend(ctx context.Context, schema *arrow.Schema, o AppendOptions) (*ingest.Append, error) {
	write, err := o.writeOptions()
	s := t.txn.Current()
	if o.ExpectedVersion == nil && err == nil {
		if a, err := t.newAppend(s, schema, o, write); err == nil {
			return a, nil
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
	return t.newAppend(s, schema, o, write)
}

func (t *Table) newAppend(s *snapshot.Snapshot, schema *arrow.Schema, o AppendOptions, write datafile.WriteOptions) (*ingest.Append, error) {
	if err := s.CheckWritable(); err != nil {
		return nil, err
	}
	if err := checkID(s, o.TableID); err != nil {
		return nil, err
	}
	if o.ExpectedVersion != nil && *o.ExpectedVersion != s.Version() {
		return nil, &tableerr.VersionConflict{Expected: *o.ExpectedVersion, Found: s.Version()}
	}
	return ingest.NewAppend(s, schema, ingest.AppendConfig{
		Store: t.store, Files: t.files, Mem: t.warehouse.opts.Allocator, MemoryBudget: t.warehouse.opts.MemoryBudget,
		Write: write, Now: t.warehouse.opts.Clock, NewID: t.warehouse.newUUID, Software: t.warehouse.opts.Software,
	})
}

// Append stores the rows of a stream as one commit, all or nothing. The order
// of its checks, and the error of each, are those of table-semantics.md; after
// an error other than COMMIT_UNKNOWN nothing of the append is left.
func (t *Table) Append(ctx context.Context, rows RowReader, o AppendOptions) (*AppendReport, error) {
	report, err := t.append(ctx, rows, o)
	return report, t.wrap(storeError(err))
}

func (t *Table) append(ctx context.Context, rows RowReader, o AppendOptions) (*AppendReport, error) {
	a, err := t.prepareAppend(ctx, rows.Schema(), o)
	if err != nil {
		return nil, err
	}
	if err := a.Write(ctx, rows); err != nil {
		return nil, err
	}
	base := a.Base()
	report := newAppendReport(base.Version(), a, o)
	if a.Rows() == 0 {
		s, err := t.at(ctx, At{TableID: o.TableID})
		if err != nil {
			return nil, err
		}
		if o.ExpectedVersion != nil && *o.ExpectedVersion != s.Version() {
			return nil, &tableerr.VersionConflict{Expected: *o.ExpectedVersion, Found: s.Version()}
		}
		report.StartingVersion, report.CommittedVersion = s.Version(), s.Version()
		return report, nil
	}
	id, err := t.warehouse.newUUID()
	if err == nil {
		err = a.Revalidate(ctx, base)
	}
	if err != nil {
		a.Discard(ctx)
		return nil, err
	}
	a.Remember()
	_, err = t.txn.Publish(ctx, &txn.Edit{
		ID: id, Operation: "append", RequestID: o.RequestID, ExpectedVersion: o.ExpectedVersion, Base: base, Revalidate: a.Revalidate,
		Commit: func(s *snapshot.Snapshot) (*deltalog.Commit, error) {
			report.CommittedVersion = s.Version() + 1
			text, err := json.Marshal(report)
			if err != nil {
				return nil, err
			}
			return a.Commit(s, txn.Extra("append", o.RequestID, text))
		},
	})
	if err != nil {
		if tableerr.TokenOf(err) != tableerr.TokenCommitUnknown {
			a.Discard(ctx)
		}
		return nil, err
	}
	return report, nil
}

func newAppendReport(version int64, a *ingest.Append, o AppendOptions) *AppendReport {
	w := a.Settings()
	r := &AppendReport{StartingVersion: version, CommittedVersion: version, Rows: a.Rows(), DataFiles: []DataFileReport{},
		Compression: w.Compression.String(), MaxRowsPerRowGroup: w.MaxRowsPerRowGroup, MaxBytesPerRowGroup: w.MaxBytesPerRowGroup}
	if o.RequestID != "" {
		r.RequestID = &o.RequestID
	}
	for _, f := range a.Files() {
		r.DataFiles = append(r.DataFiles, DataFileReport{Path: f.Path, Rows: f.Rows, RowGroups: f.RowGroups, Bytes: f.Bytes})
	}
	return r
}
