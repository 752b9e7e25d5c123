// Package filecache opens data files and keeps what is worth keeping of them in
// memory: parsed footers, and the coverage and entity directory of each file.
//
// Both follow from a file that never changes and, the latter, from what the
// table's keys are, which undoing an adoption may change: they are cached by
// table identity and path, weighed in bytes, and used only under equal keys. Of
// several callers that miss at once, one loads.
package filecache

import (
	"context"
	"errors"
	"fmt"

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
}

type key struct{ table, path string }

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
	cache *Cache
	store objstore.Store
	mem   memory.Allocator
	// damaged is told why derived data had to be computed from the rows.
	damaged func(ctx context.Context, path, reason string)
}

// Files returns the data files of the table in store. Their rows are decoded to
// memory of mem, which need not be cleared.
func (c *Cache) Files(store objstore.Store, mem memory.Allocator, damaged func(ctx context.Context, path, reason string)) *Files {
	return &Files{cache: c, store: store, mem: mem, damaged: damaged}
}

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
	object, err := fs.store.Open(ctx, f.Path)
	if errors.Is(err, objstore.ErrNotExist) {
		return nil, &tableerr.FileMissing{Path: f.Path, Version: s.Version(), Cause: err}
	}
	if err != nil {
		return nil, fmt.Errorf("opening data file: %w", err)
	}
	// Others may wait for this load: it does not end with this caller.
	footer, err := fs.cache.footers.Get(context.WithoutCancel(ctx), key{s.Def.ID, f.Path}, otter.LoaderFunc[key, *datafile.Footer](
		func(ctx context.Context, k key) (*datafile.Footer, error) {
			return datafile.ParseFooter(ctx, object, k.path)
		}))
	if err != nil {
		return nil, errors.Join(err, object.Close())
	}
	return &File{datafile.Open(object, footer, f.Path, fs.mem), object}, nil
}

// RowGroups describes the row groups of a data file.
func (fs *Files) RowGroups(ctx context.Context, s *snapshot.Snapshot, f *snapshot.File) ([]datafile.RowGroup, error) {
	if footer, ok := fs.cache.footers.GetIfPresent(key{s.Def.ID, f.Path}); ok {
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
	k := key{s.Def.ID, f.Path}
	load := func(ctx context.Context, _ key) (index, error) {
		x, err := fs.load(ctx, s, f)
		return index{x, s.Def}, err
	}
	x, err := fs.cache.indexes.Get(context.WithoutCancel(ctx), k, otter.LoaderFunc[key, index](load))
	if err == nil && !x.def.SameKeys(s.Def) {
		if x, err = load(ctx, k); err == nil {
			fs.cache.indexes.Set(k, x)
		}
	}
	return x.FileIndex, err
}

func (fs *Files) load(ctx context.Context, s *snapshot.Snapshot, f *snapshot.File) (*derived.FileIndex, error) {
	file, err := fs.Open(ctx, s, f)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	x, err := derived.Load(ctx, fs.store, file.File, f.Path, s.Def, func(reason string) { fs.damaged(ctx, f.Path, reason) })
	if err != nil {
		return nil, err
	}
	return &x, nil
}

// Keep stores what a writer of this process already knows of a file it has
// just published, by the keys of def.
func (fs *Files) Keep(def *tabledef.Definition, path string, x *derived.FileIndex) {
	fs.cache.indexes.Set(key{def.ID, path}, index{x, def})
}
