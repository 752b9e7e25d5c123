package maintain

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"time"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// OpUpgrade is the operation of an upgrade's commits, in the log and the history.
const OpUpgrade = "upgrade"

// defaultHold is how long an upgrade keeps the versions before it where nobody
// asks for another time.
const defaultHold = 7 * 24 * time.Hour

// UpgradeRequest is what an upgrade is asked to do.
type UpgradeRequest struct {
	// Keys are those of a plain Delta table.
	Keys tabledef.Keys
	Now  time.Time
	// KeepUntil is until when versions are kept; zero means a week from now. A
	// longer hold that is there stays.
	KeepUntil time.Time
}

// Upgrade is what an upgrade records of a table: its format, features and keys,
// and how long its versions are kept. It is planned on one version and to be
// committed right behind it.
type Upgrade struct {
	from    *snapshot.Snapshot
	request UpgradeRequest

	protocol *deltalog.Protocol
	metadata *deltalog.Metadata // without the hold
	upkeep   snapshot.Upkeep
	records  bool            // there is more to record than a hold
	adds     []*deltalog.Add // by CheckRows

	held time.Time // what the table has, zero for none
	next *snapshot.Snapshot
}

// PlanUpgrade plans what is to be recorded of a table. FORMAT_UNWRITABLE and
// UNSUPPORTED name what keeps this software from writing to it; INVALID is about
// keys that a plain table lacks or cannot have, or that are not the table's.
func PlanUpgrade(from *snapshot.Snapshot, r UpgradeRequest) (*Upgrade, error) {
	if err := from.Def.Format.CheckWritable(); err != nil {
		return nil, err
	}
	if err := from.State.CheckWritable(); err != nil {
		return nil, err
	}
	metadata := *from.State.Metadata()
	metadata.Configuration = maps.Clone(metadata.Configuration)
	if metadata.Configuration == nil {
		metadata.Configuration = map[string]string{}
	}
	u := &Upgrade{from: from, request: r, metadata: &metadata, protocol: from.State.Protocol().Adopting(), upkeep: from.Upkeep}
	def := from.Def
	if u.adopts() {
		if len(metadata.PartitionColumns) > 0 {
			return nil, &tableerr.Unsupported{Feature: "partitionColumns", Msg: "the table has partition columns, whose values its data files do not hold, so it stays a plain Delta table"}
		}
		var err error
		if def, metadata.SchemaString, err = def.Adopt(r.Keys, metadata.SchemaString); err != nil {
			return nil, err
		}
		u.upkeep = u.upkeep.Forgetting(from.State)
	} else if err := def.CheckKeys(r.Keys); err != nil {
		return nil, err
	}
	if err := u.record(def); err != nil {
		return nil, err
	}
	u.held, _ = time.Parse(time.RFC3339, from.State.Metadata().Configuration[tabledef.KeyKeepUntil])
	return u, nil
}

// adopts says whether the table is a plain one.
func (u *Upgrade) adopts() bool { return u.from.Def.IndexColumn == "" }

// record puts into the metadata what a table of a definition has there.
func (u *Upgrade) record(def *tabledef.Definition) error {
	has := u.metadata.Configuration
	wants, err := def.Configuration()
	if err != nil {
		return err
	}
	wants[tabledef.KeyFileRetention] = deltalog.FormatInterval(def.SnapshotRetention())
	for key, value := range wants {
		if u.adopts() || strings.HasPrefix(key, "delta.") {
			has[key] = value
		}
	}
	was := u.from.State
	if has[tabledef.KeyFormatVersion] = u.Format().String(); u.Format() == u.from.Def.Format {
		has[tabledef.KeyFormatVersion] = was.Metadata().Configuration[tabledef.KeyFormatVersion] // as it is spelled
	}
	u.records = u.protocol != was.Protocol() || !reflect.DeepEqual(u.metadata, withConfiguration(was.Metadata()))
	if u.records {
		version := u.from.Version()
		u.upkeep.UpgradedFrom = &version
	}
	return nil
}

// withConfiguration returns metadata that has a configuration, if an empty one.
func withConfiguration(m *deltalog.Metadata) *deltalog.Metadata {
	if m.Configuration != nil {
		return m
	}
	c := *m
	c.Configuration = map[string]string{}
	return &c
}

// Base is the version that the upgrade was planned on.
func (u *Upgrade) Base() *snapshot.Snapshot { return u.from }

// Records says whether the table's format, features or keys are to be recorded.
func (u *Upgrade) Records() bool { return u.records }

// Format is the table's format afterwards.
func (u *Upgrade) Format() tabledef.FormatVersion {
	if u.from.Def.Format.Before(tabledef.CurrentFormat) {
		return tabledef.CurrentFormat
	}
	return u.from.Def.Format
}

// HoldsUntil is until when versions are kept afterwards. Without anything to
// record, rewrites says whether files are replaced, which needs a hold that lasts
// or the one asked for.
func (u *Upgrade) HoldsUntil(rewrites bool) time.Time {
	if !u.records && !rewrites {
		return u.held
	}
	wanted := u.request.KeepUntil
	if wanted.IsZero() {
		if wanted = u.request.Now.Add(defaultHold); !u.records && u.held.After(u.request.Now) {
			return u.held // an upgrade that goes on has made it
		}
	}
	if u.held.After(wanted) {
		return u.held
	}
	return wanted.UTC().Truncate(time.Microsecond)
}

// Holds says whether HoldsUntil is later than what the table has.
func (u *Upgrade) Holds(rewrites bool) bool { return u.HoldsUntil(rewrites).After(u.held) }

// RollbackTo is the version that takes the upgrade back: the one before it, also
// of an upgrade that goes on with what another one has begun, as long as the hold
// lasts that it has made.
func (u *Upgrade) RollbackTo() int64 {
	begun := u.from.Upkeep.UpgradedFrom
	if u.records || begun == nil || !u.held.After(u.request.Now) || *begun < u.from.Upkeep.OldestVersion {
		return u.from.Version()
	}
	return *begun
}

// Next returns the snapshot that the commit leads to, as far as it is known
// before; the planned one where there is nothing to record.
func (u *Upgrade) Next() (*snapshot.Snapshot, error) {
	if !u.records {
		return u.from, nil
	}
	if u.next == nil {
		c, err := u.Commit(true, nil)
		if err != nil {
			return nil, err
		}
		c.Version = u.from.Version() + 1
		if u.next, err = u.from.Apply(c); err != nil {
			return nil, err
		}
	}
	return u.next, nil
}

// Revalidate makes sure that s is the version that the upgrade was planned on.
// TABLE_NOT_FOUND or VERSION_CONFLICT.
func (u *Upgrade) Revalidate(_ context.Context, s *snapshot.Snapshot) error {
	return sameVersion(u.from, s)
}

// Commit returns the actions of the commit, whose extra goes into commitInfo.
// rewrites is as in HoldsUntil.
func (u *Upgrade) Commit(rewrites bool, extra map[string]json.RawMessage) (*deltalog.Commit, error) {
	c := &deltalog.Commit{Adds: u.adds, Info: &deltalog.CommitInfo{Operation: "UPGRADE", Extra: extra,
		OperationParameters: map[string]string{"from": u.from.Def.Format.String(), "to": u.Format().String()}}}
	metadata := *u.metadata
	metadata.Configuration = maps.Clone(metadata.Configuration)
	if u.Holds(rewrites) {
		metadata.Configuration[tabledef.KeyKeepUntil] = u.HoldsUntil(rewrites).Format(time.RFC3339Nano)
	}
	c.Metadata = &metadata
	if u.protocol != u.from.State.Protocol() {
		c.Protocol = u.protocol
	}
	if !u.records {
		return c, nil
	}
	upkeep, err := u.upkeep.Action()
	if err != nil {
		return nil, err
	}
	c.Domains = append(c.Domains, upkeep)
	return c, nil
}
