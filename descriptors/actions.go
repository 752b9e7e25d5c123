package descriptors

import (
	"encoding/json"
	"time"

	"contrail/tablecore/tableerr"
)

// CreateTable is the body of create_table.
type CreateTable struct {
	Table       string
	IndexColumn string
	IndexType   string // "" when left out: the schema says it
	// IndexGranularity is "1h" for timestamps, decimal digits for integers and
	// "" when left out.
	IndexGranularity string
	EntityColumns    []string
	Timezone         *string
	Uniqueness       string  // "" when left out
	IngestTimeColumn *string // points to "" where none is wanted
	Properties       map[string]string
	// Columns and SchemaIPC say the schema, one of them or none.
	Columns   []Column
	SchemaIPC []byte // an encapsulated IPC schema message
}

// Column is a field of a schema given as JSON. Type is the spelling that
// Python prints.
type Column struct {
	Name    string
	Type    string
	NotNull bool // "nullable":false
}

var createTableFields = []fieldOf[CreateTable]{
	tableField(func(c *CreateTable) *string { return &c.Table }),
	{Field{"index_column", "string", true, "The column that orders the rows."}, textInto(func(c *CreateTable) *string { return &c.IndexColumn })},
	{Field{"index_type", "string", false, "`timestamp`, `int64` or `uint64`; required without a schema."}, textInto(func(c *CreateTable) *string { return &c.IndexType })},
	{Field{"index_granularity", "string or integer", false, "Width of an interval: `\"1h\"` for timestamps, an integer for integers; may be left out with uniqueness `none` only."}, granularityInto(func(c *CreateTable) *string { return &c.IndexGranularity })},
	{Field{"entity_columns", "list<string>", false, "The columns that identify a series; default `[]`."}, textsInto(func(c *CreateTable) *[]string { return &c.EntityColumns })},
	{Field{"timezone", "string", false, "An IANA name, `UTC` or a fixed offset; informative."}, optionalTextInto(func(c *CreateTable) **string { return &c.Timezone })},
	{Field{"uniqueness", "string", false, "What an append into a filled interval does: `reject` (default) is INTERVAL_OVERLAP, `overwrite` replaces the rows there, `none` adds to them."}, textInto(func(c *CreateTable) *string { return &c.Uniqueness })},
	{Field{"ingest_time_column", "string", false, "Name of the insertion-time column; default `_ingest_ts`, `\"\"` for none."}, optionalTextInto(func(c *CreateTable) **string { return &c.IngestTimeColumn })},
	{Field{"properties", "map<string, string>", false, "Table properties."},
		func(c *CreateTable, v value) (f *fault) { c.Properties, f = v.textMap(); return f }},
	{Field{"columns", "list<object>", false, "The schema as `{\"name\",\"type\",\"nullable\"?}`."}, readSchemaColumns},
	{Field{"schema_ipc", "string", false, "The schema as base64 of an IPC schema message, in place of `columns`. Without either the first append brings it."},
		func(c *CreateTable, v value) (f *fault) { c.SchemaIPC, f = v.base64(); return f }},
}

func optionalTextInto[T any](target func(*T) **string) func(*T, value) *fault {
	return func(into *T, v value) *fault {
		s, f := v.text()
		if f != nil {
			return f
		}
		*target(into) = &s
		return nil
	}
}

func granularityInto[T any](target func(*T) *string) func(*T, value) *fault {
	return func(into *T, v value) (f *fault) {
		if v[0] == '"' {
			*target(into), f = v.filledText()
		} else {
			*target(into), f = v.integerText()
		}
		return f
	}
}

var columnFields = []fieldOf[Column]{
	{Field{"name", "string", true, ""}, func(c *Column, v value) (f *fault) { c.Name, f = v.text(); return f }},
	{Field{"type", "string", true, ""}, textInto(func(c *Column) *string { return &c.Type })},
	{Field{"nullable", "bool", false, ""}, func(c *Column, v value) *fault {
		nullable, f := v.boolean()
		c.NotNull = !nullable
		return f
	}},
}

// columnList reads a schema given as a list of columns; an empty one is not
// nil.
func columnList(v value) ([]Column, *fault) {
	if v[0] != '[' {
		return nil, v.wrongKind("a list")
	}
	columns := []Column{}
	for i, e := range v.elements() {
		column, f := decode(e, columnFields)
		if f != nil {
			return nil, f.inIndex(i)
		}
		columns = append(columns, *column)
	}
	return columns, nil
}

func readSchemaColumns(c *CreateTable, v value) (f *fault) {
	if c.Columns, f = columnList(v); f == nil && len(c.Columns) == 0 {
		f = faultf("is empty; leave it out to take the schema of the first append")
	}
	return f
}

// ParseCreateTable reads the body of create_table.
func ParseCreateTable(body []byte) (*CreateTable, error) {
	return parseBody(body, createTableFields, func(c *CreateTable) *fault {
		switch {
		case c.Columns != nil && c.SchemaIPC != nil:
			return faultf("goes not together with columns: a table has one schema").inKey("schema_ipc")
		case c.Columns == nil && c.SchemaIPC == nil && c.IndexType == "":
			return faultf("is required without a schema").inKey("index_type")
		}
		return nil
	})
}

// DropTable is the body of drop_table.
type DropTable struct {
	Table           string
	TableID         string // "" when left out
	ExpectedVersion *int64
	DryRun          bool
}

var dropTableFields = []fieldOf[DropTable]{
	tableField(func(d *DropTable) *string { return &d.Table }),
	{Field{"dry_run", "bool", false, "Only say what would be dropped."}, boolInto(func(d *DropTable) *bool { return &d.DryRun })},
	expectedField(func(d *DropTable) **int64 { return &d.ExpectedVersion }),
	tableIDField(func(d *DropTable) *string { return &d.TableID }),
}

// ParseDropTable reads the body of drop_table.
func ParseDropTable(body []byte) (*DropTable, error) {
	return parseBody(body, dropTableFields, nil)
}

// ListTables is the body of list_tables.
type ListTables struct {
	Namespace string // "" for all
}

var listTablesFields = []fieldOf[ListTables]{
	{Field{"namespace", "string", false, "Tables of one namespace; left out: of all."}, textInto(func(l *ListTables) *string { return &l.Namespace })},
}

// ParseListTables reads the body of list_tables.
func ParseListTables(body []byte) (*ListTables, error) {
	return parseBody(body, listTablesFields, nil)
}

// DescribeTable is the body of describe_table.
type DescribeTable struct {
	Table   string
	TableID string // "" when left out
	// Version and AsOf are not both set.
	Version *int64
	AsOf    *time.Time
}

var describeTableFields = []fieldOf[DescribeTable]{
	tableField(func(d *DescribeTable) *string { return &d.Table }),
	versionField("describe", func(d *DescribeTable) **int64 { return &d.Version }),
	asOfField(func(d *DescribeTable) **time.Time { return &d.AsOf }),
	tableIDField(func(d *DescribeTable) *string { return &d.TableID }),
}

// ParseDescribeTable reads the body of describe_table.
func ParseDescribeTable(body []byte) (*DescribeTable, error) {
	return parseBody(body, describeTableFields, func(d *DescribeTable) *fault { return oneVersion(d.Version, d.AsOf) })
}

// ParseServerInfo checks the body of server_info, which has no field.
func ParseServerInfo(body []byte) error {
	_, err := parseBody[struct{}](body, nil, nil)
	return err
}

// Actions of this server version.
const (
	ActionCreateTable   = "create_table"
	ActionDropTable     = "drop_table"
	ActionListTables    = "list_tables"
	ActionDescribeTable = "describe_table"
	ActionAddColumns    = "add_columns"
	ActionOptimize      = "optimize"
	ActionUpgrade       = "upgrade"
	ActionRollback      = "rollback"
	ActionSetProperties = "set_properties"
	ActionCheckpoint    = "checkpoint"
	ActionVacuum        = "vacuum"
	ActionCheck         = "check"
	ActionCommitStaged  = "commit_staged"
	ActionAbortStaged   = "abort_staged"
	ActionServerInfo    = "server_info"
)

// Action describes an action for ListActions and the reference.
type Action struct {
	Name   string
	Text   string
	Fields []Field // not nil
}

// Actions lists the actions that this server version answers, in the order of
// the protocol's documents.
func Actions() []Action {
	return []Action{
		{ActionCreateTable, "Creates a table; answers like describe_table.", describe(createTableFields)},
		{ActionDropTable, "Moves a table's directory into the trash and frees its name.", describe(dropTableFields)},
		{ActionListTables, "Lists the tables of one namespace or of all.", describe(listTablesFields)},
		{ActionDescribeTable, "Tells a table's definition, schema, size and bounds.", describe(describeTableFields)},
		{ActionAddColumns, "Adds nullable columns behind those a table has; the rows there are null in them.", describe(addColumnsFields)},
		{ActionOptimize, "Rewrites small, large, unsorted and overlapping files into sorted ones near a target size; no row changes.", describe(optimizeFields)},
		{ActionUpgrade, "Brings a table to the newest format, step by step, and makes a plain Delta table one of Contrail's.", describe(upgradeFields)},
		{ActionRollback, "Makes an earlier version's content the newest one's, as a new commit.", describe(rollbackFields)},
		{ActionSetProperties, "Sets and removes properties of a table; answers with all that are set.", describe(setPropertiesFields)},
		{ActionCheckpoint, "Writes a checkpoint of the newest version, from which the table opens faster.", describe(checkpointFields)},
		{ActionVacuum, "Removes the files that no retained version needs, or only names them.", describe(vacuumFields)},
		{ActionCheck, "Compares what a table's files, log and derived data say with its rows; changes nothing, unless it is to repair derived data.", describe(checkFields)},
		{ActionCommitStaged, "Publishes the rows of stage puts as one append; answers like append.", describe(commitStagedFields)},
		{ActionAbortStaged, "Removes the files of stage puts that will not be committed; may be repeated.", describe(abortStagedFields)},
		{ActionServerInfo, "Tells versions, message limits, the default profile, and what scans have sent since the server started.", []Field{}},
	}
}

// Description is the action's description in ListActions: text and fields as
// JSON.
func (a Action) Description() string {
	raw, err := json.Marshal(struct {
		Text   string  `json:"text"`
		Fields []Field `json:"fields"`
	}{a.Text, a.Fields})
	if err != nil { // two strings and a bool each: cannot fail
		return a.Text
	}
	return string(raw)
}

// UnknownAction returns the error for an action that Actions does not list.
func UnknownAction(name string) error {
	return tableerr.InvalidField("action", "%q is not an action; ListActions lists them", cutRunes(name, maxPathKeyBytes))
}
