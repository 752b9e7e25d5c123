package descriptors

import "time"

// Upgrade is the body of upgrade.
type Upgrade struct {
	Table   string
	TableID string // "" when left out
	// What a plain Delta table becomes; as in CreateTable.
	IndexColumn      string
	IndexGranularity string
	EntityColumns    []string // nil when left out
	Timezone         string
	Uniqueness       string
	// KeepSnapshots is a duration, "" when left out; not both it and
	// KeepSnapshotsUntil are set.
	KeepSnapshots      string
	KeepSnapshotsUntil *time.Time
	NoCompact          bool
	DryRun             bool
	ExpectedVersion    *int64
}

var upgradeFields = []fieldOf[Upgrade]{
	tableField(func(u *Upgrade) *string { return &u.Table }),
	{Field{"index_column", "string", false, "The column that orders the rows; required for a plain Delta table, like all of its keys left out or the same for another one."},
		textInto(func(u *Upgrade) *string { return &u.IndexColumn })},
	{Field{"index_granularity", "string or integer", false, "Width of an interval, as in `create_table`."}, granularityInto(func(u *Upgrade) *string { return &u.IndexGranularity })},
	{Field{"entity_columns", "list<string>", false, "The columns that identify a series; default `[]`."}, textsInto(func(u *Upgrade) *[]string { return &u.EntityColumns })},
	{Field{"timezone", "string", false, "An IANA name, `UTC` or a fixed offset; informative."}, textInto(func(u *Upgrade) *string { return &u.Timezone })},
	{Field{"uniqueness", "string", false, "`reject` (default), `overwrite` or `none`; but for `none` the rows are checked."}, textInto(func(u *Upgrade) *string { return &u.Uniqueness })},
	{Field{"keep_snapshots", "string", false, "How long the versions before the upgrade can be rolled back to at least; default `\"7d\"`. A longer hold stays."},
		textInto(func(u *Upgrade) *string { return &u.KeepSnapshots })},
	{Field{"keep_snapshots_until", "string", false, "A time with its zone in RFC 3339, in place of `keep_snapshots`."},
		momentInto(func(u *Upgrade) **time.Time { return &u.KeepSnapshotsUntil })},
	{Field{"compact", "bool", false, "Rewrite files that are unsorted or small; default true."},
		func(u *Upgrade, v value) *fault {
			compact, f := v.boolean()
			u.NoCompact = !compact
			return f
		}},
	{Field{"dry_run", "bool", false, "Only say what would happen."}, boolInto(func(u *Upgrade) *bool { return &u.DryRun })},
	expectedField(func(u *Upgrade) **int64 { return &u.ExpectedVersion }),
	tableIDField(func(u *Upgrade) *string { return &u.TableID }),
}

// ParseUpgrade reads the body of upgrade.
func ParseUpgrade(body []byte) (*Upgrade, error) {
	return parseBody(body, upgradeFields, func(u *Upgrade) *fault {
		if u.KeepSnapshots != "" && u.KeepSnapshotsUntil != nil {
			return faultf("does not go together with keep_snapshots").inKey("keep_snapshots_until")
		}
		return nil
	})
}
