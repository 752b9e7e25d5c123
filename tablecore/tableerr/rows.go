package tableerr

import "fmt"

// DuplicateInterval reports two rows of one append in the same interval of the
// same entity.
type DuplicateInterval struct {
	About
	Entity   Values
	Interval string   // "[start, end)"
	Rows     [2]int64 // row numbers over the whole stream, ascending
}

func (e *DuplicateInterval) Error() string { return e.Text() }

// Token implements Error.
func (e *DuplicateInterval) Token() Token { return TokenDuplicateInterval }

// Text implements Error.
func (e *DuplicateInterval) Text() string {
	return fmt.Sprintf("rows %d and %d lie in the same interval of the same entity", e.Rows[0], e.Rows[1])
}

// Fields implements Error.
func (e *DuplicateInterval) Fields() []Field {
	return e.fields(Field{"entity", entity(e.Entity)}, Field{"interval", e.Interval}, Field{"rows", e.Rows})
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
