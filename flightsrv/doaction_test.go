package flightsrv

import (
	"context"
	"errors"
	"testing"
	"time"

	"contrail/descriptors"
)

// A client that goes away ends what an action does, unless that is a change.
func TestAClientGoesAwayDuringAnAction(t *testing.T) {
	f := start(t, Limits{})
	f.must("create_table", createWeather, nil)
	type request = *descriptors.DescribeTable
	during := func(wrap func(func([]byte) (request, error), func(tableCall, context.Context, request) (any, error)) action) error {
		client, leave := context.WithCancel(f.context())
		run := wrap(descriptors.ParseDescribeTable, func(_ tableCall, ctx context.Context, _ request) (any, error) {
			leave()
			return nil, ctx.Err()
		})
		_, err := run(f.server, client, []byte(`{"table":"weather"}`), messages{})
		return err
	}
	if err := during(onTable[request]); !errors.Is(err, context.Canceled) {
		t.Errorf("an action goes on: %v", err)
	}
	if err := during(change[request]); err != nil {
		t.Errorf("a change ends: %v", err)
	}
	long := func(parse func([]byte) (request, error), do func(tableCall, context.Context, request) (any, error)) action {
		return changeWithin(commitTimeout, parse, func(c tableCall, ctx context.Context, r request) (any, error) {
			if end, bounded := ctx.Deadline(); !bounded || time.Until(end) < commitTimeout/2 {
				t.Errorf("it ends at %v, %t", end, bounded)
			}
			return do(c, ctx, r)
		})
	}
	if err := during(long); err != nil {
		t.Errorf("a long change ends: %v", err)
	}
}
