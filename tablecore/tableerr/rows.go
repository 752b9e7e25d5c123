package tableerr

import "fmt"

// DuplicateInterval reports two rows of one append in the same interval of the
// same entity.
type DuplicateInterval struct {
	About
	Entity   Values
	Interval string   // "[start, end)"
	Rows     [2]int64 // row numbers over the whole stream, ascending
	// Staged, where the rows were staged before, are the places of the two tokens
	// in the request; Rows means nothing then.
	Staged *[2]int
}

func (e *DuplicateInterval) Error() string { return e.Text() }

// Token implements Error.
func (e *DuplicateInterval) Token() Token { return TokenDuplicateInterval }

// Text implements Error.
func (e *DuplicateInterval) Text() string {
	if e.Staged != nil {
		return fmt.Sprintf("staged[%d] and staged[%d] have a row in the same interval of the same entity", e.Staged[0], e.Staged[1])
	}
	return fmt.Sprintf("rows %d and %d lie in the same interval of the same entity", e.Rows[0], e.Rows[1])
}

// Fields implements Error.
func (e *DuplicateInterval) Fields() []Field {
	last := Field{"rows", e.Rows}
	if e.Staged != nil {
		last = Field{"staged", *e.Staged}
	}
	return e.fields(Field{"entity", entity(e.Entity)}, Field{"interval", e.Interval}, last)
}

// entity makes an absent identity an empty one.
func entity(v Values) Values {
	if v == nil {
		return Values{}
	}
	return v
}

// IntervalOverlap reports an append whose rows lie in intervals that already
// hold a row.
type IntervalOverlap struct {
	About
	ConflictCount uint64 // (entity, interval) pairs
	Entity        Values // the smallest example
	Interval      string
	Version       int64
}

func (e *IntervalOverlap) Error() string { return e.Text() }

// Token implements Error.
func (e *IntervalOverlap) Token() Token { return TokenIntervalOverlap }

// Text implements Error.
func (e *IntervalOverlap) Text() string {
	if e.ConflictCount == 1 {
		return fmt.Sprintf("1 interval of %s already holds a row", e.object())
	}
	return fmt.Sprintf("%d intervals of %s already hold a row", e.ConflictCount, e.object())
}

// Fields implements Error.
func (e *IntervalOverlap) Fields() []Field {
	return e.fields(Field{"conflict_count", e.ConflictCount}, Field{"entity", entity(e.Entity)},
		Field{"interval", e.Interval}, Field{"version", e.Version})
}

// NoGranularity reports a question about intervals to a table without any.
type NoGranularity struct{ About }

func (e *NoGranularity) Error() string { return e.Text() }

// Token implements Error.
func (e *NoGranularity) Token() Token { return TokenNoGranularity }

// Text implements Error.
func (e *NoGranularity) Text() string {
	return fmt.Sprintf("%s has no index granularity, so it has no intervals", e.object())
}

// Fields implements Error.
func (e *NoGranularity) Fields() []Field { return e.fields() }

// UniquenessViolated reports a table that cannot be adopted because several of
// its rows share an interval.
type UniquenessViolated struct {
	About
	Violations uint64 // rows in an interval that has another row before them
	Entity     Values // the smallest example
	Interval   string // "[start, end)"
}

func (e *UniquenessViolated) Error() string { return e.Text() }

// Token implements Error.
func (e *UniquenessViolated) Token() Token { return TokenUniquenessViolated }

// Text implements Error.
func (e *UniquenessViolated) Text() string {
	return fmt.Sprintf("%d rows of %s share their interval with another row of the same entity; remove them, or choose a finer granularity or uniqueness none", e.Violations, e.object())
}

// Fields implements Error.
func (e *UniquenessViolated) Fields() []Field {
	return e.fields(Field{"violations", e.Violations}, Field{"entity", e.Entity}, Field{"interval", e.Interval})
}
