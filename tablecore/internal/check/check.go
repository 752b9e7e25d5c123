// Package check compares what a table's log, data files and derived data say of
// its rows with the rows themselves.
//
// It reads everything of one version: the log from its beginning, every row of
// every live file, what is stored beside them, and the names of all other files.
// It believes nothing that it can compute: footers, coverage and statistics are
// read from the store and not from a cache. It goes on while others commit,
// since a version never changes. Memory is bounded by one batch of rows and the
// coverage of files whose ranges overlap, as for a coverage query, and by the
// paths that the log names.
package check

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/attempt"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/series"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// Config says what is checked, and how.
type Config struct {
	Store objstore.Store // the table's own
	Log   *deltalog.Log
	// Snapshot is the version that is checked.
	Snapshot *snapshot.Snapshot
	// Newest returns the newest version, At another one.
	Newest func(ctx context.Context) (*snapshot.Snapshot, error)
	At     func(ctx context.Context, version int64) (*snapshot.Snapshot, error)
	// Files gives the derived data of files, Series the series that follow from
	// them; it must not know what a state file says of them.
	Files  *filecache.Files
	Series *series.Table
	// Mem is where rows are decoded to.
	Mem memory.Allocator
	// Now is the time of the check. Files that nobody refers to and that are
	// younger than attempt.Life may be those of a commit to come.
	Now time.Time
	// AtWork looks for the attempts of running writers, whose files may be older.
	AtWork func(ctx context.Context) (attempt.Flight, error)
	// Repair writes derived data anew. The version must be the newest, and
	// writable.
	Repair bool
	// RepairState writes the state file and the head of the version anew, after
	// they were deleted; s is the version as the log has it.
	RepairState func(ctx context.Context, s *snapshot.Snapshot) error
	// Findings gets what is found, up to 1,000 at a time. Its error ends the
	// check.
	Findings func([]Finding) error
	// Progress is told how far a step has come; a total below 0 is not known.
	Progress func(step string, done, total int64, unit string)
}

// checker is one check.
type checker struct {
	cfg  Config
	snap *snapshot.Snapshot
	report
	refs map[string]ref // by path, of the files that the log names
	gap  bool           // in the log
	head headFile
	// The states of the version and of the head's, as the commits have them; nil
	// where these were not replayed.
	truth, headState *deltalog.State
	told             int64 // the last progress, in thousandths
}

// Run checks a version of a table. Damage is a finding; errors are those of the
// store, the context and the callbacks.
func Run(ctx context.Context, cfg Config) (Totals, error) {
	c := &checker{cfg: cfg, snap: cfg.Snapshot, report: report{send: cfg.Findings}, refs: map[string]ref{}}
	// The head first: one that is read later may be of a later version.
	for _, step := range []func(context.Context) error{c.readHead, c.log, c.files, c.state, c.others} {
		if err := step(ctx); err != nil {
			return c.totals, err
		}
	}
	return c.totals, c.flush()
}

// Log checks the log of a table that cannot be opened, and returns the newest
// version it found, −1 for none.
func Log(ctx context.Context, cfg Config) (int64, Totals, error) {
	c := &checker{cfg: cfg, report: report{send: cfg.Findings}, refs: map[string]ref{}}
	newest, err := c.verifyLog(ctx, -1, 0)
	if err == nil {
		err = c.flush()
	}
	return newest, c.totals, err
}

// tell tells progress: at most a thousand times a step or, where the total is
// not known, every thousand.
func (c *checker) tell(step string, done, total int64, unit string) {
	if c.cfg.Progress == nil {
		return
	}
	const parts = 1000
	at := done
	if total > parts {
		at = done * parts / total
	}
	if done > 0 && (total < 0 && done%parts != 0 || done < total && at == c.told) {
		return
	}
	c.told = at
	c.cfg.Progress(step, done, total, unit)
}

// damage is what an error of a damaged file says, without the file's name;
// false for errors that say nothing of a file's content.
func damage(err error) (string, bool) {
	var corrupt *tableerr.Corrupt
	if errors.As(err, &corrupt) {
		if corrupt.Msg != "" {
			return corrupt.Msg, true
		}
		return corrupt.Error(), true
	}
	if tableerr.TokenOf(err) == tableerr.TokenMessageTooLarge || tableerr.TokenOf(err) == tableerr.TokenInvalid {
		return err.Error(), true
	}
	return "", false
}

// byBounds returns the live files by the smallest index value that they say they
// have.
func byBounds(files []*snapshot.File) []*snapshot.File {
	sorted := slices.Clone(files)
	slices.SortStableFunc(sorted, func(a, b *snapshot.File) int {
		return cmp.Or(cmp.Compare(a.Min, b.Min), cmp.Compare(a.Max, b.Max), strings.Compare(a.Path, b.Path))
	})
	return sorted
}
