package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"contrail/tablecore/objstore"
)

// racers is how many goroutines race.
const racers = 64

// race runs call in goroutines that begin together, and returns their errors.
func race(call func(i int) error) []error {
	errs := make([]error, racers)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range racers {
		all.Go(func() {
			<-start
			errs[i] = call(i)
		})
	}
	close(start)
	all.Wait()
	return errs
}

// winner fails the test unless all errors but one are the sentinel lost, and returns the index of that one.
func winner(t *testing.T, errs []error, lost error) int {
	t.Helper()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won >= 0:
			t.Fatalf("%d and %d have both won", won, i)
		case err == nil:
			won = i
		case !errors.Is(err, lost):
			t.Fatalf("%d: %v, want %v", i, err, lost)
		}
	}
	if won < 0 {
		t.Fatal("nobody has won")
	}
	return won
}

func testRacePut(t *testing.T, s objstore.Store) {
	for round := range 5 {
		key := fmt.Sprintf("log/%d", round)
		errs := race(func(i int) error { return s.PutIfAbsent(t.Context(), key, fmt.Append(nil, i)) })
		want(t, s, key, fmt.Sprint(winner(t, errs, objstore.ErrExist)))
	}
}

// testRacePutAll lets batches race for the same keys: each key has one winner, and what a batch says has landed has.
func testRacePutAll(t *testing.T, s objstore.Store) {
	names := []string{"log/0", "log/1", "log/2", "log/3"}
	var landed [racers]int
	race(func(i int) error {
		batch := objects(names[i%len(names):]...)
		for j := range batch {
			batch[j].Data = fmt.Append(nil, i)
		}
		n, err := s.PutAllIfAbsent(t.Context(), batch)
		if landed[i] = n; err != nil && !errors.Is(err, objstore.ErrExist) {
			t.Errorf("put all: %v", err)
		}
		return err
	})
	winners := make(map[string]int)
	for i, n := range landed {
		first := i % len(names)
		for _, key := range names[first : first+n] {
			if other, taken := winners[key]; taken {
				t.Fatalf("%d and %d have both put %q", other, i, key)
			}
			winners[key] = i
		}
	}
	for _, key := range names {
		won, put := winners[key]
		if !put {
			t.Fatalf("nobody has put %q", key)
		}
		want(t, s, key, fmt.Sprint(won))
	}
}

func testRaceCreate(t *testing.T, s objstore.Store) {
	errs := race(func(i int) error {
		w, err := s.Create(t.Context(), "data/x")
		if err != nil {
			return err
		}
		if _, err := fmt.Fprint(w, i); err != nil {
			return errors.Join(err, w.Abort())
		}
		_, err = w.Commit(t.Context())
		return err
	})
	want(t, s, "data/x", fmt.Sprint(winner(t, errs, objstore.ErrExist)))
	if found := keys(t, s, objstore.TempDir+"/", ""); len(found) != 0 {
		t.Fatalf("temporary files left: %q", found)
	}
}

func testRaceDirs(t *testing.T, s objstore.Store) {
	errs := race(func(i int) error {
		table, err := s.Sub(t.Context(), fmt.Sprintf("ns/%d", i%3), true)
		if err != nil {
			return err
		}
		return errors.Join(table.PutIfAbsent(t.Context(), fmt.Sprintf("a/%d/x/%d", i%5, i), nil), table.Close())
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if found := keys(t, s, "", ""); len(found) != racers {
		t.Fatalf("%d objects, want %d", len(found), racers)
	}
}

// testRaceReplace reads an object while it is replaced: every reader sees one of the contents, whole.
func testRaceReplace(t *testing.T, s objstore.Store) {
	content := func(i int) string { return strings.Repeat(fmt.Sprintf("%02d", i), 100+1000*i) }
	if err := s.Put(t.Context(), "head", []byte(content(0))); err != nil {
		t.Fatal(err)
	}
	var left atomic.Int64
	left.Store(racers / 2)
	errs := race(func(i int) error {
		if i%2 == 0 {
			defer left.Add(-1)
			return s.Put(t.Context(), "head", []byte(content(i)))
		}
		for left.Load() > 0 {
			data, err := s.Get(t.Context(), "head")
			if err != nil {
				return err
			}
			var got int
			if _, err := fmt.Sscanf(string(data[:2]), "%d", &got); err != nil {
				return err
			}
			if string(data) != content(got) {
				return fmt.Errorf("half of an object was read: %d bytes of number %d", len(data), got)
			}
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func testRaceTrash(t *testing.T, s objstore.Store) {
	put(t, s, "ns/table/log/0", "zero")
	errs := race(func(i int) error { return s.Trash(t.Context(), "ns/table", fmt.Sprintf("_trash/%d", i)) })
	won := winner(t, errs, objstore.ErrNotExist)
	want(t, s, fmt.Sprintf("_trash/%d/log/0", won), "zero")
	names, err := s.ListDirs(t.Context(), "_trash")
	if err != nil || !slices.Equal(names, []string{fmt.Sprint(won)}) {
		t.Fatalf("in the trash: %q, %v", names, err)
	}
}
