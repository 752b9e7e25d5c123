// Package convert turns the Arrow arrays of clients into the types a table
// declares, declared types into the types that lie in Parquet, and these back
// into what a reader is given.
//
// Four forms of one column meet here. A stream brings it in some type that
// [Aligner] accepts; the declared type is the table's own and the authority;
// the storage type (tabledef.StorageType) is what every engine reads right; the
// compat type ([Compat]) is the plain one most clients get. [ToStorage] and
// [FromStorage] are inverse to each other, value for value.
//
// Streams are untrusted: arrays whose buffers do not hold what their type
// demands end in a *tableerr.Invalid naming the column, never in a panic.
// Conversions borrow their argument and return a new reference, which the
// caller releases; where nothing has to change that is the argument itself.
package convert
