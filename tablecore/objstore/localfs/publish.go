package localfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"contrail/tablecore/objstore"
)

// Put implements [objstore.Store].
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	_, err := s.putAll(ctx, objstore.OpPut, []objstore.Object{{Key: key, Data: data}})
	return err
}

// PutIfAbsent implements [objstore.Store].
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	_, err := s.putAll(ctx, objstore.OpPutIfAbsent, []objstore.Object{{Key: key, Data: data}})
	return err
}

// maxBatch bounds how many files one call has open.
const maxBatch = 128

// PutAllIfAbsent implements [objstore.Store].
func (s *Store) PutAllIfAbsent(ctx context.Context, objects []objstore.Object) (int, error) {
	landed := 0
	for landed < len(objects) {
		batch := objects[landed:min(landed+maxBatch, len(objects))]
		n, err := s.putAll(ctx, objstore.OpPutAllIfAbsent, batch)
		landed += n
		if err != nil {
			return landed, err
		}
	}
	return landed, nil
}

// putAll writes objects and publishes them in order.
func (s *Store) putAll(ctx context.Context, op objstore.Op, objects []objstore.Object) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	drafts, failed := s.fillAll(objects)
	defer removeAll(drafts)
	n, err := s.publish(ctx, drafts, op == objstore.OpPut)
	if err == nil {
		err = failed
	}
	if err != nil {
		return n, wrap(op, objects[n].Key, err)
	}
	return n, nil
}

// wrap adds operation and key to an error that does not say them itself.
func wrap(op objstore.Op, key string, err error) error {
	var (
		unknown *objstore.UnknownOutcomeError
		badKey  *objstore.KeyError
	)
	if errors.As(err, &unknown) || errors.As(err, &badKey) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &objstore.OpError{Op: op, Key: key, Err: kind(err)}
}

// publish gives durable drafts their names, in order, and makes the names durable. It returns how many landed, as
// PutAllIfAbsent does. Directories are opened by their names each time, for one may have been moved away.
func (s *Store) publish(ctx context.Context, drafts []*draft, replace bool) (int, error) {
	dirs := make(map[string]*os.File)
	defer closeDirs(dirs)
	landed := 0
	var failed error
	for _, d := range drafts {
		if failed = ctx.Err(); failed != nil {
			break
		}
		if failed = d.land(dirs, replace); failed != nil {
			break
		}
		landed++
	}
	synced := make(map[string]bool)
	for i, d := range drafts[:landed] {
		if synced[d.dir] {
			continue
		}
		if err := s.family.ops.sync(dirs[d.dir]); err != nil {
			return i, &objstore.UnknownOutcomeError{Key: d.key, Err: err}
		}
		synced[d.dir] = true
	}
	return landed, failed
}

// land gives a draft its name in its directory, which it takes from dirs or opens.
func (d *draft) land(dirs map[string]*os.File, replace bool) error {
	for again := true; ; again = false {
		dir, err := d.store.openOnce(dirs, d.dir)
		if err == nil {
			err = d.name(dir, replace)
		}
		if !again || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// The directory was removed after it had been found; the one that takes its place must be durable first.
		if dir != nil {
			delete(dirs, d.dir)
			_ = dir.Close() // nothing was written through it
		}
		d.store.dirs.forget()
		if err := d.store.makeDurable(d.dir); err != nil {
			return err
		}
	}
}

// name gives the draft its name in the directory dir. An error that is not an *UnknownOutcomeError means that it does
// not have it.
func (d *draft) name(dir *os.File, replace bool) error {
	ops, renames := &d.store.family.ops, &d.store.family.renames
	var err error
	switch {
	case replace:
		err = ops.rename(d.temps, d.temp, dir, d.base)
	case renames.Load():
		err = ops.renameNew(d.temps, d.temp, dir, d.base)
	default:
		err = ops.link(d.temps, d.temp, dir, d.base)
		if unsupported(err) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EMLINK) {
			// EPERM is what file systems without links answer.
			if err = ops.renameNew(d.temps, d.temp, dir, d.base); err == nil {
				renames.Store(true)
			}
		}
	}
	if err == nil {
		return nil
	}
	return d.explain(dir, err)
}

// explain finds out what an error of link or rename means for the name.
func (d *draft) explain(dir *os.File, err error) error {
	if refused(err) && !errors.Is(err, syscall.EEXIST) {
		return err
	}
	st, statErr := statAt(dir, d.base)
	if errors.Is(statErr, fs.ErrNotExist) {
		return err // taken and free again, or never given
	}
	var same bool
	if statErr == nil {
		same, statErr = sameFile(d.file, &st)
	}
	switch {
	case statErr != nil:
		if errors.Is(err, syscall.EEXIST) {
			return err
		}
		return &objstore.UnknownOutcomeError{Key: d.key, Err: errors.Join(err, statErr)}
	case same:
		return nil // the call was done, although it said otherwise: a network file system asked twice
	case isDir(&st):
		return errIsDir
	}
	return err
}
