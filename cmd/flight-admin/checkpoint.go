package main

import (
	"context"

	"github.com/spf13/cobra"

	"contrail/descriptors"
)

// checkpointReport is what checkpoint answers.
type checkpointReport struct {
	Version int64  `json:"version"`
	Path    string `json:"path"`
	Bytes   int64  `json:"bytes"`
}

func newCheckpointCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "checkpoint TABLE",
		Short: "Write a checkpoint, which makes opening a table with a long history fast",
		Long:  "Write a checkpoint of the newest version, which makes opening a table with a long history fast. The service does so by itself every so many commits.",
		Example: `  flight-admin checkpoint weather
  flight-admin checkpoint weather --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTable(false),
		RunE: a.connected(func(ctx context.Context, s *session, args []string) error {
			request := struct {
				Table string `json:"table"`
			}{args[0]}
			return a.answer(ctx, s, descriptors.ActionCheckpoint, request, decoded(func(r checkpointReport) error {
				return a.printf("%s: checkpoint of version %d, %s, %s\n", fullName(args[0]), r.Version, plural(r.Bytes, "byte"), r.Path)
			}))
		}),
	}
}
