package main

import (
	"context"

	"github.com/spf13/cobra"

	"contrail/descriptors"
)

func newLatestCommand(a *app) *cobra.Command {
	var sel selectFlags
	var until string
	var out outputFlags
	cmd := &cobra.Command{
		Use:   "latest TABLE",
		Short: "Read the newest row of each entity",
		Example: `  flight-admin latest weather --columns origin,time_hour,temp
  flight-admin latest weather --entity origin=EWR --at 2013-08-15T12:00:00Z --format csv
  flight-admin latest weather --columns origin,time_hour --version 1 --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTable(false),
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&sel.columns, "columns", nil, "columns in the order wanted, between commas")
	sel.addEntities(flags)
	flags.StringVar(&until, "at", "", "index value behind which rows do not count, itself included")
	sel.at.add(flags)
	out.add(flags)
	cmd.RunE = a.connected(func(ctx context.Context, s *session, args []string) error {
		asOf, err := sel.at.moment()
		if err != nil {
			return err
		}
		sel.start = until // an index value, whose type the selection knows
		v, err := a.selection(ctx, s, args[0], &sel)
		if err != nil {
			return err
		}
		r := descriptors.Latest{Table: args[0], Columns: sel.columns, Entities: v.entities, At: v.start, Version: sel.at.number(), AsOf: asOf}
		command, err := r.Encode()
		if err != nil {
			return err
		}
		return a.read(ctx, s, command, reading{table: args[0], name: "latest", out: out})
	})
	return cmd
}
