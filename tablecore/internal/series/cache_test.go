package series

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
)

// versionOf is a version of the test table with so many files.
func versionOf(t *testing.T, id string, files int) *snapshot.Snapshot {
	t.Helper()
	s := testSnapshot(t, tabledef.UniqueReject)
	s.Def.ID = id
	for i := range files {
		s.Files = append(s.Files, &snapshot.File{Path: fmt.Sprint("data/", i)})
	}
	return s
}

// put makes an index of a version known, as get does.
func put(t *testing.T, c *Cache, s *snapshot.Snapshot) *coverage.Merged {
	t.Helper()
	leave, err := c.enter(t.Context(), s.Def.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	m := coverage.NewMerged(nil, nil)
	c.keep(s, kindCoverage, m)
	return m
}

func TestCacheKeepsFewVersionsOfATable(t *testing.T) {
	c := NewCache(1 << 30)
	var versions []*snapshot.Snapshot
	for files := range keptVersions + 2 {
		s := versionOf(t, "a", files+1)
		put(t, c, s)
		versions = append(versions, s)
	}
	for i, s := range versions {
		if kept := c.find(s, kindCoverage) != nil; kept != (i >= 2) {
			t.Errorf("version %d kept: %t", i, kept)
		}
		if c.find(s, kindNewest) != nil {
			t.Error("an index of the other kind is found")
		}
	}
}

func TestCacheFindsByFiles(t *testing.T) {
	c := NewCache(1 << 30)
	m := put(t, c, versionOf(t, "a", 3))
	if c.find(versionOf(t, "a", 3), kindCoverage) != m {
		t.Error("another snapshot of the same files is not found")
	}
	other := versionOf(t, "a", 3)
	other.Files[1] = &snapshot.File{Path: "data/other"}
	regrained := versionOf(t, "a", 3)
	regrained.Def.Granularity.N = 5
	for _, s := range []*snapshot.Snapshot{other, regrained, versionOf(t, "a", 2), versionOf(t, "b", 3)} {
		if c.find(s, kindCoverage) != nil {
			t.Error("an index of other files or another meaning is found")
		}
	}
	if c.nearest(regrained, kindCoverage) != nil || c.nearest(other, kindCoverage) == nil {
		t.Error("the nearest index is not the one that means the same")
	}
	change := c.nearest(other, kindCoverage).since(other)
	if _, gone := change.removed["data/1"]; !gone || len(change.removed) != 1 || len(change.added) != 1 || len(change.kept) != 2 {
		t.Errorf("the change is %+v", change)
	}
}

func TestCacheIsBounded(t *testing.T) {
	one := versionOf(t, "0", 1)
	c := NewCache(1 << 30)
	put(t, c, one)
	size := c.used
	c = NewCache(3 * size)
	for i := range 10 {
		put(t, c, versionOf(t, fmt.Sprint(i), 1))
		if c.used > c.limit {
			t.Fatalf("%d bytes are kept of at most %d", c.used, c.limit)
		}
	}
	if c.find(versionOf(t, "9", 1), kindCoverage) == nil || c.find(versionOf(t, "0", 1), kindCoverage) != nil {
		t.Error("not the longest unused indexes are gone")
	}
	if len(c.tables) != 3 {
		t.Errorf("%d tables are remembered", len(c.tables))
	}
	put(t, c, versionOf(t, "large", 1000)) // more than all of the cache
	if c.find(versionOf(t, "large", 1000), kindCoverage) != nil || c.find(versionOf(t, "9", 1), kindCoverage) == nil {
		t.Error("an index that does not fit drove out others")
	}
	if len(c.tables) != 3 {
		t.Errorf("%d tables are remembered", len(c.tables))
	}
}

func TestOneMakesAnIndexAtATime(t *testing.T) {
	c := NewCache(1 << 30)
	leave, err := c.enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.enter(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting ended with %v", err)
	}
	if other, err := c.enter(ctx, "b"); err == nil {
		other()
	}
	leave()
	if leave, err = c.enter(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	leave()
	if len(c.tables) != 0 {
		t.Errorf("%d tables are remembered", len(c.tables))
	}
}
