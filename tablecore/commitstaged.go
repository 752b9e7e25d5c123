package tablecore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"contrail/tablecore/internal/attempt"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/ingest"
	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/staging"
	"contrail/tablecore/internal/txn"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// Ops under which a table remembers the request ids of commits of staged rows,
// and the staged rows that it has taken.
const (
	opCommitStaged = "commit_staged"
	opStaged       = "stage"
)

// CommitStagedOptions say which staged rows become part of a table.
type CommitStagedOptions struct {
	// RequestID makes the commit safe to repeat, as that of AppendOptions; it is
	// required. With a known one the rows that are named are dropped, whatever
	// they are: the job that ran again staged them again.
	RequestID string
	// Staged are tokens of this table, at least one.
	Staged []string
	// ExpectedVersion is the only version the commit may follow.
	ExpectedVersion *int64
	// TableID, when not empty, must be the table's identity.
	TableID string
}

// CommitStaged publishes rows that were staged before as one append: one
// version, one report, all of them or none. The settings in the report are those
// of the first token with rows.
//
// A token that is damaged, of another table, expired, named twice, committed or
// aborted before is INVALID naming its place; two with a row in one interval are
// DUPLICATE_INTERVAL, also where the table overwrites: no one of them is the
// later one. All other errors are those of Append. After an error nothing is
// committed, and the rows wait as before.
func (t *Table) CommitStaged(ctx context.Context, o CommitStagedOptions) (*AppendReport, error) {
	defer t.undisturbed(o.ExpectedVersion)()
	report, err := t.commitStaged(ctx, o)
	return report, t.wrap(storeError(err))
}

func (t *Table) commitStaged(ctx context.Context, o CommitStagedOptions) (*AppendReport, error) {
	s, err := t.at(ctx, At{TableID: o.TableID})
	if err != nil {
		return nil, err
	}
	if err := s.CheckWritable(); err != nil {
		return nil, err
	}
	if err := checkStagedRequest(o); err != nil {
		return nil, err
	}
	if r := s.Request(o.RequestID, t.warehouse.opts.Clock().UnixMilli()); r != nil {
		return t.replayStaged(ctx, r, o)
	}
	if err := checkExpected(s, o.ExpectedVersion); err != nil {
		return nil, err
	}
	tokens, err := t.stagedTokens(ctx, o.Staged)
	if err != nil {
		return nil, err
	}
	if err := t.checkStaged(s, tokens); err != nil {
		return nil, err
	}
	report, err := t.publishStaged(ctx, s, tokens, o)
	if known := knownRequest(err); known != nil {
		return t.replayStaged(ctx, known, o)
	}
	return report, err
}

// checkStagedRequest looks at what a request says of itself.
func checkStagedRequest(o CommitStagedOptions) error {
	switch {
	case o.RequestID == "":
		return tableerr.InvalidField("request_id", "request_id is required")
	case len(o.Staged) == 0:
		return tableerr.InvalidField("staged", "staged names no staged rows")
	}
	return checkRequestID(o.RequestID)
}

// stagedToken is a token with its place in the request.
type stagedToken struct {
	*staging.Token
	at int
}

func (k stagedToken) invalid(format string, args ...any) error {
	return invalidToken(k.at, format, args...)
}

func invalidToken(at int, format string, args ...any) error {
	field := fmt.Sprintf("staged[%d]", at)
	return tableerr.InvalidField(field, "%s %s", field, fmt.Sprintf(format, args...))
}

// request is what the table remembers of rows that it has taken.
func (k stagedToken) request() *snapshot.Request {
	return &snapshot.Request{ID: k.ID, Op: opStaged, Digest: hex.EncodeToString(k.Manifest[:])[:snapshot.DigestLen]}
}

// stagedTokens reads tokens of this table, none twice.
func (t *Table) stagedTokens(ctx context.Context, texts []string) ([]stagedToken, error) {
	key, err := t.warehouse.stagingKey(ctx)
	if err != nil {
		return nil, err
	}
	tokens := make([]stagedToken, 0, len(texts))
	seen := map[string]int{}
	for i, text := range texts {
		k, err := t.stagedToken(key, i, text)
		if err != nil {
			return nil, err
		}
		if first, twice := seen[k.ID]; twice {
			return nil, k.invalid("is the same as staged[%d]", first)
		}
		seen[k.ID] = i
		tokens = append(tokens, k)
	}
	return tokens, nil
}

// stagedToken reads a token of this table.
func (t *Table) stagedToken(key staging.Key, at int, text string) (stagedToken, error) {
	token, err := key.Parse(text)
	if err != nil {
		return stagedToken{}, invalidToken(at, "%v", err)
	}
	k := stagedToken{token, at}
	if token.TableID != t.txn.Current().Def.ID {
		return k, k.invalid("belongs to another table")
	}
	return k, nil
}

// checkStaged makes sure that tokens may be committed on a version.
func (t *Table) checkStaged(s *snapshot.Snapshot, tokens []stagedToken) error {
	now := t.warehouse.opts.Clock()
	for _, k := range tokens {
		if r := s.Request(k.ID, now.UnixMilli()); r != nil {
			return k.invalid("was committed with version %d", r.Version)
		}
		if !now.Before(k.Expires) {
			return k.invalid("expired at %s; stage the rows again", Time{k.Expires}.text())
		}
	}
	return nil
}

// replayStaged answers a commit whose request id is known, and drops the rows
// that it brings.
func (t *Table) replayStaged(ctx context.Context, r *snapshot.Request, o CommitStagedOptions) (*AppendReport, error) {
	report, err := t.firstReport(ctx, r, opCommitStaged, stagedDigest)
	if err != nil {
		return nil, err
	}
	// What is no token any more, or cannot be removed, changes nothing about the
	// rows that are committed, nor about the other tokens.
	key, err := t.warehouse.stagingKey(ctx)
	if err != nil {
		return report, nil
	}
	for i, text := range o.Staged {
		if k, err := t.stagedToken(key, i, text); err == nil {
			_, _, _ = t.dropStaged(ctx, k.Token)
		}
	}
	return report, nil
}

// stagedDigest stands where other puts have the digest of their rows: a commit
// is the same as another by its request id alone.
var stagedDigest = hex.EncodeToString(make([]byte, snapshot.DigestLen/2))

// publishStaged commits staged rows. Nobody takes their files away meanwhile.
func (t *Table) publishStaged(ctx context.Context, s *snapshot.Snapshot, tokens []stagedToken, o CommitStagedOptions) (*AppendReport, error) {
	attempt := t.attempts.Begin()
	defer attempt.End(ctx)
	release, err := t.claim(ctx, tokens)
	if err != nil {
		return nil, err
	}
	report, err := t.publishClaimed(ctx, s, tokens, o, attempt)
	if tableerr.TokenOf(err) != tableerr.TokenCommitUnknown { // else the files may be in the table
		release()
	}
	return report, err
}

// publishClaimed commits staged rows that are claimed, and takes their manifests
// away.
func (t *Table) publishClaimed(ctx context.Context, s *snapshot.Snapshot, tokens []stagedToken, o CommitStagedOptions, by *attempt.Attempt) (*AppendReport, error) {
	parts, write, err := t.stagedParts(ctx, tokens)
	if err != nil {
		return nil, t.unlessCommitted(ctx, o.RequestID, err)
	}
	options := AppendOptions{ExpectedVersion: o.ExpectedVersion, RequestID: o.RequestID}
	if len(parts) == 0 {
		return emptyReport(s.Version(), write, options), nil
	}
	a, err := ingest.NewStaged(ctx, s, parts, t.appendConfig(write))
	if err != nil {
		return nil, err
	}
	report, err := t.publish(ctx, a, options, t.stagedEdit(tokens, by))
	if err == nil {
		t.forgetManifests(ctx, tokens)
	}
	return report, err
}

// stagedEdit makes the edit of an append one that takes staged rows, each of
// them once.
func (t *Table) stagedEdit(tokens []stagedToken, by *attempt.Attempt) func(*txn.Edit) {
	return func(e *txn.Edit) {
		e.Present = by.Check
		e.Request.Op, e.Request.Digest = opCommitStaged, stagedDigest
		revalidate, replan, commit := e.Revalidate, e.Replan, e.Commit
		e.Revalidate = func(ctx context.Context, s *snapshot.Snapshot) error {
			if err := t.checkStaged(s, tokens); err != nil {
				return err
			}
			return revalidate(ctx, s)
		}
		if replan != nil {
			e.Replan = func(ctx context.Context, s *snapshot.Snapshot) error {
				if err := t.checkStaged(s, tokens); err != nil {
					return err
				}
				return replan(ctx, s)
			}
		}
		e.Commit = func(s *snapshot.Snapshot) (*deltalog.Commit, error) {
			c, err := commit(s)
			if err != nil {
				return nil, err
			}
			for _, k := range tokens {
				c.Txns = append(c.Txns, &deltalog.Txn{AppID: k.request().AppID(), Version: s.Version() + 1})
			}
			return c, nil
		}
	}
}

// claim says in the table that staged rows are being committed, and returns what
// takes the claim back. It comes before the manifests are read, as an abort
// takes the manifest away before it looks for claims: one of the two sees the
// other.
func (t *Table) claim(ctx context.Context, tokens []stagedToken) (release func(), err error) {
	id, err := t.warehouse.newUUID()
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(tokens))
	for i, k := range tokens {
		ids[i] = k.ID
	}
	key := staging.ClaimDir + id
	release = func() { newfile.Remove(ctx, t.store, []string{key}) }
	if err := t.store.Put(ctx, key, staging.EncodeClaim(ids)); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// stagedParts reads the manifests of tokens. Those without rows have no part.
// The settings are those of the first with rows.
func (t *Table) stagedParts(ctx context.Context, tokens []stagedToken) ([]ingest.Part, datafile.WriteOptions, error) {
	var parts []ingest.Part
	write, err := AppendOptions{}.writeOptions()
	for _, k := range tokens {
		if k.Files == 0 {
			continue
		}
		m, err := t.manifest(ctx, k.Token)
		if errors.Is(err, objstore.ErrNotExist) {
			return nil, write, k.invalid("is not there any more: it was committed, aborted or swept")
		}
		if err != nil {
			return nil, write, err
		}
		def, err := tabledef.FromMetadata(m.TableID, m.Schema, m.Configuration)
		if err != nil {
			return nil, write, err
		}
		if len(parts) == 0 {
			write.MaxRowsPerRowGroup, write.MaxBytesPerRowGroup = m.MaxRowsPerRowGroup, m.MaxBytesPerRowGroup
			if write.Compression, err = datafile.ParseCompression(m.Compression); err != nil {
				return nil, write, err
			}
		}
		part := ingest.Part{At: k.at, Def: def}
		for i := range m.Files {
			part.Files = append(part.Files, m.Files[i].File())
		}
		parts = append(parts, part)
	}
	return parts, write, err
}

// unlessCommitted gives the error that staged rows cannot be read for, unless
// the same request, sent twice, has just committed them.
func (t *Table) unlessCommitted(ctx context.Context, id string, unread error) error {
	s, err := t.txn.Refresh(ctx)
	if err != nil {
		return err
	}
	if r := s.Request(id, t.warehouse.opts.Clock().UnixMilli()); r != nil {
		return &txn.KnownRequest{Request: r}
	}
	return unread
}

// manifest reads the manifest that a token names.
func (t *Table) manifest(ctx context.Context, token *staging.Token) (*staging.Manifest, error) {
	key := staging.ManifestKey(token.ID)
	data, err := t.store.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(data); !bytes.Equal(sum[:], token.Manifest[:]) {
		return nil, &tableerr.Corrupt{Path: key, Msg: "the manifest of a staged append was changed since it was written"}
	}
	return staging.ParseManifest(key, data)
}

// forgetManifests removes the manifests of committed rows. One that stays does
// no harm: the table knows that it has taken the rows.
func (t *Table) forgetManifests(ctx context.Context, tokens []stagedToken) {
	var keys []string
	for _, k := range tokens {
		if k.Files > 0 {
			keys = append(keys, staging.ManifestKey(k.ID))
		}
	}
	newfile.Remove(ctx, t.store, keys)
}
