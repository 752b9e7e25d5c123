package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"contrail/tablecore/objstore"
)

func testList(t *testing.T, s objstore.Store) {
	if found := keys(t, s, "", ""); found != nil {
		t.Fatalf("listed in an empty store: %q", found)
	}
	for i := range 30 {
		put(t, s, fmt.Sprintf("log/%020d.json", i), strings.Repeat("x", i))
	}
	put(t, s, "log/last", "")
	put(t, s, "logbook/x", "")
	put(t, s, "data/00/x", "")
	i := 20
	for info, err := range s.List(t.Context(), "log/0", "log/00000000000000000019.json") {
		if err != nil || info.Key != fmt.Sprintf("log/%020d.json", i) || info.Size != int64(i) || info.Modified.IsZero() {
			t.Fatalf("listed %+v, %v, want number %d", info, err, i)
		}
		head, err := s.Head(t.Context(), info.Key)
		if err != nil || head != info {
			t.Fatalf("listed %+v, but head gives %+v, %v", info, head, err)
		}
		i++
	}
	if i != 30 {
		t.Fatalf("the listing ended at %d", i)
	}
	tests := []struct {
		prefix, after string
		want          []string
	}{
		{"log", "log/00000000000000000028.json", []string{"log/00000000000000000029.json", "log/last", "logbook/x"}},
		{"log/", "log/00000000000000000029.json", []string{"log/last"}},
		{"", "log/last", []string{"logbook/x"}},
		{"", "logbook", []string{"logbook/x"}},
		{"", "logbook/x", nil},
		{"logbook/x", "", []string{"logbook/x"}},
		{"logbook/x/", "", nil},
		{"none", "", nil},
		{"none/at/all", "", nil},
		{"data/", "x", nil},
		{"data/", "a", []string{"data/00/x"}},
	}
	for _, test := range tests {
		if found := keys(t, s, test.prefix, test.after); !slices.Equal(found, test.want) {
			t.Fatalf("list %q after %q: %q, want %q", test.prefix, test.after, found, test.want)
		}
	}
}

// testListOrder has directories whose names sort elsewhere than the keys in them.
func testListOrder(t *testing.T, s objstore.Store) {
	sorted := []string{"a!", "a!b/x", "a", "a-/x", "a.b", "a.b2/c", "a0", "aa/b", "ab"}
	slices.Sort(sorted)
	for _, key := range sorted {
		put(t, s, key, "")
	}
	put(t, s, "b/y", "")
	put(t, s, "b.z", "")
	put(t, s, "b-", "")
	sorted = append(sorted, "b-", "b.z", "b/y")
	for i, key := range append([]string{""}, sorted...) {
		if found := keys(t, s, "", key); !slices.Equal(found, sorted[i:]) {
			t.Fatalf("list after %q: %q, want %q", key, found, sorted[i:])
		}
	}
}

// testListModel compares listings with those of a sorted slice.
func testListModel(t *testing.T, s objstore.Store) {
	random := rand.New(rand.NewPCG(1, 2))
	name := func(parts int) string {
		var key []string
		for range parts {
			var part strings.Builder
			for range 1 + random.IntN(2) {
				part.WriteByte("ab-."[random.IntN(4)])
			}
			key = append(key, part.String())
		}
		return strings.Join(key, "/")
	}
	var model []string
	for range 200 {
		key := name(1 + random.IntN(4))
		if objstore.CheckKey(key) != nil {
			continue
		}
		if err := s.PutIfAbsent(t.Context(), key, nil); err == nil {
			model = append(model, key)
		}
	}
	slices.Sort(model)
	for range 300 {
		prefix, after := name(random.IntN(3)), name(random.IntN(4))
		if random.IntN(3) == 0 && prefix != "" {
			prefix += "/"
		}
		if objstore.CheckPrefix(prefix) != nil {
			continue
		}
		var wanted []string
		for _, key := range model {
			if strings.HasPrefix(key, prefix) && key > after {
				wanted = append(wanted, key)
			}
		}
		if found := keys(t, s, prefix, after); !slices.Equal(found, wanted) {
			t.Fatalf("list %q after %q: %q, want %q", prefix, after, found, wanted)
		}
	}
}

func testListStops(t *testing.T, s objstore.Store) {
	for i := range 20 {
		put(t, s, fmt.Sprintf("%d/%d", i/5, i%5), "")
	}
	n := 0
	for range s.List(t.Context(), "", "") {
		if n++; n == 7 {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n = 0
	var last error
	for _, err := range s.List(ctx, "", "") {
		if last != nil {
			t.Fatal("the listing went on after an error")
		}
		if last = err; err == nil {
			n++
			cancel()
		}
	}
	is(t, "list that is cancelled", last, context.Canceled)
	if n == 20 {
		t.Fatal("the listing went on after it was cancelled")
	}
}

func testListDirs(t *testing.T, s objstore.Store) {
	for _, prefix := range []string{"", "none", "none/at/all"} {
		if names := dirs(t, s, prefix); len(names) != 0 {
			t.Fatalf("directories in %q of an empty store: %q", prefix, names)
		}
	}
	put(t, s, "b/x/y/z", "")
	put(t, s, "b/file", "")
	put(t, s, "b.c/x", "")
	put(t, s, "a/x", "")
	put(t, s, "file", "")
	sub(t, s, "b/made/deep", true)
	tests := map[string][]string{
		"": {"a", "b", "b.c"}, "b": {"made", "x"}, "b/x": {"y"}, "b/x/y": nil, "b/made": {"deep"}, "b/made/deep": nil,
		"a": nil, "file": nil,
	}
	for prefix, want := range tests {
		if names := dirs(t, s, prefix); !slices.Equal(names, want) {
			t.Fatalf("directories in %q: %q, want %q", prefix, names, want)
		}
	}
}
