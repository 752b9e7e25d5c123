package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"contrail/descriptors"
)

// upgradeRequest is the body of upgrade.
type upgradeRequest struct {
	Table            string   `json:"table"`
	IndexColumn      string   `json:"index_column,omitempty"`
	IndexGranularity string   `json:"index_granularity,omitempty"`
	EntityColumns    []string `json:"entity_columns,omitempty"`
	Timezone         string   `json:"timezone,omitempty"`
	Uniqueness       string   `json:"uniqueness,omitempty"`
	KeepSnapshots    string   `json:"keep_snapshots,omitempty"`
	Compact          bool     `json:"compact"`
	DryRun           bool     `json:"dry_run,omitempty"`
	ExpectedVersion  *int64   `json:"expected_version,omitempty"`
}

// upgradeReport is what upgrade answers.
type upgradeReport struct {
	StartingVersion    int64         `json:"starting_version"`
	CommittedVersion   int64         `json:"committed_version"`
	FromFormat         string        `json:"from_format"`
	ToFormat           string        `json:"to_format"`
	KeepSnapshotsUntil *string       `json:"keep_snapshots_until"`
	RollbackTo         int64         `json:"rollback_to"`
	Steps              []upgradeStep `json:"steps"`
	NoOp               bool          `json:"no_op"`
	DryRun             bool          `json:"dry_run"`
}

// upgradeStep is a step that had work to do, or would have.
type upgradeStep struct {
	Step    string `json:"step"`
	Commits bool   `json:"commits"`
	Version *int64 `json:"version"`
	Files   int64  `json:"files"`
	Bytes   int64  `json:"bytes"`
}

// upgradedTable is a table in the document of --json: upgraded, or why it is not.
type upgradedTable struct {
	Table  string          `json:"table"`
	Report json.RawMessage `json:"report,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

const upgradeLong = `Bring tables to the format of this version: record it, rewrite files that are unsorted
or small, store what is derived from the rows, and write the head, from which a table
opens fast. It goes step by step, each of which leaves a table that works; run again,
it goes on where it was interrupted, and leaves a table alone that is current. Others
may read and append meanwhile. A rollback to the version that it names undoes it; where
only derived data were due no version is made, and there is nothing to undo.

A plain Delta table becomes Contrail's with --index-column, --index-granularity and
--entity-columns; its rows are checked first: no null in these columns, and at most
one row in an interval of a series, unless --uniqueness is none. Other Delta writers
are kept away then; rollback --release gives the table back to them.

A table that fails does not keep the others from being upgraded; the first one's error
comes last and gives the exit status. With --json each table has its report, or its error.`

func newUpgradeCommand(a *app) *cobra.Command {
	var all, noCompact bool
	var expected int64
	r := upgradeRequest{}
	cmd := &cobra.Command{
		Use:   "upgrade TABLE… | --all",
		Short: "Bring tables to the newest format, and adopt plain Delta tables",
		Long:  upgradeLong,
		Example: `  flight-admin upgrade weather --dry-run
  flight-admin upgrade weather --no-compact --keep-snapshots 30d
  flight-admin upgrade --all --json`,
		ValidArgsFunction: a.completeTable(false),
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case all == (len(args) > 0):
				return usagef("say which tables are to be upgraded, or --all")
			case all && r.IndexColumn != "":
				return usagef("--index-column is of the tables that are named, and does not go together with --all")
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&all, "all", false, "upgrade all tables")
	flags.BoolVar(&r.DryRun, "dry-run", false, "only tell what would be done")
	flags.BoolVar(&noCompact, "no-compact", false, "leave the data files as they are")
	flags.StringVar(&r.KeepSnapshots, "keep-snapshots", "", "how long the versions before the upgrade can be rolled back to at least; default 7d")
	flags.StringVar(&r.IndexColumn, "index-column", "", "of a plain Delta table: the column that orders the rows")
	flags.StringVar(&r.IndexGranularity, "index-granularity", "", "of a plain Delta table: width of an interval, 1h, 15m, 1s …, or a number for an integer index")
	flags.StringSliceVar(&r.EntityColumns, "entity-columns", nil, "of a plain Delta table: columns that identify a series, between commas")
	flags.StringVar(&r.Timezone, "timezone", "", "of a plain Delta table: zone that the data are about; informative")
	flags.StringVar(&r.Uniqueness, "uniqueness", "", "of a plain Delta table: reject (default), overwrite or none")
	flags.Int64Var(&expected, "expected-version", 0, "the only version of the table that the upgrade may follow")
	cmd.RunE = a.connected(func(ctx context.Context, s *session, args []string) error {
		r.Compact, r.ExpectedVersion = !noCompact, optionalNumber(cmd, "expected-version", expected)
		if all {
			var err error
			if args, err = a.allTables(ctx, s); err != nil {
				return err
			}
		}
		return a.upgradeTables(ctx, s, args, r)
	})
	return cmd
}

// upgradeTables upgrades tables one after the other. One that fails does not keep
// the others from it; its error comes last.
func (a *app) upgradeTables(ctx context.Context, s *session, tables []string, r upgradeRequest) error {
	document := struct {
		Tables []upgradedTable `json:"tables"`
	}{[]upgradedTable{}}
	var failed error
	for _, table := range tables {
		r.Table = table
		result, err := a.change(ctx, s, descriptors.ActionUpgrade, r)
		row := upgradedTable{Table: fullName(table), Report: result}
		switch {
		case err != nil:
			f := failureOf(ran{err})
			if row.Error = f.json(); failed != nil && !a.json { // the first one is told at the end
				fmt.Fprintln(a.stderr, "flight-admin:", f.line)
			}
			failed = cmp.Or(failed, err)
		case !a.json:
			if err := decoded(func(report upgradeReport) error { return a.printUpgrade(row.Table, report) })(result); err != nil {
				return err
			}
		}
		document.Tables = append(document.Tables, row)
		if err != nil && ctx.Err() != nil {
			break
		}
	}
	if a.json {
		if err := a.printDocument(document); err != nil {
			return err
		}
	}
	return failed
}

func (a *app) printUpgrade(table string, r upgradeReport) error {
	if r.NoOp {
		return a.printf("%s: current, format %s; it stays at version %d\n", table, r.ToFormat, r.CommittedVersion)
	}
	t := newTextTable(a.stdout, []string{"step", "version", "files", "bytes"}, []bool{false, true, true, true})
	for _, step := range r.Steps {
		version := "-"
		if step.Version != nil {
			version = strconv.FormatInt(*step.Version, 10)
		}
		if err := t.add([]string{step.Step, version, strconv.FormatInt(step.Files, 10), strconv.FormatInt(step.Bytes, 10)}); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return a.printf("%s: %s\n", table, r.outcome())
}

// outcome says what the upgrade did, or would do, and what undoes it. Steps that
// commit nothing store what follows from the rows: there is nothing to undo.
func (r upgradeReport) outcome() string {
	commits := slices.ContainsFunc(r.Steps, func(s upgradeStep) bool { return s.Commits })
	switch {
	case !commits && r.DryRun:
		return fmt.Sprintf("current, format %s; only derived data would be written, and it would stay at version %d", r.ToFormat, r.CommittedVersion)
	case !commits:
		return fmt.Sprintf("current, format %s; only derived data were written, and it stays at version %d", r.ToFormat, r.CommittedVersion)
	case !r.DryRun:
		return fmt.Sprintf("format %s, version %d; a rollback to version %d undoes it", r.ToFormat, r.CommittedVersion, r.RollbackTo)
	case r.FromFormat == r.ToFormat:
		return fmt.Sprintf("would stay at format %s; a rollback to version %d would undo it", r.ToFormat, r.RollbackTo)
	}
	return fmt.Sprintf("would go from format %s to %s; a rollback to version %d would undo it", r.FromFormat, r.ToFormat, r.RollbackTo)
}
