package statecache

import (
	"context"
	"fmt"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
)

// Stored is a state file whose sections can be read.
type Stored struct {
	// State is the log's state at the version of the file.
	State *deltalog.State

	cache *Cache
	file  *derived.StateFile
}

// Stored returns the newest state file that this process knows of at or below a
// version of a table, nil where there is none. It reads nothing.
func (c *Cache) Stored(tableID string, version int64) *Stored {
	k := c.newest()
	if k == nil || k.file.Of.TableID != tableID || k.file.Of.Version > version {
		return nil
	}
	return &Stored{k.state, c, k.file}
}

// Has tells whether there is a section of a kind.
func (s *Stored) Has(kind derived.SectionKind) bool {
	_, _, ok := s.file.Section(kind)
	return ok
}

// Read returns the content of a section. Where there is none, or none that can
// be read, it is nil, and Config.Ignored is told of the latter.
func (s *Stored) Read(ctx context.Context, kind derived.SectionKind) []byte {
	offset, length, ok := s.file.Section(kind)
	if !ok {
		return nil
	}
	stored, err := s.cache.read(ctx, s.file.Of, offset, length)
	var data []byte
	if err == nil {
		data, err = s.file.Unpack(kind, stored)
	}
	if err != nil {
		if ctx.Err() == nil && s.cache.cfg.Ignored != nil {
			s.cache.cfg.Ignored(ctx, fmt.Sprintf("section %c of the state of version %d: %v", kind, s.file.Of.Version, err))
		}
		return nil
	}
	return data
}
