package datafile

import (
	"context"
	"errors"
	"fmt"
	"io"

	"contrail/tablecore/tableerr"
)

// corrupt reports that the file at path does not hold what it should.
func corrupt(path, format string, args ...any) error {
	return &tableerr.Corrupt{Path: path, Msg: fmt.Sprintf(format, args...)}
}

// sourceError is an error of the object store below, which says nothing about
// the file's content and so must not become a *tableerr.Corrupt.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

// damaged turns an error met while decoding the file at path into a
// *tableerr.Corrupt. Errors of the store and of the context stay what they are.
func damaged(path string, err error) error {
	var known *tableerr.Corrupt
	var below *sourceError
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.As(err, &below):
		return fmt.Errorf("reading %q: %w", path, below.err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return &tableerr.Corrupt{Path: path, Msg: err.Error(), Cause: err}
}

// recovered turns a panic of a decoder into a *tableerr.Corrupt; it is deferred
// by every function that hands a file's bytes to arrow-go.
func recovered(path string, err *error) {
	if p := recover(); p != nil {
		*err = corrupt(path, "decoding failed: %v", p)
	}
}

// exactSource reads an object, marks the store's own errors and makes reading
// past the end an unexpected end of file.
type exactSource struct{ src Source }

func (s exactSource) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > s.src.Size() || int64(len(p)) > s.src.Size()-off {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := s.src.ReadAt(p, off)
	if n == len(p) {
		return n, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, &sourceError{err}
}
