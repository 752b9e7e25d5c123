package descriptors

// Stage is the command of a DoPut that writes rows and commits nothing.
type Stage struct {
	Table   string
	TableID string // "" when left out
	// Rows and EndMarker announce the stream's end, and the others are the
	// settings, as in Append.
	Rows                *int64
	EndMarker           bool
	Compression         string
	MaxRowsPerRowGroup  *int64
	MaxBytesPerRowGroup *int64
}

var stageFields = []fieldOf[Stage]{
	opField[Stage](OpStage),
	tableField(func(s *Stage) *string { return &s.Table }),
	rowsField(func(s *Stage) **int64 { return &s.Rows }),
	endField(func(s *Stage) *bool { return &s.EndMarker }),
	compressionField(func(s *Stage) *string { return &s.Compression }),
	groupRowsField(func(s *Stage) **int64 { return &s.MaxRowsPerRowGroup }),
	groupBytesField(func(s *Stage) **int64 { return &s.MaxBytesPerRowGroup }),
	tableIDField(func(s *Stage) *string { return &s.TableID }),
}

// Encode returns the command that ParsePut reads as s.
func (s *Stage) Encode() ([]byte, error) {
	var w objectWriter
	w.text("op", OpStage)
	w.text("table", s.Table)
	w.ending(s.Rows, s.EndMarker)
	w.fileSettings(s.Compression, s.MaxRowsPerRowGroup, s.MaxBytesPerRowGroup)
	w.filledText("table_id", s.TableID)
	return w.finish()
}

// CommitStaged is the body of commit_staged.
type CommitStaged struct {
	Table           string
	TableID         string // "" when left out
	RequestID       string
	Staged          []string // tokens; the core knows what is in them
	ExpectedVersion *int64
}

var commitStagedFields = []fieldOf[CommitStaged]{
	tableField(func(c *CommitStaged) *string { return &c.Table }),
	{Field{"request_id", "string", true, "1 to 128 printable ASCII characters; a known one is answered with its first report, and the rows that are named are dropped."},
		func(c *CommitStaged, v value) (f *fault) { c.RequestID, f = v.requestID(); return f }},
	stagedField(func(c *CommitStaged) *[]string { return &c.Staged }),
	expectedField(func(c *CommitStaged) **int64 { return &c.ExpectedVersion }),
	tableIDField(func(c *CommitStaged) *string { return &c.TableID }),
}

func stagedField[T any](target func(*T) *[]string) fieldOf[T] {
	return fieldOf[T]{Field{"staged", "list<string>", true, "The tokens that stage has answered with, at least one, none twice."},
		func(into *T, v value) *fault {
			list, f := v.textList()
			if f == nil && len(list) == 0 {
				f = faultf("is empty")
			}
			*target(into) = list
			return f
		}}
}

// ParseCommitStaged reads the body of commit_staged.
func ParseCommitStaged(body []byte) (*CommitStaged, error) {
	return parseBody(body, commitStagedFields, nil)
}

// AbortStaged is the body of abort_staged.
type AbortStaged struct {
	Table   string
	TableID string // "" when left out
	Staged  []string
}

var abortStagedFields = []fieldOf[AbortStaged]{
	tableField(func(a *AbortStaged) *string { return &a.Table }),
	stagedField(func(a *AbortStaged) *[]string { return &a.Staged }),
	tableIDField(func(a *AbortStaged) *string { return &a.TableID }),
}

// ParseAbortStaged reads the body of abort_staged.
func ParseAbortStaged(body []byte) (*AbortStaged, error) {
	return parseBody(body, abortStagedFields, nil)
}
