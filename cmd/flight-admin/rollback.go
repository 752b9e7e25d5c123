package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"contrail/descriptors"
)

// rollbackRequest is the body of rollback.
type rollbackRequest struct {
	Table           string `json:"table"`
	Version         int64  `json:"version"`
	ExpectedVersion int64  `json:"expected_version"`
	Release         bool   `json:"release,omitempty"`
	DryRun          bool   `json:"dry_run,omitempty"`
}

// rollbackReport is what rollback answers.
type rollbackReport struct {
	StartingVersion  int64           `json:"starting_version"`
	CommittedVersion int64           `json:"committed_version"`
	TargetVersion    int64           `json:"target_version"`
	FilesAdded       int64           `json:"files_added"`
	FilesRemoved     int64           `json:"files_removed"`
	Rows             int64           `json:"rows"`
	NoOp             bool            `json:"no_op"`
	DryRun           bool            `json:"dry_run"`
	Undone           []undoneVersion `json:"undone"`
}

// undoneVersion is a version that a rollback takes back.
type undoneVersion struct {
	Version   int64   `json:"version"`
	Operation string  `json:"operation"`
	RequestID *string `json:"request_id"`
	RowsAdded int64   `json:"rows_added"`
}

const rollbackLong = `Make an earlier version's rows, columns and properties the newest one's. That is a new
version: nothing is lost, and a rollback to the version before it takes it back.

It shows the versions that would be undone, asks, and then follows only the version
that it has shown. Without a terminal to ask on it refuses, unless --yes is given.`

func newRollbackCommand(a *app) *cobra.Command {
	var yes, dryRun, release bool
	var expected int64
	cmd := &cobra.Command{
		Use:   "rollback TABLE VERSION",
		Short: "Make an earlier version's content the newest one's",
		Long:  rollbackLong,
		Example: `  flight-admin rollback weather 1 --dry-run
  flight-admin rollback weather 1 --yes --json`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeTable(false),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only tell what would be undone")
	cmd.Flags().BoolVar(&release, "release", false, "also give the table back to other Delta writers; needs a version from before it was Contrail's")
	cmd.Flags().Int64Var(&expected, "expected-version", 0, "the only version of the table that the rollback may follow; default: that of the moment")
	cmd.RunE = a.connected(func(ctx context.Context, s *session, args []string) error {
		version, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil || version < 0 {
			return usagef("%q is no version; history lists them", args[1])
		}
		request := rollbackRequest{Table: args[0], Version: version, ExpectedVersion: expected, Release: release, DryRun: dryRun}
		if !cmd.Flags().Changed("expected-version") {
			d, err := a.describe(ctx, s, args[0], at{version: -1})
			if err != nil {
				return err
			}
			request.ExpectedVersion = d.Version
		}
		return a.rollback(ctx, s, request, yes)
	})
	return cmd
}

func (a *app) rollback(ctx context.Context, s *session, request rollbackRequest, yes bool) error {
	show := decoded(func(r rollbackReport) error { return a.printRollback(request.Table, r) })
	if request.DryRun {
		return a.answer(ctx, s, descriptors.ActionRollback, request, show)
	}
	if !yes {
		if err := a.confirmRollback(ctx, s, request); err != nil {
			return err
		}
	}
	return a.apply(ctx, s, descriptors.ActionRollback, request, show)
}

// confirmRollback shows what would be undone and asks, unless nothing is to do.
func (a *app) confirmRollback(ctx context.Context, s *session, r rollbackRequest) error {
	if err := a.mustAsk("rolls the table back"); err != nil {
		return err
	}
	r.DryRun = true
	result, err := a.act(ctx, s, descriptors.ActionRollback, r)
	if err != nil {
		return err
	}
	return decoded(func(report rollbackReport) error {
		if report.NoOp {
			return nil
		}
		if err := printUndone(a.stderr, report.Undone); err != nil {
			return err
		}
		return a.confirm(ctx, fmt.Sprintf("Roll %s back to version %d (%s), which undoes %s?", fullName(r.Table), r.Version,
			plural(report.Rows, "row"), plural(int64(len(report.Undone)), "version")), "not rolled back")
	})(result)
}

func (a *app) printRollback(table string, r rollbackReport) error {
	switch {
	case r.NoOp:
		return a.printf("%s: nothing to undo; it stays at version %d\n", fullName(table), r.CommittedVersion)
	case r.DryRun:
		if err := printUndone(a.stdout, r.Undone); err != nil {
			return err
		}
		return a.printf("would roll %s back to version %d, %s\n", fullName(table), r.TargetVersion, rolledBack(r))
	}
	return a.printf("%s: rolled back to version %d as version %d, %s\n", fullName(table), r.TargetVersion, r.CommittedVersion, rolledBack(r))
}

// rolledBack tells what a rollback leads to.
func rolledBack(r rollbackReport) string {
	return fmt.Sprintf("%s, %s added, %s removed, %s undone", plural(r.Rows, "row"), plural(r.FilesAdded, "file"),
		plural(r.FilesRemoved, "file"), plural(int64(len(r.Undone)), "version"))
}

// printUndone lists the versions that a rollback undoes.
func printUndone(w io.Writer, list []undoneVersion) error {
	if len(list) == 0 {
		return nil
	}
	t := newTextTable(w, []string{"version", "operation", "request_id", "rows_added"}, []bool{true, false, false, true})
	for _, u := range list {
		id := "-"
		if u.RequestID != nil {
			id = *u.RequestID
		}
		if err := t.add([]string{strconv.FormatInt(u.Version, 10), u.Operation, id, strconv.FormatInt(u.RowsAdded, 10)}); err != nil {
			return err
		}
	}
	return t.Close()
}
