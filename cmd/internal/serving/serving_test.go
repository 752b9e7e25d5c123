package serving

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"contrail/cmd/internal/config"
	"contrail/tablecore/objstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEmbeddedServesWithoutAnAddress(t *testing.T) {
	ctx := context.Background()
	c := config.Defaults()
	c.Warehouse = filepath.Join(t.TempDir(), "warehouse")
	if e, err := Embed(ctx, c, zerolog.Nop(), false); !errors.Is(err, objstore.ErrNotExist) {
		t.Fatalf("without its directory: %v, %v", e, err)
	}
	e, err := Embed(ctx, c, zerolog.Nop(), true)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:///anywhere", e.DialOption(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", answer, err)
	}
	if err := errors.Join(conn.Close(), e.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(c.Warehouse); err != nil {
		t.Error(err)
	}
}

func TestOpenWarehouseOnAFile(t *testing.T) {
	c := config.Defaults()
	c.Warehouse = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(c.Warehouse, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, create := range []bool{false, true} {
		if _, err := OpenWarehouse(context.Background(), c, zerolog.Nop(), create); err == nil || !strings.Contains(err.Error(), c.Warehouse) {
			t.Errorf("create %v: %v", create, err)
		}
	}
}

// TestStagedLifetime makes sure that the core takes the longest one that the
// configuration does.
func TestStagedLifetime(t *testing.T) {
	for lifetime, ok := range map[time.Duration]bool{144 * time.Hour: true, 145 * time.Hour: false} {
		c := config.Defaults()
		c.Warehouse, c.StagedLifetime = t.TempDir(), lifetime
		w, err := OpenWarehouse(t.Context(), c, zerolog.Nop(), true)
		if (err == nil) != ok {
			t.Errorf("%v: %v", lifetime, err)
		}
		if err == nil {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestOptionsAreTheConfigurations(t *testing.T) {
	c := config.Defaults()
	c.Limits.MaxConcurrentScans = 7
	c.Advertise = []string{"grpc+tcp://host:1"}
	o := Options(c, nil, zerolog.Nop())
	if o.Limits.MaxConcurrentScans != 7 || o.TicketLifetime != c.TicketLifetime || o.Limits.DecodeMemoryBytes != c.Limits.DecodeBytes() || len(o.Advertise) != 1 {
		t.Errorf("got %+v", o)
	}
}

func TestEventsAreLogged(t *testing.T) {
	var log bytes.Buffer
	told := events(zerolog.New(&log))
	told.Warning(context.Background(), "derived data is damaged", map[string]any{"path": "data/a"})
	told.Committed(context.Background(), "default.t", 4, "append")
	for _, part := range []string{`"level":"warn"`, `"path":"data/a"`, `"message":"derived data is damaged"`, `"table":"default.t","version":4,"operation":"append"`} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("got %s, without %s", log.String(), part)
		}
	}
}
