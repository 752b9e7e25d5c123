package tablecore

import (
	"context"
	"errors"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/maintain"
	"contrail/tablecore/internal/parallel"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// ChangesIgnore is the value of ScanOptions.Changes that passes over commits
// which are no appends.
const ChangesIgnore = "ignore"

// commitsAtOnce is how many commits are read at once.
const commitsAtOnce = 8

// appended returns s with those files alone that appends have added behind the
// version that the options name, as they were written then: what optimize has
// made of them since is passed over. Retention drops rows that readers had
// before, and is passed over, too.
func (t *Table) appended(ctx context.Context, s *snapshot.Snapshot, o ScanOptions) (*snapshot.Snapshot, error) {
	if err := t.checkSince(s, o); err != nil || o.SinceVersion == nil {
		return s, err
	}
	span := span{s.Def.ID, *o.SinceVersion, s.Version(), o.Changes}
	known := t.lastSpan.Load()
	if known == nil || known.span != span {
		files, err := t.appendedFiles(ctx, s, o)
		if err != nil {
			return nil, err
		}
		known = &spanFiles{span, files}
		if len(files) <= maxSpanFiles {
			t.lastSpan.Store(known)
		}
	}
	return s.Only(known.files)
}

// span is what an incremental scan is about.
type span struct {
	table          string
	since, version int64
	changes        string
}

// spanFiles are the files of a span. A table keeps those of the last one, since
// all endpoints of a scan plan it anew.
type spanFiles struct {
	span
	files []*deltalog.Add
}

// maxSpanFiles bounds what is kept.
const maxSpanFiles = 10_000

// appendedFiles reads the commits of a span.
func (t *Table) appendedFiles(ctx context.Context, s *snapshot.Snapshot, o ScanOptions) ([]*deltalog.Add, error) {
	since := *o.SinceVersion
	added := make([][]*deltalog.Add, s.Version()-since)
	refused := make([]error, len(added))
	err := parallel.Each(ctx, len(added), commitsAtOnce, func(ctx context.Context, i int) (err error) {
		added[i], refused[i], err = t.appendedBy(ctx, since+1+int64(i), o)
		return err
	})
	if err != nil {
		return nil, err
	}
	var files []*deltalog.Add
	seen := map[string]bool{} // rows that were rolled back and committed again lie in one file
	for i := range added {
		if refused[i] != nil {
			return nil, refused[i] // of the first commit that is no append
		}
		for _, a := range added[i] {
			if !seen[a.Path] {
				seen[a.Path] = true
				files = append(files, a)
			}
		}
	}
	return files, nil
}

// checkSince looks at the version that an incremental scan begins behind.
func (t *Table) checkSince(s *snapshot.Snapshot, o ScanOptions) error {
	switch {
	case o.Changes != "" && o.Changes != ChangesIgnore:
		return tableerr.InvalidField("changes", "changes %q is not ignore", o.Changes).WithValue(o.Changes)
	case o.SinceVersion == nil && o.Changes != "":
		return tableerr.InvalidField("changes", "changes goes with since_version only")
	case o.SinceVersion == nil:
		return nil
	}
	since, current := *o.SinceVersion, t.txn.Current()
	switch {
	case since < 0 || since > current.Version():
		return &tableerr.VersionNotFound{Version: since, Current: current.Version()}
	case since > s.Version():
		return tableerr.InvalidField("since_version", "since_version %d is behind version %d, which is read", since, s.Version()).WithValue(since)
	case since < current.Upkeep.OldestVersion:
		return &tableerr.VersionExpired{Version: since, Current: current.Version()}
	}
	return nil
}

// appendedBy returns the files with the rows that a version has appended, or why
// it is none that appends.
func (t *Table) appendedBy(ctx context.Context, version int64, o ScanOptions) (added []*deltalog.Add, refused, err error) {
	c, err := t.log.ReadCommit(ctx, version)
	if errors.Is(err, objstore.ErrNotExist) {
		return nil, nil, &tableerr.VersionExpired{Version: *o.SinceVersion, Current: t.txn.Current().Version()}
	}
	if err != nil {
		return nil, nil, err
	}
	change, added := snapshot.ChangeOf(c)
	if change != snapshot.ChangedRows || o.Changes == ChangesIgnore {
		return added, nil, nil
	}
	operation, _ := operationOf(c)
	if operation == maintain.OpRetention {
		return nil, nil, nil
	}
	return nil, &tableerr.NotAppendOnly{Version: version, Operation: operation}, nil
}
