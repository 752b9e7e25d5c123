package deltalog

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"contrail/tablecore/tableerr"
)

func TestResolvePath(t *testing.T) {
	for path, want := range map[string]string{
		"part-0.parquet":           "part-0.parquet",
		"data/ab/x.parquet":        "data/ab/x.parquet",
		"a%20b/p@%23h":             "a b/p@#h",
		"a b/c+d":                  "a b/c+d",
		"./a//b/./c":               "a/b/c",
		"d=2020-01-01/t=1%3A2/p":   "d=2020-01-01/t=1:2/p",
		"a%2Fb":                    "a/b",
		"..a/b..":                  "..a/b..",
		"_c=1/x":                   "_c=1/x",
		"a%25b":                    "a%b",
		"%E2%82%AC":                "€",
		"c=__HIVE_DEFAULT_PART__/": "c=__HIVE_DEFAULT_PART__",
		"1:2/x":                    "1:2/x",
	} {
		got, err := ResolvePath(path)
		if err != nil || got != want {
			t.Errorf("%q = %q, %v; want %q", path, got, err, want)
		}
	}
}

func TestResolvePathRefuses(t *testing.T) {
	for _, path := range []string{
		"", ".", "/", "/etc/passwd", "%2Fetc/passwd", "//host/x", "file:/x", "file:///x", "s3://b/k", "S3a:x", "c:x",
		"..", "../x", "a/../b", "a/%2e%2e/b", "a/..%2fb", "%zz", "a%", "a%00b", "\x00", "%ff",
		"_delta_log/00000000000000000000.json", "./_delta_log/x", "_contrail/head", "%5Fcontrail/head",
	} {
		got, err := ResolvePath(path)
		var unsupported *tableerr.Unsupported
		if !errors.As(err, &unsupported) {
			t.Errorf("%q = %q, %v; want Unsupported", path, got, err)
		} else if path != "" && unsupported.Path != path {
			t.Errorf("%q: the error names %q", path, unsupported.Path)
		}
	}
}

func TestEncodePathRoundTrip(t *testing.T) {
	for file, want := range map[string]string{"data/ab/x.parquet": "data/ab/x.parquet", "a b/c%d=é:": "a%20b/c%25d=%C3%A9%3A"} {
		if got := EncodePath(file); got != want {
			t.Errorf("%q = %q, want %q", file, got, want)
		}
		if got, err := ResolvePath(want); err != nil || got != file {
			t.Errorf("%q back = %q, %v", want, got, err)
		}
	}
}

func TestLogicalFileOfRefusedPaths(t *testing.T) {
	same := []string{"/a/b%20c", "file:/a/b%20c", "file:///a/b%20c"}
	first, refused := logicalFile(same[0])
	if !refused {
		t.Fatal("an absolute path was taken")
	}
	for _, p := range same[1:] {
		if got, _ := logicalFile(p); got != first {
			t.Errorf("%q is not the same file as %q", p, same[0])
		}
	}
}

func FuzzResolvePath(f *testing.F) {
	for _, s := range []string{"a/b", "..", "a/%2e%2e", "file:/x", "%", "a b", "/x", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		file, err := ResolvePath(path)
		if err != nil {
			return
		}
		if file == "" || strings.HasPrefix(file, "/") || !utf8.ValidString(file) || strings.ContainsRune(file, 0) {
			t.Fatalf("%q resolves to %q", path, file)
		}
		for part := range strings.SplitSeq(file, "/") {
			if part == ".." || part == "." || part == "" {
				t.Fatalf("%q resolves to %q", path, file)
			}
		}
		if again, err := ResolvePath(EncodePath(file)); err != nil || again != file {
			t.Fatalf("%q encoded and resolved = %q, %v", file, again, err)
		}
	})
}
