package admission

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"contrail/tablecore/tableerr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGate(t *testing.T) { synctest.Test(t, testGate) }

func testGate(t *testing.T) {
	ctx := context.Background()
	g := New(2, 20*time.Millisecond)
	first, waited, err := g.Enter(ctx)
	if err != nil || waited != 0 {
		t.Fatalf("the first waits %v, %v", waited, err)
	}
	if _, _, err := g.Enter(ctx); err != nil {
		t.Fatal(err)
	}
	_, waited, err = g.Enter(ctx)
	var full *tableerr.QueueTimeout
	if !errors.As(err, &full) || full.WaitMS != 20 || waited != 20*time.Millisecond {
		t.Fatalf("the third gets %v after %v", err, waited)
	}
	cancelled, cancel := context.WithCancelCause(ctx)
	gone := errors.New("the client is gone")
	cancel(gone)
	if _, _, err = g.Enter(cancelled); err != gone {
		t.Fatalf("a cancelled one gets %v", err)
	}

	g.wait = time.Minute
	entered := make(chan time.Duration)
	go func() {
		leave, waited, err := g.Enter(ctx)
		if err != nil {
			t.Error(err)
		}
		leave()
		entered <- waited
	}()
	time.Sleep(5 * time.Millisecond)
	first()
	if waited := <-entered; waited != 5*time.Millisecond {
		t.Errorf("the place came free after %v", waited)
	}
}
