package tablecore

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/ingest"
	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/internal/staging"
	"contrail/tablecore/internal/txn"
)

// DefaultStagedLifetime is how long staged rows wait for their commit.
const DefaultStagedLifetime = 24 * time.Hour

// MaxStagedLifetime is the longest that staged rows may wait. A table remembers
// for a day longer which of them it has taken.
const MaxStagedLifetime = 6 * 24 * time.Hour

// StageOptions are the settings of rows that are staged. The zero value means
// the defaults.
type StageOptions struct {
	// Compression and the limits of a row group are those of AppendOptions.
	Compression                             string
	MaxRowsPerRowGroup, MaxBytesPerRowGroup *int64
	// TableID, when not empty, must be the table's identity.
	TableID string
}

func (o StageOptions) append() AppendOptions {
	return AppendOptions{Compression: o.Compression, MaxRowsPerRowGroup: o.MaxRowsPerRowGroup, MaxBytesPerRowGroup: o.MaxBytesPerRowGroup, TableID: o.TableID}
}

// StageReport is the result of staging rows.
type StageReport struct {
	// Staged is the token that CommitStaged and AbortStaged take.
	Staged    string `json:"staged"`
	Table     string `json:"table"`
	Rows      int64  `json:"rows"`
	Bytes     int64  `json:"bytes"` // of the data files
	DataFiles int    `json:"data_files"`
	// SchemaID is a fingerprint of the table's declared schema: 16 hex digits.
	SchemaID  string `json:"schema_id"`
	ExpiresAt Time   `json:"expires_at"`
}

// CheckStage makes the checks that precede the rows: the table's format, the
// settings and the stream's schema. Stage repeats them.
func (t *Table) CheckStage(ctx context.Context, schema *arrow.Schema, o StageOptions) error {
	return t.CheckAppend(ctx, schema, o.append())
}

// Stage checks, sorts and writes the rows of a stream as Append does, and
// commits nothing: until CommitStaged publishes them nobody sees them. Its
// errors are those of Append but for those of the commit; after an error nothing
// is left. What is neither committed nor aborted in time is swept by vacuum.
func (t *Table) Stage(ctx context.Context, rows RowReader, o StageOptions) (*StageReport, error) {
	stream := &stream{RowReader: rows}
	report, err := t.stage(ctx, stream, o)
	if !stream.failed {
		err = storeError(err)
	}
	return report, t.wrap(err)
}

func (t *Table) stage(ctx context.Context, rows RowReader, o StageOptions) (*StageReport, error) {
	// Followed, since no commit finds out what another writer has made of the table.
	p, err := t.prepareAppend(ctx, rows.Schema(), o.append(), t.txn.Follow)
	if err != nil {
		return nil, err
	}
	key, err := t.warehouse.stagingKey(ctx)
	if err != nil {
		return nil, err
	}
	attempt := t.attempts.Begin()
	defer attempt.End(ctx)
	if err := p.Write(ctx, rows); err != nil {
		return nil, err
	}
	token, err := t.recordStaged(ctx, p.Append)
	if err != nil {
		p.Discard(ctx)
		return nil, err
	}
	text, err := key.Sign(token)
	if err != nil {
		return nil, err
	}
	p.Remember()
	return &StageReport{Staged: text, Table: t.name.String(), Rows: token.Rows, Bytes: token.Bytes, DataFiles: token.Files,
		SchemaID: token.SchemaID, ExpiresAt: Time{token.Expires}}, nil
}

// recordStaged writes the manifest of rows that were written and returns what
// their token says. After an error there is no manifest.
func (t *Table) recordStaged(ctx context.Context, a *ingest.Append) (*staging.Token, error) {
	unique, err := t.warehouse.newUUID()
	if err != nil {
		return nil, err
	}
	def, files := a.Written()
	expires := t.warehouse.opts.Clock().Add(t.warehouse.opts.StagedLifetime).Truncate(time.Millisecond)
	token := &staging.Token{ID: staging.NewID(expires, unique), TableID: def.ID, Expires: expires, Rows: a.Rows(), Files: len(files),
		SchemaID: schemaID(def.Schema())}
	if len(files) == 0 {
		return token, nil
	}
	metadata, _, err := txn.Describe(def)
	if err != nil {
		return nil, err
	}
	write := a.Settings()
	m := &staging.Manifest{ID: token.ID, TableID: def.ID, Schema: metadata.SchemaString, Configuration: metadata.Configuration,
		Compression: write.Compression.String(), MaxRowsPerRowGroup: write.MaxRowsPerRowGroup, MaxBytesPerRowGroup: write.MaxBytesPerRowGroup}
	for i := range files {
		token.Bytes += files[i].Bytes
		m.Files = append(m.Files, files[i].Record())
	}
	data, err := m.Encode()
	if err != nil {
		return nil, err
	}
	token.Manifest = sha256.Sum256(data)
	manifest := staging.ManifestKey(token.ID)
	if err := t.store.Put(ctx, manifest, data); err != nil {
		newfile.Remove(ctx, t.store, []string{manifest}) // it may be there all the same
		return nil, err
	}
	return token, nil
}

// stagingKey is the key that signs the tokens of the warehouse.
func (w *Warehouse) stagingKey(ctx context.Context) (staging.Key, error) {
	w.signing.Lock()
	defer w.signing.Unlock()
	if w.signingKey != nil {
		return *w.signingKey, nil
	}
	w.random.Lock()
	defer w.random.Unlock()
	key, err := staging.LoadKey(ctx, w.opts.Store, w.opts.Random)
	if err != nil {
		return key, err
	}
	w.signingKey = &key
	return key, nil
}
