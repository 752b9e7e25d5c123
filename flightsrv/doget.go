package flightsrv

import (
	"context"
	"encoding/json"
	"io"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/metadata"

	"contrail/descriptors"
	"contrail/flightsrv/internal/wire"
	"contrail/tablecore"
	"contrail/tablecore/tableerr"
)

// trailerStats carries the statistics of a finished scan.
const trailerStats = "x-contrail-stats"

// DoGet streams the rows of a ticket, whether the server made it or a client
// wrote it by hand. The schema goes out before a place to scan is waited for
// and before any file is opened.
func (s *Server) DoGet(ticket *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	scan, err := descriptors.ParseTicket(ticket.GetTicket())
	if err != nil {
		return err
	}
	plan, err := s.plan(stream.Context(), scan)
	if err != nil {
		return err
	}
	var stats tablecore.ScanStats
	s.work.extend()
	err = wire.Watch(stream.Context(), s.opts.Limits.StallTimeout, stream, s.work.end, func(ctx context.Context, sender wire.Sender) (err error) {
		stats, err = s.scan(ctx, plan, sender)
		return err
	})
	if err != nil {
		return tableerr.WithTable(err, plan.Table().String())
	}
	text, err := json.Marshal(stats)
	if err != nil {
		return err
	}
	stream.SetTrailer(metadata.Pairs(trailerStats, string(text)))
	return nil
}

// scan sends the schema and then the rows of the plan.
func (s *Server) scan(ctx context.Context, plan *tablecore.ScanPlan, sender wire.Sender) (tablecore.ScanStats, error) {
	out := wire.NewStream(sender, plan.Schema(), int(s.opts.Limits.MaxSendMessageBytes))
	if err := out.WriteSchema(); err != nil {
		return tablecore.ScanStats{}, err
	}
	leave, waited, err := s.scans.Enter(ctx)
	if err != nil {
		return tablecore.ScanStats{}, err
	}
	defer leave()
	reader, err := plan.Open(ctx)
	if err != nil {
		return tablecore.ScanStats{}, err
	}
	defer reader.Release()
	for {
		batch, err := reader.Next(ctx)
		if err == io.EOF {
			stats := reader.Stats()
			stats.QueueMS = waited.Milliseconds()
			return stats, out.Close()
		}
		if err != nil {
			return tablecore.ScanStats{}, err
		}
		if err := out.Write(batch); err != nil {
			return tablecore.ScanStats{}, err
		}
	}
}
