package main

import (
	"context"

	"github.com/spf13/cobra"

	"contrail/descriptors"
)

func newHistoryCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "history TABLE",
		Short: "List a table's versions, newest first",
		Long:  "List a table's versions, newest first, with what each added and removed. With --json each has its report also.",
		Example: `  flight-admin history weather
  flight-admin history weather --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTable(false),
		RunE: a.connected(func(ctx context.Context, s *session, args []string) error {
			command, err := (&descriptors.Listing{Op: descriptors.OpHistory, Table: args[0]}).Encode()
			if err != nil {
				return err
			}
			return a.list(ctx, s, command, args[0], "history", "report")
		}),
	}
}
