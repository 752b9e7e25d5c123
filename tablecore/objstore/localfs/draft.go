package localfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"contrail/tablecore/objstore"
)

// startBytes is how much of a long file is left to the last fsync: the disk is asked to write the rest while it comes.
const startBytes = 8 << 20

// draft is a file in the directory of temporary files on its way to becoming an object.
type draft struct {
	store     *Store
	key       string
	dir, base string   // the key's directory and last part
	temps     *os.File // the directory of temporary files
	temp      string   // the file's name in it
	file      *os.File
	size      int64
	started   int64    // how much of it the disk was asked to write
	unsettled []string // directories on the way to key that are not known to be durable
}

// newDraft makes the directories of a checked key and an empty temporary file.
func (s *Store) newDraft(key string) (*draft, error) {
	d := &draft{store: s, key: key}
	d.dir, d.base = split(key)
	var err error
	if d.unsettled, err = s.makeDir(d.dir); err != nil {
		return nil, err
	}
	err = d.create()
	if errors.Is(err, fs.ErrNotExist) {
		// Somebody has removed the directory; or the whole store, and then it fails again.
		s.dirs.forget()
		s.temps.drop(d.temps)
		err = d.create()
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// maxNames is how many names for a temporary file are tried.
const maxNames = 10_000

// create makes the temporary file. A name is taken only when the random bytes of this process are those of another one,
// as in a test that gives them itself.
func (d *draft) create() (err error) {
	family := d.store.family
	if d.temps, err = d.store.temps.get(d.store); err != nil {
		return err
	}
	for range maxNames {
		d.temp = fmt.Sprintf("%s-%d", family.unique, family.next.Add(1))
		d.file, err = family.ops.create(d.temps, d.temp)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return errNoName
}

// Write implements io.Writer.
func (d *draft) Write(p []byte) (int, error) {
	n, err := d.store.family.ops.write(d.file, p)
	d.size += int64(n)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if d.size-d.started >= startBytes {
		d.store.family.ops.start(d.file, d.started)
		d.started = d.size
	}
	return n, err
}

// harden makes the content and the directories durable, side by side where there are both: a file system's journal takes
// them in one go.
func (d *draft) harden() error {
	if len(d.unsettled) == 0 {
		return d.store.family.ops.sync(d.file)
	}
	settled := make(chan error, 1)
	go func() { settled <- d.settle() }()
	err := d.store.family.ops.sync(d.file)
	return errors.Join(err, <-settled)
}

// settle makes the directories on the way to the key durable, again if they were removed since they were made.
func (d *draft) settle() error {
	err := d.store.settle(d.unsettled)
	if errors.Is(err, fs.ErrNotExist) {
		d.store.dirs.forget()
		err = d.store.makeDurable(d.dir)
	}
	return err
}

// remove closes the file and takes its temporary name away. A name that stays does no harm: nothing refers to it, and
// vacuum sweeps it.
func (d *draft) remove() error {
	err := d.store.family.ops.unlink(d.temps, d.temp)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // renamed
	}
	return errors.Join(err, d.file.Close())
}

// privateMode is that of objects for the user of this process alone.
const privateMode = 0o600

// fill makes a draft of one object, not yet durable.
func (s *Store) fill(o objstore.Object) (*draft, error) {
	if err := objstore.CheckWritable(o.Key); err != nil {
		return nil, err
	}
	d, err := s.newDraft(o.Key)
	if err != nil {
		return nil, err
	}
	if o.Private {
		err = d.file.Chmod(privateMode)
	}
	if err == nil {
		_, err = d.Write(o.Data)
	}
	if err != nil {
		return nil, errors.Join(err, d.remove())
	}
	return d, nil
}

// fillAll makes durable drafts of objects. It returns those before the first one that failed, with the error of that
// one.
func (s *Store) fillAll(objects []objstore.Object) ([]*draft, error) {
	drafts := make([]*draft, 0, len(objects))
	var failed error
	for _, o := range objects {
		d, err := s.fill(o)
		if err != nil {
			failed = err
			break
		}
		if len(objects) > 1 {
			// The disk gets all of them to do before the first wait: a quarter less time for 16 small files.
			s.family.ops.start(d.file, 0)
		}
		drafts = append(drafts, d)
	}
	for i, err := range hardenAll(drafts) {
		if err != nil {
			removeAll(drafts[i:])
			return drafts[:i], err
		}
	}
	return drafts, failed
}

// maxSyncs bounds how many files of one call are fsynced, or let go, side by side.
const maxSyncs = 16

// hardenAll hardens drafts side by side and returns the error of each.
func hardenAll(drafts []*draft) []error {
	errs := make([]error, len(drafts))
	if len(drafts) == 1 {
		errs[0] = drafts[0].harden()
		return errs
	}
	sideBySide(len(drafts), func(i int) { errs[i] = drafts[i].harden() })
	return errs
}

// sideBySide calls do for each number below n, at most maxSyncs at once.
func sideBySide(n int, do func(i int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(maxSyncs, n) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	workers.Wait()
}

// removeAll removes drafts; what cannot be removed is left to vacuum (see remove).
func removeAll(drafts []*draft) {
	for _, d := range drafts {
		_ = d.remove()
	}
}
