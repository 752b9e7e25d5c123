package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	_ "time/tzdata" // --assume-zone works where the system knows no zones

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"contrail/cmd/internal/rowfile"
	"contrail/tablecore/tabledef"
)

// fileFlags say how a file of rows is read.
type fileFlags struct {
	format      string
	null, comma string
	assumeZone  string
}

func (f *fileFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.format, "format", "", "csv, jsonl, parquet, arrow or arrows (an IPC stream); default: by the file's extension")
	flags.StringVar(&f.null, "null", "", "CSV cell that means null; default: the empty one")
	flags.StringVar(&f.comma, "comma", ",", `byte between the cells of CSV, or "tab"`)
	flags.StringVar(&f.assumeZone, "assume-zone", "", "zone of times in text that say none, such as UTC or Europe/Berlin")
}

func (f *fileFlags) textOptions() (o rowfile.TextOptions, err error) {
	o.Null = f.null
	if o.Comma, err = parseComma(f.comma); err != nil {
		return o, err
	}
	if f.assumeZone != "" {
		if o.Zone, err = time.LoadLocation(f.assumeZone); err != nil {
			return o, usagef("--assume-zone: %q is no zone such as UTC or Europe/Berlin", f.assumeZone)
		}
	}
	return o, nil
}

// putFlags say what rows are sent and under which id, for verbs that put rows.
type putFlags struct {
	fileFlags
	requestID   string
	noRequestID bool
}

func (f *putFlags) add(flags *pflag.FlagSet) {
	f.fileFlags.add(flags)
	flags.StringVar(&f.requestID, "request-id", "", "id that makes the command safe to repeat; default: made of the SHA-256 of the file's bytes")
	flags.BoolVar(&f.noRequestID, "no-request-id", false, "send no request id: rows may be sent twice")
}

func parseComma(text string) (rune, error) {
	if text == "tab" {
		return '\t', nil
	}
	if len(text) != 1 || text[0] < ' ' || text[0] > '~' || text[0] == '"' {
		return 0, usagef(`--comma is one printable ASCII character, or "tab", not %q`, text)
	}
	return rune(text[0]), nil
}

// input is rows to send: a file, or what standard input holds.
type input struct {
	name   string
	format rowfile.Format
	text   rowfile.TextOptions
	file   *os.File  // nil while it is a stream
	stream io.Reader // nil for a file
	opened os.FileInfo
	spool  bool // file is ours, and has no name
}

// openInput opens a file, or standard input for "-".
func (a *app) openInput(path string, f *fileFlags) (*input, error) {
	in := &input{name: path}
	var err error
	if in.text, err = f.textOptions(); err != nil {
		return nil, err
	}
	switch {
	case f.format != "":
		in.format, err = rowfile.ParseFormat(f.format)
	case path == "-":
		err = errors.New("standard input needs --format")
	default:
		in.format, err = rowfile.FormatOf(path)
	}
	if err != nil {
		return nil, usagef("%w", err)
	}
	if path != "-" {
		if in.file, err = os.Open(path); err != nil {
			return nil, usagef("%w", err)
		}
		return in, in.look()
	}
	in.name, in.stream = "standard input", a.stdin
	if file, ok := a.stdin.(*os.File); ok && isWhole(file) {
		in.file, in.stream = file, nil
		return in, in.look()
	}
	return in, nil
}

// isWhole tells a redirected file of which nothing was read yet.
func isWhole(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	at, err := f.Seek(0, io.SeekCurrent)
	return err == nil && at == 0
}

// look remembers what the file is like, and refuses what is none.
func (in *input) look() (err error) {
	if in.opened, err = in.file.Stat(); err == nil && !in.opened.Mode().IsRegular() {
		err = usagef("%s is no regular file; give what it holds to standard input, as -", in.name)
	}
	if err != nil {
		return errors.Join(err, in.close())
	}
	return nil
}

func (in *input) close() error {
	if in.file == nil || in.file == os.Stdin {
		return nil
	}
	return in.file.Close()
}

// whole makes a stream a file, whose bytes can be read more than once. The file
// has no name and is gone with the process.
func (in *input) whole(ctx context.Context) error {
	if in.file != nil {
		return nil
	}
	file, err := os.CreateTemp("", "flight-admin-*")
	if err != nil {
		return fmt.Errorf("keep standard input: %w", err)
	}
	in.file, in.spool = file, true
	if err := os.Remove(file.Name()); err != nil {
		return fmt.Errorf("keep standard input: %w", err)
	}
	if _, err := io.Copy(file, cancellable{ctx, in.stream}); err != nil {
		return fmt.Errorf("keep standard input: %w", err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("keep standard input: %w", err)
	}
	in.stream = nil
	return in.look()
}

// cancellable is a reader that ends with its context.
type cancellable struct {
	ctx context.Context
	io.Reader
}

func (c cancellable) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.Reader.Read(p)
}

// id is the request id that the flags ask for.
func (in *input) id(ctx context.Context, a *app, p putting) (string, error) {
	if p.flags.noRequestID || p.flags.requestID != "" {
		return p.flags.requestID, nil
	}
	if err := in.whole(ctx); err != nil {
		return "", err
	}
	progress := a.startBar("digest", in.opened.Size(), unitBytes)
	sum := sha256.New()
	_, err := io.Copy(sum, cancellable{ctx, countedFile{in.file, progress}})
	progress.finish(err != nil)
	if err == nil {
		_, err = in.file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", in.name, err)
	}
	io.WriteString(sum, p.salt) //nolint:errcheck // a hash takes everything
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// schema is the schema of text for a table: the table's, or one that all rows
// together suggest where it has none yet.
func (in *input) schema(ctx context.Context, d *description) (*arrow.Schema, error) {
	if d.SchemaIPC != nil {
		return tabledef.DecodeSchemaIPC(d.SchemaIPC)
	}
	schema, err := in.infer(ctx)
	if err != nil {
		return nil, err
	}
	return in.withIndex(schema, d.IndexColumn, d.IndexType), nil
}

// withIndex gives the index column the type that the table's definition says it
// has, where that takes the same texts as the one that the rows suggest: small
// numbers look like int64, and times at midnight like dates.
func (in *input) withIndex(schema *arrow.Schema, column, indexType string) *arrow.Schema {
	fields := schema.Fields()
	for i, f := range fields {
		if f.Name != column {
			continue
		}
		switch {
		case f.Type.ID() == arrow.INT64 && indexType == "uint64":
			fields[i].Type = arrow.PrimitiveTypes.Uint64
		case f.Type.ID() == arrow.DATE32:
			index := &arrow.TimestampType{Unit: arrow.Microsecond}
			if in.text.Zone != nil {
				index.TimeZone = "UTC"
			}
			fields[i].Type = index
		}
	}
	return arrow.NewSchema(fields, nil)
}

// infer suggests a schema for text.
func (in *input) infer(ctx context.Context) (*arrow.Schema, error) {
	if err := in.whole(ctx); err != nil {
		return nil, err
	}
	schema, err := rowfile.Infer(cancellable{ctx, in.file}, in.format, in.text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	_, err = in.file.Seek(0, io.SeekStart)
	return schema, err
}

// rows opens the rows for a table of this schema, which only text needs, and
// counts what is read on b.
func (in *input) rows(ctx context.Context, table *arrow.Schema, b *bar) (*inputRows, error) {
	if in.format.NeedsSource() {
		if err := in.whole(ctx); err != nil {
			return nil, err
		}
	}
	var from io.Reader = countedReader{in.stream, b}
	if in.file != nil {
		from = countedFile{in.file, b}
	}
	reader, err := rowfile.Open(from, rowfile.OpenOptions{Format: in.format, Table: table, Text: in.text})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	return &inputRows{reader, in}, nil
}

// size is the number of bytes, or -1 for a stream.
func (in *input) size() int64 {
	if in.file == nil {
		return -1
	}
	return in.opened.Size()
}

// inputRows are rows whose errors name the input, and that end only if the
// file is the one that was digested.
type inputRows struct {
	rowfile.Reader
	in *input
}

// Next implements flightclient.Rows.
func (r *inputRows) Next(ctx context.Context) (arrow.RecordBatch, error) {
	batch, err := r.Reader.Next(ctx)
	if err == io.EOF {
		return nil, r.in.unchanged()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.in.name, err)
	}
	return batch, nil
}

// unchanged returns io.EOF unless the file was written to meanwhile.
func (in *input) unchanged() error {
	if in.file == nil {
		return io.EOF
	}
	info, err := in.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() != in.opened.Size() || !info.ModTime().Equal(in.opened.ModTime()) {
		return usagef("%s was written to while it was read; nothing was stored", in.name)
	}
	return io.EOF
}

// optionalNumber is a flag's number, nil where it was not given.
func optionalNumber(cmd *cobra.Command, name string, value int64) *int64 {
	if !cmd.Flags().Changed(name) {
		return nil
	}
	return &value
}

// requireFlag makes a command refuse to run without a flag of its own.
func requireFlag(cmd *cobra.Command, name string) {
	if err := cmd.MarkFlagRequired(name); err != nil {
		panic(err) // the flag is not defined, which every test would find
	}
}
