package tablecore

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/ingest"
	"contrail/tablecore/internal/rowdigest"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/txn"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// knownRequest is what a put's request id is known for by now, where that is why
// the put was not committed; else nil. A put that may yet turn up stays
// COMMIT_UNKNOWN, whatever became of its id: nobody can tell that its rows are
// stored once.
func knownRequest(err error) *snapshot.Request {
	var known *txn.KnownRequest
	if tableerr.TokenOf(err) == tableerr.TokenCommitUnknown || !errors.As(err, &known) {
		return nil
	}
	return known.Request
}

// reused says that a request id belongs to another put.
func reused(r *snapshot.Request) error {
	return &tableerr.RequestIDReused{RequestID: r.ID, Version: r.Version}
}

// checkRepetition refuses, before any row is read, an append that cannot be the
// one that a request id is remembered for.
func checkRepetition(r *snapshot.Request, def *tabledef.Definition, schema *arrow.Schema) error {
	if r.Op != ingest.OpAppend || !rowdigest.Fits(schema, def) {
		return reused(r)
	}
	return nil
}

// replayAppend reads a stream whose request id is known to its end, and answers
// with the first report if it holds the rows of the first append.
func (t *Table) replayAppend(ctx context.Context, p *prepared, rows RowReader) (*AppendReport, error) {
	digest, err := rowdigest.Of(ctx, ingest.OpAppend, p.def, t.warehouse.opts.Allocator, rows)
	if errors.Is(err, rowdigest.ErrOtherRows) {
		return nil, reused(p.repeats)
	}
	if err != nil {
		return nil, err
	}
	return t.firstReport(ctx, p.repeats, ingest.OpAppend, digest)
}

// firstReport returns the report of the append that a request id is remembered
// for, if it was this one.
func (t *Table) firstReport(ctx context.Context, r *snapshot.Request, op, digest string) (*AppendReport, error) {
	report := &AppendReport{}
	if err := t.readFirst(ctx, r, op, digest, report); err != nil {
		return nil, err
	}
	report.Replayed = true
	return report, nil
}

// readFirst reads the report of the put that a request id is remembered for, if
// it was one with this op and digest.
func (t *Table) readFirst(ctx context.Context, r *snapshot.Request, op, digest string, report any) error {
	if r.Op != op || r.Digest != digest {
		return reused(r)
	}
	// A handle of a dropped table still reads its log, but the rows are in no
	// table any more.
	if current, err := t.store.Current(ctx); err != nil {
		return err
	} else if !current {
		return &tableerr.TableNotFound{}
	}
	commit, err := t.log.ReadCommit(ctx, r.Version)
	if errors.Is(err, objstore.ErrNotExist) {
		// Never to be taken for an id that is not known: the rows are there.
		return &tableerr.VersionExpired{Version: r.Version, Current: t.txn.Current().Version()}
	}
	if err != nil {
		return err
	}
	_, _, text := txn.ReadExtra(commit.Info)
	if !remembers(commit, r) || json.Unmarshal(text, report) != nil {
		return &tableerr.Corrupt{Path: deltalog.CommitKey(r.Version), Msg: "the commit does not hold the report of the " + op + " that its request id belongs to"}
	}
	return nil
}

// remembers says whether a commit is the one that a request made.
func remembers(c *deltalog.Commit, r *snapshot.Request) bool {
	return slices.ContainsFunc(c.Txns, func(t *deltalog.Txn) bool { return t.AppID == r.AppID() })
}
