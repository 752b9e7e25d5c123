package tableerr

import "fmt"

// FileMissing reports a file that the log names and the store lacks.
type FileMissing struct {
	About
	Path    string
	Version int64
	Cause   error
}

func (e *FileMissing) Error() string { return e.Text() }

// Unwrap returns the cause.
func (e *FileMissing) Unwrap() error { return e.Cause }

// Token implements Error.
func (e *FileMissing) Token() Token { return TokenFileMissing }

// Text implements Error.
func (e *FileMissing) Text() string {
	return fmt.Sprintf("file %q of version %d of %s is missing", e.Path, e.Version, e.object())
}

// Fields implements Error.
func (e *FileMissing) Fields() []Field {
	return e.fields(Field{"path", e.Path}, Field{"version", e.Version})
}

// Corrupt reports a damaged file.
type Corrupt struct {
	About
	Path  string // relative to the table
	Msg   string
	Cause error
}

func (e *Corrupt) Error() string { return e.Text() }

// Unwrap returns the cause.
func (e *Corrupt) Unwrap() error { return e.Cause }

// Token implements Error.
func (e *Corrupt) Token() Token { return TokenCorrupt }

// Text implements Error.
func (e *Corrupt) Text() string {
	why := e.Msg
	if why == "" && e.Cause != nil {
		why = e.Cause.Error()
	}
	return fmt.Sprintf("file %q of %s is damaged: %s", e.Path, e.object(), why)
}

// Fields implements Error.
func (e *Corrupt) Fields() []Field { return e.fields(Field{"path", e.Path}) }

// StorageFull reports a store without room. The table stays readable.
type StorageFull struct {
	About
	Cause error
}

func (e *StorageFull) Error() string { return e.Text() }

// Unwrap returns the cause.
func (e *StorageFull) Unwrap() error { return e.Cause }

// Token implements Error.
func (e *StorageFull) Token() Token { return TokenStorageFull }

// Text implements Error.
func (e *StorageFull) Text() string {
	return "the store has no room left; nothing was stored, free space and repeat"
}

// Fields implements Error.
func (e *StorageFull) Fields() []Field { return e.fields() }

// StoreUnavailable reports a store that failed in a way that makes repeating
// safe.
type StoreUnavailable struct {
	About
	Cause error
}

func (e *StoreUnavailable) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %v", e.Text(), e.Cause)
	}
	return e.Text()
}

// Unwrap returns the cause.
func (e *StoreUnavailable) Unwrap() error { return e.Cause }

// Token implements Error.
func (e *StoreUnavailable) Token() Token { return TokenStoreUnavailable }

// Text implements Error.
func (e *StoreUnavailable) Text() string {
	return "the store did not do what was asked; repeating is safe"
}

// Fields implements Error.
func (e *StoreUnavailable) Fields() []Field { return e.fields() }
