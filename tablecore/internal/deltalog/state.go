package deltalog

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"contrail/tablecore/internal/pmap"
	"contrail/tablecore/tableerr"
)

// State is what the log amounts to at one version. It is immutable and may be
// used by many goroutines; what it returns must not be changed.
type State struct {
	version  int64
	protocol *Protocol
	metadata *Metadata
	marks    schemaMarks // of the metadata's schema

	files   pmap.Map[liveFile] // by logical file
	removes pmap.Map[*Remove]
	txns    pmap.Map[*Txn]
	domains pmap.Map[*DomainMetadata]

	nextSeq    uint64 // position of the next file in log order
	bytes      uint64 // of the live files, modulo 2^64
	refused    int    // live files whose path leads out of the table
	withDV     int    // live files with a deletion vector
	timestamp  *int64 // of the version's commit, ms since the epoch
	anchor     *anchor
	checkpoint CheckpointRef
	logBytes   int64 // of all commits applied
}

type liveFile struct {
	seq uint64
	add *Add
}

// CheckpointRef says what a state knows about the newest checkpoint at or
// below it.
type CheckpointRef struct {
	// Version is the checkpoint's version, -1 when there is none.
	Version int64
	// Bytes is the length of its files.
	Bytes int64

	logBytes int64 // State.logBytes at that version
}

// NewState returns the state before version 0: empty, at version −1.
func NewState() *State {
	return &State{version: -1, checkpoint: CheckpointRef{Version: -1}}
}

// Apply returns the state after the commit that follows s. It costs what the
// commit changes. States that branch off from one state are independent.
func (s *State) Apply(c *Commit) (*State, error) {
	if c.Version != s.version+1 {
		return nil, fmt.Errorf("commit %d does not follow version %d", c.Version, s.version)
	}
	next := *s
	next.version = c.Version
	next.timestamp = c.Timestamp()
	next.logBytes = addSaturating(s.logBytes, c.Size)
	next.anchor = commitAnchor(c)
	next.merge(c)
	if next.protocol == nil || next.metadata == nil {
		missing := "protocol"
		if next.protocol != nil {
			missing = "metaData"
		}
		return nil, &tableerr.Corrupt{Path: CommitKey(c.Version), Msg: "the log holds no " + missing + " action up to here"}
	}
	return &next, nil
}

// merge changes s, which nobody else holds yet, by a commit's actions.
func (s *State) merge(c *Commit) {
	o := &pmap.Owner{}
	if c.Protocol != nil {
		s.protocol = c.Protocol
	}
	if c.Metadata != nil {
		s.metadata = c.Metadata
		s.marks = marksOf(c.Metadata.SchemaString)
	}
	for _, t := range c.Txns {
		s.txns.Set(o, t.AppID, t)
	}
	for _, d := range c.Domains {
		if d.Removed {
			s.domains.Remove(o, d.Domain)
		} else {
			s.domains.Set(o, d.Domain, d)
		}
	}
	for _, r := range c.Removes {
		if r.file == "" {
			settled := *r
			r = &settled
			r.settle()
		}
		s.drop(o, r.key())
		s.removes.Set(o, r.key(), r)
	}
	for _, a := range c.Adds {
		if a.file == "" {
			settled := *a
			a = &settled
			a.settle()
		}
		s.put(o, a)
	}
}

func (s *State) put(o *pmap.Owner, a *Add) {
	key, seq := a.key(), s.nextSeq
	if old, live := s.files.Get(key); live {
		seq = old.seq // a file that is added again keeps its place
		s.count(old.add, -1)
	} else {
		s.nextSeq++
	}
	s.count(a, 1)
	s.files.Set(o, key, liveFile{seq, a})
	s.removes.Remove(o, key)
}

func (s *State) drop(o *pmap.Owner, key string) {
	if old, live := s.files.Get(key); live {
		s.count(old.add, -1)
		s.files.Remove(o, key)
	}
}

func (s *State) count(a *Add, by int) {
	s.bytes += uint64(a.Size) * uint64(by)
	if a.refused {
		s.refused += by
	}
	if a.DeletionVector != nil {
		s.withDV += by
	}
}

// Version returns the version the state is at.
func (s *State) Version() int64 { return s.version }

// Protocol returns the protocol in force. It is never nil in a state that a
// Log or Apply returned.
func (s *State) Protocol() *Protocol { return s.protocol }

// Metadata returns the metadata in force. It is never nil in a state that a Log
// or Apply returned.
func (s *State) Metadata() *Metadata { return s.metadata }

// Timestamp returns the time of the state's commit in ms since the epoch, and
// whether it is known.
func (s *State) Timestamp() (int64, bool) {
	if s.timestamp == nil {
		return 0, false
	}
	return *s.timestamp, true
}

// NextTimestamp returns the in-commit timestamp of a commit made on s at now
// (ms since the epoch): now, or 1 ms after the last commit if the clock is
// behind it.
func (s *State) NextTimestamp(now int64) int64 {
	if s.timestamp == nil || *s.timestamp < now {
		return now
	}
	return addSaturating(*s.timestamp, 1)
}

// NumFiles returns the number of live files.
func (s *State) NumFiles() int { return s.files.Len() }

// Bytes returns the length of the live files together, as the log has it.
func (s *State) Bytes() int64 { return int64(min(s.bytes, math.MaxInt64)) }

// Files returns the live files in log order: by the commit that first added
// them, and inside a commit as it lists them. It sorts, in O(n log n).
func (s *State) Files() []*Add {
	live := make([]liveFile, 0, s.files.Len())
	for _, f := range s.files.All() {
		live = append(live, f)
	}
	slices.SortFunc(live, func(a, b liveFile) int { return cmp.Compare(a.seq, b.seq) })
	files := make([]*Add, len(live))
	for i, f := range live {
		files[i] = f.add
	}
	return files
}

// File returns the live file with a decoded path (Add.File), or nil.
func (s *State) File(file string) *Add {
	f, _ := s.files.Get(file)
	return f.add
}

// NumRemoves returns the number of tombstones.
func (s *State) NumRemoves() int { return s.removes.Len() }

// Removes yields the tombstones in no particular order.
func (s *State) Removes() iter.Seq[*Remove] {
	return func(yield func(*Remove) bool) {
		for _, r := range s.removes.All() {
			if !yield(r) {
				return
			}
		}
	}
}

// Txn returns the newest txn action of an application, or nil.
func (s *State) Txn(appID string) *Txn {
	t, _ := s.txns.Get(appID)
	return t
}

// NumTxns returns the number of applications with a txn action.
func (s *State) NumTxns() int { return s.txns.Len() }

// Txns yields the newest txn action of each application in no particular
// order.
func (s *State) Txns() iter.Seq[*Txn] {
	return func(yield func(*Txn) bool) {
		for _, t := range s.txns.All() {
			if !yield(t) {
				return
			}
		}
	}
}

// Domain returns the metadata of a domain that was not removed, or nil.
func (s *State) Domain(name string) *DomainMetadata {
	d, _ := s.domains.Get(name)
	return d
}

// Domains returns all domains by name.
func (s *State) Domains() []*DomainMetadata {
	byName := maps.Collect(s.domains.All())
	out := make([]*DomainMetadata, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, byName[name])
	}
	return out
}

// addSaturating adds where b ≥ 0.
func addSaturating(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
