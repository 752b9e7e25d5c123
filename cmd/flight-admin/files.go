package main

import (
	"github.com/spf13/cobra"

	"contrail/descriptors"
)

func newFilesCommand(a *app) *cobra.Command {
	return a.newVersionedListing(descriptors.OpFiles, &cobra.Command{
		Use:   "files TABLE",
		Short: "List the data files of a table, by path",
		Example: `  flight-admin files weather
  flight-admin files weather --version 1 --json`,
	})
}
