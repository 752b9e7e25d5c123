// Package filecache opens data files and keeps what is worth keeping of them in
// memory: parsed footers, and the coverage and entity directory of each file.
//
// Both follow from a file that never changes and, the latter, from what the
// table's keys are, which undoing an adoption may change: they are cached by
// handle, table identity and path (copies of a table share an identity, and one
// of them may be damaged), weighed in bytes, and used only under equal keys. Of
// several callers that miss at once, one loads.
package filecache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/maypok86/otter/v2"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// Limits of what is kept, in bytes.
const (
	footerBytes = 64 << 20
	indexBytes  = 192 << 20
)

// Cache is shared by all tables of a warehouse.
type Cache struct {
	footers *otter.Cache[key, *datafile.Footer]
	indexes *otter.Cache[key, index]
	handles atomic.Uint64
}

type key struct {
	handle      uint64
	table, path string
}

// index is what is known of a file under a definition's keys.
type index struct {
	*derived.FileIndex
	def *tabledef.Definition
}

// New returns an empty cache.
func New() *Cache {
	return &Cache{
		footers: otter.Must(&otter.Options[key, *datafile.Footer]{MaximumWeight: footerBytes,
			Weigher: func(k key, f *datafile.Footer) uint32 { return weight(k, f.Bytes()) }}),
		indexes: otter.Must(&otter.Options[key, index]{MaximumWeight: indexBytes,
			Weigher: func(k key, x index) uint32 { return weight(k, x.Bytes()) }}),
	}
}

func weight(k key, n int64) uint32 { return uint32(min(n, 1<<30)) + uint32(len(k.path)) + 128 }

// Files are the data files of one table.
type Files struct {
	cache  *Cache
	handle uint64
	store  objstore.Store
	mem    memory.Allocator
	// damaged is told why derived data had to be computed from the rows.
	damaged func(ctx context.Context, path, reason string)
}

// Files returns the data files of the table in store. Their rows are decoded to
// memory of mem, which need not be cleared.
func (c *Cache) Files(store objstore.Store, mem memory.Allocator, damaged func(ctx context.Context, path, reason string)) *Files {
	return &Files{cache: c, handle: c.handles.Add(1), store: store, mem: mem, damaged: damaged}
}

func (fs *Files) key(table, path string) key { return key{fs.handle, table, path} }

// Allocator is where the rows of the files are decoded to.
func (fs *Files) Allocator() memory.Allocator { return fs.mem }

// File is an open data file.
type File struct {
	*datafile.File
	object objstore.Reader
}

// Close gives the file back.
func (f *File) Close() error { return f.object.Close() }

// Open opens a data file of a snapshot. FILE_MISSING when the store lacks it,
// CORRUPT when its footer is damaged. The caller closes it.
func (fs *Files) Open(ctx context.Context, s *snapshot.Snapshot, f *snapshot.File) (*File, error) {
	return fs.open(ctx, s.Def.ID, s.Version(), f.Path)
}

func (fs *Files) open(ctx context.Context, table string, version int64, path string) (*File, error) {
	object, err := fs.store.Open(ctx, path)
	if errors.Is(err, objstore.ErrNotExist) {
		return nil, &tableerr.FileMissing{Path: path, Version: version, Cause: err}
	}
	if errors.Is(err, objstore.ErrOutside) {
		return nil, &tableerr.Unsupported{Path: path}
	}
	if err != nil {
		return nil, fmt.Errorf("opening data file: %w", err)
	}
	// Others may wait for this load: it does not end with this caller.
	footer, err := fs.cache.footers.Get(context.WithoutCancel(ctx), fs.key(table, path), otter.LoaderFunc[key, *datafile.Footer](
		func(ctx context.Context, k key) (*datafile.Footer, error) {
			return datafile.ParseFooter(ctx, object, k.path)
		}))
	if err != nil {
		return nil, errors.Join(err, object.Close())
	}
	return &File{datafile.Open(object, footer, path, fs.mem), object}, nil
}

// RowGroups describes the row groups of a data file.
func (fs *Files) RowGroups(ctx context.Context, s *snapshot.Snapshot, f *snapshot.File) ([]datafile.RowGroup, error) {
	if footer, ok := fs.cache.footers.GetIfPresent(fs.key(s.Def.ID, f.Path)); ok {
		return footer.RowGroups(), nil
	}
	file, err := fs.Open(ctx, s, f)
	if err != nil {
		return nil, err
	}
	return file.RowGroups(), file.Close()
}

// Index returns the coverage and entity directory of a data file. What is
// damaged, missing or written by another software is computed from the rows.
func (fs *Files) Index(ctx context.Context, s *snapshot.Snapshot, f *snapshot.File) (*derived.FileIndex, error) {
	return fs.IndexOf(ctx, s.Def, s.Version(), f.Path)
}

// IndexOf is Index for a file of a table with a given definition. A missing one
// is told with the version.
func (fs *Files) IndexOf(ctx context.Context, def *tabledef.Definition, version int64, path string) (*derived.FileIndex, error) {
	k := fs.key(def.ID, path)
	load := func(ctx context.Context, _ key) (index, error) {
		x, err := fs.load(ctx, def, version, path)
		return index{x, def}, err
	}
	x, err := fs.cache.indexes.Get(context.WithoutCancel(ctx), k, otter.LoaderFunc[key, index](load))
	if err == nil && !x.def.SameKeys(def) {
		if x, err = load(ctx, k); err == nil {
			fs.cache.indexes.Set(k, x)
		}
	}
	return x.FileIndex, err
}

func (fs *Files) load(ctx context.Context, def *tabledef.Definition, version int64, path string) (*derived.FileIndex, error) {
	file, err := fs.open(ctx, def.ID, version, path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	x, err := derived.Load(ctx, fs.store, file.File, path, def, func(reason string) { fs.damaged(ctx, path, reason) })
	if err != nil {
		return nil, err
	}
	return &x, nil
}

// Keep stores what a writer of this process already knows of a file it has
// just published, by the keys of def.
func (fs *Files) Keep(def *tabledef.Definition, path string, x *derived.FileIndex) {
	fs.cache.indexes.Set(fs.key(def.ID, path), index{x, def})
}

// Derived says whether the coverage and entity directory of a data file are
// stored and right.
func (fs *Files) Derived(ctx context.Context, s *snapshot.Snapshot, f *snapshot.File) (bool, error) {
	file, err := fs.Open(ctx, s, f)
	if err != nil {
		return false, err
	}
	defer file.Close()
	_, why, err := derived.Stored(ctx, fs.store, file.File, f.Path, s.Def)
	return err == nil && why == "", err
}

// Derive stores the coverage and entity directory of a data file beside it.
func (fs *Files) Derive(ctx context.Context, s *snapshot.Snapshot, f *snapshot.File) error {
	index, err := fs.Index(ctx, s, f)
	if err != nil {
		return err
	}
	file, err := fs.Open(ctx, s, f)
	if err != nil {
		return err
	}
	defer file.Close()
	data, err := derived.Beside(s.Def, *index, file.Size())
	if err != nil {
		return err
	}
	if err := fs.store.Put(ctx, derived.SidecarPath(f.Path), data); err != nil {
		return fmt.Errorf("writing derived data of %q: %w", f.Path, err)
	}
	return nil
}
