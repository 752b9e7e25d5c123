package ingest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// TestBudgetIsShared makes sure that appends together stay below a budget, that
// one which finds it used up is told the limit, and that everything is given
// back.
func TestBudgetIsShared(t *testing.T) {
	rows := make([]observation, 1<<16)
	for i := range rows {
		rows[i] = observation{"JFK", int64(i), 0}
	}
	b := NewBudget(8 << 20)
	run := func() error {
		cfg := start(t, weather(tabledef.UniqueReject))
		cfg.Budget = b
		_, err := Run(context.Background(), cfg, observations(rows, 1000))
		return err
	}
	if err := run(); err != nil || b.Used() != 0 {
		t.Fatalf("alone: %v, %d bytes are kept", err, b.Used())
	}
	if !b.take(7 << 20) {
		t.Fatal("the budget is not free")
	}
	var large *tableerr.MessageTooLarge
	if err := run(); !errors.As(err, &large) || large.LimitBytes != 8<<20 || b.Used() != 7<<20 {
		t.Fatalf("beside others: %v, %d bytes are used", err, b.Used())
	}
	b.used.Add(-7 << 20)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			if err := run(); err != nil && !errors.As(err, new(*tableerr.MessageTooLarge)) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if b.Used() != 0 {
		t.Errorf("%d bytes are kept", b.Used())
	}
}

// TestGrant takes a budget to its last byte.
func TestGrant(t *testing.T) {
	b := NewBudget(3*budgetStep + 5)
	var mine, other grant
	for _, c := range []struct {
		g    *grant
		n    int64
		ok   bool
		used int64
	}{
		{&mine, 1, true, budgetStep},
		{&mine, budgetStep, true, budgetStep},
		{&other, budgetStep + 1, true, 3 * budgetStep},
		{&mine, budgetStep + 5, true, 3*budgetStep + 5},
		{&mine, budgetStep + 6, false, 3*budgetStep + 5},
		{&other, 2 * budgetStep, true, 3*budgetStep + 5},
	} {
		if ok := c.g.fit(b, c.n); ok != c.ok || b.Used() != c.used {
			t.Errorf("fit %d: %v with %d bytes used, want %v with %d", c.n, ok, b.Used(), c.ok, c.used)
		}
	}
	mine.end(b)
	other.end(b)
	large := NewBudget(4 * budgetSpare)
	if !mine.fit(large, 3*budgetSpare) || !mine.fit(large, 2*budgetSpare) || large.Used() != 3*budgetSpare {
		t.Errorf("%d bytes are used", large.Used())
	}
	if !mine.fit(large, budgetSpare) || large.Used() != budgetSpare {
		t.Errorf("%d bytes are kept of what is used no more", large.Used())
	}
	mine.end(large)
	if b.Used() != 0 {
		t.Errorf("%d bytes are kept", b.Used())
	}
	if !mine.fit(nil, 1<<40) {
		t.Error("without a budget everything is granted")
	}
	mine.end(nil)
}
