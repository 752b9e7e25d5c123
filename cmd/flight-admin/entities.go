package main

import (
	"github.com/spf13/cobra"

	"contrail/descriptors"
)

func newEntitiesCommand(a *app) *cobra.Command {
	return a.newVersionedListing(descriptors.OpEntities, &cobra.Command{
		Use:   "entities TABLE",
		Short: "List the entities of a table, with the intervals that hold a row",
		Example: `  flight-admin entities weather
  flight-admin entities weather --version 1 --json`,
	})
}
