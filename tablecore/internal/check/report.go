package check

// Severity says how bad a finding is.
type Severity string

// An Error gives wrong rows, refuses right ones or loses some; a Warning costs
// time or room alone.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Kind says what is wrong.
type Kind string

// The kinds of findings.
const (
	MissingFile       Kind = "missing_file"
	BadFile           Kind = "bad_file"
	BadStatistics     Kind = "bad_statistics"
	BadCoverage       Kind = "bad_coverage"
	BadLastValues     Kind = "bad_last_values"
	BadOrder          Kind = "bad_order"
	DuplicateInterval Kind = "duplicate_interval"
	BadLog            Kind = "bad_log"
	Orphan            Kind = "orphan"
)

// Finding is one thing that is wrong.
type Finding struct {
	Severity Severity `json:"severity"`
	Kind     Kind     `json:"kind"`
	Path     string   `json:"path"` // relative to the table
	// Column and Row, counted from 0 in the file, are there where they are known.
	Column string `json:"column,omitempty"`
	Row    *int64 `json:"row,omitempty"`
	Text   string `json:"text"`
	// Repaired says that it is right again.
	Repaired bool `json:"repaired,omitempty"`
}

// maxFindings is how many findings are given at a time.
const maxFindings = 1000

// Totals count findings; those that were repaired are no errors or warnings any
// more.
type Totals struct {
	Files, Errors, Warnings, Repaired int64
}

// report gathers findings and gives them on.
type report struct {
	send    func([]Finding) error
	pending []Finding
	totals  Totals
}

func (r *report) add(f Finding) error {
	switch {
	case f.Repaired:
		r.totals.Repaired++
	case f.Severity == Error:
		r.totals.Errors++
	default:
		r.totals.Warnings++
	}
	r.pending = append(r.pending, f)
	if len(r.pending) < maxFindings {
		return nil
	}
	return r.flush()
}

func (r *report) flush() error {
	if len(r.pending) == 0 {
		return nil
	}
	found := r.pending
	r.pending = nil
	return r.send(found)
}
