package main

import (
	"context"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"contrail/descriptors"
	"contrail/tablecore/tabledef"
)

// createRequest is the body of create_table.
type createRequest struct {
	Table            string            `json:"table"`
	IndexColumn      string            `json:"index_column"`
	IndexType        string            `json:"index_type,omitempty"`
	IndexGranularity string            `json:"index_granularity,omitempty"`
	EntityColumns    []string          `json:"entity_columns,omitempty"`
	Timezone         string            `json:"timezone,omitempty"`
	Uniqueness       string            `json:"uniqueness,omitempty"`
	IngestTimeColumn *string           `json:"ingest_time_column,omitempty"`
	Properties       map[string]string `json:"properties,omitempty"`
	Columns          []column          `json:"columns,omitempty"`
	SchemaIPC        []byte            `json:"schema_ipc,omitempty"`
}

const createLong = `Create a table. Its index column orders the rows, its entity columns identify a
series, and its granularity is the width of an interval: each entity has at most one
row in each, unless --uniqueness says otherwise.

The columns come from --column, from the file of --schema-from (a text file's types
are those that its rows suggest), or with the first append.`

func newCreateCommand(a *app) *cobra.Command {
	var r createRequest
	var columns []string
	var schemaFrom, ingestTime string
	var file fileFlags
	cmd := &cobra.Command{
		Use:   "create TABLE --index-column COLUMN",
		Short: "Create a table",
		Long:  createLong,
		Example: `  flight-admin create weather --index-column time_hour --index-granularity 1h --entity-columns origin
  flight-admin create plant.sensors --index-column at --index-granularity 1s --entity-columns sensor \
      --column 'sensor:string not null' --column 'at:timestamp[us, tz=UTC] not null' --column 'value:double'
  flight-admin create flights --index-column time_hour --uniqueness none --schema-from july.parquet --json`,
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&r.IndexColumn, "index-column", "", "column that orders the rows")
	flags.StringVar(&r.IndexType, "index-type", "", "timestamp (default), int64 or uint64, where the columns do not say it")
	flags.StringVar(&r.IndexGranularity, "index-granularity", "", "width of an interval: 1h, 15m, 1s …, or a number for an integer index")
	flags.StringSliceVar(&r.EntityColumns, "entity-columns", nil, "columns that identify a series, between commas")
	flags.StringVar(&r.Timezone, "timezone", "", "zone that the data are about; informative")
	flags.StringVar(&r.Uniqueness, "uniqueness", "", "what an append into a filled interval does: reject (default), overwrite or none")
	flags.StringVar(&ingestTime, "ingest-time-column", "", `column for the time of insertion; default _ingest_ts, "" for none`)
	flags.StringToStringVar(&r.Properties, "property", nil, "table property, KEY=VALUE; may be repeated")
	flags.StringArrayVar(&columns, "column", nil, "column, 'NAME:TYPE' or 'NAME:TYPE not null'; may be repeated")
	flags.StringVar(&schemaFrom, "schema-from", "", "file whose columns the table gets")
	file.add(flags)
	requireFlag(cmd, "index-column")
	cmd.RunE = a.connectedWith(connectOptions{create: true}, func(ctx context.Context, s *session, args []string) error {
		r.Table = args[0]
		if flags.Changed("ingest-time-column") {
			r.IngestTimeColumn = &ingestTime
		}
		if err := a.setColumns(ctx, &r, columns, schemaFrom, &file); err != nil {
			return err
		}
		return a.apply(ctx, s, descriptors.ActionCreateTable, r, decoded(func(d description) error {
			return a.printf("%s: created, version %d\n", d.Table, d.Version)
		}))
	})
	return cmd
}

// setColumns puts the columns into a request, from flags or from a file.
func (a *app) setColumns(ctx context.Context, r *createRequest, columns []string, schemaFrom string, file *fileFlags) (err error) {
	if columns != nil && schemaFrom != "" {
		return usagef("--column and --schema-from do not go together")
	}
	if r.Columns, err = parseColumns(columns); err != nil {
		return err
	}
	if schemaFrom != "" {
		if r.SchemaIPC, err = a.schemaOf(ctx, r, schemaFrom, file); err != nil {
			return err
		}
	}
	if r.IndexType == "" && r.Columns == nil && r.SchemaIPC == nil {
		r.IndexType = "timestamp"
	}
	return nil
}

// schemaOf reads a file's schema for a table, as an IPC message.
func (a *app) schemaOf(ctx context.Context, r *createRequest, path string, file *fileFlags) (_ []byte, err error) {
	in, err := a.openInput(path, file)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := in.close(); err == nil {
			err = closeErr
		}
	}()
	var schema *arrow.Schema
	if in.format.IsText() {
		if schema, err = in.infer(ctx); err == nil {
			schema = in.withIndex(schema, r.IndexColumn, r.IndexType)
		}
	} else {
		schema, err = in.ownSchema(ctx)
	}
	if err != nil {
		return nil, err
	}
	return tabledef.EncodeSchemaIPC(schema)
}

// ownSchema is the schema of a format that has types.
func (in *input) ownSchema(ctx context.Context) (*arrow.Schema, error) {
	rows, err := in.rows(ctx, nil, nil)
	if err != nil {
		return nil, err
	}
	return rows.Schema(), rows.Close()
}

// notNull ends the text of a column that has no nulls.
const notNull = " not null"

// parseColumns reads NAME:TYPE and NAME:TYPE not null.
func parseColumns(texts []string) ([]column, error) {
	var columns []column
	for _, text := range texts {
		name, typ, ok := strings.Cut(text, ":")
		if !ok || name == "" || typ == "" {
			return nil, usagef("--column: %q is not NAME:TYPE, such as temp:double", text)
		}
		typ, required := strings.CutSuffix(strings.TrimSpace(typ), notNull)
		columns = append(columns, column{Name: name, Type: typ, Nullable: !required})
	}
	return columns, nil
}
