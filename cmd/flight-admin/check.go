package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"contrail/descriptors"
)

// checkRequest is the body of check.
type checkRequest struct {
	Table  string `json:"table"`
	Repair bool   `json:"repair,omitempty"`
}

// checkReport is what check answers.
type checkReport struct {
	Version      int64 `json:"version"`
	OK           bool  `json:"ok"`
	FilesChecked int64 `json:"files_checked"`
	Errors       int64 `json:"errors"`
	Warnings     int64 `json:"warnings"`
	Repaired     int64 `json:"repaired"`
}

// finding is one thing that a check has found.
type finding struct {
	Severity string `json:"severity"`
	Kind     string `json:"kind"`
	Path     string `json:"path"`
	Column   string `json:"column"`
	Row      *int64 `json:"row"`
	Text     string `json:"text"`
	Repaired bool   `json:"repaired"`
}

// checkedTable is a table in the document of --json.
type checkedTable struct {
	Table string `json:"table"`
	checkReport
	Findings []json.RawMessage `json:"findings"`
}

// foundError says that checks have found errors.
type foundError struct{ errors, tables int64 }

func (e *foundError) Error() string {
	return fmt.Sprintf("%s found in %s", plural(e.errors, "error"), plural(e.tables, "table"))
}

const checkLong = `Compare what a table's log, data files and derived data say with its rows: files that
are missing, cut or damaged, statistics, coverage, order and newest rows that are not
those of the rows, intervals with two rows, gaps in the log, and files that nobody
refers to. It reads every row of the newest version. Others may write meanwhile.

--repair writes derived data anew where they are missing or wrong: coverage beside
data files, checkpoints, the state file and the head. It never touches a row.

A warning costs time or room alone. Errors give exit status 11.`

func newCheckCommand(a *app) *cobra.Command {
	var all, repair bool
	cmd := &cobra.Command{
		Use:   "check TABLE… | --all",
		Short: "Compare what is known of tables with their rows",
		Long:  checkLong,
		Example: `  flight-admin check weather
  flight-admin check --all --repair --json`,
		ValidArgsFunction: a.completeTable(false),
		Args: func(_ *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return usagef("say which tables are to be checked, or --all")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "check all tables")
	cmd.Flags().BoolVar(&repair, "repair", false, "write derived data anew where they are missing or wrong")
	cmd.RunE = a.connected(func(ctx context.Context, s *session, args []string) error {
		if all {
			var err error
			if args, err = a.allTables(ctx, s); err != nil {
				return err
			}
		}
		return a.checkTables(ctx, s, args, repair)
	})
	return cmd
}

// allTables lists the names of all tables.
func (a *app) allTables(ctx context.Context, s *session) ([]string, error) {
	result, err := a.act(ctx, s, descriptors.ActionListTables, struct{}{})
	if err != nil {
		return nil, err
	}
	var names []string
	err = decoded(func(list tableList) error {
		for _, t := range list.Tables {
			names = append(names, t.Table)
		}
		return nil
	})(result)
	return names, err
}

// checkTables checks tables one after the other. One that cannot be checked does
// not keep the others from it; its error comes last.
func (a *app) checkTables(ctx context.Context, s *session, tables []string, repair bool) error {
	found := &foundError{}
	document := struct {
		Tables []checkedTable `json:"tables"`
	}{[]checkedTable{}}
	var failed error
	for _, table := range tables {
		checked, err := a.checkTable(ctx, s, checkRequest{table, repair})
		if err != nil && ctx.Err() != nil {
			return err
		}
		if err != nil {
			if failed != nil { // the first one is told at the end
				fmt.Fprintln(a.stderr, "flight-admin:", failureOf(ran{err}).line)
				continue
			}
			failed = err
			continue
		}
		if !checked.OK {
			found.errors, found.tables = found.errors+checked.Errors, found.tables+1
		}
		document.Tables = append(document.Tables, checked)
	}
	if a.json {
		if err := a.printDocument(document); err != nil {
			return err
		}
	}
	if failed == nil && found.tables > 0 {
		return found
	}
	return failed
}

// checkTable checks one table and prints what is found as it is found.
func (a *app) checkTable(ctx context.Context, s *session, request checkRequest) (checkedTable, error) {
	checked := checkedTable{Table: fullName(request.Table), Findings: []json.RawMessage{}}
	result, err := a.watch(ctx, s, descriptors.ActionCheck, request, func(kind string, message json.RawMessage) error {
		if kind != "findings" {
			return nil
		}
		if a.json {
			var more []json.RawMessage
			err := json.Unmarshal(message, &more)
			checked.Findings = append(checked.Findings, more...)
			return err
		}
		return decoded(a.printFindings)(message)
	})
	if err != nil {
		return checked, err
	}
	err = decoded(func(r checkReport) error {
		checked.checkReport = r
		if a.json {
			return nil
		}
		return a.printf("%s: version %d, %s checked, %s\n", checked.Table, r.Version, plural(r.FilesChecked, "file"), r.summary())
	})(result)
	return checked, err
}

// summary tells how many findings there are.
func (r checkReport) summary() string {
	var parts []string
	for _, n := range []struct {
		count int64
		noun  string
	}{{r.Errors, "error"}, {r.Warnings, "warning"}} {
		if n.count > 0 {
			parts = append(parts, plural(n.count, n.noun))
		}
	}
	if r.Repaired > 0 {
		parts = append(parts, fmt.Sprintf("%d repaired", r.Repaired))
	}
	if parts == nil {
		return "nothing found"
	}
	return strings.Join(parts, ", ")
}

func (a *app) printFindings(list []finding) error {
	for _, f := range list {
		text := f.Text
		if f.Row != nil {
			text = fmt.Sprintf("row %d: %s", *f.Row, text)
		}
		if f.Column != "" {
			text = "column " + f.Column + ": " + text
		}
		if f.Repaired {
			text += " (repaired)"
		}
		if err := a.printf("%s %s %s: %s\n", f.Severity, f.Kind, printable(f.Path), oneLine(text)); err != nil {
			return err
		}
	}
	return nil
}
