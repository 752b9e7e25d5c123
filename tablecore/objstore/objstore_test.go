package objstore_test

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"contrail/tablecore/objstore"
)

func TestCheckPrefix(t *testing.T) {
	for prefix, valid := range map[string]bool{
		"": true, "a": true, "a/": true, "a/b": true, "a/b/": true, "a//": false, "/": false, "/a": false, "a//b": false,
		"..": false, "a/../": false, "a\x00": false, strings.Repeat("x", 255) + "/": true, strings.Repeat("x", 256): false,
	} {
		if err := objstore.CheckPrefix(prefix); (err == nil) != valid {
			t.Errorf("prefix %.40q: %v", prefix, err)
		}
	}
}

func TestCheckWritable(t *testing.T) {
	for key, valid := range map[string]bool{
		"a": true, "_contrail/tmp": true, "_contrail/tmp/x": false, "a/_contrail/tmp/x": false, "a_contrail/tmp/x": true,
		"_contrail/tmpx": true, "_contrail/head": true, "a//b": false,
	} {
		if err := objstore.CheckWritable(key); (err == nil) != valid {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

func TestErrorTexts(t *testing.T) {
	cause := errors.New("cause")
	long := strings.Repeat("x", 10_000)
	tests := map[string]error{
		`put "a/b": cause`: &objstore.OpError{Op: objstore.OpPut, Key: "a/b", Err: cause},
		`outcome of writing "a\nb" is unknown: cause`:                             &objstore.UnknownOutcomeError{Key: "a\nb", Err: cause},
		`invalid key "": empty`:                                                   objstore.CheckKey(""),
		`invalid key "a/../b": has a part that is . or ..`:                        objstore.CheckKey("a/../b"),
		`invalid key "` + long[:200] + `"… (10000 bytes): longer than 4096 bytes`: objstore.CheckKey(long),
	}
	for text, err := range tests {
		if err.Error() != text {
			t.Errorf("%q, want %q", err, text)
		}
		var bad *objstore.KeyError
		if !errors.As(err, &bad) && !errors.Is(err, cause) {
			t.Errorf("%q does not lead to its cause", err)
		}
	}
}

func FuzzCheckKey(f *testing.F) {
	for _, key := range []string{"", "a", "a/b", "/", "a/", "..", "a/./b", "a\x00", "a//b", "näme", "_contrail/tmp/x"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		err := objstore.CheckKey(key)
		if err == nil && (key == "." || path.Clean(key) != key || path.IsAbs(key) || !path.IsAbs(path.Join("/root", key)) ||
			!strings.HasPrefix(path.Join("/root", key), "/root/") || strings.ContainsRune(key, 0)) {
			t.Fatalf("%q is a key", key)
		}
		// What the standard library finds valid is refused only for its length or a NUL byte.
		if err != nil && fs.ValidPath(key) && key != "." && len(key) < 256 && !strings.ContainsRune(key, 0) {
			t.Fatalf("%q: %v", key, err)
		}
		if err == nil && utf8.ValidString(key) && !fs.ValidPath(key) {
			t.Fatalf("%q is a key but no valid path", key)
		}
		if prefixErr := objstore.CheckPrefix(key + "/"); (prefixErr == nil) != (err == nil) && len(key) != 4096 {
			t.Fatalf("%q: %v, as a prefix %v", key, err, prefixErr)
		}
		if objstore.CheckWritable(key) == nil && err != nil {
			t.Fatalf("%q is writable but no key", key)
		}
	})
}
