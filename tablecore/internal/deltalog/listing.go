package deltalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"contrail/tablecore/objstore"
)

// listing is what a look into the log's directory found.
type listing struct {
	commits     map[int64]int64 // version → size
	checkpoints map[int64]*checkpointFiles
	newest      int64 // highest version of a commit or a whole checkpoint, -1 for none
}

// checkpointFiles are the files of the checkpoints of one version.
type checkpointFiles struct {
	classic *objstore.Info
	parts   map[int64][]objstore.Info // number of parts → files in order
	v2      bool                      // there is a UUID-named one
}

// whole returns the files of one readable checkpoint, nil if there is none. A
// set with missing parts is none: its writer may have died or be at work.
func (c *checkpointFiles) whole() []objstore.Info {
	if c.classic != nil {
		return []objstore.Info{*c.classic}
	}
	for _, parts := range slices.Sorted(maps.Keys(c.parts)) {
		if files := c.parts[parts]; int64(len(files)) == parts {
			return files
		}
	}
	return nil
}

// list reads the log's directory from a version on.
func (l *Log) list(ctx context.Context, from int64) (*listing, error) {
	ls := &listing{commits: map[int64]int64{}, checkpoints: map[int64]*checkpointFiles{}, newest: -1}
	// All names of a version are longer than the number and so behind it.
	after := fmt.Sprintf("%s%020d", logDir, from)
	for info, err := range l.store.List(ctx, logDir, after) {
		if err != nil {
			return nil, fmt.Errorf("listing the log: %w", err)
		}
		name := strings.TrimPrefix(info.Key, logDir)
		if name > "9~" {
			break // behind all versions: _last_checkpoint, _sidecars/ …
		}
		ls.note(name, info)
	}
	for version, c := range ls.checkpoints {
		if version > ls.newest && (c.whole() != nil || c.v2) {
			ls.newest = version
		}
	}
	return ls, nil
}

func (ls *listing) note(name string, info objstore.Info) {
	f := parseLogName(name)
	switch f.kind {
	case kindOther:
		return
	case kindCommit:
		ls.commits[f.version] = info.Size
		ls.newest = max(ls.newest, f.version)
		return
	}
	c := ls.checkpoints[f.version]
	if c == nil {
		c = &checkpointFiles{}
		ls.checkpoints[f.version] = c
	}
	switch f.kind {
	case kindClassic:
		c.classic = &info
	case kindV2:
		c.v2 = true
	case kindPart:
		c.notePart(f, info)
	}
}

// notePart relies on the ascending order of names: a part is kept only if all
// parts before it are, so that a lone "part 9999999999" costs nothing.
func (c *checkpointFiles) notePart(f logFile, info objstore.Info) {
	if int64(len(c.parts[f.parts])) != f.part-1 {
		return
	}
	if c.parts == nil {
		c.parts = map[int64][]objstore.Info{}
	}
	c.parts[f.parts] = append(c.parts[f.parts], info)
}

// candidates returns the versions of whole checkpoints up to a version, newest
// first.
func (ls *listing) candidates(upTo int64) []int64 {
	var versions []int64
	for version, c := range ls.checkpoints {
		if version <= upTo && c.whole() != nil {
			versions = append(versions, version)
		}
	}
	slices.Sort(versions)
	slices.Reverse(versions)
	return versions
}
