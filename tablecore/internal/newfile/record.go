package newfile

import (
	"errors"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
)

// Record is a data file that was written and will be committed later, maybe by
// another process. Its coverage and entity directory are in the file.
type Record struct {
	Path      string `json:"path"` // relative to the table
	Sidecar   string `json:"sidecar,omitempty"`
	Rows      int64  `json:"rows"`
	RowGroups int    `json:"row_groups"`
	Bytes     int64  `json:"bytes"`
	// MinIndex and MaxIndex are ordinals.
	MinIndex uint64 `json:"min_index"`
	MaxIndex uint64 `json:"max_index"`
	// The rest of the action that adds the file.
	Modified int64             `json:"modified"` // ms since the epoch
	Stats    string            `json:"stats"`
	Tags     map[string]string `json:"tags"`
}

// Record returns what has to be kept of a file.
func (f *File) Record() Record {
	return Record{Path: f.Path, Sidecar: f.sidecar, Rows: f.Rows, RowGroups: f.RowGroups, Bytes: f.Bytes, MinIndex: f.MinIndex, MaxIndex: f.MaxIndex,
		Modified: f.Add.ModificationTime, Stats: f.Add.Stats, Tags: f.Add.Tags}
}

// Check makes sure that a record is one of a file in the table's directory.
func (r *Record) Check() error {
	if path, err := deltalog.ResolvePath(deltalog.EncodePath(r.Path)); err != nil || path != r.Path {
		return errors.New("a data file lies outside the table")
	}
	if r.Sidecar != "" && r.Sidecar != derived.SidecarPath(r.Path) {
		return errors.New("derived data lies in another place than beside its data file")
	}
	if r.Rows < 1 || r.RowGroups < 1 || r.Bytes < 1 || r.MinIndex > r.MaxIndex || r.Tags == nil {
		return errors.New("a data file without rows")
	}
	return nil
}

// File returns the file of a record, its Index left empty.
func (r *Record) File() File {
	return File{Path: r.Path, Rows: r.Rows, RowGroups: r.RowGroups, Bytes: r.Bytes, MinIndex: r.MinIndex, MaxIndex: r.MaxIndex, sidecar: r.Sidecar,
		Add: &deltalog.Add{Path: deltalog.EncodePath(r.Path), Size: r.Bytes, ModificationTime: r.Modified, DataChange: true, Stats: r.Stats, Tags: r.Tags}}
}

// Keys are the keys of the file and of what lies beside it.
func (r *Record) Keys() []string {
	f := r.File()
	return f.Keys()
}
