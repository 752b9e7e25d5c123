package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"contrail/descriptors"
	"contrail/tablecore/tabledef"
)

// vacuumRequest is the body of vacuum.
type vacuumRequest struct {
	Table           string `json:"table"`
	OlderThan       string `json:"older_than,omitempty"`
	Apply           bool   `json:"apply,omitempty"`
	Expire          bool   `json:"expire,omitempty"`
	Force           bool   `json:"force,omitempty"`
	ExpectedVersion *int64 `json:"expected_version,omitempty"`
}

// fileCount is a sum in a vacuum's report.
type fileCount struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

func (c fileCount) String() string {
	return fmt.Sprintf("%s (%s)", plural(c.Files, "file"), plural(c.Bytes, "byte"))
}

// vacuumReport is what vacuum answers.
type vacuumReport struct {
	StartingVersion  int64     `json:"starting_version"`
	CommittedVersion int64     `json:"committed_version"`
	OlderThan        string    `json:"older_than"`
	Apply            bool      `json:"apply"`
	Considered       fileCount `json:"considered"`
	Retained         fileCount `json:"retained"`
	Removable        fileCount `json:"removable"`
	Deleted          fileCount `json:"deleted"`
	AlreadyAbsent    fileCount `json:"already_absent"`
}

// vacuumArtifact is what becomes of one file.
type vacuumArtifact struct {
	Path        string `json:"path"`
	Bytes       int64  `json:"bytes"`
	Modified    string `json:"modified"`
	Disposition string `json:"disposition"`
	Reason      string `json:"reason"`
	Version     *int64 `json:"version"`
}

const vacuumLong = `Remove the files in a table's directory that no retained version needs: what killed
writers have left, and the files that were replaced and whose versions have expired.
Without --apply it only tells what would go.

Versions stay until --expire gives up those that were succeeded longer ago than the
table's contrail.snapshot-retention. Files of running writers stay.

With --apply it asks first. Without a terminal to ask on it refuses, unless --yes is
given. A vacuum that was stopped can be run again.`

func newVacuumCommand(a *app) *cobra.Command {
	var yes, all bool
	var olderThan string
	var expected int64
	var request vacuumRequest
	cmd := &cobra.Command{
		Use:   "vacuum TABLE",
		Short: "Remove files that no version needs, or tell which",
		Long:  vacuumLong,
		Example: `  flight-admin vacuum weather
  flight-admin vacuum weather --expire --older-than 30d --apply --yes`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTable(false),
	}
	flags := cmd.Flags()
	flags.StringVar(&olderThan, "older-than", "", "a time, or how long ago, such as 12h or 30d: files that were never committed go if they are older; default 7d, at least 1h")
	flags.BoolVar(&request.Apply, "apply", false, "remove the files")
	flags.BoolVar(&request.Expire, "expire", false, "also give up versions older than the table's snapshot retention")
	flags.BoolVar(&request.Force, "force", false, "take any --older-than; no other process may be writing to the table")
	flags.Int64Var(&expected, "expected-version", 0, "vacuum only this version of the table")
	flags.BoolVar(&all, "all", false, "list the files that stay, too")
	flags.BoolVar(&yes, "yes", false, "do not ask")
	cmd.RunE = a.connected(func(ctx context.Context, s *session, args []string) (err error) {
		request.Table, request.ExpectedVersion = args[0], optionalNumber(cmd, "expected-version", expected)
		if request.OlderThan, err = momentAgo(olderThan, time.Now()); err != nil {
			return err
		}
		if request.Apply && !yes {
			if err := a.confirmVacuum(ctx, s, request); err != nil {
				return err
			}
		}
		return a.vacuum(ctx, s, request, all)
	})
	return cmd
}

// momentAgo reads a time, or how long before now it is.
func momentAgo(text string, now time.Time) (string, error) {
	if text == "" {
		return "", nil
	}
	if _, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return text, nil
	}
	g, err := tabledef.ParseGranularity(text, tabledef.IndexTimestamp)
	const longest = uint64(100 * 365 * 24 * time.Hour)
	if err != nil || g.N > longest/g.Nanos() {
		return "", usagef("--older-than: %q is no time such as 2013-01-31T06:00:00Z and no duration such as 30d", text)
	}
	return now.Add(-time.Duration(g.N * g.Nanos())).UTC().Format(time.RFC3339Nano), nil
}

// vacuum runs a vacuum and prints what became of the files, and the sums.
func (a *app) vacuum(ctx context.Context, s *session, request vacuumRequest, all bool) error {
	table := newTextTable(a.stdout, []string{"disposition", "reason", "version", "bytes", "modified", "path"}, []bool{false, false, true, true, false, false})
	list, listed := []json.RawMessage{}, false
	result, err := a.watch(ctx, s, descriptors.ActionVacuum, request, func(kind string, message json.RawMessage) error {
		if kind != "artifacts" {
			return nil
		}
		if !a.json {
			return addArtifacts(table, message, all, &listed)
		}
		var some []json.RawMessage
		err := json.Unmarshal(message, &some)
		list = append(list, some...)
		return err
	})
	if listed {
		if closeErr := table.Close(); err == nil {
			err = closeErr
		}
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.printVacuumJSON(list, result)
	}
	return decoded(func(r vacuumReport) error { return a.printVacuum(request.Table, r) })(result)
}

// addArtifacts lists those of a message that do not stay, or all of them.
func addArtifacts(t *textTable, message json.RawMessage, all bool, listed *bool) error {
	return decoded(func(list []vacuumArtifact) error {
		for _, x := range list {
			if x.Disposition == "retained" && !all {
				continue
			}
			*listed = true
			version := "-"
			if x.Version != nil {
				version = strconv.FormatInt(*x.Version, 10)
			}
			if err := t.add([]string{x.Disposition, x.Reason, version, strconv.FormatInt(x.Bytes, 10), x.Modified, x.Path}); err != nil {
				return err
			}
		}
		return nil
	})(message)
}

// printVacuumJSON prints one document: the report with all files.
func (a *app) printVacuumJSON(list []json.RawMessage, result json.RawMessage) error {
	return a.printDocument(struct {
		Artifacts []json.RawMessage `json:"artifacts"`
		Result    json.RawMessage   `json:"result"`
	}{list, result})
}

func (a *app) printVacuum(table string, r vacuumReport) error {
	expired := ""
	if r.CommittedVersion != r.StartingVersion {
		expired = fmt.Sprintf("; expired old versions as version %d", r.CommittedVersion)
	}
	if !r.Apply {
		return a.printf("%s: would remove %s of %s older than %s\n", fullName(table), r.Removable, r.Considered, r.OlderThan)
	}
	absent := ""
	if r.AlreadyAbsent.Files > 0 {
		absent = fmt.Sprintf(", %s gone already", r.AlreadyAbsent)
	}
	return a.printf("%s: removed %s of %s older than %s%s%s\n", fullName(table), r.Deleted, r.Considered, r.OlderThan, absent, expired)
}

// confirmVacuum tells how much would go and asks, unless nothing would.
func (a *app) confirmVacuum(ctx context.Context, s *session, r vacuumRequest) error {
	if err := a.mustAsk("removes the files"); err != nil {
		return err
	}
	r.Apply = false
	result, err := a.act(ctx, s, descriptors.ActionVacuum, r)
	if err != nil {
		return err
	}
	return decoded(func(report vacuumReport) error {
		if report.Removable.Files == 0 && !r.Expire {
			return nil
		}
		also := ""
		if r.Expire {
			also = " and give up versions older than the snapshot retention"
		}
		return a.confirm(ctx, fmt.Sprintf("Remove %s from %s%s?", report.Removable, fullName(r.Table), also), "not vacuumed")
	})(result)
}
