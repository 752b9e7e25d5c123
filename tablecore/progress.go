package tablecore

// Progress is how far a long operation has come with one of its steps.
type Progress struct {
	Step string `json:"step"`
	Done int64  `json:"done"`
	// Total is nil where it is not known.
	Total *int64 `json:"total"`
	Unit  string `json:"unit"`
}
