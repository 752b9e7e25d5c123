package maintain

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/internal/rewrite"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// ErrNothingLeft is the answer of Revalidate where other writers have replaced
// files of every group: there is nothing to commit.
var ErrNothingLeft = errors.New("the files to be rewritten were all replaced by other writers")

// Revalidate makes sure that a group at least can still be committed behind a
// snapshot, and that its files fit the table there. TABLE_NOT_FOUND,
// FORMAT_UNWRITABLE, UNSUPPORTED, VERSION_CONFLICT or ErrNothingLeft.
func (o *Optimize) Revalidate(_ context.Context, s *snapshot.Snapshot) error {
	if s.Def.ID != o.base.Def.ID {
		return &tableerr.TableNotFound{}
	}
	if err := s.CheckWritable(); err != nil {
		return err
	}
	if !o.fits(s) {
		return &tableerr.VersionConflict{Expected: o.base.Version(), Found: s.Version()}
	}
	for _, g := range o.groups {
		if g.stands(s) {
			return nil
		}
	}
	return ErrNothingLeft
}

// fits says whether files that were written for the plan's version mean the same
// in another one, which may have got columns.
func (o *Optimize) fits(s *snapshot.Snapshot) bool {
	if s.Def.Stored == nil || !s.Def.SameKeys(o.base.Def) {
		return false
	}
	for _, f := range o.base.Def.Stored.Fields() {
		now, found := s.Def.Stored.FieldsByName(f.Name)
		if !found || !arrow.TypeEqual(now[0].Type, f.Type) || f.Nullable && !now[0].Nullable {
			return false
		}
	}
	return true
}

// stands says whether all files of a group are live in a version.
func (g *group) stands(s *snapshot.Snapshot) bool {
	for _, f := range g.files {
		if now := s.State.File(f.Path); now == nil || !sameFile(now, f.Add) {
			return false
		}
	}
	return true
}

// Commit returns the actions of the commit that follows s, with the groups whose
// files are all there. Nothing that a reader of rows could see changes.
func (o *Optimize) Commit(s *snapshot.Snapshot, extra map[string]json.RawMessage) *deltalog.Commit {
	c := &deltalog.Commit{Info: &deltalog.CommitInfo{Operation: "OPTIMIZE", Extra: extra,
		OperationParameters: map[string]string{"predicate": "[]", "auto": strconv.FormatBool(o.auto), "zOrderBy": "[]"}}}
	o.lost = map[*group]bool{}
	for _, g := range o.groups {
		if !g.stands(s) {
			o.lost[g] = true
			continue
		}
		for _, f := range g.files {
			remove := rewrite.Remove(f)
			remove.DataChange = false
			c.Removes = append(c.Removes, remove)
		}
		for i := range g.out {
			add := g.out[i].AddAt(s.Version() + 1)
			add.DataChange = false
			c.Adds = append(c.Adds, add)
		}
	}
	return c
}

// Counts tells what a commit behind s takes and makes.
func (o *Optimize) Counts(s *snapshot.Snapshot) Counts {
	var c Counts
	entities := map[string]struct{}{}
	for _, g := range o.groups {
		if !g.stands(s) {
			continue
		}
		c.add(g)
		c.FilesOut += len(g.out)
		for i := range g.out {
			c.BytesOut += g.out[i].Bytes
			for _, r := range g.out[i].Index.Directory {
				entities[r.Key] = struct{}{}
			}
		}
	}
	c.Entities = len(entities)
	return c
}

// Committed is called when the plan was committed as s. It hands what is known of
// the new files to files and removes those of groups that were given up.
func (o *Optimize) Committed(ctx context.Context, s *snapshot.Snapshot, w Rewriter) {
	for _, g := range o.groups {
		if o.lost[g] {
			discard(ctx, w.Store, g)
			continue
		}
		for i := range g.out {
			w.Files.Keep(s.Def, g.out[i].Path, &g.out[i].Index)
		}
	}
}

// Discard removes all that was written.
func (o *Optimize) Discard(ctx context.Context, store objstore.Store) {
	for _, g := range o.groups {
		discard(ctx, store, g)
	}
}

func discard(ctx context.Context, store objstore.Store, g *group) {
	for i := range g.out {
		newfile.Remove(ctx, store, g.out[i].Keys())
	}
	g.out = nil
}
