package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"contrail/descriptors"
)

// addColumnsRequest is the body of add_columns.
type addColumnsRequest struct {
	Table           string   `json:"table"`
	Columns         []column `json:"columns"`
	ExpectedVersion *int64   `json:"expected_version,omitempty"`
}

// addColumnsReport is what add_columns answers.
type addColumnsReport struct {
	CommittedVersion int64    `json:"committed_version"`
	Columns          []string `json:"columns"`
}

func newAddColumnsCommand(a *app) *cobra.Command {
	var columns []string
	var expected int64
	cmd := &cobra.Command{
		Use:               "add-columns TABLE --column NAME:TYPE",
		Short:             "Add columns, which are null in the rows that are there",
		Example:           "  flight-admin add-columns weather --column 'quality:int8' --column 'note:string'",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTable(false),
	}
	cmd.Flags().StringArrayVar(&columns, "column", nil, "column, 'NAME:TYPE'; may be repeated")
	cmd.Flags().Int64Var(&expected, "expected-version", 0, "the only version of the table that the change may follow")
	requireFlag(cmd, "column")
	cmd.RunE = a.connected(func(ctx context.Context, s *session, args []string) error {
		request := addColumnsRequest{Table: args[0], ExpectedVersion: optionalNumber(cmd, "expected-version", expected)}
		var err error
		if request.Columns, err = parseColumns(columns); err != nil {
			return err
		}
		return a.apply(ctx, s, descriptors.ActionAddColumns, request, decoded(func(r addColumnsReport) error {
			return a.printf("%s: added %s as version %d\n", fullName(args[0]), strings.Join(r.Columns, ", "), r.CommittedVersion)
		}))
	})
	return cmd
}
