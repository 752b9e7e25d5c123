package objstore

import (
	"errors"
	"fmt"
)

// The sentinel errors of every driver, to be found by errors.Is.
var (
	// ErrNotExist says that there is no object, or no directory, of that name.
	ErrNotExist = errors.New("object does not exist")
	// ErrExist says that the name is taken.
	ErrExist = errors.New("object exists")
	// ErrNoSpace says that the store, or the quota in it, is full. There was no effect.
	ErrNoSpace = errors.New("no space left in the store")
	// ErrOutside says that the name leads out of the store, through a symbolic
	// link.
	ErrOutside = errors.New("a symbolic link leads out of the store")
	// ErrTooLarge says that an object is larger than MaxGetBytes.
	ErrTooLarge = errors.New("object is too large to be read at once")
)

// UnknownOutcomeError says that a write may or may not have had its effect: it failed after the step that publishes, or
// the answer was lost. What is there must be read again before anything else is done, and nothing deleted before.
// It never matches the sentinel errors of this package.
type UnknownOutcomeError struct {
	// Key is the object, or the directory, whose state is not known.
	Key string
	// Err is what went wrong.
	Err error
}

func (e *UnknownOutcomeError) Error() string {
	return fmt.Sprintf("outcome of writing %s is unknown: %v", quote(e.Key), e.Err)
}

// Unwrap returns the cause.
func (e *UnknownOutcomeError) Unwrap() error { return e.Err }

// KeyError says that a key, a prefix or a directory name is not one this package allows.
type KeyError struct {
	// Key is the name as it was given.
	Key string
	// Reason says what is wrong with it.
	Reason string
}

func (e *KeyError) Error() string { return fmt.Sprintf("invalid key %s: %s", quote(e.Key), e.Reason) }

// quote prints a key; one that somebody made very long is cut.
func quote(key string) string {
	const most = 200
	if len(key) > most {
		return fmt.Sprintf("%q… (%d bytes)", key[:most], len(key))
	}
	return fmt.Sprintf("%q", key)
}

// OpError says which operation failed on which key. Drivers return it for everything but context errors, KeyErrors and
// UnknownOutcomeErrors.
type OpError struct {
	Op  Op
	Key string
	Err error
}

func (e *OpError) Error() string { return fmt.Sprintf("%s %s: %v", e.Op, quote(e.Key), e.Err) }

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }
