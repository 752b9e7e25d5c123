package descriptors

import "time"

// Vacuum is the body of vacuum.
type Vacuum struct {
	Table           string
	TableID         string     // "" when left out
	OlderThan       *time.Time // nil when left out
	Apply           bool
	Expire          bool
	Force           bool
	ExpectedVersion *int64
}

var vacuumFields = []fieldOf[Vacuum]{
	tableField(func(v *Vacuum) *string { return &v.Table }),
	{Field{"older_than", "string", false, "A time with its zone in RFC 3339, in the past, and an hour ago at most without `force`: files that were never committed go if they are older; default 7 days ago."},
		momentInto(func(v *Vacuum) **time.Time { return &v.OlderThan })},
	{Field{"apply", "bool", false, "Remove the files; otherwise they are only named."}, boolInto(func(v *Vacuum) *bool { return &v.Apply })},
	{Field{"expire", "bool", false, "First give up the versions that were succeeded longer ago than the table's snapshot retention."}, boolInto(func(v *Vacuum) *bool { return &v.Expire })},
	{Field{"force", "bool", false, "Take any `older_than`. No other process may be writing to the table."}, boolInto(func(v *Vacuum) *bool { return &v.Force })},
	expectedField(func(v *Vacuum) **int64 { return &v.ExpectedVersion }),
	tableIDField(func(v *Vacuum) *string { return &v.TableID }),
}

// ParseVacuum reads the body of vacuum.
func ParseVacuum(body []byte) (*Vacuum, error) { return parseBody(body, vacuumFields, nil) }
