package staging

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// Key signs the tokens of a warehouse.
type Key [32]byte

// KeyPath is where the key lies in a warehouse's store. No table and no
// namespace can have this name.
const KeyPath = "_contrail/staging.key"

// LoadKey returns the key of a warehouse. The first to ask makes it, of random
// bytes; all servers of the warehouse share it. Errors are the store's, and
// *tableerr.Corrupt for a file that is no key.
func LoadKey(ctx context.Context, store objstore.Store, random io.Reader) (Key, error) {
	text, err := store.Get(ctx, KeyPath)
	if errors.Is(err, objstore.ErrNotExist) {
		if err := makeKey(ctx, store, random); err != nil {
			return Key{}, err
		}
		text, err = store.Get(ctx, KeyPath) // whoever made it
	}
	if err != nil {
		return Key{}, err
	}
	return parseKey(text)
}

// makeKey writes a new key unless there is one.
func makeKey(ctx context.Context, store objstore.Store, random io.Reader) error {
	var key Key
	if _, err := io.ReadFull(random, key[:]); err != nil {
		return err
	}
	object := objstore.Object{Key: KeyPath, Data: []byte(hex.EncodeToString(key[:]) + "\n"), Private: true}
	if _, err := store.PutAllIfAbsent(ctx, []objstore.Object{object}); err != nil && !errors.Is(err, objstore.ErrExist) {
		return err
	}
	return nil
}

func parseKey(text []byte) (Key, error) {
	raw, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(raw) != len(Key{}) {
		return Key{}, &tableerr.Corrupt{Path: KeyPath, Msg: "the key that signs staged appends is damaged; remove it, and a new one is made"}
	}
	return Key(raw), nil
}
