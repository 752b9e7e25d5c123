package descriptors

// AddColumns is the body of add_columns.
type AddColumns struct {
	Table           string
	TableID         string // "" when left out
	ExpectedVersion *int64
	// Columns and SchemaIPC say the columns, exactly one of them.
	Columns   []Column
	SchemaIPC []byte // an encapsulated IPC schema message
}

var addColumnsFields = []fieldOf[AddColumns]{
	tableField(func(a *AddColumns) *string { return &a.Table }),
	{Field{"columns", "list<object>", false, "The columns as `{\"name\",\"type\",\"nullable\"?}`, all of them nullable, in their order."},
		func(a *AddColumns, v value) (f *fault) { a.Columns, f = columnList(v); return f }},
	{Field{"schema_ipc", "string", false, "The columns as base64 of an IPC schema message, in place of `columns`."},
		func(a *AddColumns, v value) (f *fault) { a.SchemaIPC, f = v.base64(); return f }},
	expectedField(func(a *AddColumns) **int64 { return &a.ExpectedVersion }),
	tableIDField(func(a *AddColumns) *string { return &a.TableID }),
}

// ParseAddColumns reads the body of add_columns.
func ParseAddColumns(body []byte) (*AddColumns, error) {
	return parseBody(body, addColumnsFields, func(a *AddColumns) *fault {
		switch {
		case a.Columns != nil && a.SchemaIPC != nil:
			return faultf("goes not together with columns: say the columns once").inKey("schema_ipc")
		case a.SchemaIPC == nil && len(a.Columns) == 0:
			return faultf("names no column to add").inKey("columns")
		}
		return nil
	})
}

// SetProperties is the body of set_properties.
type SetProperties struct {
	Table           string
	TableID         string // "" when left out
	ExpectedVersion *int64
	// Properties has a value for each key, nil for one that is to be removed.
	Properties map[string]*string
}

var setPropertiesFields = []fieldOf[SetProperties]{
	tableField(func(s *SetProperties) *string { return &s.Table }),
	{Field{"properties", "map<string, string>", true, "Values by key; `null` removes a key. Keys below `contrail.` and `delta.` are those of `tablecore/docs/properties.md`, all others are yours."},
		func(s *SetProperties, v value) (f *fault) { s.Properties, f = v.textChange(); return f }},
	expectedField(func(s *SetProperties) **int64 { return &s.ExpectedVersion }),
	tableIDField(func(s *SetProperties) *string { return &s.TableID }),
}

// ParseSetProperties reads the body of set_properties.
func ParseSetProperties(body []byte) (*SetProperties, error) {
	return parseBody(body, setPropertiesFields, nil)
}

// Checkpoint is the body of checkpoint.
type Checkpoint struct {
	Table           string
	TableID         string // "" when left out
	ExpectedVersion *int64
}

var checkpointFields = []fieldOf[Checkpoint]{
	tableField(func(c *Checkpoint) *string { return &c.Table }),
	expectedField(func(c *Checkpoint) **int64 { return &c.ExpectedVersion }),
	tableIDField(func(c *Checkpoint) *string { return &c.TableID }),
}

// ParseCheckpoint reads the body of checkpoint.
func ParseCheckpoint(body []byte) (*Checkpoint, error) {
	return parseBody(body, checkpointFields, nil)
}
