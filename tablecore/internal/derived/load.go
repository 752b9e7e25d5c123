package derived

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/internal/interval"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
)

// maxSidecar bounds the size of a sidecar that is read.
const maxSidecar = 1 << 30

// Load returns the index of a data file: from its footer, from the sidecar
// beside it, or, where either is missing, damaged or not of this very file and
// table, from its rows; recomputed is told why then. path is the file's path
// relative to the table in store. The table must have a schema and an index
// column.
//
// A key column that is missing or null is *tableerr.Corrupt, as is a damaged
// data file; errors of the store and of the context are returned as they are.
func Load(ctx context.Context, store objstore.Store, file *datafile.File, path string, def *tabledef.Definition, recomputed func(reason string)) (FileIndex, error) {
	x, why, err := Stored(ctx, store, file, path, def)
	if err != nil || why == "" {
		return x, err
	}
	if recomputed != nil {
		recomputed(why)
	}
	layout, err := entitykey.LayoutOf(def)
	if err != nil {
		return FileIndex{}, err
	}
	domain, err := interval.New(def.IndexType, def.IndexUnit(), def.Granularity)
	if err != nil {
		return FileIndex{}, err
	}
	return recompute(ctx, file, path, def, layout, domain)
}

// Stored returns the index of a data file as Load does, but only the stored one:
// why says what is wrong with it where it is of no use.
func Stored(ctx context.Context, store objstore.Store, file *datafile.File, path string, def *tabledef.Definition) (x FileIndex, why string, err error) {
	layout, err := entitykey.LayoutOf(def)
	if err != nil {
		return FileIndex{}, "", err
	}
	domain, err := interval.New(def.IndexType, def.IndexUnit(), def.Granularity)
	if err != nil {
		return FileIndex{}, "", err
	}
	l := loader{store: store, file: file, path: path, layout: layout, domain: domain, origin: originOf(def, file.Rows())}
	return l.stored(ctx)
}

// loader reads the stored index of one file.
type loader struct {
	store  objstore.Store
	file   *datafile.File
	path   string
	layout *entitykey.Layout
	domain interval.Domain
	origin origin

	sidecar []byte
	read    bool // sidecar was read
}

// stored returns the stored index; why says what is wrong with it.
func (l *loader) stored(ctx context.Context) (x FileIndex, why string, err error) {
	x.Rows = l.file.Rows()
	payload, why, err := l.payload(ctx, kindEntities)
	if err != nil || why != "" {
		return x, why, err
	}
	var ok bool
	if x.Directory, ok = readDirectory(payload, x.Rows); !ok || !l.plausible(x.Directory) {
		return x, KeyEntities + " is damaged", nil
	}
	if !l.domain.HasIntervals() {
		return x, "", nil
	}
	if payload, why, err = l.payload(ctx, kindCoverage); err != nil || why != "" {
		return x, why, err
	}
	if x.Coverage, err = coverage.Decode(payload); err != nil || !l.agrees(x) {
		return x, KeyCoverage + " is damaged", nil
	}
	return x, "", nil
}

// payload returns the payload of a block, wherever it lies: the footer's first,
// which cannot be mended, and the sidecar's where that one is of no use.
func (l *loader) payload(ctx context.Context, k kind) (payload []byte, why string, err error) {
	if payload, why = l.inFooter(k); why == "" {
		return payload, "", nil
	}
	if err := l.readSidecar(ctx); err != nil {
		return nil, "", err
	}
	block := sidecarBlock(l.sidecar, k)
	if block == nil {
		return nil, why, nil
	}
	want := l.origin
	want.size = l.file.Size()
	if payload, why = openBlock(block, k, want); why != "" {
		return nil, k.key() + " is " + why, nil
	}
	return payload, "", nil
}

// inFooter returns the payload of a block in the file's own footer; why says what
// is wrong with it.
func (l *loader) inFooter(k kind) (payload []byte, why string) {
	text, ok := l.file.Meta(k.key())
	if !ok {
		return nil, k.key() + " is missing"
	}
	block, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, k.key() + " is damaged"
	}
	if payload, why = openBlock(block, k, l.origin); why != "" {
		return nil, k.key() + " is " + why
	}
	return payload, ""
}

// readSidecar reads the sidecar once; a missing or oversized one is empty.
func (l *loader) readSidecar(ctx context.Context) error {
	if l.read {
		return nil
	}
	l.read = true
	r, err := l.store.Open(ctx, SidecarPath(l.path))
	if errors.Is(err, objstore.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening derived data of %q: %w", l.path, err)
	}
	defer r.Close()
	if r.Size() > maxSidecar {
		return nil
	}
	data := make([]byte, r.Size())
	if _, err := r.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading derived data of %q: %w", l.path, err)
	}
	l.sidecar = data
	return nil
}

// plausible says whether a directory's keys are keys of this table.
func (l *loader) plausible(d Directory) bool {
	for i := range d {
		if !l.layout.Valid(d[i].Key) {
			return false
		}
	}
	return true
}

// agrees says whether a file's coverage is one that its directory allows: both
// were made from the same rows.
func (l *loader) agrees(x FileIndex) bool {
	c := x.Coverage
	if !x.Sorted() {
		for i := range c.Entities() {
			if !l.layout.Valid(c.Key(i)) || c.First(i) < l.domain.MinID() || c.Last(i) > l.domain.MaxID() {
				return false
			}
		}
		return (c.Entities() > 0) == (x.Rows > 0)
	}
	if c.Entities() != len(x.Directory) {
		return false
	}
	for i, r := range x.Directory {
		if c.Key(i) != r.Key || c.First(i) != l.domain.ID(r.First) || c.Last(i) != l.domain.ID(r.Last) {
			return false
		}
	}
	return true
}
