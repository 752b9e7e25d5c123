package tablecore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

const (
	// trashDir holds dropped tables until their grace time is over.
	trashDir = "_trash"
	// trashGrace is how long a dropped table stays for the scans that go on.
	trashGrace = time.Hour
	// droppedKey is the object in a dropped table that says when it was.
	droppedKey = "_contrail/dropped"
)

// DropOptions say how a table is dropped.
type DropOptions struct {
	// ExpectedVersion is the only version that may be dropped.
	ExpectedVersion *int64
	// DryRun only says what would be dropped.
	DryRun bool
	// TableID, when not empty, must be the table's identity.
	TableID string
}

// DropTable moves a table out of the way in one atomic step. Running scans go
// on; its files are removed an hour later by SweepTrash.
func (w *Warehouse) DropTable(ctx context.Context, name tabledef.Name, o DropOptions) (*DropReport, error) {
	r, err := w.dropTable(ctx, name, o)
	return r, tableerr.WithTable(storeError(err), name.String())
}

func (w *Warehouse) dropTable(ctx context.Context, name tabledef.Name, o DropOptions) (*DropReport, error) {
	t, err := w.Table(ctx, name)
	if err != nil {
		return nil, err
	}
	s, err := t.at(ctx, At{TableID: o.TableID})
	if err != nil {
		return nil, err
	}
	if err := s.CheckWritable(); err != nil {
		return nil, err
	}
	if err := checkExpected(s, o.ExpectedVersion); err != nil {
		return nil, err
	}
	report := &DropReport{Table: name.String(), Version: s.Version(), Files: int64(len(s.Files)), Bytes: s.Bytes, DryRun: o.DryRun}
	if o.DryRun {
		return report, nil
	}
	target, err := w.trashName(s.Def.ID)
	if err != nil {
		return nil, err
	}
	if err := w.moveToTrash(ctx, t, target); err != nil {
		return nil, err
	}
	w.forget(t)
	w.markDropped(context.WithoutCancel(ctx), target)
	return report, nil
}

// moveToTrash renames the table's directory. An unclear answer is cleared up by
// looking where the name leads.
func (w *Warehouse) moveToTrash(ctx context.Context, t *Table, target string) error {
	err := w.opts.Store.Trash(ctx, t.name.Dir(), target)
	var unknown *objstore.UnknownOutcomeError
	if errors.As(err, &unknown) {
		current, checkErr := t.store.Current(context.WithoutCancel(ctx))
		switch {
		case checkErr != nil:
			// A drop has no commit to hold an id: it is where the table lies if it
			// was dropped.
			return &tableerr.CommitUnknown{RequestID: path.Base(target), Cause: err}
		case !current:
			return nil
		}
		return &tableerr.StoreUnavailable{Cause: err}
	}
	if errors.Is(err, objstore.ErrNotExist) {
		return &tableerr.TableNotFound{}
	}
	return err
}

// trashName is a new name in the trash. Copies of a table share its identity,
// so the name has a random part.
func (w *Warehouse) trashName(id string) (string, error) {
	var b [4]byte
	w.random.Lock()
	defer w.random.Unlock()
	if _, err := io.ReadFull(w.opts.Random, b[:]); err != nil {
		return "", fmt.Errorf("reading random bytes: %w", err)
	}
	return trashDir + "/" + id + "." + hex.EncodeToString(b[:]), nil
}

// markDropped notes the time of a drop. Where that fails the next sweep does
// it, so the table only stays longer.
func (w *Warehouse) markDropped(ctx context.Context, dir string) {
	text := w.opts.Clock().UTC().Format(time.RFC3339)
	if err := w.opts.Store.Put(ctx, dir+"/"+droppedKey, []byte(text)); err != nil {
		w.opts.Events.warn(ctx, "drop time not noted", map[string]any{"path": dir, "error": err.Error()})
	}
}

// SweepTrash removes the tables that were dropped an hour ago or earlier and
// returns how many.
func (w *Warehouse) SweepTrash(ctx context.Context) (int, error) {
	dirs, err := w.opts.Store.ListDirs(ctx, trashDir)
	if err != nil {
		return 0, storeError(err)
	}
	swept := 0
	for _, name := range dirs {
		dir := trashDir + "/" + name
		over, err := w.graceOver(ctx, dir)
		if err != nil {
			return swept, storeError(err)
		}
		if !over {
			continue
		}
		if err := w.opts.Store.DeleteTree(ctx, dir); err != nil {
			return swept, storeError(err)
		}
		swept++
	}
	return swept, nil
}

// graceOver says whether a dropped table has lain long enough.
func (w *Warehouse) graceOver(ctx context.Context, dir string) (bool, error) {
	text, err := w.opts.Store.Get(ctx, dir+"/"+droppedKey)
	if err != nil && !errors.Is(err, objstore.ErrNotExist) {
		return false, err
	}
	dropped, parseErr := time.Parse(time.RFC3339, string(text))
	if err != nil || parseErr != nil {
		w.markDropped(ctx, dir)
		return false, nil
	}
	return w.opts.Clock().Sub(dropped) >= trashGrace, nil
}
