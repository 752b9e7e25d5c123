package tablecore

import (
	"context"
	"errors"

	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// Unpruned returns the options of the same scan with every row looked at.
func (o ScanOptions) Unpruned() ScanOptions {
	o.unpruned = true
	return o
}

// KnownRequest is what a refused put's request id is known for.
var KnownRequest = knownRequest

// Store is where the tables lie.
func (w *Warehouse) Store() objstore.Store { return w.opts.Store }

// WaitForBackground waits for the background work of the table's warehouse.
func (t *Table) WaitForBackground() { t.warehouse.WaitForBackground() }

// WriteState writes the newest version's state file with all its sections, and
// the head.
func (t *Table) WriteState(ctx context.Context) error {
	s, err := t.txn.Refresh(ctx)
	if err != nil {
		return err
	}
	if s.Layout != nil && s.Domain.HasIntervals() {
		_, err = t.series.Coverage(ctx, s)
	}
	if s.Layout != nil {
		_, failed := t.series.Newest(ctx, s)
		err = errors.Join(err, failed)
	}
	if err != nil && tableerr.TokenOf(err) != tableerr.TokenUnsupported {
		return err
	}
	t.WaitForBackground() // which may have begun to write one
	return t.stateWriter.write(ctx, s, true)
}

// Spoil cuts an object of the table short.
func (t *Table) Spoil(ctx context.Context, key string) error {
	data, err := t.store.Get(ctx, key)
	if err != nil {
		return err
	}
	return t.store.Put(ctx, key, data[:len(data)/2])
}

// Store returns the table's store.
func (t *Table) Store() objstore.Store { return t.store }
