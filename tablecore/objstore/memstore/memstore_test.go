package memstore_test

import (
	"fmt"
	"testing"
	"time"

	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) objstore.Store { return memstore.New() })
}

func TestClock(t *testing.T) {
	now := time.Date(2013, time.January, 1, 0, 0, 0, 0, time.UTC)
	s := memstore.NewWithClock(func() time.Time { return now })
	for range 3 {
		if err := s.Put(t.Context(), "x", nil); err != nil {
			t.Fatal(err)
		}
		if info, err := s.Head(t.Context(), "x"); err != nil || !info.Modified.Equal(now) {
			t.Fatalf("head: %+v, %v, want %v", info, err, now)
		}
		now = now.Add(time.Hour)
	}
}

// TestDeterministic makes the same changes twice: their times are the same.
func TestDeterministic(t *testing.T) {
	var before time.Time
	for range 2 {
		s := memstore.New()
		for _, key := range []string{"x", "y"} {
			if err := s.Put(t.Context(), key, nil); err != nil {
				t.Fatal(err)
			}
		}
		info, err := s.Head(t.Context(), "y")
		if err != nil {
			t.Fatal(err)
		}
		if !before.IsZero() && !info.Modified.Equal(before) {
			t.Fatalf("modified %v, and before %v", info.Modified, before)
		}
		before = info.Modified
	}
}

func BenchmarkPutIfAbsent(b *testing.B) {
	s := memstore.New()
	data := make([]byte, 1<<10)
	for i := 0; b.Loop(); i++ {
		if err := s.PutIfAbsent(b.Context(), fmt.Sprintf("log/%020d.json", i), data); err != nil {
			b.Fatal(err)
		}
	}
}
