package tablecore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"contrail/tablecore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// stage returns what appends rows in two steps: it stages them, and commits them
// with others that have none.
func (w *modelWorker) stage(table *tablecore.Table, id string) func(context.Context, tablecore.RowReader, tablecore.AppendOptions) (*tablecore.AppendReport, error) {
	return func(ctx context.Context, rows tablecore.RowReader, o tablecore.AppendOptions) (*tablecore.AppendReport, error) {
		staged, err := table.Stage(ctx, rows, tablecore.StageOptions{Compression: o.Compression, MaxRowsPerRowGroup: o.MaxRowsPerRowGroup, TableID: o.TableID})
		if err != nil {
			return nil, err
		}
		tokens := []string{staged.Staged}
		report, err := table.CommitStaged(ctx, tablecore.CommitStagedOptions{RequestID: id, Staged: tokens, TableID: o.TableID})
		if err != nil {
			_, aborted := table.AbortStaged(ctx, tablecore.AbortStagedOptions{Staged: tokens})
			if aborted != nil && tableerr.TokenOf(aborted) != tableerr.TokenTableNotFound {
				return nil, fmt.Errorf("after %w the abort gives %w", err, aborted)
			}
		}
		return report, err
	}
}

// compareSince compares an incremental scan with the scans of the versions at
// its ends: the one has the rows of the other and those that were appended.
func (w *modelWorker) compareSince(ctx context.Context, number int, s *step, id string) error {
	r := rand.New(rand.NewPCG(uint64(number), 7))
	table, err := w.house.Table(ctx, s.table.name)
	if err != nil || table.ID() != id || r.IntN(3) > 0 {
		return nil // dropped by another worker, or not now
	}
	version := w.known[id]
	since := max(0, version-int64(r.IntN(4)))
	d, err := table.Describe(ctx, tablecore.At{Version: &since, TableID: id})
	if err != nil || d.Columns == nil {
		return ignoreDropped(err)
	}
	o := tablecore.ScanOptions{TableID: id}
	for _, c := range d.Columns {
		o.Columns = append(o.Columns, c.Name)
	}
	rowsOf := func(version int64, since *int64) ([]string, error) {
		o := o
		o.Version, o.SinceVersion = &version, since
		rows, _, err := tabletest.Scan(ctx, table, o)
		return rows, err
	}
	before, err := rowsOf(since, nil)
	if err != nil {
		return ignoreDropped(err)
	}
	after, err := rowsOf(version, nil)
	if err != nil {
		return ignoreDropped(err)
	}
	added, err := rowsOf(version, &since)
	changed := tableerr.TokenOf(err) == tableerr.TokenNotAppendOnly
	if err != nil && !changed {
		return ignoreDropped(err)
	}
	sum := append(slices.Clone(before), added...)
	slices.Sort(sum)
	slices.Sort(after)
	if !changed && !slices.Equal(sum, after) {
		return fmt.Errorf("version %d holds\n  %s\nof which version %d and what was appended since are\n  %s", version, strings.Join(after, "\n  "), since, strings.Join(sum, "\n  "))
	}
	return nil
}

func ignoreDropped(err error) error {
	if tableerr.TokenOf(err) == tableerr.TokenTableNotFound {
		return nil
	}
	return err
}
