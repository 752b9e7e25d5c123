package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"contrail/descriptors"
)

func newDescribeCommand(a *app) *cobra.Command {
	var when at
	cmd := &cobra.Command{
		Use:   "describe TABLE",
		Short: "Tell a table's definition, columns, size and bounds",
		Example: `  flight-admin describe weather
  flight-admin describe weather --version 0 --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTable(false),
		RunE: a.connected(func(ctx context.Context, s *session, args []string) error {
			request := describeRequest{args[0], when.number(), when.asOf}
			return a.answer(ctx, s, descriptors.ActionDescribeTable, request, decoded(a.printDescription))
		}),
	}
	when.add(cmd.Flags())
	return cmd
}

func (a *app) printDescription(d description) error {
	pairs := []any{
		"table", d.Table, "table_id", d.TableID, "version", d.Version, "committed_at", d.CommittedAt, "format_version", d.FormatVersion,
		"index_column", d.IndexColumn, "index_type", d.IndexType, "index_granularity", d.IndexGranularity, "timezone", d.Timezone,
		"entity_columns", strings.Join(d.EntityColumns, ", "), "uniqueness", d.Uniqueness, "ingest_time_column", d.IngestTimeColumn,
		"rows", d.Rows, "files", d.Files, "bytes", d.Bytes, "entities", d.Entities, "index_min", d.IndexMin, "index_max", d.IndexMax,
	}
	for _, key := range slices.Sorted(maps.Keys(d.Properties)) {
		pairs = append(pairs, "property "+key, d.Properties[key])
	}
	if err := a.printPairs(pairs...); err != nil {
		return err
	}
	if d.Columns == nil {
		return a.printf("\nThe columns come with the first append.\n")
	}
	if err := a.printf("\n"); err != nil {
		return err
	}
	t := newTextTable(a.stdout, []string{"column", "type", "nullable"}, make([]bool, 3))
	for _, c := range d.Columns {
		nullable := "yes"
		if !c.Nullable {
			nullable = "no"
		}
		if err := t.add([]string{c.Name, c.Type, nullable}); err != nil {
			return err
		}
	}
	return t.Close()
}
