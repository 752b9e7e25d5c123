package coverage

// Probe asks a set for one entity's intervals in ascending order, which costs
// less than to search for each of them. It is for use by one goroutine.
type Probe struct {
	cursor cursor
	done   bool // no interval is left
}

// Probe returns a probe of an entity's intervals.
func (s *Set) Probe(i int) *Probe { return &Probe{cursor: s.cursor(i)} }

// Has says whether the entity has a row in an interval. Intervals must not
// descend from call to call.
func (p *Probe) Has(id uint64) bool {
	p.done = p.done || !p.cursor.seek(id)
	return !p.done && p.cursor.start <= id
}
