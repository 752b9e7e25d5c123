package staging

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// Directories of a table, and the names in them.
const (
	// ManifestDir holds a manifest for each staged append, named by its id.
	ManifestDir = "_contrail/staged/"
	// ClaimDir holds a claim for each commit of staged appends that is under way.
	ClaimDir = "_contrail/claims/"
)

// Manifest is what is known of the files of a staged append.
type Manifest struct {
	Version int    `json:"version"` // of the format
	ID      string `json:"id"`
	TableID string `json:"table_id"`
	// Schema and Configuration are the table as the rows were written, as Delta's
	// metadata has it.
	Schema        string            `json:"schema"`
	Configuration map[string]string `json:"configuration"`
	// The settings in force.
	Compression         string `json:"compression"`
	MaxRowsPerRowGroup  int64  `json:"max_rows_per_row_group"`
	MaxBytesPerRowGroup int64  `json:"max_bytes_per_row_group"`

	Files []newfile.Record `json:"files"`
}

// manifestVersion is the version of the manifest's format.
const manifestVersion = 1

// stampDigits is how many digits an expiry has in an id: enough for the year
// 9999 in milliseconds.
const stampDigits = 15

// NewID returns the id of a staged append: when it expires, so that a listing
// tells it, and something unique.
func NewID(expires time.Time, unique string) string {
	digits := strconv.FormatInt(max(0, expires.UnixMilli()), 10)
	return strings.Repeat("0", max(0, stampDigits-len(digits))) + digits + "-" + unique
}

// expiryOf reads when a staged append expires out of its id.
func expiryOf(id string) (time.Time, bool) {
	digits, unique, ok := strings.Cut(id, "-")
	ms, err := strconv.ParseUint(digits, 10, 63)
	if !ok || err != nil || len(digits) != stampDigits || unique == "" || strings.ContainsAny(unique, "/\\.") {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(ms)), true
}

// ManifestKey is where the manifest of a staged append lies in its table.
func ManifestKey(id string) string { return ManifestDir + id }

// ManifestExpiry reads when the files of a manifest may go out of its key; false
// for a key that is no manifest's.
func ManifestExpiry(key string) (time.Time, bool) {
	id, ok := strings.CutPrefix(key, ManifestDir)
	if !ok {
		return time.Time{}, false
	}
	return expiryOf(id)
}

// Encode returns the manifest's bytes.
func (m *Manifest) Encode() ([]byte, error) {
	c := *m
	c.Version = manifestVersion
	return json.Marshal(&c)
}

// ParseManifest reads a manifest. *tableerr.Corrupt for anything else.
func ParseManifest(key string, data []byte) (*Manifest, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	m := &Manifest{}
	err := d.Decode(m)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there are bytes behind it")
		}
	}
	if err == nil && (m.Version != manifestVersion || ManifestKey(m.ID) != key) {
		err = errors.New("it has another version or is of another staged append")
	}
	for _, f := range m.Files {
		if err == nil {
			err = f.Check()
		}
	}
	if err != nil {
		return nil, &tableerr.Corrupt{Path: key, Msg: "the manifest of a staged append is damaged", Cause: err}
	}
	return m, nil
}

// Waiting returns the keys of the files of a table's staged appends that have not
// expired before a time, manifests included. A manifest that cannot be read is
// among them, but nobody can commit its files any more.
func Waiting(ctx context.Context, store objstore.Store, expired time.Time) (map[string]bool, error) {
	keys := map[string]bool{}
	for info, err := range store.List(ctx, ManifestDir, "") {
		if err != nil {
			return nil, err
		}
		expires, ok := ManifestExpiry(info.Key)
		if !ok || !expired.Before(expires) {
			continue
		}
		keys[info.Key] = true
		data, err := store.Get(ctx, info.Key)
		if errors.Is(err, objstore.ErrNotExist) {
			continue // committed, or given up
		}
		if err != nil {
			return nil, err
		}
		m, err := ParseManifest(info.Key, data)
		if err != nil {
			continue
		}
		for _, f := range m.Files {
			for _, key := range f.Keys() {
				keys[key] = true
			}
		}
	}
	return keys, nil
}

// EncodeClaim returns the claim of a commit of staged appends.
func EncodeClaim(ids []string) []byte { return []byte(strings.Join(ids, "\n") + "\n") }

// Claims says whether a claim names a staged append. What is damaged claims
// everything.
func Claims(claim []byte, id string) bool {
	text, whole := strings.CutSuffix(string(claim), "\n")
	if !whole {
		return true
	}
	for line := range strings.Lines(text + "\n") {
		if line == id+"\n" {
			return true
		}
	}
	return false
}
