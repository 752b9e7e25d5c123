// Package serving makes a Flight service out of a configuration: it opens the
// warehouse on the local disk and sets the service up over it. The daemon
// serves it on a network address; Embedded serves it to its own process alone,
// with no address at all, so that a command line that works on a directory runs
// the very code that a server runs.
package serving

import (
	"context"
	"errors"
	"fmt"

	"github.com/rs/zerolog"

	"contrail/cmd/internal/config"
	"contrail/flightsrv"
	"contrail/tablecore"
	"contrail/tablecore/objstore/localfs"
)

// OpenWarehouse opens the warehouse that c names. With create its directory is
// made when it is not there; without, that is an error for which
// errors.Is(err, objstore.ErrNotExist) holds. What the table core tells goes
// to log. The caller closes the warehouse.
func OpenWarehouse(ctx context.Context, c config.Config, log zerolog.Logger, create bool) (*tablecore.Warehouse, error) {
	store, err := localfs.Open(c.Warehouse, localfs.Options{Create: create})
	if err != nil {
		return nil, fmt.Errorf("open the warehouse %s: %w", c.Warehouse, err)
	}
	warehouse, err := tablecore.Open(ctx, tablecore.Options{
		Store:              store,
		Events:             events(log),
		MemoryBudget:       c.Limits.AppendBytes(),
		SeriesMemory:       c.Limits.SeriesBytes(),
		Scratch:            c.Scratch,
		StagedLifetime:     c.StagedLifetime,
		Maintenance:        tablecore.Maintenance{Off: !c.Maintenance},
		AllowExternalPaths: c.AllowExternalPaths,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the warehouse %s: %w", c.Warehouse, err), store.Close())
	}
	return warehouse, nil
}

// events logs what the table core tells.
func events(log zerolog.Logger) tablecore.Events {
	return tablecore.Events{
		Warning: func(_ context.Context, event string, fields map[string]any) {
			log.Warn().Fields(fields).Msg(event)
		},
		Info: func(_ context.Context, event string, fields map[string]any) {
			log.Info().Fields(fields).Msg(event)
		},
		Committed: func(_ context.Context, table string, version int64, operation string) {
			log.Debug().Str("table", table).Int64("version", version).Str("operation", operation).Msg("committed")
		},
	}
}

// Options are the settings of a Flight service over warehouse, as c has them.
func Options(c config.Config, warehouse *tablecore.Warehouse, log zerolog.Logger) flightsrv.Options {
	limits := c.Limits
	return flightsrv.Options{
		Warehouse:      warehouse,
		Logger:         log,
		TicketLifetime: c.TicketLifetime,
		Advertise:      c.Advertise,
		Limits: flightsrv.Limits{
			MaxReceiveMessageBytes:  limits.MaxReceiveMessageBytes,
			MaxConcurrentScans:      limits.MaxConcurrentScans,
			MaxConcurrentPuts:       limits.MaxConcurrentPuts,
			QueueWait:               limits.QueueWait,
			MaxStreamsPerConnection: limits.MaxStreamsPerConnection,
			DecodeMemoryBytes:       limits.DecodeBytes(),
			FirstMessageTimeout:     limits.FirstMessageTimeout,
			StallTimeout:            limits.StallTimeout,
		},
	}
}
