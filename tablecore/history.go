package tablecore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/txn"
	"contrail/tablecore/objstore"
)

// History lists the versions of the table, the newest first. Versions whose
// commit was cleaned up are left out; what a checkpoint holds of them are the
// files, not how they came.
func (t *Table) History(ctx context.Context, tableID string) (*Listing, error) {
	s, err := t.at(ctx, At{TableID: tableID})
	if err != nil {
		return nil, t.wrap(err)
	}
	l := t.listing(s, []arrow.Field{listed("version", listedI64), listed("committed_at", listedTime), listed("operation", listedText),
		listedNullable("request_id", listedText), listed("rows_added", listedI64), listed("rows_removed", listedI64), listed("files_added", listedI64),
		listed("files_removed", listedI64), listed("bytes_added", listedI64), listed("bytes_removed", listedI64), listed("expired", listedBool),
		listedNullable("report", listedText)})
	l.run = func(ctx context.Context, out *listingWriter) error { return t.listHistory(ctx, s, out) }
	return l, nil
}

// listHistory reads the commits from the oldest on, because what a commit
// removed is described where it was added, and lists them from the newest on.
func (t *Table) listHistory(ctx context.Context, s *snapshot.Snapshot, out *listingWriter) error {
	versions, err := t.commits(ctx, s.Version())
	if err != nil {
		return err
	}
	h := historian{table: t, files: map[string]fileSize{}, oldest: s.Upkeep.OldestVersion}
	for i, version := range versions {
		if i == 0 || versions[i-1] != version-1 {
			if err := h.begin(ctx, version); err != nil {
				return err
			}
		}
		if err := h.read(ctx, version); err != nil {
			return err
		}
	}
	slices.Reverse(h.rows)
	for _, row := range h.rows {
		if err := out.add(ctx, row...); err != nil {
			return err
		}
	}
	return nil
}

// commits returns the versions up to newest whose commits are there, ascending.
func (t *Table) commits(ctx context.Context, newest int64) ([]int64, error) {
	dir, _, _ := strings.Cut(deltalog.CommitKey(0), "/")
	var versions []int64
	for info, err := range t.store.List(ctx, dir+"/", "") {
		if err != nil {
			return nil, err
		}
		name, found := strings.CutSuffix(strings.TrimPrefix(info.Key, dir+"/"), ".json")
		version, err := strconv.ParseInt(name, 10, 64)
		if found && err == nil && version <= newest && deltalog.CommitKey(version) == info.Key {
			versions = append(versions, version)
		}
	}
	return versions, nil
}

// historian follows the live files through the commits.
type historian struct {
	table  *Table
	files  map[string]fileSize // of the version read last, by path
	oldest int64               // the oldest version that is not expired
	rows   [][]any
}

type fileSize struct{ rows, bytes int64 }

// begin takes in the files that were live before a version whose predecessor's
// commit is gone, if a checkpoint still tells.
func (h *historian) begin(ctx context.Context, version int64) error {
	clear(h.files)
	if version == 0 {
		return nil
	}
	state, err := h.table.log.LoadAt(ctx, version-1)
	if err != nil {
		return ctx.Err() // what was removed is then known by its commit alone
	}
	for _, a := range state.Files() {
		if path, err := a.File(); err == nil {
			h.files[path] = fileSize{snapshot.NumRecords(a.Stats), a.Size}
		}
	}
	return nil
}

// read adds the row of a version.
func (h *historian) read(ctx context.Context, version int64) error {
	c, err := h.table.log.ReadCommit(ctx, version)
	if errors.Is(err, objstore.ErrNotExist) {
		return nil // cleaned up meanwhile
	}
	if err != nil {
		return err
	}
	at, err := h.table.timeOf(ctx, c)
	if err != nil {
		return err
	}
	_, _, report := txn.ReadExtra(c.Info)
	operation, requestID := operationOf(c)
	added, removed := h.follow(c)
	h.rows = append(h.rows, []any{version, Time{at}, operation, filled(requestID), added.rows, removed.rows, added.files, removed.files,
		added.bytes, removed.bytes, version < h.oldest, filled(string(report))})
	return nil
}

// operationOf returns the action or put that made a commit, or the word of
// another writer for it, and the request id, "" where there is none.
func operationOf(c *deltalog.Commit) (operation, requestID string) {
	operation, requestID, _ = txn.ReadExtra(c.Info)
	if operation == "" && c.Info != nil {
		operation = c.Info.Operation
	}
	return operation, requestID
}

// filled is a text, nil for an empty one.
func filled(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// sizes are those of several files.
type sizes struct{ files, rows, bytes int64 }

func (s *sizes) add(f fileSize) {
	s.files++
	s.rows += max(0, f.rows)
	s.bytes += f.bytes
}

// follow moves on to a commit and returns what it added and removed. A file that
// is added while it is live takes its own place, as when a plain table becomes
// Contrail's.
func (h *historian) follow(c *deltalog.Commit) (added, removed sizes) {
	for _, r := range c.Removes {
		path, err := r.File()
		size, known := h.files[path]
		if !known && r.Size != nil {
			size.bytes = *r.Size
		}
		if err == nil {
			delete(h.files, path)
		}
		removed.add(size)
	}
	for _, a := range c.Adds {
		size := fileSize{snapshot.NumRecords(a.Stats), a.Size}
		if path, err := a.File(); err == nil {
			if before, live := h.files[path]; live {
				removed.add(before)
			}
			h.files[path] = size
		}
		added.add(size)
	}
	return added, removed
}
