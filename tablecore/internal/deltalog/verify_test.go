package deltalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
)

// longLog writes versions 0 to 6, each with a file, and checkpoints of 2 and 4.
func longLog(t *testing.T, store objstore.Store) {
	t.Helper()
	log := New(store, Options{})
	s := richLog(t, store)
	for version := int64(2); version <= 6; version++ {
		s = writeNext(t, log, s, &Commit{Adds: []*Add{add(fmt.Sprintf("v%d", version), version)}, Txns: []*Txn{{AppID: "y", Version: version}}})
		if version == 2 || version == 4 {
			if _, err := log.WriteCheckpoint(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// audited verifies a log and returns what was told.
func audited(t *testing.T, store objstore.Store, upTo, oldest int64) (problems []Problem, commits, states []int64) {
	t.Helper()
	_, err := New(store, Options{}).Verify(t.Context(), upTo, oldest, Audit{
		Step:    func(int64) error { return nil },
		Commit:  func(c *Commit) error { commits = append(commits, c.Version); return nil },
		State:   func(s *State) error { states = append(states, s.Version()); return nil },
		Problem: func(p Problem) error { problems = append(problems, p); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return problems, commits, states
}

func TestVerify(t *testing.T) {
	all := []int64{0, 1, 2, 3, 4, 5, 6}
	damaged := func(key string) func(objstore.Store) error {
		return func(s objstore.Store) error { return s.Put(t.Context(), key, []byte("damaged")) }
	}
	gone := func(versions ...int64) func(objstore.Store) error {
		return func(s objstore.Store) error {
			var errs []error
			for _, v := range versions {
				errs = append(errs, s.Delete(t.Context(), CommitKey(v)))
			}
			return errors.Join(errs...)
		}
	}
	for name, test := range map[string]struct {
		change          func(objstore.Store) error
		oldest          int64
		problems        []string // key, and whether it is harmless and can be written anew
		commits, states []int64
	}{
		"whole":                          {nil, 0, nil, all, all},
		"expired":                        {nil, 3, nil, all[2:], all[2:]},
		"cleaned up":                     {gone(0, 1), 2, nil, all[2:], all[2:]},
		"cleaned up by others":           {gone(0, 1), 0, nil, all[2:], all[2:]},
		"cleaned up behind a checkpoint": {gone(0, 1, 2, 3), 0, nil, all[4:], all[4:]},
		"a gap behind one":               {gone(0, 1, 5), 0, []string{CommitKey(5)}, []int64{2, 3, 4, 6}, []int64{2, 3, 4}},
		"a gap":                          {gone(3), 0, []string{CommitKey(3)}, []int64{0, 1, 2, 4, 5, 6}, []int64{0, 1, 2, 4, 5, 6}},
		"a gap to the end":               {gone(5), 0, []string{CommitKey(5)}, []int64{0, 1, 2, 3, 4, 6}, all[:5]},
		"a damaged commit":               {damaged(CommitKey(3)), 0, []string{CommitKey(3)}, []int64{0, 1, 2, 4, 5, 6}, []int64{0, 1, 2, 4, 5, 6}},
		"a damaged checkpoint":           {damaged(CheckpointKey(4)), 0, []string{CheckpointKey(4) + " harmless mendable"}, all, all},
		"a damaged beginning":            {damaged(CheckpointKey(4)), 4, []string{CheckpointKey(4)}, all[4:], nil},
		"a damaged hint":                 {damaged(hintKey), 0, []string{hintKey + " harmless mendable"}, all, all},
		"a hint to nowhere, no state": {func(s objstore.Store) error {
			return errors.Join(gone(5)(s), s.Put(t.Context(), hintKey, []byte(`{"version":3}`)))
		}, 0, []string{CommitKey(5), hintKey + " harmless"}, []int64{0, 1, 2, 3, 4, 6}, all[:5]},
		"a hint to a later version": {func(s objstore.Store) error { return s.Put(t.Context(), hintKey, []byte(`{"version":9}`)) }, 0, nil, all, all},
		"a commit that follows nothing": {func(s objstore.Store) error {
			return s.Put(t.Context(), CommitKey(0), []byte(`{"txn":{"appId":"a","version":1}}`))
		}, 0, []string{CommitKey(0)}, []int64{0, 1, 2, 3, 4, 5, 6}, all[2:]},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			longLog(t, store)
			if test.change != nil {
				if err := test.change(store); err != nil {
					t.Fatal(err)
				}
			}
			problems, commits, states := audited(t, store, -1, test.oldest)
			var keys []string
			for _, p := range problems {
				key := p.Key
				if p.Harmless {
					key += " harmless"
				}
				if p.Checkpoint != nil {
					key += " mendable"
				}
				if p.Text == "" || p.Missing != strings.Contains(p.Text, "missing") {
					t.Errorf("problem %+v", p)
				}
				keys = append(keys, key)
			}
			if !slices.Equal(keys, test.problems) || !slices.Equal(commits, test.commits) || !slices.Equal(states, test.states) {
				t.Errorf("problems %q, commits %v, states %v", keys, commits, states)
			}
		})
	}
}

// TestVerifyUpTo: later versions are not looked at.
func TestVerifyUpTo(t *testing.T) {
	store := memstore.New()
	longLog(t, store)
	if err := store.Delete(t.Context(), CommitKey(5)); err != nil {
		t.Fatal(err)
	}
	if problems, commits, _ := audited(t, store, 4, 0); len(problems) > 0 || len(commits) != 5 {
		t.Errorf("problems %+v, commits %v", problems, commits)
	}
}

// TestVerifyErrors: errors of the audit, the store and the context end it.
func TestVerifyErrors(t *testing.T) {
	store := memstore.New()
	longLog(t, store)
	if err := store.Put(t.Context(), CheckpointKey(4), nil); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	calm := Audit{Step: func(int64) error { return nil }, Commit: func(*Commit) error { return nil }, State: func(*State) error { return nil }, Problem: func(Problem) error { return nil }}
	for name, change := range map[string]func(a *Audit){
		"step":    func(a *Audit) { a.Step = func(int64) error { return stop } },
		"commit":  func(a *Audit) { a.Commit = func(*Commit) error { return stop } },
		"state":   func(a *Audit) { a.State = func(*State) error { return stop } },
		"problem": func(a *Audit) { a.Problem = func(Problem) error { return stop } },
	} {
		audit := calm
		change(&audit)
		if _, err := New(store, Options{}).Verify(t.Context(), -1, 0, audit); !errors.Is(err, stop) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	audit := calm
	audit.Step = func(int64) error { cancel(); return nil }
	if _, err := New(store, Options{}).Verify(ctx, -1, 0, audit); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	fault := faultstore.Wrap(store, faultstore.Plan{})
	if _, err := New(fault, Options{}).Verify(t.Context(), -1, 0, calm); err != nil {
		t.Fatal(err)
	}
	for i := range fault.Trace() {
		fault := faultstore.Wrap(store, faultstore.Plan{At: i, Kind: faultstore.Error})
		if _, err := New(fault, Options{}).Verify(t.Context(), -1, 0, calm); err == nil || tableerr.TokenOf(err) != "" {
			t.Errorf("a fault at %q gave %v", fault.Trace()[i], err)
		}
	}
}

// TestDifference: each thing that a record of a state may have wrong.
func TestDifference(t *testing.T) {
	truth := richLog(t, memstore.New())
	if why := truth.Difference(truth); why != "" {
		t.Errorf("a state differs from itself: %s", why)
	}
	if why := truth.Difference(truth.Expire(Expiry{RemovesBefore: 1 << 62, TxnsBefore: 1 << 62})); why != "" {
		t.Errorf("what was forgotten is missed: %s", why)
	}
	metadata, protocol := *truth.Metadata(), *truth.Protocol()
	metadata.ID, protocol.MinReaderVersion = "other", protocol.MinReaderVersion+1
	changed := func(change func(a *Add)) *Commit {
		a := *truth.Files()[3]
		change(&a)
		return &Commit{Adds: []*Add{&a}}
	}
	for want, c := range map[string]*Commit{
		"metadata":        {Metadata: &metadata},
		"protocol":        {Protocol: &protocol},
		"domains":         {Domains: []*DomainMetadata{{Domain: "new", Configuration: "{}"}}},
		"its domain":      {Domains: []*DomainMetadata{{Domain: truth.Domains()[0].Domain, Configuration: "other"}}},
		"is not live":     {Adds: []*Add{add("new", 1)}},
		"lacks live":      {Removes: []*Remove{{Path: "data/07.parquet"}}},
		"which the log":   {Removes: []*Remove{{Path: "never"}}},
		"its txn action":  {Txns: []*Txn{{AppID: "x", Version: 7}}},
		"tells otherwise": changed(func(a *Add) { a.Size++ }),
		"of the file":     changed(func(a *Add) { a.Stats = `{"numRecords":3}` }),
		"it tells":        changed(func(a *Add) { a.Tags = map[string]string{"a": "b"} }),
	} {
		c.Version = truth.Version() + 1
		record, err := truth.Apply(c)
		if err != nil {
			t.Fatal(err)
		}
		if why := truth.Difference(record); !strings.Contains(why, want) {
			t.Errorf("%q, want %q", why, want)
		}
	}
	for _, same := range [][2]string{{`{"a":1,"b":2}`, `{"b":2, "a":1}`}, {"x", "x"}} {
		if !sameJSON(same[0], same[1]) {
			t.Errorf("%q", same)
		}
	}
	for _, other := range [][2]string{{`{"a":1}`, `{"a":1.0}`}, {"x", "y"}, {`{"a":1}`, `{"a":12345678901234567890}`}} {
		if sameJSON(other[0], other[1]) {
			t.Errorf("%q", other)
		}
	}
}

func TestReplaceCheckpoint(t *testing.T) {
	store := memstore.New()
	longLog(t, store)
	log := New(store, Options{})
	good, err := store.Get(t.Context(), CheckpointKey(4))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Put(t.Context(), CheckpointKey(4), []byte("damaged")); err != nil {
		t.Fatal(err)
	}
	problems, _, _ := audited(t, store, -1, 0)
	if len(problems) != 1 {
		t.Fatalf("problems %+v", problems)
	}
	if err := log.ReplaceCheckpoint(t.Context(), problems[0].Checkpoint); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Get(t.Context(), CheckpointKey(4)); err != nil || string(got) != string(good) {
		t.Errorf("it was written otherwise, %v", err)
	}
	if err := store.Put(t.Context(), CommitKey(4), []byte(`{"txn":{"appId":"a","version":1}}`)); err != nil {
		t.Fatal(err)
	}
	if err := log.ReplaceCheckpoint(t.Context(), problems[0].Checkpoint); !errors.Is(err, ErrReplaced) {
		t.Errorf("got %v", err)
	}
	fault := faultstore.Wrap(store, faultstore.Plan{At: 0, Kind: faultstore.Error})
	if err := New(fault, Options{}).ReplaceCheckpoint(t.Context(), problems[0].Checkpoint); err == nil {
		t.Error("a fault was not told of")
	}
}
