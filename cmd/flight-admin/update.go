package main

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/spf13/cobra"

	"contrail/cmd/internal/flightclient"
	"contrail/descriptors"
)

const updateLong = `Give rows that are stored the values of a file. A row of the file is matched by the
entity columns and the index column; its other columns are the new values. Every row
must find exactly one row of the table.

The update follows one version of the table: --expected-version says which, so that
nobody's change in between is lost. "current" takes the version of the moment.

The request id is made of the file's bytes and the columns, so the same command run
again changes nothing and prints the first report.`

func newUpdateCommand(a *app) *cobra.Command {
	var flags putFlags
	var columns []string
	var expected string
	cmd := &cobra.Command{
		Use:   "update TABLE FILE --expected-version N",
		Short: "Give rows that are stored the values of a file",
		Long:  updateLong,
		Example: `  flight-admin update weather corrections.csv --expected-version current
  flight-admin update weather corrections.csv --columns temp --expected-version 5 --json`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeTable(true),
	}
	flags.add(cmd.Flags())
	cmd.Flags().StringSliceVar(&columns, "columns", nil, "columns to change, between commas; default: all of the file's that are no keys")
	cmd.Flags().StringVar(&expected, "expected-version", "", `version of the table that the update follows, or "current"`)
	requireFlag(cmd, "expected-version")
	cmd.RunE = a.connected(func(ctx context.Context, s *session, args []string) error {
		report, err := a.update(ctx, s, args[0], args[1], &flags, columns, expected)
		if err != nil {
			return err
		}
		return a.print(report, decoded(func(r updateReport) error { return a.printUpdate(args[0], r) }))
	})
	return cmd
}

// updateReport is what update_rows answers.
type updateReport struct {
	CommittedVersion  int64 `json:"committed_version"`
	RowsUpdated       int64 `json:"rows_updated"`
	SegmentsRewritten int64 `json:"segments_rewritten"`
	NoOp              bool  `json:"no_op"`
}

func (a *app) printUpdate(table string, r updateReport) error {
	if r.NoOp {
		return a.printf("%s: nothing to change; it stays at version %d\n", fullName(table), r.CommittedVersion)
	}
	return a.printf("%s: updated %s in %s as version %d\n", fullName(table), plural(r.RowsUpdated, "row"), plural(r.SegmentsRewritten, "segment"), r.CommittedVersion)
}

func (a *app) update(ctx context.Context, s *session, table, path string, flags *putFlags, columns []string, expected string) (json.RawMessage, error) {
	d, err := a.describe(ctx, s, table, at{version: -1})
	if err != nil {
		return nil, err
	}
	request := descriptors.UpdateRows{Table: table, Columns: columns, ExpectedVersion: d.Version, EndMarker: true}
	if expected != "current" {
		if request.ExpectedVersion, err = strconv.ParseInt(expected, 10, 64); err != nil || request.ExpectedVersion < 0 {
			return nil, usagef(`--expected-version is a version, or "current", not %q`, expected)
		}
	}
	keys := append(slices.Clone(d.EntityColumns), d.IndexColumn)
	return a.put(ctx, s, putting{step: "update", path: path, flags: flags, table: d,
		salt: strings.Join(columns, "\x00"),
		prepare: func(rows flightclient.Rows) flightclient.Rows {
			if request.Columns == nil {
				request.Columns = valueColumns(rows.Schema(), keys)
			}
			return narrow(rows, append(slices.Clone(keys), request.Columns...))
		},
		encode: func(id string) ([]byte, error) {
			request.RequestID = id
			return request.Encode()
		}})
}

// valueColumns are the columns of a schema that are no keys.
func valueColumns(schema *arrow.Schema, keys []string) []string {
	names := []string{}
	for _, f := range schema.Fields() {
		if !slices.Contains(keys, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// narrowRows are rows with only some of their columns.
type narrowRows struct {
	flightclient.Rows
	schema  *arrow.Schema
	columns []int
	batch   arrow.RecordBatch
}

// narrow keeps the columns that are named, in the order of the rows. A column
// that the rows lack is the service's to miss.
func narrow(rows flightclient.Rows, names []string) *narrowRows {
	n := &narrowRows{Rows: rows}
	var fields []arrow.Field
	for i, f := range rows.Schema().Fields() {
		if slices.Contains(names, f.Name) {
			n.columns = append(n.columns, i)
			fields = append(fields, f)
		}
	}
	metadata := rows.Schema().Metadata()
	n.schema = arrow.NewSchema(fields, &metadata)
	return n
}

// Schema implements flightclient.Rows.
func (n *narrowRows) Schema() *arrow.Schema { return n.schema }

// Next implements flightclient.Rows.
func (n *narrowRows) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if n.batch != nil {
		n.batch.Release()
		n.batch = nil
	}
	batch, err := n.Rows.Next(ctx)
	if err != nil {
		return nil, err
	}
	columns := make([]arrow.Array, len(n.columns))
	for i, at := range n.columns {
		columns[i] = batch.Column(at)
	}
	n.batch = array.NewRecordBatch(n.schema, columns, batch.NumRows())
	return n.batch, nil
}
