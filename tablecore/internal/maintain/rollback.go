// Package maintain holds the verbs that look after a table: they change which
// files and which definition a version has, and no row on its own.
//
// A verb plans first, without writing, which is also its dry run; what it then
// wants committed is published by txn.
package maintain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/parallel"
	"contrail/tablecore/internal/rewrite"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// OpRollback is the operation of a rollback, in the log and the history.
const OpRollback = "rollback"

// lookups is how many files are looked for at once.
const lookups = 8

// Rollback is one rollback, planned on one version and to be committed right
// behind it.
type Rollback struct {
	from, target *snapshot.Snapshot
	release      bool
	adds         []*deltalog.Add
	removes      []*deltalog.Remove
	upkeep       snapshot.Upkeep
}

// PlanRollback plans to take a table back to what it was at target: its files,
// its schema and its properties, but for those that tabledef.FollowsRollback
// leaves out. With release the table is also given back to other writers.
// UNSUPPORTED for a table that may only be appended to, FORMAT_UNWRITABLE where
// either version is of a format this software must not write, INVALID for a
// release to a version that was not open to other writers.
func PlanRollback(from, target *snapshot.Snapshot, release bool) (*Rollback, error) {
	if err := checkRollback(from, target, release); err != nil {
		return nil, err
	}
	r := &Rollback{from: from, target: target, release: release, upkeep: from.Upkeep}
	r.upkeep.Abandoned = target.Upkeep.RolledBack(target.Version(), from.Version()+1)
	for _, f := range target.Files {
		if now := from.State.File(f.Path); now == nil || !sameFile(now, f.Add) {
			again := *f.Add
			again.DataChange = true
			r.adds = append(r.adds, &again)
		}
	}
	for _, f := range from.Files {
		if target.State.File(f.Path) == nil {
			r.removes = append(r.removes, rewrite.Remove(f))
		}
	}
	return r, nil
}

// CheckFormat refuses a table whose format is not written here, before anything
// else is looked at. A plain Delta table is one of them, unless it is one by a
// rollback of its adoption.
func CheckFormat(s *snapshot.Snapshot) error {
	if err := s.Def.Format.CheckWritable(); err != nil {
		return err
	}
	if ours(s) {
		return nil
	}
	return s.CheckIndexed()
}

func checkRollback(from, target *snapshot.Snapshot, release bool) error {
	if err := from.State.CheckWritable(); err != nil {
		return err
	}
	for _, s := range []*snapshot.Snapshot{from, target} {
		if err := s.Def.Format.CheckWritable(); err != nil {
			return err
		}
	}
	if from.State.AppendOnly() {
		return &tableerr.Unsupported{Feature: "delta.appendOnly", Msg: "the table may only be appended to: delta.appendOnly is true"}
	}
	if !ours(from) {
		return from.CheckWritable() // a plain table
	}
	if release && ours(target) {
		return tableerr.InvalidField("release", "version %d cannot be released to other writers: it was a Contrail table already", target.Version()).WithValue(true)
	}
	return nil
}

// ours says whether other software is kept from writing a table, which is so
// also where its adoption was rolled back.
func ours(s *snapshot.Snapshot) bool {
	return slices.Contains(s.State.Protocol().AllWriterFeatures(), deltalog.FeatureContrail)
}

// sameFile says whether two actions say the same of a file.
func sameFile(a, b *deltalog.Add) bool {
	return a.Size == b.Size && a.Stats == b.Stats && maps.Equal(a.Tags, b.Tags)
}

// Files returns how many files the rollback adds and removes.
func (r *Rollback) Files() (added, removed int) { return len(r.adds), len(r.removes) }

// CheckFiles makes sure that the files to be added again are there.
// FILE_MISSING or CORRUPT with the path.
func (r *Rollback) CheckFiles(ctx context.Context, store objstore.Store) error {
	return parallel.Each(ctx, len(r.adds), lookups, func(ctx context.Context, i int) error {
		a := r.adds[i]
		path, err := a.File()
		if err != nil {
			return err
		}
		info, err := store.Head(ctx, path)
		switch {
		case errors.Is(err, objstore.ErrNotExist):
			return &tableerr.FileMissing{Path: path, Version: r.target.Version(), Cause: err}
		case err == nil && info.Size != a.Size:
			return &tableerr.Corrupt{Path: path, Msg: fmt.Sprintf("the file has %d bytes, the log says %d", info.Size, a.Size)}
		}
		return err
	})
}

// Revalidate makes sure that s is the version that the rollback was planned on
// and not that of another table in its place. TABLE_NOT_FOUND or
// VERSION_CONFLICT.
func (r *Rollback) Revalidate(_ context.Context, s *snapshot.Snapshot) error {
	return sameVersion(r.from, s)
}

// sameVersion makes sure that s is the version that was planned on, perhaps read
// again.
func sameVersion(from, s *snapshot.Snapshot) error {
	if s.Def.ID != from.Def.ID {
		return &tableerr.TableNotFound{}
	}
	planned, _ := from.State.Timestamp()
	found, _ := s.State.Timestamp()
	if s.Version() != from.Version() || found != planned {
		return &tableerr.VersionConflict{Expected: from.Version(), Found: s.Version()}
	}
	return nil
}

// Commit returns the actions of the commit, whose extra goes into commitInfo.
func (r *Rollback) Commit(extra map[string]json.RawMessage) (*deltalog.Commit, error) {
	c := &deltalog.Commit{
		Info: &deltalog.CommitInfo{Operation: "RESTORE", Extra: extra,
			OperationParameters: map[string]string{"version": strconv.FormatInt(r.target.Version(), 10)}},
		Adds: slices.Clone(r.adds), Removes: slices.Clone(r.removes), Txns: r.from.Revived(r.target, r.upkeep),
	}
	if m := r.metadata(); !reflect.DeepEqual(m, r.from.State.Metadata()) {
		c.Metadata = m
	}
	if !r.release {
		upkeep, err := r.upkeep.Action()
		if err != nil {
			return nil, err
		}
		c.Domains = append(c.Domains, upkeep)
		return c, nil
	}
	c.Protocol = r.target.State.Protocol()
	if r.from.State.Domain(snapshot.UpkeepDomain) != nil {
		c.Domains = append(c.Domains, &deltalog.DomainMetadata{Domain: snapshot.UpkeepDomain, Configuration: "{}", Removed: true})
	}
	return c, nil
}

// metadata is the target's, with the properties of from that do not follow a
// rollback.
func (r *Rollback) metadata() *deltalog.Metadata {
	now, then := r.from.State.Metadata(), r.target.State.Metadata()
	m := *then
	m.ID, m.CreatedTime = now.ID, now.CreatedTime
	if r.release {
		return &m
	}
	m.Configuration = map[string]string{}
	for key, value := range then.Configuration {
		if tabledef.FollowsRollback(key) {
			m.Configuration[key] = value
		}
	}
	for key, value := range now.Configuration {
		if !tabledef.FollowsRollback(key) {
			m.Configuration[key] = value
		}
	}
	return &m
}
