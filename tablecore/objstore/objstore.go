// Package objstore is the boundary between the table engine and the place where tables lie: a small object store of
// slash-separated keys with whole-object reads and writes, an exact put-if-absent, and directories that can be held
// open, moved away and swept.
//
// The package holds the interface, its errors and the rules for keys; drivers (localfs, memstore) and wrappers
// (meterstore, faultstore) live below it, and storetest is the suite that each of them passes.
//
// Three rules make commits safe and hold for every driver:
//
//   - An object appears whole or not at all, whatever happens to the process.
//   - When a write returns nil its effect survives a crash of the process and a loss of power.
//   - An error of a put, a commit or a move says whether the effect may have happened: a *[UnknownOutcomeError] means it
//     may have, any other error means that it has not. What else changes something (Delete, DeleteAll, DeleteTree, Sub
//     with create) can be repeated until it succeeds.
//
// A context that is done before the effect makes a call return the context's error without effect; once the effect has
// begun the context is not looked at again.
package objstore

import (
	"context"
	"io"
	"iter"
	"time"
)

// TempDir is the directory, below the root of every store and sub-store, where drivers keep their temporary files.
// [Store.List] leaves it out, and nothing can be written under it by key. What a killed process left there can be
// found by listing with the prefix TempDir + "/" and removed by [Store.Delete].
const TempDir = "_contrail/tmp"

// MaxGetBytes is the size of the largest object that [Store.Get] returns, 1 GiB. Larger ones are read through
// [Store.Open].
const MaxGetBytes = 1 << 30

// Info describes one object.
type Info struct {
	// Key is the object's key in the store that was asked.
	Key string
	// Size is its length in bytes.
	Size int64
	// Modified is when it was last written, by the clock of the driver.
	Modified time.Time
}

// Object is a key with the bytes to store under it.
type Object struct {
	Key  string
	Data []byte
	// Private objects are readable by the user of this process alone, where the driver knows users.
	Private bool
}

// Reader reads one object at random. It goes on giving the bytes the object had when it was opened, also after the
// object was replaced or deleted or its directory moved away. ReadAt may be called concurrently; Close may not run
// beside ReadAt.
type Reader interface {
	io.ReaderAt
	io.Closer
	// Size returns the object's length in bytes.
	Size() int64
}

// Writer streams a new object into a store. Nothing is visible before Commit. A Writer is not safe for concurrent use
// and must be ended by Commit or Abort.
type Writer interface {
	io.Writer
	// Commit makes what was written durable and then visible under the writer's key, as a whole, and returns its
	// length in bytes. ErrExist when the key is taken. Whatever Commit returns, the writer has ended: after an error
	// other than *UnknownOutcomeError nothing of it is left behind.
	Commit(ctx context.Context) (size int64, err error)
	// Abort throws away what was written. After Commit, or a second time, it does nothing.
	Abort() error
}

// Store is a flat set of objects under slash-separated keys ([CheckKey] has the rules), with the little knowledge of
// directories that a warehouse of tables needs. All methods are safe for concurrent use, also by several processes
// where the driver is shared by them. Byte slices that are handed in are not kept, those handed out belong to the
// caller.
type Store interface {
	// Get returns the whole object. ErrNotExist, ErrTooLarge.
	Get(ctx context.Context, key string) ([]byte, error)

	// Open opens an object for reading at random. The caller closes it. ErrNotExist.
	Open(ctx context.Context, key string) (Reader, error)

	// Put stores data under key, replacing what is there in one step: a reader sees the old bytes or the new ones.
	// ErrNoSpace, *UnknownOutcomeError.
	Put(ctx context.Context, key string, data []byte) error

	// PutIfAbsent stores data under key if nothing is there; of any number of racing calls, in any number of
	// processes, exactly one succeeds. ErrExist, ErrNoSpace, *UnknownOutcomeError.
	PutIfAbsent(ctx context.Context, key string, data []byte) error

	// PutAllIfAbsent stores several objects as PutIfAbsent does, in order, and shares their waits for the disk. It
	// returns how many landed: n = len(objects) with a nil error, else the object at n failed with the error, those
	// before it are durable and none behind it was put. With a *UnknownOutcomeError the object at n and those behind
	// it may have been put, each of them whole. A crash leaves the objects up to some point (on file systems that keep
	// the order of changes to one directory, which journalling ones do).
	PutAllIfAbsent(ctx context.Context, objects []Object) (n int, err error)

	// Create begins a new object whose key nobody else uses. The key is checked, and must be free, at Commit.
	Create(ctx context.Context, key string) (Writer, error)

	// Head describes an object without reading it. ErrNotExist.
	Head(ctx context.Context, key string) (Info, error)

	// List yields the objects whose keys begin with prefix ("" for all, a key, a key with a slash behind it) and are
	// greater than after (any string), in ascending byte order of their keys. It descends into directories and leaves
	// out temporary files (see [TempDir]) unless the prefix reaches into their directory, and what is no regular
	// object, such as symbolic links. Objects that come or go meanwhile may be seen or not. The sequence ends after the
	// first error.
	List(ctx context.Context, prefix, after string) iter.Seq2[Info, error]

	// ListDirs returns the names of the directories directly below the directory prefix ("" for the store's root), in
	// ascending order: those that hold an object at any depth, and those made by Sub. Whether a directory stays when
	// its last object has gone is up to the driver. A missing prefix has none.
	ListDirs(ctx context.Context, prefix string) ([]string, error)

	// Delete removes an object; a missing one is no error. The removal is durable at the latest with the next durable
	// write to the same directory.
	Delete(ctx context.Context, key string) error

	// DeleteAll removes objects as Delete does, one after the other in the given order, and shares the work. It returns
	// how many are gone: n = len(keys) with a nil error, else the object at n failed with the error and none behind it was
	// touched. A crash leaves the objects from some point on (on file systems that keep the order of changes to one
	// directory, which journalling ones do).
	DeleteAll(ctx context.Context, keys []string) (n int, err error)

	// Sub returns a store of the objects below the directory prefix, holding that directory itself and not its name:
	// it goes on working, reads and writes, when the directory is moved by Trash. Its keys are relative to the
	// directory. ErrNotExist when the directory is absent and create is false; with create, it and its parents are
	// made durable. The caller closes it, before this store. A path that leads out of this store is an error.
	Sub(ctx context.Context, prefix string, create bool) (Store, error)

	// Current reports whether the name by which Sub opened this store still leads to the directory that it holds. It
	// is true for a store that was not opened by Sub.
	Current(ctx context.Context) (bool, error)

	// Trash moves the directory prefix, with all that is in it, to the new name target in one atomic, durable step.
	// ErrNotExist when there is no such directory, ErrExist when the target is taken, *UnknownOutcomeError.
	Trash(ctx context.Context, prefix, target string) error

	// DeleteTree removes the directory prefix and all that is below it, not atomically; a missing one is no error.
	// Through a Sub that still holds it everything is ErrNotExist from then on, writes included.
	DeleteTree(ctx context.Context, prefix string) error

	// Close gives back what the store holds. Readers stay usable.
	Close() error
}
