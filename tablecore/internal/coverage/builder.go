package coverage

import (
	"errors"
	"math"
	"strings"
)

// Errors of a Builder that is fed out of order.
var (
	ErrKeyOrder = errors.New("entity keys must ascend")
	ErrIDOrder  = errors.New("interval ids of an entity must not descend")
)

// errTooLarge is told when a set passes what 32-bit offsets reach.
var errTooLarge = errors.New("the coverage is larger than 4 GiB")

// Builder makes a Set from entities in the order of their keys, each with its
// interval ids ascending. It keeps the set's encoded form only, so its memory
// is the set's. The first mistake in the order is reported by Finish. It is
// for use by one goroutine.
type Builder struct {
	set     Set
	keys    strings.Builder
	key     string // of the entity that is being fed
	started bool   // an entity is being fed
	open    bool   // it has a run, start to end
	first   bool   // that run is its first
	start   uint64
	end     uint64
	runs    int
	err     error
}

// NewBuilder returns a builder of an empty set.
func NewBuilder() *Builder { return &Builder{} }

// Entity begins an entity. Its key must be above the last one's. An entity
// without ids is left out of the set.
func (b *Builder) Entity(key string) {
	if b.started && b.err == nil {
		if key <= b.key {
			b.fail(ErrKeyOrder)
		}
		b.closeEntity()
	}
	b.key, b.started = key, true
}

// Add adds one interval to the entity.
func (b *Builder) Add(id uint64) { b.AddRun(id, id) }

// AddIDs adds intervals to the entity. Equal ids in a row count once.
func (b *Builder) AddIDs(ids []uint64) {
	if len(ids) == 0 {
		return
	}
	if !b.open {
		b.AddRun(ids[0], ids[0])
	}
	if b.err != nil {
		return
	}
	start, end := b.start, b.end
	for _, id := range ids {
		switch {
		case id == end:
		case id == end+1 && id != 0:
			end = id
		case id > end:
			b.start, b.end = start, end
			b.closeRun()
			b.open = true
			start, end = id, id
		default:
			b.fail(ErrIDOrder)
			return
		}
	}
	b.start, b.end = start, end
}

// AddRun adds the intervals from first to last to the entity. first must not
// be below the first of the run before; the two may overlap.
func (b *Builder) AddRun(first, last uint64) {
	switch {
	case b.err != nil:
	case !b.started:
		b.fail(ErrKeyOrder)
	case last < first || b.open && first < b.start:
		b.fail(ErrIDOrder)
	case !b.open:
		b.open, b.first, b.start, b.end = true, true, first, last
	case first <= b.end || first == b.end+1: // no overflow: first > end otherwise
		b.end = max(b.end, last)
	default:
		b.closeRun()
		b.open, b.start, b.end = true, first, last
	}
}

func (b *Builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// closeRun writes the run that is being made.
func (b *Builder) closeRun() {
	n := runLength(b.start, b.end)
	if b.first {
		b.first = false
		b.set.spans = append(b.set.spans, span{first: b.start, firstEnd: b.end, last: b.end, count: n})
		return
	}
	sp := &b.set.spans[len(b.set.spans)-1]
	b.set.data = appendRun(b.set.data, b.start-sp.last-1, n)
	sp.last = b.end
	sp.count = addSaturating(sp.count, n)
	if b.runs++; b.runs%skipEvery == 0 {
		b.set.skips = append(b.set.skips, skip{b.start, b.end, uint32(len(b.set.data))})
	}
}

// closeEntity ends the entity that is being fed.
func (b *Builder) closeEntity() {
	if !b.open {
		return
	}
	b.closeRun()
	b.keys.WriteString(b.key)
	if b.keys.Len() > math.MaxUint32 || len(b.set.data) > math.MaxUint32 {
		b.fail(errTooLarge)
	}
	b.set.keyEnds = append(b.set.keyEnds, uint32(b.keys.Len()))
	b.set.ends = append(b.set.ends, uint32(len(b.set.data)))
	b.set.skipped = append(b.set.skipped, uint32(len(b.set.skips)))
	b.open, b.runs = false, 0
}

// Finish returns the set, or the first mistake in the order of what was fed.
// The builder must not be used again.
func (b *Builder) Finish() (*Set, error) {
	if b.err == nil {
		b.closeEntity()
	}
	if b.err != nil {
		return nil, b.err
	}
	b.set.keys = b.keys.String()
	set := b.set
	return &set, nil
}
