package flightsrv

import (
	"context"
	"encoding/json"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/metadata"

	"contrail/descriptors"
	"contrail/flightsrv/internal/wire"
	"contrail/tablecore"
	"contrail/tablecore/tableerr"
)

// trailerStats carries the statistics of a finished scan or listing.
const trailerStats = "x-contrail-stats"

// DoGet streams the rows of a ticket, whether the server made it or a client
// wrote it by hand. The schema goes out before a place to scan is waited for
// and before any file is opened.
func (s *Server) DoGet(ticket *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	request, err := descriptors.ParseTicket(ticket.GetTicket())
	if err != nil {
		return err
	}
	ctx, done := s.streams.join(stream.Context(), ticket.GetTicket())
	defer done()
	r, err := s.resolve(ctx, request)
	if err != nil {
		return err
	}
	progress, leave := s.readers.join(ctx)
	defer leave()
	var stats tablecore.ScanStats
	s.work.extend()
	err = wire.Watch(ctx, s.opts.Limits.StallTimeout, progress, stream, s.work.end, func(ctx context.Context, sender wire.Sender) (err error) {
		stats, err = s.send(ctx, r, sender)
		return err
	})
	if err != nil {
		table, _, _ := r.target()
		return tableerr.WithTable(err, table)
	}
	if r.plan != nil {
		s.served.add(stats)
	}
	text, err := json.Marshal(stats)
	if err != nil {
		return err
	}
	stream.SetTrailer(metadata.Pairs(trailerStats, string(text)))
	return nil
}

// send sends the schema and then the rows.
func (s *Server) send(ctx context.Context, r *read, sender wire.Sender) (tablecore.ScanStats, error) {
	out := wire.NewStream(sender, r.schema(), int(s.opts.Limits.MaxSendMessageBytes), wire.Compressed(r.compression())...)
	if err := out.WriteSchema(); err != nil {
		return tablecore.ScanStats{}, err
	}
	leave, waited, err := s.scans.Enter(ctx)
	if err != nil {
		return tablecore.ScanStats{}, err
	}
	defer leave()
	stats, err := r.run(ctx, waited, out.Write)
	if err != nil {
		return tablecore.ScanStats{}, err
	}
	return stats, out.Close()
}
