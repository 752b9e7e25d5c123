package main

import (
	"context"
	"encoding/json"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"contrail/cmd/internal/flightclient"
	"contrail/descriptors"
)

const appendLong = `Append the rows of a file, or of standard input (-), as one commit: all or none.
A file that breaks off or is damaged somewhere stores nothing.

The request id is made of the SHA-256 of the file's bytes, so the same command run
again adds nothing and prints the first report. Standard input is kept in a
temporary file first, to know its digest; with --no-request-id or --request-id CSV,
JSON lines and Arrow streams go straight through.

CSV and JSON lines take the table's types; a value that is none is refused with line
and column. A table without a schema adopts that of the file; for text the types are
those that all its rows suggest: int64, uint64, double, bool, date32[day], timestamp
and string, in this order; the index column has the table's type.`

func newAppendCommand(a *app) *cobra.Command {
	var flags putFlags
	var request descriptors.Append
	var expected, rowGroupRows, rowGroupBytes int64
	cmd := &cobra.Command{
		Use:   "append TABLE FILE",
		Short: "Append the rows of a file, or of standard input",
		Long:  appendLong,
		Example: `  flight-admin append weather july.parquet
  flight-admin append weather july.parquet
  flight-admin append weather august.csv --json
  flight-admin append weather - --format csv < september.csv
  flight-admin append weather october.jsonl --no-request-id --expected-version 3`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeTable(true),
	}
	flags.add(cmd.Flags())
	cmd.Flags().Int64Var(&expected, "expected-version", 0, "the only version of the table that the rows may follow")
	cmd.Flags().StringVar(&request.Compression, "compression", "", "of the data files: auto (default), zstd, snappy, lz4_raw or uncompressed")
	cmd.Flags().Int64Var(&rowGroupRows, "max-rows-per-row-group", 0, "rows that close a row group")
	cmd.Flags().Int64Var(&rowGroupBytes, "max-bytes-per-row-group", 0, "estimated bytes that close a row group")
	cmd.RunE = a.connected(func(ctx context.Context, s *session, args []string) error {
		request.Table, request.EndMarker = args[0], true
		request.ExpectedVersion = optionalNumber(cmd, "expected-version", expected)
		request.MaxRowsPerRowGroup = optionalNumber(cmd, "max-rows-per-row-group", rowGroupRows)
		request.MaxBytesPerRowGroup = optionalNumber(cmd, "max-bytes-per-row-group", rowGroupBytes)
		encode := func(id string) ([]byte, error) {
			request.RequestID = id
			return request.Encode()
		}
		report, err := a.put(ctx, s, putting{step: "append", name: args[0], path: args[1], flags: &flags, encode: encode})
		if err != nil {
			return err
		}
		return a.print(report, decoded(func(r appendReport) error { return a.printAppend(args[0], r) }))
	})
	return cmd
}

// putting is what a verb that sends rows wants.
type putting struct {
	step  string
	path  string
	flags *putFlags
	table *description // nil for one that is looked up when it is needed
	name  string       // of the table
	// salt goes into the request id together with the file's bytes: what else
	// decides what the same file does.
	salt string
	// prepare, unless nil, makes the rows to send of those of the file, before
	// the command is made.
	prepare func(flightclient.Rows) flightclient.Rows
	// encode makes the command with a request id, "" for none.
	encode func(id string) ([]byte, error)
}

// put sends the rows of a file and returns the report.
func (a *app) put(ctx context.Context, s *session, p putting) (_ json.RawMessage, err error) {
	if p.flags.requestID != "" && p.flags.noRequestID {
		return nil, usagef("--request-id and --no-request-id do not go together")
	}
	in, err := a.openInput(p.path, &p.flags.fileFlags)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := in.close(); err == nil {
			err = closeErr
		}
	}()
	schema, err := a.textSchema(ctx, s, in, p)
	if err != nil {
		return nil, err
	}
	id, err := in.id(ctx, a, p)
	if err != nil {
		return nil, err
	}
	progress := a.startBar(p.step, in.size(), unitBytes)
	report, err := send(ctx, s, in, schema, id, p, progress)
	progress.finish(err != nil)
	return report, err
}

// textSchema is the schema that text is read by, nil for formats that have
// their own.
func (a *app) textSchema(ctx context.Context, s *session, in *input, p putting) (_ *arrow.Schema, err error) {
	if !in.format.IsText() {
		return nil, nil
	}
	if p.table == nil {
		if p.table, err = a.describe(ctx, s, p.name, at{version: -1}); err != nil {
			return nil, err
		}
	}
	return in.schema(ctx, p.table)
}

// send opens the rows, makes the command and sends both.
func send(ctx context.Context, s *session, in *input, schema *arrow.Schema, id string, p putting, progress *bar) (report json.RawMessage, err error) {
	file, err := in.rows(ctx, schema, progress)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
	}()
	var rows flightclient.Rows = file
	if p.prepare != nil {
		rows = p.prepare(rows)
	}
	command, err := p.encode(id)
	if err != nil {
		return nil, err
	}
	return s.Put(ctx, command, rows)
}

// appendReport is what an append answers.
type appendReport struct {
	CommittedVersion int64             `json:"committed_version"`
	Rows             int64             `json:"rows"`
	RowsReplaced     int64             `json:"rows_replaced"`
	DataFiles        []json.RawMessage `json:"data_files"`
	RequestID        *string           `json:"request_id"`
	Replayed         bool              `json:"replayed"`
}

func (a *app) printAppend(table string, r appendReport) error {
	table = fullName(table)
	switch {
	case r.Replayed:
		return a.printf("%s: version %d holds these %s already; nothing was added\n", table, r.CommittedVersion, plural(r.Rows, "row"))
	case len(r.DataFiles) == 0:
		return a.printf("%s: no row to append; it stays at version %d\n", table, r.CommittedVersion)
	}
	replaced := ""
	if r.RowsReplaced > 0 {
		replaced = ", which replaced " + plural(r.RowsReplaced, "row")
	}
	return a.printf("%s: appended %s in %s as version %d%s\n", table, plural(r.Rows, "row"), plural(int64(len(r.DataFiles)), "file"), r.CommittedVersion, replaced)
}
