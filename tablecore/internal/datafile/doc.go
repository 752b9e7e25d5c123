// Package datafile writes and reads the Parquet files of a table. It is the
// only package that knows Parquet; everything above it speaks Arrow batches
// whose columns have storage types (the types of tabledef.StorageType).
//
// A [Writer] turns batches into one file with encodings that Spark, DuckDB,
// Polars and parquet-rs all read, bounded row groups and a page index. A
// [Footer] is the parsed, immutable description of a file and may be cached;
// a [File] joins a footer with an open object and reads chosen columns of
// chosen row ranges, touching only the row groups and pages that hold them.
//
// Files are untrusted input: whatever a file holds, reading it ends in batches
// or in a *tableerr.Corrupt that names its path, never in a panic. What a file
// claims about itself is checked before memory is taken for it; a batch takes
// about DefaultBatchBytes at most unless a single row needs more.
//
// Two things in arrow-go are deliberately not used. Its column readers build
// strings value by value, free not all they take and panic in goroutines of
// their own; its column writers hash dictionary values again and cut pages by
// bytes only. Schemas and footers are its own, pages are ours.
package datafile
