package flightsrv

import (
	"context"

	"contrail/descriptors"
	"contrail/tablecore"
	"contrail/tablecore/tabledef"
)

// check answers with what it finds, as it finds it, and then with the report. It
// ends with its client: what it repairs is right whenever it stops.
func (s *Server) check(ctx context.Context, body []byte, out messages) (any, error) {
	r, err := descriptors.ParseCheck(body)
	if err != nil {
		return nil, err
	}
	name, err := tabledef.ParseName(r.Table)
	if err != nil {
		return nil, err
	}
	return s.opts.Warehouse.Check(ctx, name, tablecore.CheckOptions{Repair: r.Repair, TableID: r.TableID, Progress: out.progress,
		Findings: func(found []tablecore.CheckFinding) error {
			return out.send(map[string][]tablecore.CheckFinding{"findings": found})
		}})
}
