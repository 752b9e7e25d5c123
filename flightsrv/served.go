package flightsrv

import (
	"sync"

	"contrail/descriptors"
	"contrail/tablecore"
)

// served counts what scans have sent since the server started. Its methods are
// safe for concurrent use; the zero value has counted nothing.
type served struct {
	mu     sync.Mutex
	totals descriptors.Served
}

// add counts a scan that has ended well.
func (s *served) add(stats tablecore.ScanStats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.totals
	t.Scans++
	t.Rows += stats.Rows
	t.Bytes += stats.Bytes
	t.Files += stats.Files
	t.FilesSkipped += stats.FilesSkipped
	t.RowGroups += stats.RowGroups
	t.RowGroupsSkipped += stats.RowGroupsSkipped
}

// total returns the counts so far.
func (s *served) total() *descriptors.Served {
	s.mu.Lock()
	defer s.mu.Unlock()
	totals := s.totals
	return &totals
}
