package tabledef

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"

	"contrail/tablecore/tableerr"
)

var growing = arrow.NewSchema([]arrow.Field{
	{Name: "sym", Type: arrow.BinaryTypes.String},
	{Name: "ts", Type: arrow.FixedWidthTypes.Timestamp_us},
	{Name: "Größe", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "a.b", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
}, nil)

func growingTable(t *testing.T) (*Definition, string) {
	t.Helper()
	d := definitionOf(t, Request{EntityColumns: []string{"sym"}, Schema: growing})
	text, err := DeltaSchemaJSON(d.Stored)
	if err != nil {
		t.Fatal(err)
	}
	return d, text
}

func TestWithColumns(t *testing.T) {
	d, text := growingTable(t)
	unit := arrow.NewMetadata([]string{"unit"}, []string{"<m>"})
	added := arrow.NewSchema([]arrow.Field{
		{Name: "a", Type: arrow.BinaryTypes.LargeString, Nullable: true, Metadata: arrow.NewMetadata([]string{"unit", "PARQUET:field_id"}, []string{"<m>", "7"})},
		nullable("id", extensions.NewUUIDType()),
		nullable("nested", arrow.StructOf(arrow.Field{Name: "b", Type: arrow.PrimitiveTypes.Int32, Metadata: unit})),
	}, nil)
	grown, grownText, err := d.WithColumns(added, text)
	if err != nil {
		t.Fatal(err)
	}
	// A reader gets the same back, and the columns that were there stand first.
	configuration, err := grown.Configuration()
	if err != nil {
		t.Fatal(err)
	}
	read, err := FromMetadata("id", grownText, configuration)
	if err != nil {
		t.Fatal(err)
	}
	if !read.ColumnsAdded || !read.Stored.Equal(grown.Stored) || d.ColumnsAdded || d.Stored.NumFields() != 5 {
		t.Errorf("read %s, had %s", read.Stored, d.Stored)
	}
	for i, name := range []string{"sym", "ts", "Größe", "a.b", "_ingest_ts", "a", "id", "nested"} {
		if read.Stored.Field(i).Name != name {
			t.Errorf("column %d is %s", i, read.Stored.Field(i).Name)
		}
	}
	if md := read.Stored.Field(5).Metadata; md.Len() != 1 || md.Values()[0] != "<m>" {
		t.Errorf("column a has the metadata %v", md)
	}
	if md := read.Stored.Field(7).Type.(*arrow.StructType).Field(0).Metadata; !md.Equal(unit) {
		t.Errorf("child b has the metadata %v", md)
	}
	if f := RestoreExtensions(read.Stored.Field(6)); f.Type.Name() != "extension" {
		t.Errorf("column id is %s", f)
	}
}

// TestWithColumnsKeepsTheText makes sure that what another writer has noted about
// a column stays in the log.
func TestWithColumnsKeepsTheText(t *testing.T) {
	d, text := growingTable(t)
	noted := strings.Replace(text, `"metadata":{}`, `"metadata":{"comment":"a <b>"},"future":1`, 1)
	_, grown, err := d.WithColumns(arrow.NewSchema([]arrow.Field{nullable("c", arrow.PrimitiveTypes.Int64)}, nil), noted)
	if want := noted[:len(noted)-2] + `,{"name":"c","type":"long","nullable":true,"metadata":{}}]}`; err != nil || grown != want {
		t.Errorf("got  %s\nwant %s\n%v", grown, want, err)
	}
	if _, _, err := d.WithColumns(arrow.NewSchema([]arrow.Field{nullable("c", arrow.PrimitiveTypes.Int64)}, nil), "{"); tableerr.TokenOf(err) != tableerr.TokenCorrupt {
		t.Errorf("a damaged schema: %v", err)
	}
}

func TestWithColumnsRefuses(t *testing.T) {
	long := arrow.PrimitiveTypes.Int64
	deep := arrow.DataType(long)
	for range MaxTypeDepth + 1 {
		deep = arrow.ListOf(deep)
	}
	metadata := arrow.NewMetadata([]string{"pandas"}, []string{"{}"})
	for name, c := range map[string]struct {
		fields                []arrow.Field
		metadata              *arrow.Metadata
		field, column, hasWas string
	}{
		"none":                     {field: "columns"},
		"schema metadata":          {fields: []arrow.Field{nullable("c", long)}, metadata: &metadata, field: "schema_ipc", hasWas: "pandas"},
		"twice":                    {fields: []arrow.Field{nullable("c", long), nullable("c", long)}, column: "c", hasWas: "twice"},
		"twice up to case":         {fields: []arrow.Field{nullable("c", long), nullable("C", long)}, column: "C"},
		"blank":                    {fields: []arrow.Field{nullable(" ", long)}, column: " "},
		"control character":        {fields: []arrow.Field{nullable("c\n", long)}, column: "c\n"},
		"there already":            {fields: []arrow.Field{nullable("c", long), nullable("a.b", long)}, column: "a.b"},
		"there up to case":         {fields: []arrow.Field{nullable("GRÖSSE", long)}, column: "GRÖSSE", hasWas: "Größe"},
		"there up to normal form":  {fields: []arrow.Field{nullable("Gro\u0308ße", long)}, column: "Gro\u0308ße"},
		"index column":             {fields: []arrow.Field{nullable("ts", long)}, column: "ts"},
		"entity column up to case": {fields: []arrow.Field{nullable("SYM", long)}, column: "SYM"},
		"insertion time":           {fields: []arrow.Field{nullable("_ingest_ts", IngestTimeType)}, column: "_ingest_ts"},
		"insertion time, case":     {fields: []arrow.Field{nullable("_Ingest_TS", long)}, column: "_Ingest_TS"},
		"type":                     {fields: []arrow.Field{nullable("c", arrow.FixedWidthTypes.MonthInterval)}, column: "c"},
		"nested type":              {fields: []arrow.Field{nullable("c", arrow.ListOfField(nullable("item", arrow.Null)))}, column: "c.item"},
		"depth":                    {fields: []arrow.Field{nullable("c", deep)}, column: "c"},
		"children of one name":     {fields: []arrow.Field{nullable("c", arrow.StructOf(nullable("x", long), nullable("X", long)))}, column: "c.X"},
		"not null":                 {fields: []arrow.Field{nullable("b", long), {Name: "c", Type: long}}, column: "c", hasWas: "null"},
	} {
		t.Run(name, func(t *testing.T) {
			d, text := growingTable(t)
			_, _, err := d.WithColumns(arrow.NewSchema(c.fields, c.metadata), text)
			var invalid *tableerr.Invalid
			if !errors.As(err, &invalid) || invalid.Field != c.field || invalid.Column != c.column || !strings.Contains(err.Error(), c.hasWas) {
				t.Errorf("got %+v: %v", invalid, err)
			}
		})
	}
	if _, _, err := definitionOf(t, Request{}).WithColumns(arrow.NewSchema([]arrow.Field{nullable("c", long)}, nil), "{}"); tableerr.TokenOf(err) != tableerr.TokenInvalid {
		t.Errorf("a table without a schema: %v", err)
	}
}

// TestWithColumnsTooMany makes sure that a table does not grow beyond what can
// be read again.
func TestWithColumnsTooMany(t *testing.T) {
	d, text := growingTable(t)
	comment := arrow.NewMetadata([]string{"text"}, []string{strings.Repeat("x", maxSchemaBytes)})
	_, _, err := d.WithColumns(arrow.NewSchema([]arrow.Field{{Name: "c", Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: comment}}, nil), text)
	var invalid *tableerr.Invalid
	if !errors.As(err, &invalid) || invalid.Field != "columns" {
		t.Errorf("got %v", err)
	}
}
