package tableerr

import (
	"encoding/json"
	"fmt"
	"time"
)

// Whole is a value that clients get whole in the detail of an error, however
// long its JSON is. It must be bounded by itself.
type Whole struct{ Value any }

// MarshalJSON implements json.Marshaler.
func (w Whole) MarshalJSON() ([]byte, error) { return json.Marshal(w.Value) }

// VacuumIncomplete reports a vacuum that has stopped in the middle. What it has
// deleted by then was not needed; repeating it goes on.
type VacuumIncomplete struct {
	About
	Path string // where it stopped, relative to the table
	// PartialReport holds the totals up to there.
	PartialReport any
	Cause         error
}

func (e *VacuumIncomplete) Error() string { return e.Text() }

// Unwrap returns the cause.
func (e *VacuumIncomplete) Unwrap() error { return e.Cause }

// Token implements Error.
func (e *VacuumIncomplete) Token() Token { return TokenVacuumIncomplete }

// Text implements Error.
func (e *VacuumIncomplete) Text() string {
	return fmt.Sprintf("the vacuum of %s stopped at %q: %v; run it again", e.object(), e.Path, e.Cause)
}

// Fields implements Error.
func (e *VacuumIncomplete) Fields() []Field {
	return e.fields(Field{"path", e.Path}, Field{"partial_report", Whole{e.PartialReport}})
}

// ClockBehind reports a clock that is behind the newest commit, by which nobody
// can tell what is old.
type ClockBehind struct {
	About
	Newest time.Time // of the newest commit
}

func (e *ClockBehind) Error() string { return e.Text() }

// Token implements Error.
func (e *ClockBehind) Token() Token { return TokenClockBehind }

// Text implements Error.
func (e *ClockBehind) Text() string {
	return fmt.Sprintf("the clock is behind the newest commit of %s, which was made at %s", e.object(), e.newest())
}

func (e *ClockBehind) newest() string { return e.Newest.UTC().Format(time.RFC3339Nano) }

// Fields implements Error.
func (e *ClockBehind) Fields() []Field { return e.fields(Field{"newest", e.newest()}) }
