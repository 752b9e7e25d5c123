package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"contrail/cmd/internal/flightclient"
	"contrail/cmd/internal/rowfile"
	"contrail/descriptors"
)

// selectFlags say which rows and columns a read is about, for verbs that read
// rows.
type selectFlags struct {
	entities, filters []string
	columns           []string
	start, end        string
	at                at
}

// add defines the flags of a state of a table.
func (w *at) add(flags *pflag.FlagSet) {
	flags.Int64Var(&w.version, "version", -1, "the version to read; default: the newest")
	flags.Lookup("version").DefValue = "0" // which help takes for no default to show
	flags.StringVar(&w.asOf, "as-of", "", "a time in place of --version: the newest version committed at or before it")
}

func (f *selectFlags) addEntities(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.entities, "entity", nil, "entity, COLUMN=VALUE[,COLUMN=VALUE…] or a JSON object; a part of the columns means all that agree; may be repeated")
}

func (f *selectFlags) addRange(flags *pflag.FlagSet) {
	flags.StringVar(&f.start, "start", "", "first index value, included")
	flags.StringVar(&f.end, "end", "", "index value behind the last, not included")
}

const scanLong = `Read rows by column, entity and index range, and print them or write them to a file.
Without --order the rows come by entity, then by index.

A filter is COLUMN OPERATOR VALUE, such as 'temp > 32', 'wind_dir in (0, 180)' or
'gust is null'. Text may stand in quotes. The protocol's own form,
'["temp",">",32]', is taken also.

With --since only the rows are read that appends have added behind a version. A
version in between that changed or removed rows is refused, or passed over with
--ignore-changes.

A file is complete or not there: it gets its name when the last row is in it.`

func newScanCommand(a *app) *cobra.Command {
	var sel selectFlags
	var r descriptors.Scan
	var limit, since int64
	var ignore bool
	var out outputFlags
	cmd := &cobra.Command{
		Use:   "scan TABLE",
		Short: "Read rows, and print them or write them to a file",
		Long:  scanLong,
		Example: `  flight-admin scan weather --entity origin=EWR --start 2013-07-01T00:00:00Z --end 2013-07-01T06:00:00Z
  flight-admin scan weather --columns origin,time_hour,temp --filter 'temp > 85' --filter 'origin in (EWR, JFK)' --limit 3
  flight-admin scan weather --newest-first --limit 5 --format csv
  flight-admin scan weather --version 1 --columns origin,time_hour,temp --limit 2 --json
  flight-admin scan weather --since 1 --ignore-changes --columns origin,time_hour,temp --limit 2
  flight-admin scan weather --output rows.parquet
  flight-admin scan weather --entity origin=LGA --explain`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTable(false),
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&sel.columns, "columns", nil, "columns in the order wanted, between commas")
	sel.addEntities(flags)
	sel.addRange(flags)
	flags.StringArrayVar(&sel.filters, "filter", nil, "condition; may be repeated, and then all must hold")
	sel.at.add(flags)
	flags.Int64Var(&since, "since", 0, "only the rows that appends have added behind this version")
	flags.BoolVar(&ignore, "ignore-changes", false, "with --since: pass over versions that changed or removed rows")
	flags.Int64Var(&limit, "limit", 0, "the first so many rows of the order")
	flags.StringVar(&r.Order, "order", "", "entity_index (default), or unordered, which is faster")
	flags.BoolVar(&r.NewestFirst, "newest-first", false, "by index descending over all entities")
	flags.StringVar(&r.Profile, "profile", "", "compat (default): plain types; exact: the table's own; spark: types Spark has")
	flags.StringVar(&r.Compression, "compression", "", "on the wire: none (default), lz4 or zstd")
	flags.BoolVar(&r.Explain, "explain", false, "print what would be read of each file, and why, in place of the rows")
	out.add(flags)
	cmd.RunE = a.connected(func(ctx context.Context, s *session, args []string) error {
		r.Table, r.Limit, r.SinceVersion = args[0], optionalNumber(cmd, "limit", limit), optionalNumber(cmd, "since", since)
		if ignore {
			r.Changes = descriptors.ChangesIgnore
		}
		if err := a.fillScan(ctx, s, &r, &sel); err != nil {
			return err
		}
		command, err := r.Encode()
		if err != nil {
			return err
		}
		name := "rows"
		if r.Explain {
			name = "explain"
		}
		return a.read(ctx, s, command, reading{table: args[0], name: name, out: out})
	})
	return cmd
}

// fillScan puts the selection into a request. The types that its values need
// are asked for only if there are such values.
func (a *app) fillScan(ctx context.Context, s *session, r *descriptors.Scan, f *selectFlags) (err error) {
	r.Columns, r.Version = f.columns, f.at.number()
	if r.AsOf, err = f.at.moment(); err != nil {
		return err
	}
	v, err := a.selection(ctx, s, r.Table, f)
	if err != nil {
		return err
	}
	r.Entities, r.Filter, r.Start, r.End = v.entities, v.filter, v.start, v.end
	return nil
}

// selection is what selectFlags mean, in the columns' types.
type selection struct {
	entities   []descriptors.Entity
	filter     []descriptors.Condition
	start, end json.RawMessage
}

func (a *app) selection(ctx context.Context, s *session, table string, f *selectFlags) (v selection, err error) {
	var conditions []condition
	var identities []identity
	for _, text := range f.filters {
		c, err := parseFilter(text)
		if err != nil {
			return v, err
		}
		conditions = append(conditions, c)
	}
	for _, text := range f.entities {
		id, err := parseEntity(text)
		if err != nil {
			return v, err
		}
		identities = append(identities, id)
	}
	if conditions == nil && identities == nil && f.start == "" && f.end == "" {
		return v, nil
	}
	types, err := a.types(ctx, s, table, f.at)
	if err != nil {
		return v, err
	}
	for _, c := range conditions {
		v.filter = append(v.filter, c.typed(types))
	}
	for _, id := range identities {
		v.entities = append(v.entities, id.typed(types))
	}
	v.start, v.end = bound(f.start, types), bound(f.end, types)
	return v, nil
}

func bound(text string, types *tableTypes) json.RawMessage {
	if text == "" {
		return nil
	}
	return literal{text: text}.json(types.of(types.index))
}

// outputFlags say where rows go and in which form.
type outputFlags struct {
	format, path string
	null, comma  string
}

const formatTable = "table"

func (f *outputFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.format, "format", "", "table (default), csv, jsonl, parquet, arrow or arrows (an IPC stream); default with --output: by its extension")
	flags.StringVarP(&f.path, "output", "o", "", "file to write to")
	flags.StringVar(&f.null, "null", "", "CSV cell for null; default: the empty one")
	flags.StringVar(&f.comma, "comma", ",", `byte between the cells of CSV, or "tab"`)
}

// reading is a read of rows with where they go.
type reading struct {
	table string
	name  string // of the rows in a JSON document
	out   outputFlags
}

// read prints or writes the rows that a command asks for.
func (a *app) read(ctx context.Context, s *session, command []byte, r reading) (err error) {
	options, err := a.outputOptions(r.out)
	if err != nil {
		return err
	}
	rows, err := s.Get(ctx, command)
	if err != nil {
		return err
	}
	defer rows.Close()
	if r.out.path != "" {
		return a.readIntoFile(ctx, rows, options, r)
	}
	w, err := a.rowWriter(a.stdout, rows, options, r)
	if err != nil {
		return err
	}
	var progress *bar
	if !isTerminal(a.stdout) { // where rows and bar would mix
		progress = a.startBar("scan", rows.Total(), "rows")
	}
	err = copyRows(ctx, rows, w, progress)
	progress.finish(err != nil)
	return err
}

// outputOptions settles the format; "" is the table for people.
func (a *app) outputOptions(f outputFlags) (o rowfile.CreateOptions, err error) {
	o.Text.Null = f.null
	if o.Text.Comma, err = parseComma(f.comma); err != nil {
		return o, err
	}
	switch {
	case a.json && f.path == "" && f.format != "":
		return o, usagef("--json and --format do not go together without --output")
	case f.format == formatTable, f.format == "" && f.path == "":
		return o, nil
	case f.format != "":
		o.Format, err = rowfile.ParseFormat(f.format)
	default:
		o.Format, err = rowfile.FormatOf(f.path)
	}
	if err != nil {
		return o, usagef("%w", err)
	}
	return o, nil
}

func (a *app) rowWriter(w io.Writer, rows *flightclient.Reader, o rowfile.CreateOptions, r reading) (rowfile.Writer, error) {
	switch {
	case a.json && r.out.path == "":
		return newJSONDocument(w, fullName(r.table), r.name, rows.Stats), nil
	case o.Format == "":
		return newBatchTable(w, rows.Schema()), nil
	}
	out, err := rowfile.Create(w, rows.Schema(), o)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return out, nil
}

// readIntoFile writes rows to a file that gets its name at the end.
func (a *app) readIntoFile(ctx context.Context, rows *flightclient.Reader, o rowfile.CreateOptions, r reading) (err error) {
	file, err := os.CreateTemp(filepath.Dir(r.out.path), ".flight-admin-*")
	if err != nil {
		return usagef("--output: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close(), os.Remove(file.Name()))
		}
	}()
	w, err := a.rowWriter(file, rows, o, r)
	if err != nil {
		return err
	}
	counted := &countedWriter{Writer: w}
	progress := a.startBar("scan", rows.Total(), "rows")
	err = copyRows(ctx, rows, counted, progress)
	progress.finish(err != nil)
	if err != nil {
		return err
	}
	if err := finishFile(file, r.out.path); err != nil {
		return err
	}
	return a.tellWritten(r, counted.rows, rows.Stats())
}

// finishFile gives a written file its name, its bytes on the disk first.
func finishFile(file *os.File, path string) error {
	const permissions = 0o644
	err := errors.Join(file.Chmod(permissions), file.Sync())
	if err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	return file.Close()
}

// tellWritten says what is in a file now.
func (a *app) tellWritten(r reading, rows int64, stats json.RawMessage) error {
	if !a.json {
		return a.printf("%s: %s\n", r.out.path, plural(rows, "row"))
	}
	return a.printDocument(struct {
		Table  string          `json:"table"`
		Output string          `json:"output"`
		Rows   int64           `json:"rows"`
		Stats  json.RawMessage `json:"stats,omitempty"`
	}{fullName(r.table), r.out.path, rows, stats})
}

// countedWriter counts the rows.
type countedWriter struct {
	rowfile.Writer
	rows int64
}

func (c *countedWriter) Write(batch arrow.RecordBatch) error {
	c.rows += batch.NumRows()
	return c.Writer.Write(batch)
}
