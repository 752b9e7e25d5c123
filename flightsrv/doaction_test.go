package flightsrv

import (
	"context"
	"errors"
	"testing"

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
}
