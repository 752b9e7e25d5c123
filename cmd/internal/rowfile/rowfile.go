// Package rowfile reads rows from files and writes them to files: CSV, JSON
// lines, Parquet and Arrow IPC (file and stream), for command lines.
//
// # Text
//
// CSV and JSON lines carry no types. Where the table's schema is known, it says
// what each text means, and a text that is no such value is an *Error with line
// and column; nothing is rounded, wrapped or guessed. Where it is not, Infer
// looks at all rows of the file first. Values look as they do in the protocol
// (flightsrv/docs/protocol.md): times in RFC 3339 with Z, binary in base64,
// NaN and Infinity by name, times of day and durations as integers of their
// unit. CSV also takes a blank for the T of a time, offsets such as +02 and
// times of day as 15:04:05.
//
// # Ownership
//
// A batch from Next is valid until the next call; all batches come from the
// allocator of the options. Readers and writers are used by one goroutine.
package rowfile

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// Format is a file format.
type Format string

// The formats. Arrow and ArrowStream are told apart by their first bytes when
// they are read.
const (
	CSV         Format = "csv"
	JSONLines   Format = "jsonl"
	Parquet     Format = "parquet"
	Arrow       Format = "arrow"  // IPC file
	ArrowStream Format = "arrows" // IPC stream
)

// Formats lists all formats.
var Formats = []Format{CSV, JSONLines, Parquet, Arrow, ArrowStream}

var extensions = map[string]Format{
	".csv": CSV, ".jsonl": JSONLines, ".ndjson": JSONLines, ".parquet": Parquet, ".pq": Parquet,
	".arrow": Arrow, ".feather": Arrow, ".ipc": Arrow, ".arrows": ArrowStream,
}

// ParseFormat reads a format's name.
func ParseFormat(name string) (Format, error) {
	if f := Format(name); slices.Contains(Formats, f) {
		return f, nil
	}
	return "", fmt.Errorf("%q is no format; they are %s", name, formatNames())
}

// FormatOf tells a file's format by the extension of its name.
func FormatOf(name string) (Format, error) {
	if f, ok := extensions[strings.ToLower(filepath.Ext(name))]; ok {
		return f, nil
	}
	return "", fmt.Errorf("the name %s does not tell the format; it is one of %s", filepath.Base(name), formatNames())
}

func formatNames() string {
	names := make([]string, len(Formats))
	for i, f := range Formats {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// IsText tells formats that carry no types of their own.
func (f Format) IsText() bool { return f == CSV || f == JSONLines }

// Reader reads rows. Next returns io.EOF at the end, and an *Error for what the
// file holds but cannot mean. A batch is valid until the next call.
type Reader interface {
	Schema() *arrow.Schema
	Next(ctx context.Context) (arrow.RecordBatch, error)
	Close() error
}

// Writer writes rows. Close writes what stands at the end and closes nothing
// else.
type Writer interface {
	Write(batch arrow.RecordBatch) error
	Close() error
}

// Error is a place in a file that is not what it should be.
type Error struct {
	Line   int64  // from 1; 0 where the format has no lines
	Column string // "" where no column is concerned
	Msg    string
	Cause  error
}

func (e *Error) Error() string {
	var at []string
	if e.Line > 0 {
		at = append(at, fmt.Sprintf("line %d", e.Line))
	}
	if e.Column != "" {
		at = append(at, fmt.Sprintf("column %s", e.Column))
	}
	if len(at) == 0 {
		return e.Msg
	}
	return strings.Join(at, ", ") + ": " + e.Msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }
