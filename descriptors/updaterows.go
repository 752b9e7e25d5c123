package descriptors

// UpdateRows is the command of a DoPut that gives stored rows, named by their
// keys, the stream's values.
type UpdateRows struct {
	Table   string
	TableID string // "" when left out
	// Columns are the columns that change; the core knows which may.
	Columns         []string
	ExpectedVersion int64
	// Rows and EndMarker announce the stream's end, as in Append.
	Rows      *int64
	EndMarker bool
	RequestID string // "" when left out
}

var updateRowsFields = []fieldOf[UpdateRows]{
	opField[UpdateRows](OpUpdateRows),
	tableField(func(u *UpdateRows) *string { return &u.Table }),
	{Field{"columns", "list<string>", true, "The columns that get the stream's values: at least one, none twice, no key column. The stream has these, all entity columns and the index column."},
		textsInto(func(u *UpdateRows) *[]string { return &u.Columns })},
	{Field{"expected_version", "int64", true, "The version that the update follows; another current version is VERSION_CONFLICT."},
		integerInto(0, func(u *UpdateRows) *int64 { return &u.ExpectedVersion })},
	rowsField(func(u *UpdateRows) **int64 { return &u.Rows }),
	endField(func(u *UpdateRows) *bool { return &u.EndMarker }),
	requestIDField(func(u *UpdateRows) *string { return &u.RequestID }),
	tableIDField(func(u *UpdateRows) *string { return &u.TableID }),
}

// Encode returns the command that ParsePut reads as u.
func (u *UpdateRows) Encode() ([]byte, error) {
	var w objectWriter
	w.text("op", OpUpdateRows)
	w.text("table", u.Table)
	w.key("columns")
	w.buf = appendStrings(w.buf, u.Columns)
	w.integer("expected_version", u.ExpectedVersion)
	w.ending(u.Rows, u.EndMarker)
	w.filledText("request_id", u.RequestID)
	w.filledText("table_id", u.TableID)
	return w.finish()
}
