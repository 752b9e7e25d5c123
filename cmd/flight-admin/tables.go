package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"contrail/descriptors"
)

// tableList is what list_tables answers.
type tableList struct {
	Tables []tableSummary `json:"tables"`
}

// tableSummary has nothing but the name of a table that cannot be opened.
type tableSummary struct {
	Table         string          `json:"table"`
	Version       json.RawMessage `json:"version"`
	CommittedAt   json.RawMessage `json:"committed_at"`
	FormatVersion json.RawMessage `json:"format_version"`
	Rows          json.RawMessage `json:"rows"`
	Files         json.RawMessage `json:"files"`
	Bytes         json.RawMessage `json:"bytes"`
}

func newTablesCommand(a *app) *cobra.Command {
	var request struct {
		Namespace string `json:"namespace,omitempty"`
	}
	cmd := &cobra.Command{
		Use:   "tables",
		Short: "List the tables",
		Long:  "List the tables by name, with their version and size. A table that cannot be opened has its name only; describe tells why.",
		Example: `  flight-admin tables
  flight-admin tables --namespace default --json`,
		Args: cobra.NoArgs,
		RunE: a.connected(func(ctx context.Context, s *session, _ []string) error {
			return a.answer(ctx, s, descriptors.ActionListTables, request, decoded(a.printTables))
		}),
	}
	cmd.Flags().StringVar(&request.Namespace, "namespace", "", "list the tables of one namespace")
	return cmd
}

func (a *app) printTables(list tableList) error {
	t := newTextTable(a.stdout, []string{"table", "version", "committed_at", "format_version", "rows", "files", "bytes"},
		[]bool{false, true, false, false, true, true, true})
	for _, s := range list.Tables {
		cells := []string{s.Table}
		for _, raw := range []json.RawMessage{s.Version, s.CommittedAt, s.FormatVersion, s.Rows, s.Files, s.Bytes} {
			text, ok := pairText(raw)
			if !ok {
				text = "-"
			}
			cells = append(cells, text)
		}
		if err := t.add(cells); err != nil {
			return err
		}
	}
	return t.Close()
}
