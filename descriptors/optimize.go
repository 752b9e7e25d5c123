package descriptors

// Optimize is the body of optimize.
type Optimize struct {
	Table           string
	TableID         string // "" when left out
	Layout          string // "" when left out: mixed
	TargetFileBytes *int64
	MaxFiles        *int64
	ExpectedVersion *int64
	DryRun          bool
}

var optimizeFields = []fieldOf[Optimize]{
	tableField(func(o *Optimize) *string { return &o.Table }),
	{Field{"layout", "string", false, "`mixed` (default): files are cut by ranges of the index; `entity`: each file holds one entity."},
		textInto(func(o *Optimize) *string { return &o.Layout })},
	{Field{"target_file_bytes", "int64", false, "Size that files aim at; default the table's `contrail.target-file-bytes`, or 128 MiB."},
		optionalInto(1, func(o *Optimize) **int64 { return &o.TargetFileBytes })},
	{Field{"max_files", "int64", false, "How many files the layout `entity` may make; default 10,000. More are INVALID."},
		optionalInto(1, func(o *Optimize) **int64 { return &o.MaxFiles })},
	{Field{"dry_run", "bool", false, "Only say what would be rewritten; what comes out is estimated."}, boolInto(func(o *Optimize) *bool { return &o.DryRun })},
	expectedField(func(o *Optimize) **int64 { return &o.ExpectedVersion }),
	tableIDField(func(o *Optimize) *string { return &o.TableID }),
}

// ParseOptimize reads the body of optimize.
func ParseOptimize(body []byte) (*Optimize, error) { return parseBody(body, optimizeFields, nil) }
