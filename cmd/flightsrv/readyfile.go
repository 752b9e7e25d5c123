package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// writeReadyFile puts the address into the file in one step, so that who waits
// for the file never reads a part of it.
func writeReadyFile(path, address string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write the ready file: %w", err)
		}
	}()
	draft, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = draft.WriteString(address + "\n")
	err = errors.Join(err, draft.Chmod(0o644), draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return nil
}

// removeReadyFile removes the file of this run, or of one that was killed.
func removeReadyFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the ready file: %w", err)
	}
	return nil
}
