package descriptors

// Rollback is the body of rollback.
type Rollback struct {
	Table           string
	TableID         string // "" when left out
	Version         int64
	ExpectedVersion int64
	Release         bool
	DryRun          bool
}

var rollbackFields = []fieldOf[Rollback]{
	tableField(func(r *Rollback) *string { return &r.Table }),
	{Field{"version", "int64", true, "The version whose content becomes the newest one's."},
		integerInto(0, func(r *Rollback) *int64 { return &r.Version })},
	{Field{"expected_version", "int64", true, "The newest version that the client knows; another current version is VERSION_CONFLICT."},
		integerInto(0, func(r *Rollback) *int64 { return &r.ExpectedVersion })},
	{Field{"release", "bool", false, "Also give the table back to other Delta writers; needs a version from before it was Contrail's."},
		boolInto(func(r *Rollback) *bool { return &r.Release })},
	{Field{"dry_run", "bool", false, "Only say what would happen."}, boolInto(func(r *Rollback) *bool { return &r.DryRun })},
	tableIDField(func(r *Rollback) *string { return &r.TableID }),
}

// ParseRollback reads the body of rollback.
func ParseRollback(body []byte) (*Rollback, error) { return parseBody(body, rollbackFields, nil) }
