package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"contrail/cmd/internal/flightclient"
	"contrail/cmd/internal/rowfile"
	"contrail/descriptors"
)

// jsonDocument writes rows as one JSON document, {"table":…,NAME:[…]}, a row a
// line.
type jsonDocument struct {
	w    *bufio.Writer
	rows int64
	line []byte
	// stats is written behind the rows, where it is not nil.
	stats func() json.RawMessage
}

func newJSONDocument(w io.Writer, table, name string, stats func() json.RawMessage) *jsonDocument {
	d := &jsonDocument{w: bufio.NewWriter(w), stats: stats}
	d.line = append(d.line, '{')
	if table != "" {
		d.line = append(rowfile.AppendQuoted(append(d.line, `"table":`...), table), ',')
	}
	d.line = append(rowfile.AppendQuoted(d.line, name), ":["...)
	_, _ = d.w.Write(d.line) // a failure sticks until Close
	return d
}

// Write implements rowfile.Writer.
func (d *jsonDocument) Write(batch arrow.RecordBatch) error {
	for row := range int(batch.NumRows()) {
		d.line = d.line[:0]
		if d.rows > 0 {
			d.line = append(d.line, ',')
		}
		d.rows++
		d.line = rowfile.AppendRow(append(d.line, "\n  "...), batch, row)
		if _, err := d.w.Write(d.line); err != nil {
			return err
		}
	}
	return nil
}

// Close implements rowfile.Writer.
func (d *jsonDocument) Close() error {
	end := []byte("]")
	if d.rows > 0 {
		end = []byte("\n]")
	}
	if d.stats != nil {
		if stats := d.stats(); stats != nil {
			end = append(append(end, `,"stats":`...), stats...)
		}
	}
	_, _ = d.w.Write(append(end, "}\n"...)) // a failure sticks until Flush
	return d.w.Flush()
}

// copyRows reads all rows into a writer and closes that. Rows are counted on b.
func copyRows(ctx context.Context, from *flightclient.Reader, to rowfile.Writer, b *bar) error {
	for {
		batch, err := from.Next(ctx)
		if err == io.EOF {
			return to.Close()
		}
		if err != nil {
			return err
		}
		if err := to.Write(batch); err != nil {
			return err
		}
		b.add(batch.NumRows())
	}
}

// list prints what a listing's command asks for: as a table without the columns
// to hide, or as a document that names the rows.
func (a *app) list(ctx context.Context, s *session, command []byte, table, name string, hide ...string) error {
	rows, err := s.Get(ctx, command)
	if err != nil {
		return err
	}
	defer rows.Close()
	if a.json {
		return copyRows(ctx, rows, newJSONDocument(a.stdout, fullName(table), name, nil), nil)
	}
	return copyRows(ctx, rows, newBatchTable(a.stdout, rows.Schema(), hide...), nil)
}

// newVersionedListing completes the command of a listing of one state of a
// table.
func (a *app) newVersionedListing(op string, cmd *cobra.Command) *cobra.Command {
	var when at
	cmd.Args, cmd.ValidArgsFunction = cobra.ExactArgs(1), a.completeTable(false)
	when.add(cmd.Flags())
	cmd.RunE = a.connected(func(ctx context.Context, s *session, args []string) error {
		asOf, err := when.moment()
		if err != nil {
			return err
		}
		command, err := (&descriptors.Listing{Op: op, Table: args[0], Version: when.number(), AsOf: asOf}).Encode()
		if err != nil {
			return err
		}
		return a.list(ctx, s, command, args[0], op)
	})
	return cmd
}
