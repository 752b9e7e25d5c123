package snapshot

import (
	"contrail/tablecore/internal/deltalog"
)

// Change is what a commit does to the rows of a table.
type Change uint8

// The changes.
const (
	// NoRow: no row is added, removed or changed (optimize, add_columns,
	// set_properties, upkeep).
	NoRow Change = iota
	// AddedRows: there are new rows and nothing else (append).
	AddedRows
	// ChangedRows: rows were changed, removed or brought back (update, overwrite,
	// retention, rollback).
	ChangedRows
)

// restore is what Delta calls a rollback. One to a later version may add files
// only, and yet appends no row.
const restore = "RESTORE"

// ChangeOf returns what a commit does to the rows, by Delta's own rules: an
// action without dataChange only moves them. For AddedRows the files that hold
// them come with it.
func ChangeOf(c *deltalog.Commit) (Change, []*deltalog.Add) {
	if c.Info != nil && c.Info.Operation == restore && len(c.Adds)+len(c.Removes) > 0 {
		return ChangedRows, nil // the rows that it adds are no new ones
	}
	for _, r := range c.Removes {
		if r.DataChange {
			return ChangedRows, nil
		}
	}
	var added []*deltalog.Add
	for _, a := range c.Adds {
		if a.DataChange {
			added = append(added, a)
		}
	}
	if len(added) == 0 {
		return NoRow, nil
	}
	return AddedRows, added
}

// Only returns a snapshot of the same version that has no other files than
// these, in this order. They need not be live.
func (s *Snapshot) Only(files []*deltalog.Add) (*Snapshot, error) {
	c := *s
	c.Files, c.spans, c.room, c.Rows, c.Bytes = nil, nil, nil, 0, 0
	return &c, c.add(files)
}
