package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"contrail/descriptors"
)

// completionTimeout bounds the wait of a shell for the names of tables.
const completionTimeout = 5 * time.Second

// completeTable completes the first argument with the names of tables, and
// those behind it with names of files if there are any.
func (a *app) completeTable(files bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			if files {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		return a.tableNames(ctx), cobra.ShellCompDirectiveNoFileComp
	}
}

// tableNames lists the tables, those of the namespace default without it. There
// is nothing to tell where they cannot be listed.
func (a *app) tableNames(ctx context.Context) []string {
	s, err := a.connect(ctx, connectOptions{})
	if err != nil {
		return nil
	}
	defer func() { _ = s.close() }() // a completion has nobody to tell
	result, err := s.Action(ctx, descriptors.ActionListTables, nil, nil)
	if err != nil {
		return nil
	}
	var list tableList
	if json.Unmarshal(result, &list) != nil {
		return nil
	}
	names := make([]string, len(list.Tables))
	for i, t := range list.Tables {
		names[i] = shortName(t.Table)
	}
	return names
}
