package staging

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
)

var (
	expires = time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	testKey = Key{1, 2, 3}
)

func token() *Token {
	return &Token{ID: NewID(expires, "5c0e"), TableID: "9b3f", Expires: time.UnixMilli(expires.UnixMilli()), Rows: 3, Bytes: 4000, Files: 1,
		SchemaID: "b1946ac92492d234", Manifest: [32]byte{9}}
}

// TestTokenText holds the bytes of a token: servers of different versions share
// a warehouse.
func TestTokenText(t *testing.T) {
	text, err := testKey.Sign(token())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"v":1,"id":"001767323045006-5c0e","table_id":"9b3f","expires":1767323045006,"rows":3,"bytes":4000,"files":1,` +
		`"schema_id":"b1946ac92492d234","manifest":"CQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`
	const mac = "29c8"
	if got := string(raw[:len(raw)-32]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := hex.EncodeToString(raw[len(raw)-32:])[:4]; got != mac {
		t.Errorf("the signature begins with %s, not %s", got, mac)
	}
	if again, err := testKey.Parse(text); err != nil || *again != *token() {
		t.Errorf("got %+v, %v", again, err)
	}
}

// TestForgery takes any change of a token for one.
func TestForgery(t *testing.T) {
	text, err := testKey.Sign(token())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Key{1, 2, 4}).Parse(text); !errors.Is(err, ErrForged) {
		t.Errorf("another key gives %v", err)
	}
	for i := range len(text) {
		c := byte('A')
		if text[i] == c {
			c = 'B'
		}
		if got, err := testKey.Parse(text[:i] + string(c) + text[i+1:]); !errors.Is(err, ErrForged) {
			t.Fatalf("changed at %d: %+v, %v", i, got, err)
		}
		if got, err := testKey.Parse(text[:i]); !errors.Is(err, ErrForged) {
			t.Fatalf("cut at %d: %+v, %v", i, got, err)
		}
	}
}

func signed(payload string) string {
	return encoding.EncodeToString(append([]byte(payload), testKey.mac([]byte(payload))...))
}

// TestSignedNonsense is what only another version of this software could sign.
func TestSignedNonsense(t *testing.T) {
	text, err := testKey.Sign(token())
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := encoding.DecodeString(text)
	good := string(raw[:len(raw)-32])
	for _, c := range []struct {
		payload string
		want    error
	}{
		{"", ErrForged}, {"{}", ErrVersion}, {"{", ErrForged}, {good + "{}", ErrForged},
		{strings.Replace(good, `"v":1`, `"v":2,"more":true`, 1), ErrVersion},
		{strings.Replace(good, `"v":1`, `"v":1,"more":true`, 1), ErrForged},
		{strings.Replace(good, `"rows":3`, `"rows":-3`, 1), ErrForged},
		{strings.Replace(good, `"manifest":"CQAA`, `"manifest":"`, 1), ErrForged},
		{strings.Replace(good, `"expires":1`, `"expires":2`, 1), ErrForged},
		{strings.Replace(good, `"id":"0`, `"id":"`, 1), ErrForged},
		{strings.Replace(good, `-5c0e`, `-../x`, 1), ErrForged},
		{good, nil},
	} {
		if got, err := testKey.Parse(signed(c.payload)); !errors.Is(err, c.want) || (c.want == nil) != (got != nil) {
			t.Errorf("%s: %+v, %v, want %v", c.payload, got, err, c.want)
		}
	}
}

func FuzzToken(f *testing.F) {
	text, err := testKey.Sign(token())
	if err != nil {
		f.Fatal(err)
	}
	raw, _ := encoding.DecodeString(text)
	for _, seed := range []string{text, string(raw[:len(raw)-32]), "", "{}", "AAAA"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := testKey.Parse(text); err == nil {
			if again, err := testKey.Sign(got); err != nil || again != text {
				t.Fatalf("%q is %+v, which is %q, %v", text, got, again, err)
			}
		}
		// What is behind the signature.
		got, err := testKey.Parse(signed(text))
		if err != nil {
			if !errors.Is(err, ErrForged) && !errors.Is(err, ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		again, err := testKey.Sign(got)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := testKey.Parse(again); err != nil || *second != *got {
			t.Fatalf("%+v became %+v, %v", got, second, err)
		}
	})
}

func manifest() *Manifest {
	return &Manifest{ID: token().ID, TableID: "9b3f", Schema: `{"type":"struct","fields":[]}`, Configuration: map[string]string{"contrail.index-column": "t"},
		Compression: "auto", MaxRowsPerRowGroup: 1, MaxBytesPerRowGroup: 2,
		Files: []newfile.Record{{Path: "data/5c/5c0e.parquet", Rows: 3, RowGroups: 1, Bytes: 4000, MaxIndex: 1<<64 - 1, Modified: 5, Stats: "{}", Tags: map[string]string{"a": "b"}}}}
}

// TestManifestBytes holds the bytes of a manifest.
func TestManifestBytes(t *testing.T) {
	data, err := manifest().Encode()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"version":1,"id":"001767323045006-5c0e","table_id":"9b3f","schema":"{\"type\":\"struct\",\"fields\":[]}",` +
		`"configuration":{"contrail.index-column":"t"},"compression":"auto","max_rows_per_row_group":1,"max_bytes_per_row_group":2,` +
		`"files":[{"path":"data/5c/5c0e.parquet","rows":3,"row_groups":1,"bytes":4000,"min_index":0,"max_index":18446744073709551615,` +
		`"modified":5,"stats":"{}","tags":{"a":"b"}}]}`
	if string(data) != want {
		t.Errorf("got  %s\nwant %s", data, want)
	}
	key := ManifestKey(token().ID)
	m, err := ParseManifest(key, data)
	if err != nil || m.Files[0].File().Add.Size != 4000 || m.Files[0].MaxIndex != 1<<64-1 {
		t.Errorf("got %+v, %v", m, err)
	}
	if at, ok := ManifestExpiry(key); !ok || !at.Equal(expires) {
		t.Errorf("it expires at %v", at)
	}
	for what, bad := range map[string]string{
		"nothing": "", "a list": "[]", "more": want + "{}", "another member": strings.Replace(want, `"id"`, `"x":1,"id"`, 1),
		"another version": strings.Replace(want, `"version":1`, `"version":2`, 1), "another id": strings.Replace(want, "5c0e", "5c0f", 1),
		"a path outside": strings.Replace(want, "data/5c/", "../5c/", 1), "a path in the log": strings.Replace(want, "data/5c/", "_delta_log/", 1),
		"no rows": strings.Replace(want, `"rows":3`, `"rows":0`, 1), "no tags": strings.Replace(want, `{"a":"b"}`, "null", 1),
		"a sidecar elsewhere": strings.Replace(want, `"rows":3`, `"sidecar":"_contrail/head","rows":3`, 1),
	} {
		if got, err := ParseManifest(key, []byte(bad)); tableerr.TokenOf(err) != tableerr.TokenCorrupt {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
}

func FuzzManifest(f *testing.F) {
	data, err := manifest().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ManifestKey(token().ID), data)
	f.Add("_contrail/staged/x", []byte("{}"))
	f.Fuzz(func(t *testing.T, key string, data []byte) {
		ManifestExpiry(key)
		Claims(data, key)
		m, err := ParseManifest(key, data)
		if err != nil {
			if tableerr.TokenOf(err) != tableerr.TokenCorrupt {
				t.Fatal(err)
			}
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseManifest(key, again); err != nil {
			t.Fatal(err)
		}
	})
}

func TestExpiryOfNames(t *testing.T) {
	for _, key := range []string{"", "_contrail/staged/", "_contrail/staged/x", "_contrail/staged/001767323045006", "_contrail/staged/001767323045006-", "_contrail/staged/1-x",
		"_contrail/staged/00176732304500x-x", "_contrail/staged/001767323045006-a/b", "_contrail/claims/001767323045006-x", "_contrail/staged/-01767323045006-x"} {
		if at, ok := ManifestExpiry(key); ok {
			t.Errorf("%s expires at %v", key, at)
		}
	}
	if id := NewID(time.Time{}, "x"); id != "000000000000000-x" {
		t.Errorf("long ago is %s", id)
	}
}

func TestClaims(t *testing.T) {
	claim := EncodeClaim([]string{"a", "b"})
	for id, want := range map[string]bool{"a": true, "b": true, "c": false, "": false, "a\nb": false} {
		if Claims(claim, id) != want {
			t.Errorf("%q is claimed: %t", id, !want)
		}
	}
	if !Claims(claim[:3], "c") || !Claims(nil, "c") {
		t.Error("a torn claim claims little")
	}
}

// failing fails to be read.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// rivalStore finds a key that somebody else makes first.
type rivalStore struct {
	objstore.Store
	rival func()
}

func (s rivalStore) PutAllIfAbsent(ctx context.Context, objects []objstore.Object) (int, error) {
	s.rival()
	return s.Store.PutAllIfAbsent(ctx, objects)
}

func TestLoadKey(t *testing.T) {
	store := memstore.New()
	if _, err := LoadKey(t.Context(), store, failing{}); err == nil {
		t.Error("a key is made of nothing")
	}
	theirs := strings.Repeat("ab", 32)
	rival := rivalStore{store, func() {
		if err := store.Put(t.Context(), KeyPath, []byte(theirs)); err != nil {
			t.Fatal(err)
		}
	}}
	first, err := LoadKey(t.Context(), rival, strings.NewReader(strings.Repeat("x", 32)))
	if err != nil || first[0] != 0xab {
		t.Fatalf("got %x, %v", first, err)
	}
	if again, err := LoadKey(t.Context(), store, failing{}); err != nil || again != first {
		t.Errorf("got %x, %v", again, err)
	}
	for _, bad := range []string{"", "abc", strings.Repeat("a", 62), strings.Repeat("x", 64)} {
		if err := store.Put(t.Context(), KeyPath, []byte(bad)); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadKey(t.Context(), store, failing{}); tableerr.TokenOf(err) != tableerr.TokenCorrupt {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
