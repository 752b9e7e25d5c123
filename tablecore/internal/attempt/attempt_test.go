package attempt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/objstore/meterstore"
	"contrail/tablecore/tableerr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// processes returns the attempts of two processes on a table, whose clocks
// differ from the store's by some time.
func processes(store objstore.Store, skew time.Duration) (mine, theirs *Running) {
	named := 0
	config := Config{Store: store, Clock: func() time.Time { return time.Now().Add(skew) }, NewID: func() (string, error) {
		named++
		return fmt.Sprint(named), nil
	}}
	return New(config), New(config)
}

func inFlight(t *testing.T, r *Running) Flight {
	t.Helper()
	f, err := r.InFlight(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestSeen: an attempt is seen by its own process at once and by others from its
// second minute on, until it ends or for a quarter of an hour.
func TestSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.NewWithClock(time.Now)
		mine, theirs := processes(store, 0)
		if inFlight(t, mine).Covers(time.Now()) {
			t.Error("nobody is at work")
		}
		a := mine.Begin()
		began := time.Now()
		for minute := range 30 {
			synctest.Wait()
			for name, r := range map[string]*Running{"its own process": mine, "another": theirs} {
				f := inFlight(t, r)
				if want := r == mine || minute > 0; f.Covers(began) != want {
					t.Errorf("minute %d: %s sees a file of the attempt: %t", minute, name, f.Covers(began))
				}
				if f.Covers(began.Add(-2*slack)) || f.Covers(began.Add(time.Hour)) != f.any {
					t.Errorf("minute %d: %s sees %+v", minute, name, f)
				}
			}
			time.Sleep(time.Minute)
		}
		a.End(t.Context())
		if inFlight(t, mine).any || inFlight(t, theirs).any {
			t.Error("it has ended")
		}
	})
}

// TestDies: the file of a killed process counts for a quarter of an hour.
func TestDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault := faultstore.Wrap(memstore.NewWithClock(time.Now), faultstore.Plan{})
		mine, theirs := processes(fault, 0)
		a := mine.Begin()
		began := time.Now()
		time.Sleep(time.Minute)
		synctest.Wait()
		a.timer.Stop() // the process dies
		time.Sleep(Life - time.Second)
		if !inFlight(t, theirs).Covers(began) {
			t.Error("it is dead too soon")
		}
		time.Sleep(time.Second)
		if inFlight(t, theirs).any {
			t.Error("it is not dead")
		}
		a.End(t.Context())
	})
}

// TestSkew: what the clocks of processes say does not matter to others.
func TestSkew(t *testing.T) {
	for _, skew := range []time.Duration{-100 * 24 * time.Hour, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			store := memstore.NewWithClock(time.Now)
			mine, _ := processes(store, skew)
			_, theirs := processes(store, 0)
			a := mine.Begin()
			began := time.Now()
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if f := inFlight(t, theirs); !f.Covers(began) || f.Covers(began.Add(-2*slack)) {
				t.Errorf("skew %s: %+v began at %s", skew, f, began)
			}
			a.End(t.Context())
		})
	}
}

// TestCheck: a young attempt asks nothing, an old one for each file.
func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := meterstore.Wrap(memstore.NewWithClock(time.Now))
		mine, _ := processes(store, 0)
		a := mine.Begin()
		defer func() { a.End(t.Context()) }()
		if err := a.Check(t.Context(), []string{"data/x"}); err != nil || store.Counts().Requests() != 0 {
			t.Errorf("%v, %s", err, store.Counts())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		store.Reset()
		err := a.Check(t.Context(), []string{"data/x"})
		if tableerr.TokenOf(err) != tableerr.TokenStoreUnavailable || !errors.Is(err, objstore.ErrNotExist) || !strings.Contains(err.Error(), "data/x") {
			t.Error(err)
		}
		if err := store.Put(t.Context(), "data/x", nil); err != nil {
			t.Fatal(err)
		}
		if err := a.Check(t.Context(), []string{"data/x"}); err != nil || store.Counts().Head != 2 {
			t.Errorf("%v, %s", err, store.Counts())
		}
	})
}

// TestFailures: an attempt that cannot be noted goes on and tries again.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault := faultstore.Wrap(memstore.NewWithClock(time.Now), faultstore.Plan{Kind: faultstore.Error})
		failed, unnamed := 0, true
		mine := New(Config{Store: fault, Clock: time.Now, Failed: func(context.Context, error) { failed++ }, NewID: func() (string, error) {
			if unnamed {
				unnamed = false
				return "", errors.New("no names")
			}
			return "x", nil
		}})
		a := mine.Begin()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if failed != 2 {
			t.Errorf("%d failures", failed)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, err := fault.Head(t.Context(), Dir+"x"); err != nil {
			t.Error(err)
		}
		a.End(t.Context())
		for _, op := range []objstore.Op{objstore.OpList, objstore.OpGet} {
			put(t, fault, "y", `{"age_ms":1}`)
			fault.Arm(faultstore.Plan{Kind: faultstore.Error, Match: func(o objstore.Op, _ string) bool { return o == op }})
			if _, err := mine.InFlight(t.Context()); !errors.Is(err, faultstore.ErrInjected) {
				t.Errorf("%s: %v", op, err)
			}
		}
	})
}

// TestRecords: what is no record may be of an attempt that began at any time.
func TestRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for text, since := range map[string]time.Duration{`{"age_ms":0}`: slack, `{"age_ms":3600000}`: time.Hour + slack, `{"age_ms":-1}`: 1e9 * time.Second,
			`{"age_ms":9000000000000000000}`: 1e9 * time.Second, ``: 1e9 * time.Second, `{"age_ms":1}x`: 1e9 * time.Second, `{"other":1}`: 1e9 * time.Second} {
			store := memstore.NewWithClock(time.Now)
			r, _ := processes(store, 0)
			put(t, store, "x", text)
			f := inFlight(t, r)
			if !f.Covers(time.Now().Add(-since)) || since < time.Hour*24*365 && f.Covers(time.Now().Add(-since-time.Second)) {
				t.Errorf("%q: %+v", text, f)
			}
		}
	})
}

func put(t *testing.T, store objstore.Store, id, text string) {
	t.Helper()
	if err := store.Put(t.Context(), Dir+id, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func FuzzRecord(f *testing.F) {
	for _, text := range []string{`{"age_ms":60000}`, `{}`, `{"age_ms":-1}`, `{"age_ms":1e3}`, `[]`, ``, `{"age_ms":1}{}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := parse(data); err == nil && (r.AgeMS < 0 || r.AgeMS > maxAge.Milliseconds()) {
			t.Fatalf("%q is %d ms old", data, r.AgeMS)
		}
	})
}
