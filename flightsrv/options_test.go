package flightsrv

import (
	"strings"
	"testing"
	"time"

	"contrail/tablecore"
)

func TestOptions(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("a server without a warehouse")
	}
	o, err := Options{Warehouse: &tablecore.Warehouse{}, Limits: Limits{QueueWait: time.Second}}.withDefaults()
	if err != nil || o.Limits.QueueWait != time.Second || o.Limits.StallTimeout != DefaultStallTimeout || o.Limits.MaxSendMessageBytes != DefaultMaxSendMessageBytes {
		t.Errorf("got %+v, %v", o, err)
	}
	_, err = New(Options{Warehouse: &tablecore.Warehouse{}, TicketLifetime: -1, Limits: Limits{MaxReceiveMessageBytes: 1 << 40, MaxConcurrentPuts: -1}})
	for _, name := range []string{"TicketLifetime", "MaxReceiveMessageBytes", "MaxConcurrentPuts"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not refused: %v", name, err)
		}
	}
}
