package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/series"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// headFile is the head with the state file that it names.
type headFile struct {
	there bool
	why   string // what is wrong with the two, "" for nothing
	path  string // of the one that is wrong
	head  derived.Head
	file  *derived.StateFile
	data  []byte // of the state file
}

// version is the head's, −1 where there is none that can be read.
func (h *headFile) version() int64 {
	if !h.there || h.why != "" {
		return -1
	}
	return h.head.Of.Version
}

// headAttempts is how often the head is read again because a newer one came, and
// its state file went, between two reads.
const headAttempts = 4

// readHead reads the head and its state file.
func (c *checker) readHead(ctx context.Context) error {
	for range headAttempts {
		again, err := c.tryHead(ctx)
		if err != nil || !again {
			return err
		}
	}
	return nil
}

// tryHead reads the two once; again says that the state file was not there.
func (c *checker) tryHead(ctx context.Context) (again bool, err error) {
	data, err := c.cfg.Store.Get(ctx, derived.HeadPath)
	if errors.Is(err, objstore.ErrNotExist) {
		c.head = headFile{}
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the head: %w", err)
	}
	c.head = headFile{there: true, path: derived.HeadPath}
	if c.head.head, err = derived.DecodeHead(data); err != nil {
		c.head.why = "it is " + err.Error()
		return false, nil
	}
	of := c.head.head.Of
	if of.TableID != c.snap.Def.ID {
		c.head.why = "it is of another table"
		return false, nil
	}
	path := derived.StatePath(of.TableID, of.Version)
	c.head.data, err = c.cfg.Store.Get(ctx, path)
	if errors.Is(err, objstore.ErrNotExist) {
		c.head.why = "its state file is missing"
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", path, err)
	}
	c.head.file, err = derived.OpenState(c.head.data)
	switch {
	case err != nil:
		c.head.path, c.head.why = path, "it is "+err.Error()
	case c.head.file.Of != of:
		c.head.path, c.head.why = path, "it is of another version or table than the head says"
	}
	return false, nil
}

// section returns a section of the state file; why says what is wrong with it.
func (h *headFile) section(kind derived.SectionKind) (data []byte, why string) {
	offset, length, ok := h.file.Section(kind)
	if !ok {
		return nil, ""
	}
	if offset > int64(len(h.data)) || length > int64(len(h.data))-offset {
		return nil, "it is cut short"
	}
	data, err := h.file.Unpack(kind, h.data[offset:offset+length])
	if err != nil {
		return nil, fmt.Sprintf("its section %c is %v", kind, err)
	}
	return data, ""
}

// state checks the head and the state file that it names.
func (c *checker) state(ctx context.Context) error {
	c.tell("state", 0, 1, "files")
	defer c.tell("state", 1, 1, "files")
	if !c.head.there {
		return nil
	}
	f, err := c.judgeState(ctx)
	if err != nil || f == nil {
		return err
	}
	if c.cfg.Repair {
		if err := c.repairState(ctx); err != nil {
			return err
		}
		f.Repaired = true
	}
	return c.add(*f)
}

// repairState takes away what is wrong, so that nothing is kept for its sake,
// and has it written anew.
func (c *checker) repairState(ctx context.Context) error {
	paths := []string{derived.HeadPath}
	if c.head.file != nil {
		paths = append(paths, derived.StatePath(c.head.head.Of.TableID, c.head.head.Of.Version))
	}
	for _, path := range paths {
		if err := c.cfg.Store.Delete(ctx, path); err != nil {
			return fmt.Errorf("removing %s: %w", path, err)
		}
	}
	return c.cfg.RepairState(ctx, c.snap)
}

// judgeState returns what is wrong with the head, nil for nothing.
func (c *checker) judgeState(ctx context.Context) (*Finding, error) {
	ignored := func(path, why string) *Finding {
		return &Finding{Severity: Warning, Kind: BadLastValues, Path: path, Text: why + "; it is ignored, and opening takes longer"}
	}
	if c.head.why != "" {
		return ignored(c.head.path, c.head.why), nil
	}
	of := c.head.head.Of
	if of.Version > c.snap.Version() {
		return ignored(derived.HeadPath, fmt.Sprintf("it is of version %d, which does not exist", of.Version)), nil
	}
	commit, err := c.cfg.Log.ReadCommit(ctx, of.Version)
	switch {
	case errors.Is(err, objstore.ErrNotExist), tableerr.TokenOf(err) != "":
		return nil, nil // cleaned up, or told of with the log
	case err != nil:
		return nil, err
	case commit.Digest != of.Commit:
		return ignored(derived.HeadPath, "the log has another commit than the one it was made with"), nil
	}
	at, err := c.headSnapshot(ctx)
	if tableerr.TokenOf(err) != "" {
		return nil, nil // expired, or told of with the log
	}
	if err != nil {
		return nil, err
	}
	for _, judge := range []func(context.Context, *snapshot.Snapshot, string) (*Finding, error){c.judgeFiles, c.judgeCoverage, c.judgeNewest} {
		f, err := judge(ctx, at, derived.StatePath(of.TableID, of.Version))
		if err != nil || f != nil {
			return f, err
		}
	}
	return nil, nil
}

// headSnapshot is the head's version, as the log has it.
func (c *checker) headSnapshot(ctx context.Context) (*snapshot.Snapshot, error) {
	if c.headState != nil {
		return snapshot.New(c.headState)
	}
	return c.cfg.At(ctx, c.head.head.Of.Version)
}

// damagedSection is the finding for a section that cannot be read, nil where it
// can.
func damagedSection(kind Kind, path, why string) *Finding {
	if why == "" {
		return nil
	}
	return &Finding{Severity: Warning, Kind: kind, Path: path, Text: why + "; it is ignored"}
}

// wrongSection is the finding for a section that readers would believe.
func wrongSection(kind Kind, path, text string) *Finding {
	return &Finding{Severity: Error, Kind: kind, Path: path, Text: text}
}

// judgeFiles compares the log's state in the state file with the log.
func (c *checker) judgeFiles(_ context.Context, at *snapshot.Snapshot, path string) (*Finding, error) {
	data, why := c.head.section(derived.SectionFiles)
	if data == nil {
		return damagedSection(BadLog, path, why), nil
	}
	stored, err := deltalog.DecodeState(at.Version(), string(data))
	if err != nil {
		return damagedSection(BadLog, path, "its first section is damaged: "+err.Error()), nil
	}
	if why := at.State.Difference(stored); why != "" {
		return wrongSection(BadLog, path, "it does not agree with the log: "+why), nil
	}
	return nil, nil
}

// judgeCoverage compares the merged coverage with that of the files.
func (c *checker) judgeCoverage(ctx context.Context, at *snapshot.Snapshot, path string) (*Finding, error) {
	data, why := c.head.section(derived.SectionCoverage)
	if data == nil {
		return damagedSection(BadCoverage, path, why), nil
	}
	var same bool
	stored, err := series.DecodeCoverage(at, data)
	if err != nil {
		return damagedSection(BadCoverage, path, "its coverage is damaged: "+err.Error()), nil
	}
	truth, err := c.cfg.Series.Coverage(ctx, at)
	if err == nil {
		same, err = equalCoverage(stored, truth)
	}
	return judged(err, same, wrongSection(BadCoverage, path, "its coverage is not that of the data files"))
}

// judged is a finding, unless it agrees or what it is to agree with is damaged,
// which was told with the files.
func judged(err error, same bool, f *Finding) (*Finding, error) {
	if tableerr.TokenOf(err) != "" {
		return nil, nil
	}
	if err != nil || same {
		return nil, err
	}
	return f, nil
}

func equalCoverage(a, b *coverage.Merged) (bool, error) {
	x, err := a.Set()
	if err != nil {
		return false, err
	}
	y, err := b.Set()
	if err != nil {
		return false, err
	}
	return bytes.Equal(x.AppendEncoded(nil), y.AppendEncoded(nil)), nil
}

// judgeNewest compares the newest rows with those of the files.
func (c *checker) judgeNewest(ctx context.Context, at *snapshot.Snapshot, path string) (*Finding, error) {
	data, why := c.head.section(derived.SectionNewest)
	if data == nil {
		return damagedSection(BadLastValues, path, why), nil
	}
	stored, err := series.DecodeNewest(ctx, at, data)
	if err != nil {
		return damagedSection(BadLastValues, path, "its newest rows are damaged: "+err.Error()), nil
	}
	truth, err := c.cfg.Series.Newest(ctx, at)
	if err != nil {
		return judged(err, false, nil)
	}
	// Both by way of the encoding, which equal rows have in common.
	a, err := series.EncodeNewest(at, stored)
	if err != nil {
		return nil, err
	}
	b, err := series.EncodeNewest(at, truth)
	return judged(err, a == nil || b == nil || bytes.Equal(a, b), wrongSection(BadLastValues, path, "its newest rows are not those of the data files"))
}
