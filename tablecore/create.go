package tablecore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/txn"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// CreateOptions say what a new table is to be. Texts are as a client sends
// them; see tabledef.Request.
type CreateOptions struct {
	Name             tabledef.Name
	IndexColumn      string
	IndexType        string // may be empty where Schema says it
	IndexGranularity string
	EntityColumns    []string
	Timezone         *string
	Uniqueness       string
	IngestTimeColumn *string // nil = "_ingest_ts", "" = none
	Properties       map[string]string
	Schema           *arrow.Schema // nil = adopted from the first append
	// LeastSnapshotRetention is as in SetPropertiesOptions.
	LeastSnapshotRetention time.Duration
}

// opCreate is the operation of a table's first commit.
const opCreate = "create_table"

// CreateTable makes a table and describes it. INVALID for a definition that
// makes no sense; TABLE_EXISTS when the name, or one that differs only in
// case, is taken. Of several calls at once exactly one succeeds.
func (w *Warehouse) CreateTable(ctx context.Context, o CreateOptions) (*Description, error) {
	d, err := w.createTable(ctx, o)
	return d, tableerr.WithTable(err, o.Name.String())
}

func (w *Warehouse) createTable(ctx context.Context, o CreateOptions) (*Description, error) {
	id, err := w.newUUID()
	if err != nil {
		return nil, err
	}
	request := tabledef.Request{IndexColumn: o.IndexColumn, IndexType: o.IndexType, IndexGranularity: o.IndexGranularity,
		EntityColumns: o.EntityColumns, Uniqueness: o.Uniqueness, IngestTimeColumn: o.IngestTimeColumn,
		Properties: o.Properties, Schema: o.Schema, LeastSnapshotRetention: o.LeastSnapshotRetention}
	if o.Timezone != nil {
		request.Timezone = *o.Timezone
	}
	def, err := tabledef.New(id, request)
	if err != nil {
		return nil, err
	}
	if err := w.checkNameFree(ctx, o.Name); err != nil {
		return nil, err
	}
	commit, err := w.firstCommit(def)
	if err != nil {
		return nil, err
	}
	if err := w.putFirst(ctx, o.Name, id, commit); err != nil {
		return nil, err
	}
	w.opts.Events.committed(ctx, o.Name.String(), 0, opCreate)
	t, err := w.Table(ctx, o.Name)
	if err != nil {
		return nil, err
	}
	return t.Describe(ctx, At{})
}

// checkNameFree refuses a name that is taken, also up to case.
func (w *Warehouse) checkNameFree(ctx context.Context, name tabledef.Name) error {
	names, err := w.TableNames(ctx, "")
	if err != nil {
		return err
	}
	same := func(n tabledef.Name) bool {
		if strings.EqualFold(n.Namespace, name.Namespace) && n.Namespace != name.Namespace {
			return true // the namespace itself differs only in case
		}
		return strings.EqualFold(n.String(), name.String())
	}
	if i := slices.IndexFunc(names, same); i >= 0 {
		taken := &tableerr.TableExists{}
		if names[i] != name {
			taken.Other = names[i].String()
		}
		return taken
	}
	return nil
}

// firstCommit is version 0 of a table.
func (w *Warehouse) firstCommit(def *tabledef.Definition) ([]byte, error) {
	metadata, protocol, err := txn.Describe(def)
	if err != nil {
		return nil, err
	}
	now := w.opts.Clock().UnixMilli()
	metadata.CreatedTime = &now
	commit := &deltalog.Commit{
		// The identity stands for a request id, too: nobody else has it.
		Info: &deltalog.CommitInfo{Timestamp: &now, InCommitTimestamp: &now, Operation: "CREATE TABLE", EngineInfo: w.opts.Software,
			Extra: txn.Extra(opCreate, def.ID, nil)},
		Protocol: protocol, Metadata: metadata,
	}
	return deltalog.EncodeCommit(commit)
}

// putFirst makes the table's directory and its first commit. An unclear answer
// is cleared up by reading: the commit holds an id nobody else has.
func (w *Warehouse) putFirst(ctx context.Context, name tabledef.Name, id string, data []byte) error {
	store, err := w.opts.Store.Sub(ctx, name.Dir(), true)
	if err != nil {
		return storeError(err)
	}
	defer store.Close()
	key := deltalog.CommitKey(0)
	err = store.PutIfAbsent(ctx, key, data)
	var unknown *objstore.UnknownOutcomeError
	if errors.As(err, &unknown) {
		found, readErr := store.Get(context.WithoutCancel(ctx), key)
		switch {
		case readErr == nil && string(found) == string(data):
			err = nil
		case readErr == nil:
			err = objstore.ErrExist
		case errors.Is(readErr, objstore.ErrNotExist):
			return &tableerr.StoreUnavailable{Cause: err}
		default:
			return &tableerr.CommitUnknown{RequestID: id, Cause: err}
		}
	}
	if errors.Is(err, objstore.ErrExist) {
		return &tableerr.TableExists{}
	}
	return storeError(err)
}

// storeError gives an error of the store its type; typed errors and those of a
// context stay as they are.
func storeError(err error) error { return txn.StoreError(err) }
