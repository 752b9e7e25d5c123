package deltalog

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"unicode/utf8"

	"contrail/tablecore/tableerr"
)

// Limits on a commit file, for reading and writing.
const (
	// MaxLineBytes limits one action. The longest honest ones are schemas of
	// thousands of columns.
	MaxLineBytes = 32 << 20
	// MaxCommitBytes limits one commit file: about a million actions.
	MaxCommitBytes = 512 << 20
)

// ParseCommit reads the content of commit file version. Damage is
// *tableerr.Corrupt naming file and line. The result keeps no reference to
// data.
func ParseCommit(version int64, data []byte) (*Commit, error) {
	c := &Commit{Version: version, Size: int64(len(data)), Digest: sha256.Sum256(data)}
	path := CommitKey(version)
	if len(data) > MaxCommitBytes {
		return nil, &tableerr.Corrupt{Path: path, Msg: fmt.Sprintf("longer than %d bytes", MaxCommitBytes)}
	}
	if len(data) == 0 {
		return nil, &tableerr.Corrupt{Path: path, Msg: "it is empty"}
	}
	if err := verify(data); err != nil {
		return nil, &tableerr.Corrupt{Path: path, Msg: err.Error()}
	}
	for line := 1; len(data) > 0; line++ {
		var text []byte
		text, data, _ = bytes.Cut(data, []byte{'\n'})
		if err := c.parseLine(text); err != nil {
			return nil, &tableerr.Corrupt{Path: path, Msg: fmt.Sprintf("line %d: %v", line, err), Cause: err}
		}
	}
	if c.Info != nil {
		delete(c.Info.Extra, checksumKey)
	}
	c.reconcile()
	return c, nil
}

// parseLine reads one action. A line without a known action adds nothing.
func (c *Commit) parseLine(line []byte) error {
	if len(line) > MaxLineBytes {
		return fmt.Errorf("longer than %d bytes", MaxLineBytes)
	}
	if !utf8.Valid(line) {
		return errors.New("not valid UTF-8")
	}
	r := &jsonReader{data: line}
	if r.peek(); r.pos == len(line) {
		return nil
	}
	if err := r.object(func(key []byte) error { return c.parseAction(r, key) }); err != nil {
		return err
	}
	return r.end()
}

func (c *Commit) parseAction(r *jsonReader, key []byte) error {
	name := string(key)
	if r.null() {
		return nil
	}
	var err error
	switch name {
	case "add":
		a := &Add{}
		if err = a.decode(r); err == nil {
			a.settle()
			c.Adds = append(c.Adds, a)
		}
	case "remove":
		a := &Remove{}
		if err = a.decode(r); err == nil {
			a.settle()
			c.Removes = append(c.Removes, a)
		}
	case "txn":
		a := &Txn{}
		err = a.decode(r)
		c.Txns = append(c.Txns, a)
	case "domainMetadata":
		a := &DomainMetadata{}
		err = a.decode(r)
		c.Domains = append(c.Domains, a)
	case "metaData":
		c.Metadata = &Metadata{}
		err = c.Metadata.decode(r)
	case "protocol":
		c.Protocol = &Protocol{}
		err = c.Protocol.decode(r)
	case "commitInfo":
		if r.peek() != '{' {
			return r.skip()
		}
		c.Info = &CommitInfo{}
		err = c.Info.decode(r)
	default:
		return r.skip()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// reconcile leaves one action for each logical file. The protocol forbids a
// commit to hold two, but the order of actions inside a commit must not change
// what it means, so the last add and the last remove of a file stand, and a
// file that is in both is live.
func (c *Commit) reconcile() {
	if len(c.Adds)+len(c.Removes) < 2 {
		return
	}
	added := make(map[string]int, len(c.Adds))
	c.Adds = lastOfEach(c.Adds, added, (*Add).key)
	if len(c.Removes) == 0 {
		return
	}
	removes := c.Removes[:0]
	for _, r := range lastOfEach(c.Removes, make(map[string]int, len(c.Removes)), (*Remove).key) {
		if _, live := added[r.key()]; !live {
			removes = append(removes, r)
		}
	}
	c.Removes = removes
}

// lastOfEach keeps the last item of each key, at the place of the first.
func lastOfEach[T any](items []T, at map[string]int, key func(T) string) []T {
	kept := items[:0]
	for _, item := range items {
		k := key(item)
		if i, known := at[k]; known {
			kept[i] = item
			continue
		}
		at[k] = len(kept)
		kept = append(kept, item)
	}
	return kept
}
