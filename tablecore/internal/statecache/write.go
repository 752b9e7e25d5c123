package statecache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
)

// When a state file pays. A reader takes the commits behind it one by one, each
// of which costs about as much as twenty files of a state do; a writer pays for
// all files each time, and for the bytes of all sections. So a state is written
// when the tail behind the last one has come to a share of both, which keeps the
// cost of states proportional to the commits, but not below 100 commits and at
// the latest after 1,000.
const (
	fewestCommits  = 100
	mostCommits    = 1000
	filesPerCommit = 20
	bytesPerCommit = 16 << 10
)

// Few appends may bring many rows, of which a state saves the reading: one is
// also written when the data files have grown by so many bytes and such a share.
const (
	bulkBytes = 4 << 20
	bulkShare = 4
)

// Wants tells whether it is time to write the state of a snapshot.
func (c *Cache) Wants(s *snapshot.Snapshot) bool {
	k := c.before(s)
	due := int64(len(s.Files) / filesPerCommit)
	if k != nil {
		due = max(due, k.file.Size()/bytesPerCommit)
	}
	due = min(max(fewestCommits, due), mostCommits)
	return (s.Version()-k.version() >= due || c.Bulk(s)) && writable(s)
}

// Bulk tells whether so much data lies behind the last state that it is worth
// more than the commits that brought it.
func (c *Cache) Bulk(s *snapshot.Snapshot) bool {
	before := int64(0)
	if k := c.before(s); k != nil {
		before = k.state.Bytes()
	}
	return s.Bytes-before >= max(bulkBytes, before/bulkShare)
}

// Behind tells whether the newest state that this process knows of is of an
// older version than a snapshot whose state could be written.
func (c *Cache) Behind(s *snapshot.Snapshot) bool {
	return c.newest().version() < s.Version() && writable(s)
}

// Due tells whether the state of a snapshot and the head can and should be
// written, because the head is none that a reader goes by, or of a version below
// least.
func (c *Cache) Due(ctx context.Context, s *snapshot.Snapshot, least int64) bool {
	if !writable(s) {
		return false
	}
	head, err := c.head(ctx)
	return err != nil || head.Of.TableID != s.Def.ID || head.Of.Version < least || !c.leads(ctx, head)
}

// before returns the newest state file of a version up to that of s, nil for
// none: one of a later version is of a table that was there before.
func (c *Cache) before(s *snapshot.Snapshot) *known {
	if k := c.newest(); k.version() <= s.Version() {
		return k
	}
	return nil
}

// writable tells whether the table is one that may have a head, which formats
// below 0.2.0 have not, and stands on a commit that a head can name.
func writable(s *snapshot.Snapshot) bool {
	_, anchored := s.State.CommitDigest()
	since := s.Def.Format.Major > 0 || s.Def.Format.Minor >= 2
	return anchored && since && s.CheckWritable() == nil
}

// Write writes the state file of a snapshot, with more sections than that of its
// files, makes the head name it unless that names a newer one, and removes state
// files that are not needed any more. Wants or Behind must have been true of the
// snapshot. Several processes may do so at once.
func (c *Cache) Write(ctx context.Context, s *snapshot.Snapshot, more []derived.Section) error {
	digest, _ := s.State.CommitDigest()
	of := derived.Of{TableID: s.Def.ID, Version: s.Version(), Commit: digest}
	data, first, err := c.encode(s, of, more)
	var file *derived.StateFile
	if err == nil {
		file, err = derived.OpenState(data)
	}
	if err != nil {
		return fmt.Errorf("encoding the state of version %d: %w", of.Version, err)
	}
	if err := c.putState(ctx, of, data); err != nil {
		return err
	}
	c.know(&known{file, s.State})
	if c.newerStands(ctx, of) {
		return nil
	}
	head, err := derived.Head{Of: of, First: first}.Encode()
	if err != nil {
		return fmt.Errorf("encoding the head of version %d: %w", of.Version, err)
	}
	if err := c.cfg.Store.Put(ctx, derived.HeadPath, head); err != nil {
		return fmt.Errorf("writing the head of version %d: %w", of.Version, err)
	}
	// Faster writers of newer states may have removed this one before the head
	// named it.
	if _, err := c.cfg.Store.Head(ctx, derived.StatePath(of.TableID, of.Version)); errors.Is(err, objstore.ErrNotExist) {
		return c.putState(ctx, of, data)
	}
	return c.clean(ctx, of)
}

// putState puts a state file. Whoever else writes the state of this version
// writes one that is as good.
func (c *Cache) putState(ctx context.Context, of derived.Of, data []byte) error {
	if err := c.cfg.Store.Put(ctx, derived.StatePath(of.TableID, of.Version), data); err != nil {
		return fmt.Errorf("writing the state of version %d: %w", of.Version, err)
	}
	return nil
}

// Rewrite writes the state file of a snapshot without any section but that of
// its files, and the head, where the table may have them. What was known of an
// older one is forgotten.
func (c *Cache) Rewrite(ctx context.Context, s *snapshot.Snapshot) error {
	c.know(nil)
	if !writable(s) {
		return nil
	}
	return c.Write(ctx, s, nil)
}

// encode returns the bytes of a snapshot's state file. Like a checkpoint it
// leaves out what the table may forget.
func (c *Cache) encode(s *snapshot.Snapshot, of derived.Of, more []derived.Section) (data []byte, first int64, err error) {
	state, _ := s.Expire(c.cfg.Clock().UnixMilli())
	files, err := deltalog.EncodeState(state)
	if err != nil {
		return nil, 0, err
	}
	return derived.EncodeState(of, append([]derived.Section{{Kind: derived.SectionFiles, Data: files}}, more...))
}

// newerStands tells whether the head is of a newer version of this table that
// the log holds and that has its state file: one that leads nowhere would cost
// every reader its time for ever.
func (c *Cache) newerStands(ctx context.Context, of derived.Of) bool {
	head, err := c.head(ctx)
	return err == nil && head.Of.TableID == of.TableID && head.Of.Version > of.Version && c.leads(ctx, head)
}

// leads tells whether the log holds the commit of a head, and the store its state
// file.
func (c *Cache) leads(ctx context.Context, head derived.Head) bool {
	commit, err := c.cfg.Log.ReadCommit(ctx, head.Of.Version)
	if err != nil || commit.Digest != head.Of.Commit {
		return false
	}
	_, err = c.cfg.Store.Head(ctx, derived.StatePath(head.Of.TableID, head.Of.Version))
	return err == nil
}

// clean removes the table's state files of versions below of's, but for the
// newest of them, which somebody may be about to read. Those of newer versions
// may be of a faster writer.
func (c *Cache) clean(ctx context.Context, of derived.Of) error {
	dir, name := split(derived.StatePath(of.TableID, of.Version))
	_, id, _ := strings.Cut(name, "-")
	var older []string
	for info, err := range c.cfg.Store.List(ctx, dir, "") {
		if err != nil {
			return fmt.Errorf("listing state files: %w", err)
		}
		_, other := split(info.Key)
		number, otherID, _ := strings.Cut(other, "-")
		version, err := strconv.ParseInt(number, 10, 64)
		if err == nil && otherID == id && version < of.Version && info.Key == derived.StatePath(of.TableID, version) {
			older = append(older, info.Key)
		}
	}
	slices.Sort(older)
	var errs []error
	for _, key := range older[:max(0, len(older)-1)] {
		if err := c.cfg.Store.Delete(ctx, key); err != nil {
			errs = append(errs, fmt.Errorf("removing an old state file: %w", err))
		}
	}
	return errors.Join(errs...)
}

func split(key string) (dir, name string) {
	at := strings.LastIndexByte(key, '/') + 1
	return key[:at], key[at:]
}
