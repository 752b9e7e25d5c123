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

// The spark profile has microseconds: what they cannot hold ends the scan and
// is told with the column; other columns can be read.
func TestSparkProfile(t *testing.T) {
	f := start(t, Limits{})
	nanos := &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "t", Type: arrow.PrimitiveTypes.Int64}, {Name: "at", Type: nanos, Nullable: true}, {Name: "n", Type: arrow.PrimitiveTypes.Uint8, Nullable: true},
	}, nil)
	f.must("create_table", `{"table":"fine","index_column":"t","index_type":"int64","index_granularity":1}`, nil)
	for i, at := range []arrow.Timestamp{5000, 5001} {
		b := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.TimestampBuilder).Append(at)
		b.Field(2).(*array.Uint8Builder).Append(255)
		if _, err := f.put(path("fine"), b.NewRecordBatch()); err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	rows, given, _, err := f.get(`{"op":"scan","table":"fine","profile":"spark","version":1}`)
	if err != nil || len(rows) != 1 || given.Field(1).Type.String() != "timestamp[us, tz=UTC]" || given.Field(2).Type.ID() != arrow.INT16 {
		t.Errorf("got %v, %v, %v", rows, given, err)
	}
	if rows, _, _, err := f.get(`{"op":"scan","table":"fine","profile":"spark","columns":["n"]}`); err != nil || len(rows) != 2 {
		t.Errorf("got %v, %v", rows, err)
	}
	_, _, _, err = f.get(`{"op":"scan","table":"fine","profile":"spark"}`)
	if err == nil || !strings.Contains(err.Error(), `INVALID table="default.fine" column="at" value=5001: column "at": the time 5001 ns`) {
		t.Errorf("got %v", err)
	}
}
