package flightsrv

import (
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// The exact profile brings views and dictionaries back as they were declared,
// the compat profile as plain text; the rows are the same.
func TestProfiles(t *testing.T) {
	f := start(t, Limits{MaxSendMessageBytes: 200_000})
	dictionary := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "t", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "view", Type: arrow.BinaryTypes.StringView, Nullable: true},
		{Name: "dict", Type: dictionary, Nullable: true},
		{Name: "large", Type: arrow.BinaryTypes.LargeString, Nullable: true},
	}, nil)
	f.must("create_table", `{"table":"texts","index_column":"t","index_type":"int64","index_granularity":1}`, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
	defer b.Release()
	const n = 5000
	for i := range n {
		word := strings.Repeat("w", i%40) + string(rune('a'+i%26))
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		if i%11 == 0 {
			b.Field(1).AppendNull()
			b.Field(2).AppendNull()
		} else {
			b.Field(1).(*array.StringViewBuilder).Append(word)
			if err := b.Field(2).(*array.BinaryDictionaryBuilder).AppendString(word); err != nil {
				t.Fatal(err)
			}
		}
		b.Field(3).(*array.LargeStringBuilder).Append(word)
	}
	if r, err := f.put(path("texts"), b.NewRecordBatch()); err != nil || r.Rows != n {
		t.Fatalf("append gives %+v, %v", r, err)
	}
	compat, plain, _, err := f.get(`{"op":"scan","table":"texts"}`)
	if err != nil || len(compat) != n {
		t.Fatalf("compat gives %d rows, %v", len(compat), err)
	}
	for _, field := range plain.Fields()[1:] {
		if field.Type.ID() != arrow.STRING {
			t.Errorf("compat gives %s as %s", field.Name, field.Type)
		}
	}
	exact, declared, _, err := f.get(`{"op":"scan","table":"texts","profile":"exact"}`)
	if err != nil || !slices.Equal(compat, exact) {
		t.Errorf("exact gives %d rows, other than compat; %v", len(exact), err)
	}
	for i, field := range declared.Fields() {
		if !arrow.TypeEqual(field.Type, schema.Field(i).Type) {
			t.Errorf("exact gives %s as %s, want %s", field.Name, field.Type, schema.Field(i).Type)
		}
	}
}
