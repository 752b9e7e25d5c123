package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"contrail/descriptors"
)

// dropRequest is the body of drop_table.
type dropRequest struct {
	Table           string `json:"table"`
	DryRun          bool   `json:"dry_run,omitempty"`
	ExpectedVersion *int64 `json:"expected_version,omitempty"`
}

// dropReport is what drop_table answers.
type dropReport struct {
	Table   string `json:"table"`
	Version int64  `json:"version"`
	Files   int64  `json:"files"`
	Bytes   int64  `json:"bytes"`
	DryRun  bool   `json:"dry_run"`
}

func (r dropReport) String() string {
	return fmt.Sprintf("%s (version %d, %s, %s)", r.Table, r.Version, plural(r.Files, "file"), plural(r.Bytes, "byte"))
}

const dropLong = `Drop a table with all its rows and versions.

It asks first, and then drops only the version that it has shown. Without a terminal
to ask on it refuses, unless --yes is given.`

func newDropCommand(a *app) *cobra.Command {
	var yes, dryRun bool
	var expected int64
	cmd := &cobra.Command{
		Use:   "drop TABLE",
		Short: "Drop a table with all its rows",
		Long:  dropLong,
		Example: `  flight-admin drop flights --dry-run
  flight-admin drop flights --yes`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTable(false),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only tell what would be dropped")
	cmd.Flags().Int64Var(&expected, "expected-version", 0, "drop only this version of the table")
	cmd.RunE = a.connected(func(ctx context.Context, s *session, args []string) error {
		request := dropRequest{Table: args[0], DryRun: dryRun, ExpectedVersion: optionalNumber(cmd, "expected-version", expected)}
		if dryRun {
			return a.answer(ctx, s, descriptors.ActionDropTable, request, decoded(func(r dropReport) error {
				return a.printf("would drop %s\n", r)
			}))
		}
		if !yes {
			shown, err := a.confirmDrop(ctx, s, request)
			if err != nil {
				return err
			}
			request.ExpectedVersion = &shown
		}
		return a.apply(ctx, s, descriptors.ActionDropTable, request, decoded(func(r dropReport) error { return a.printf("dropped %s\n", r) }))
	})
	return cmd
}

// confirmDrop shows what would be dropped, asks, and returns the version that
// it has shown.
func (a *app) confirmDrop(ctx context.Context, s *session, r dropRequest) (version int64, err error) {
	if err := a.mustAsk("drops the table"); err != nil {
		return 0, err
	}
	r.DryRun = true
	result, err := a.act(ctx, s, descriptors.ActionDropTable, r)
	if err != nil {
		return 0, err
	}
	err = decoded(func(report dropReport) error {
		version = report.Version
		return a.confirm(ctx, fmt.Sprintf("Drop %s?", report), "not dropped")
	})(result)
	return version, err
}
