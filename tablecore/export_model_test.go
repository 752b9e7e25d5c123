package tablecore

import "context"

// ID returns the identity of the table.
func (t *Table) ID() string { return t.txn.Current().Def.ID }

// WriteCheckpoint writes a checkpoint of the newest version now.
func (t *Table) WriteCheckpoint(ctx context.Context) error {
	_, err := t.Checkpoint(ctx, CheckpointOptions{})
	return err
}
