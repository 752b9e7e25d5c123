package localfs

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// errTwice says that a call which must refuse a name that is taken has not.
var errTwice = errors.New("a name that was taken could be given again")

// probe finds out by which call a name can be given here only if it is free, and tries that it is refused when taken.
// That the store cannot be written at present, for want of space or of permission, is not for it to say.
func (s *Store) probe() error {
	temps, err := s.temps.get(s)
	if err != nil {
		return nil
	}
	ops := &s.family.ops
	linkErr := s.try(ops.link, temps)
	if !noPublish(linkErr) {
		return nil
	}
	s.family.renames.Store(true)
	if err := s.try(ops.renameNew, temps); noPublish(err) {
		return fmt.Errorf("open store: %w: %w", errNoPublish, errors.Join(linkErr, err))
	}
	return nil
}

// noPublish reports whether err, of link or of a rename, says that the file system does not have it. EPERM is what file
// systems without links answer, EINVAL those without RENAME_NOREPLACE.
func noPublish(err error) bool {
	return unsupported(err) || errors.Is(err, errTwice) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL)
}

// try gives a temporary file a name that is taken and then one that is free.
func (s *Store) try(call func(*os.File, string, *os.File, string) error, temps *os.File) error {
	ops := &s.family.ops
	names := [2]string{s.family.unique + "-probe", s.family.unique + "-probed"}
	defer func() {
		for _, name := range names {
			_ = ops.unlink(temps, name) // whichever is there
		}
	}()
	for _, name := range names {
		f, err := ops.create(temps, name)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	switch err := call(temps, names[0], temps, names[1]); {
	case err == nil:
		return errTwice
	case !errors.Is(err, syscall.EEXIST):
		return err
	}
	if err := ops.unlink(temps, names[1]); err != nil {
		return err
	}
	return call(temps, names[0], temps, names[1])
}
