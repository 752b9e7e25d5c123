package tabledef

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"
)

func extended(name, data string, more ...string) arrow.Metadata {
	keys, values := []string{extensionKey, extensionDataKey}, []string{name, data}
	for i := 0; i < len(more); i += 2 {
		keys, values = append(keys, more[i]), append(values, more[i+1])
	}
	return arrow.NewMetadata(keys, values)
}

func uuidStorage() arrow.DataType { return &arrow.FixedSizeBinaryType{ByteWidth: 16} }

func TestExtensionsAreMetadata(t *testing.T) {
	list := arrow.ListOfField(arrow.Field{Name: "item", Type: extensions.NewUUIDType(), Nullable: true})
	in := arrow.NewSchema([]arrow.Field{{Name: "id", Type: extensions.NewUUIDType(), Metadata: arrow.NewMetadata([]string{"a"}, []string{"b"})},
		{Name: "ids", Type: list}, {Name: "money", Type: arrow.BinaryTypes.String, Metadata: extended("app.money", "EUR")}}, nil)
	plain := WithoutExtensions(in)
	if f := plain.Field(0); !arrow.TypeEqual(f.Type, uuidStorage()) || !f.Metadata.Equal(extended("arrow.uuid", "", "a", "b")) {
		t.Errorf("got %v", f)
	}
	for i, want := range in.Fields() {
		if got := RestoreExtensions(plain.Field(i)); !got.Equal(want) {
			t.Errorf("got %v back, want %v", got, want)
		}
		dropped := DropExtensions(want)
		if got := RestoreExtensions(dropped); !got.Equal(dropped) || dropped.Type.ID() == arrow.EXTENSION {
			t.Errorf("got %v without extensions", got)
		}
	}
	if got := DropExtensions(in.Field(0)).Metadata; got.Len() != 1 {
		t.Errorf("metadata %v is left", got)
	}
	encoded, err := EncodeArrowSchema(plain)
	if err != nil {
		t.Fatal(err)
	}
	delta, err := DeltaSchemaJSON(plain)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := ParseDeltaSchema(delta, encoded)
	if err != nil || !stored.Equal(plain) {
		t.Errorf("stored and read: %v, %v", stored, err)
	}
}

// TestRestoreLeavesWhatWouldChange keeps metadata that a restored type would
// not write the same way.
func TestRestoreLeavesWhatWouldChange(t *testing.T) {
	for _, f := range []arrow.Field{
		{Name: "v", Type: uuidStorage(), Metadata: extended("arrow.uuid", "other text")},
		{Name: "v", Type: uuidStorage(), Metadata: arrow.NewMetadata([]string{extensionKey}, []string{"arrow.uuid"})},
		{Name: "v", Type: arrow.PrimitiveTypes.Int8, Metadata: extended("arrow.uuid", "")},
		{Name: "v", Type: arrow.PrimitiveTypes.Int8, Metadata: extended("nobody.knows", "")},
	} {
		if got := RestoreExtensions(f); !got.Equal(f) {
			t.Errorf("%v became %v", f, got)
		}
	}
}

func TestCheckSchemaExtensions(t *testing.T) {
	check := func(f arrow.Field) error {
		s, _ := schemaOf(t, "origin: string", "time: timestamp[us]").AddField(2, f)
		return CheckSchema(s, weather())
	}
	for _, f := range []arrow.Field{
		{Name: "v", Type: extensions.NewUUIDType()}, {Name: "v", Type: uuidStorage(), Metadata: extended("arrow.uuid", "")},
		{Name: "v", Type: arrow.BinaryTypes.String, Metadata: extended("app.money", "\xff")},
	} {
		if err := check(f); err != nil {
			t.Errorf("%v: %v", f, err)
		}
	}
	wrong := arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int8, Metadata: extended("arrow.uuid", "")}
	wantInvalid(t, check(arrow.Field{Name: "v", Type: arrow.ListOfField(wrong)}), "v", "extension<arrow.uuid>")
	wantInvalid(t, check(arrow.Field{Name: "v", Type: arrow.StructOf(arrow.Field{Name: "a", Type: extensions.NewOpaqueType(arrow.Null, "a", "b")})}), "v.a", "null")
}

func TestTooDeep(t *testing.T) {
	nest := func(n int, wrap func(arrow.DataType) arrow.DataType) arrow.DataType {
		dt := arrow.DataType(arrow.PrimitiveTypes.Int8)
		for range n {
			dt = wrap(dt)
		}
		return dt
	}
	lists := func(dt arrow.DataType) arrow.DataType { return arrow.ListOf(dt) }
	maps := func(dt arrow.DataType) arrow.DataType { return arrow.MapOf(arrow.BinaryTypes.String, dt) }
	dictionaries := func(dt arrow.DataType) arrow.DataType {
		return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: dt}
	}
	for _, c := range []struct {
		dt   arrow.DataType
		deep bool
	}{
		{nest(32, lists), false}, {nest(33, lists), true}, {nest(32, maps), false}, {nest(33, maps), true}, {nest(100_000, lists), true},
		{dictionaries(nest(32, lists)), false}, {dictionaries(nest(33, lists)), true}, {nest(100_000, dictionaries), true},
		{extensions.NewOpaqueType(nest(33, maps), "a", "b"), true}, {nest(33, func(dt arrow.DataType) arrow.DataType {
			return arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.StructOf(arrow.Field{Name: "a", Type: dt}))
		}), true},
	} {
		if got := TooDeep(c.dt); got != c.deep {
			t.Errorf("%s: %v", c.dt.Name(), got)
		}
	}
	s, _ := schemaOf(t, "origin: string", "time: timestamp[us]").AddField(0, arrow.Field{Name: "v", Type: nest(100_000, lists)})
	wantInvalid(t, CheckSchema(s, weather()), "v", "list")
}

func TestCheckSchemaNestedNames(t *testing.T) {
	for _, c := range []struct{ first, second, path string }{
		{"a", "A", "v.item.A"}, {"a", "a", "v.item.a"}, {"é", "e\u0301", "v.item.e\u0301"}, {"a", " ", "v.item. "}, {"a", "b\n", "v.item.b\n"}, {"a", "\xff", "v.item.\xff"},
	} {
		st := arrow.StructOf(arrow.Field{Name: c.first, Type: arrow.PrimitiveTypes.Int8}, arrow.Field{Name: c.second, Type: arrow.PrimitiveTypes.Int8})
		s, _ := schemaOf(t, "origin: string", "time: timestamp[us]").AddField(0, arrow.Field{Name: "v", Type: arrow.ListOf(st)})
		wantInvalid(t, CheckSchema(s, weather()), c.path, "")
	}
	s, _ := schemaOf(t, "origin: string", "time: timestamp[us]").AddField(0, arrow.Field{Name: "v", Type: arrow.ListOfField(arrow.Field{Name: "\xff", Type: arrow.PrimitiveTypes.Int8})})
	wantInvalid(t, CheckSchema(s, weather()), "v", "")
}

// FuzzStoredSchema takes schemas that a client can send through what a table
// does with them.
func FuzzStoredSchema(f *testing.F) {
	seed := func(fields ...arrow.Field) {
		data, err := EncodeSchemaIPC(arrow.NewSchema(append([]arrow.Field{{Name: "origin", Type: arrow.BinaryTypes.String},
			{Name: "time", Type: arrow.FixedWidthTypes.Timestamp_us}}, fields...), nil))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	seed(arrow.Field{Name: "v", Type: arrow.ListOf(extensions.NewUUIDType())}, arrow.Field{Name: "w", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int8), Metadata: extended("app.money", "x")})
	seed(arrow.Field{Name: "v", Type: arrow.StructOf(arrow.Field{Name: "a", Type: &arrow.Decimal256Type{Precision: 50, Scale: 3}})}, arrow.Field{Name: "w", Type: extensions.NewBool8Type()})
	seed(arrow.Field{Name: "v", Type: arrow.FixedSizeListOf(2, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.StringView})})
	f.Fuzz(func(t *testing.T, data []byte) {
		schema, err := DecodeSchemaIPC(data)
		if err != nil || CheckSchema(schema, weather()) != nil {
			return
		}
		def := weather().WithSchema(schema)
		encoded, err := EncodeArrowSchema(def.Stored)
		if err != nil {
			t.Fatal(err)
		}
		delta, err := DeltaSchemaJSON(def.Stored)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseDeltaSchema(delta, encoded)
		if err != nil || !again.Equal(def.Stored) {
			t.Fatalf("stored as\n%s\nread as\n%s\n%v", def.Stored, again, err)
		}
		for _, field := range again.Fields() {
			restored := RestoreExtensions(field)
			if back := WithoutExtensions(arrow.NewSchema([]arrow.Field{restored}, nil)).Field(0); !back.Equal(field) {
				t.Fatalf("%v became %v", field, back)
			}
			DropExtensions(field)
		}
	})
}
