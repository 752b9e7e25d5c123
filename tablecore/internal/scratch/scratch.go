// Package scratch makes files for what does not fit into memory.
//
// A scratch file has no name, or loses it before anything is written to it, so
// nobody else sees it, and it is gone when it is closed or when its process
// ends, however that ends: nothing is left for anybody to sweep. It is neither
// durable nor shared.
package scratch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"contrail/tablecore/objstore"
)

// File is a scratch file. Write appends to it and is for one goroutine; ReadAt
// may be called by several at once. Closing it gives its space back; it must
// not be used after that.
type File interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

// Space is where scratch files are made.
type Space interface {
	// Create makes an empty file. objstore.ErrNoSpace where there is no room for
	// it, or, from File.Write, for its content.
	Create() (File, error)
}

// Dir is a Space in a local directory, which is made when it is needed. It may
// be used by several goroutines and processes at once.
type Dir string

// Create implements Space.
func (d Dir) Create() (File, error) {
	f, err := d.create()
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(string(d), 0o700); err == nil {
			f, err = d.create()
		}
	}
	if err != nil {
		return nil, explain(err)
	}
	return file{f}, nil
}

// named makes a file and takes its name away. Between the two steps a process
// that is killed leaves an empty file.
func (d Dir) named() (*os.File, error) {
	f, err := os.CreateTemp(string(d), "contrail-scratch-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// file gives a full disk the error of the store. It has no other methods of
// os.File, which would go past that.
type file struct{ f *os.File }

func (f file) Write(p []byte) (int, error) {
	n, err := f.f.Write(p)
	return n, explain(err)
}

// ReadAt returns io.EOF as it is, like os.File.
func (f file) ReadAt(p []byte, at int64) (int, error) { return f.f.ReadAt(p, at) }

func (f file) Close() error { return f.f.Close() }

// explain marks the errors that say that a disk or a quota is full.
func explain(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("scratch space: %w (%w)", objstore.ErrNoSpace, err)
	}
	if err != nil {
		return fmt.Errorf("scratch space: %w", err)
	}
	return nil
}
