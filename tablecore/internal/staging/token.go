// Package staging holds the formats of staged appends: rows that are written
// as data files of a table and wait for their commit.
//
// What is known of the files stands in a manifest beside them, in the table's
// directory. The client who staged them holds a token, which names the manifest
// with its digest and is signed with the warehouse's key: nothing that comes
// back from a client is believed without the signature. Whoever commits
// manifests says so beforehand in a claim, so that nobody else takes the files
// away meanwhile.
package staging

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"
)

// MaxTokenBytes bounds a token's text.
const MaxTokenBytes = 4 << 10

// Token is what a client knows of a staged append.
type Token struct {
	// ID is unique; it also tells when the token expires (NewID).
	ID string
	// TableID is the identity of the table that the rows were staged for.
	TableID string
	// Expires is when the files may go, in whole milliseconds.
	Expires     time.Time
	Rows, Bytes int64
	Files       int
	// SchemaID is the fingerprint of the schema that the rows have.
	SchemaID string
	// Manifest is the digest of the manifest. Without files there is none.
	Manifest [sha256.Size]byte
}

// tokenVersion is the version of the token's format.
const tokenVersion = 1

// payload is a token in JSON, its members in this order.
type payload struct {
	Version  int    `json:"v"`
	ID       string `json:"id"`
	TableID  string `json:"table_id"`
	Expires  int64  `json:"expires"` // ms since the epoch
	Rows     int64  `json:"rows"`
	Bytes    int64  `json:"bytes"`
	Files    int    `json:"files"`
	SchemaID string `json:"schema_id"`
	Manifest []byte `json:"manifest"`
}

// mac returns what a payload is signed with.
func (k Key) mac(payload []byte) []byte {
	h := hmac.New(sha256.New, k[:])
	h.Write([]byte("contrail staged append\n")) // the key signs nothing else in this form
	h.Write(payload)
	return h.Sum(nil)
}

// Sign returns a token's text: base64url of its JSON with an HMAC-SHA256 behind
// it.
func (k Key) Sign(t *Token) (string, error) {
	text, err := json.Marshal(payload{Version: tokenVersion, ID: t.ID, TableID: t.TableID, Expires: t.Expires.UnixMilli(),
		Rows: t.Rows, Bytes: t.Bytes, Files: t.Files, SchemaID: t.SchemaID, Manifest: t.Manifest[:]})
	if err != nil {
		return "", err
	}
	return encoding.EncodeToString(append(text, k.mac(text)...)), nil
}

// encoding is that of tokens. It is strict, so that a token has one text.
var encoding = base64.RawURLEncoding.Strict()

// The errors of Parse. Their texts are sentences that lack the subject.
var (
	ErrForged  = errors.New("is no token that this service gave out, or was damaged on the way")
	ErrVersion = errors.New("is a token of another version of Contrail")
)

// Parse reads a token's text. Nothing of it is looked at before its signature.
func (k Key) Parse(text string) (*Token, error) {
	if len(text) > MaxTokenBytes || strings.ContainsAny(text, "\r\n") { // the decoder passes over line breaks
		return nil, ErrForged
	}
	raw, err := encoding.DecodeString(text)
	if err != nil || len(raw) < sha256.Size {
		return nil, ErrForged
	}
	signed, mac := raw[:len(raw)-sha256.Size], raw[len(raw)-sha256.Size:]
	if !hmac.Equal(mac, k.mac(signed)) {
		return nil, ErrForged
	}
	return parsePayload(signed)
}

// parsePayload reads what was signed, perhaps by another version of this
// software.
func parsePayload(signed []byte) (*Token, error) {
	var p payload
	if json.Unmarshal(signed, &p) == nil && p.Version != tokenVersion {
		return nil, ErrVersion
	}
	d := json.NewDecoder(bytes.NewReader(signed))
	d.DisallowUnknownFields()
	p = payload{}
	if d.Decode(&p) != nil || len(p.Manifest) != sha256.Size || p.Rows < 0 || p.Bytes < 0 || p.Files < 0 {
		return nil, ErrForged
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, ErrForged
	}
	expires, ok := expiryOf(p.ID)
	if !ok || expires.UnixMilli() != p.Expires {
		return nil, ErrForged
	}
	return &Token{ID: p.ID, TableID: p.TableID, Expires: expires, Rows: p.Rows, Bytes: p.Bytes, Files: p.Files,
		SchemaID: p.SchemaID, Manifest: [sha256.Size]byte(p.Manifest)}, nil
}
