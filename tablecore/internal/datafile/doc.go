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
// or in a *tableerr.Corrupt that names its path, never in a panic and never in
// an allocation that the file's own size does not justify.
package datafile
