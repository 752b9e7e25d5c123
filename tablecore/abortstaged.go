package tablecore

import (
	"context"
	"errors"

	"contrail/tablecore/internal/staging"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// AbortStagedOptions say which staged rows are given up.
type AbortStagedOptions struct {
	// Staged are tokens of this table, at least one.
	Staged []string
	// TableID, when not empty, must be the table's identity.
	TableID string
}

// AbortReport is the result of giving up staged rows.
type AbortReport struct {
	Table        string `json:"table"`
	FilesRemoved int    `json:"files_removed"` // data files
	BytesRemoved int64  `json:"bytes_removed"`
}

// AbortStaged removes the files of rows that were staged and will not be
// committed. Rows that are committed, are being committed, or are gone already
// are passed over, so that it may be called at any time and again. A token that
// is damaged, named twice or of another table is INVALID naming its place, and
// then nothing is removed. What an error leaves behind is swept by vacuum.
func (t *Table) AbortStaged(ctx context.Context, o AbortStagedOptions) (*AbortReport, error) {
	report, err := t.abortStaged(ctx, o)
	if err != nil {
		return nil, t.wrap(storeError(err))
	}
	return report, nil
}

func (t *Table) abortStaged(ctx context.Context, o AbortStagedOptions) (*AbortReport, error) {
	s, err := t.at(ctx, At{TableID: o.TableID})
	if err != nil {
		return nil, err
	}
	if err := s.CheckWritable(); err != nil {
		return nil, err
	}
	if len(o.Staged) == 0 {
		return nil, tableerr.InvalidField("staged", "staged names no staged rows")
	}
	tokens, err := t.stagedTokens(ctx, o.Staged)
	if err != nil {
		return nil, err
	}
	report := &AbortReport{Table: t.name.String()}
	for _, k := range tokens {
		files, bytes, err := t.dropStaged(ctx, k.Token)
		if err != nil {
			return nil, err
		}
		report.FilesRemoved += files
		report.BytesRemoved += bytes
	}
	return report, nil
}

// dropStaged removes the files of staged rows unless they are in the table, or
// on their way into it.
func (t *Table) dropStaged(ctx context.Context, token *staging.Token) (files int, bytes int64, err error) {
	if token.Files == 0 {
		return 0, 0, nil
	}
	m, err := t.manifest(ctx, token)
	if errors.Is(err, objstore.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	// From here on nobody begins to commit them; who has begun is seen by the
	// claim or, when that is gone again, in the log.
	if err := t.store.Delete(ctx, staging.ManifestKey(token.ID)); err != nil {
		return 0, 0, err
	}
	if taken, err := t.taken(ctx, token); err != nil || taken {
		return 0, 0, err
	}
	for _, f := range m.Files {
		for _, key := range f.Keys() {
			if err := t.store.Delete(ctx, key); err != nil {
				return files, bytes, err
			}
		}
		files++
		bytes += f.Bytes
	}
	return files, bytes, nil
}

// taken says whether staged rows are claimed or were ever committed, even if a
// rollback has taken them back: then they are part of a version that may be read.
func (t *Table) taken(ctx context.Context, token *staging.Token) (bool, error) {
	for info, err := range t.store.List(ctx, staging.ClaimDir, "") {
		if err != nil {
			return false, err
		}
		claim, err := t.store.Get(ctx, info.Key)
		if errors.Is(err, objstore.ErrNotExist) {
			continue // its commit is in the log, or is none
		}
		if err != nil {
			return false, err
		}
		if staging.Claims(claim, token.ID) {
			return true, nil
		}
	}
	s, err := t.txn.Refresh(ctx)
	if err != nil {
		return false, err
	}
	return s.State.Txn(stagedToken{Token: token}.request().AppID()) != nil, nil
}
