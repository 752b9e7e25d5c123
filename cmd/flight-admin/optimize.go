package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"contrail/descriptors"
)

// optimizeRequest is the body of optimize.
type optimizeRequest struct {
	Table           string `json:"table"`
	Layout          string `json:"layout,omitempty"`
	TargetFileBytes *int64 `json:"target_file_bytes,omitempty"`
	MaxFiles        *int64 `json:"max_files,omitempty"`
	ExpectedVersion *int64 `json:"expected_version,omitempty"`
	DryRun          bool   `json:"dry_run,omitempty"`
}

// optimizeReport is what optimize answers.
type optimizeReport struct {
	StartingVersion  int64 `json:"starting_version"`
	CommittedVersion int64 `json:"committed_version"`
	FilesIn          int64 `json:"files_in"`
	FilesOut         int64 `json:"files_out"`
	BytesIn          int64 `json:"bytes_in"`
	BytesOut         int64 `json:"bytes_out"`
	Rows             int64 `json:"rows"`
	Entities         int64 `json:"entities"`
	NoOp             bool  `json:"no_op"`
	DryRun           bool  `json:"dry_run"`
}

const optimizeLong = `Rewrite the data files that are small, too large, not sorted, or overlap others in the
index, into files cut by ranges of the index, sorted by entity and index inside, near
the target size. No row changes, and older versions stay readable.

It goes on beside appends; files that another writer replaces meanwhile are left as
they are. A table in which nothing is to do keeps its version.`

func newOptimizeCommand(a *app) *cobra.Command {
	var target, maxFiles, expected int64
	var request optimizeRequest
	cmd := &cobra.Command{
		Use:   "optimize TABLE",
		Short: "Merge small files and sort what is not sorted",
		Long:  optimizeLong,
		Example: `  flight-admin optimize weather --dry-run
  flight-admin optimize weather --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTable(false),
	}
	cmd.Flags().StringVar(&request.Layout, "layout", "", "mixed: files cut by ranges of the index; entity: files of one entity each; default: mixed")
	cmd.Flags().Int64Var(&target, "target-file-bytes", 0, "size that files aim at; default: the table's, or 128 MiB")
	cmd.Flags().Int64Var(&maxFiles, "max-files", 0, "how many files --layout entity may make; default: 10000")
	cmd.Flags().BoolVar(&request.DryRun, "dry-run", false, "only tell what would be rewritten")
	cmd.Flags().Int64Var(&expected, "expected-version", 0, "the only version of the table that the rewriting may follow; default: any")
	cmd.RunE = a.connected(func(ctx context.Context, s *session, args []string) error {
		request.Table = args[0]
		request.TargetFileBytes = optionalNumber(cmd, "target-file-bytes", target)
		request.MaxFiles = optionalNumber(cmd, "max-files", maxFiles)
		request.ExpectedVersion = optionalNumber(cmd, "expected-version", expected)
		show := decoded(func(r optimizeReport) error { return a.printOptimize(request.Table, r) })
		if request.DryRun {
			return a.answer(ctx, s, descriptors.ActionOptimize, request, show)
		}
		return a.apply(ctx, s, descriptors.ActionOptimize, request, show)
	})
	return cmd
}

func (a *app) printOptimize(table string, r optimizeReport) error {
	what := fmt.Sprintf("%s with %s, %s, into", plural(r.FilesIn, "file"), plural(r.Rows, "row"), plural(r.BytesIn, "byte"))
	switch {
	case r.NoOp:
		return a.printf("%s: nothing to rewrite; it stays at version %d\n", fullName(table), r.CommittedVersion)
	case r.DryRun:
		return a.printf("would rewrite %s about %d of %s\n", what, r.FilesOut, fullName(table))
	}
	return a.printf("%s: version %d, %s %d, %s\n", fullName(table), r.CommittedVersion, what, r.FilesOut, plural(r.BytesOut, "byte"))
}
