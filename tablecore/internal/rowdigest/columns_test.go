package rowdigest

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestDigestOfTypes hashes arrays of every kind of type whole, in pieces and as
// slices.
func TestDigestOfTypes(t *testing.T) {
	p := arrow.PrimitiveTypes
	item := arrow.StructOf(arrow.Field{Name: "a", Type: p.Int32, Nullable: true}, arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true})
	for _, c := range []struct {
		typ  arrow.DataType
		json string
		as   arrow.DataType // a type of the same values
	}{
		{typ: p.Uint8, json: `[1,null,3,4]`},
		{typ: arrow.FixedWidthTypes.Boolean, json: `[true,null,false,false]`},
		{typ: arrow.BinaryTypes.BinaryView, json: `["AAEC",null,"","AAECAwQFBgcICQoLDA0ODw=="]`, as: arrow.BinaryTypes.LargeBinary},
		{typ: &arrow.FixedSizeBinaryType{ByteWidth: 2}, json: `["AAE=",null,"AQI=","AQM="]`},
		{typ: &arrow.Decimal128Type{Precision: 20, Scale: 2}, json: `["1.25",null,"-3.50","0"]`},
		{typ: &arrow.Decimal256Type{Precision: 50, Scale: 2}, json: `["1.25",null,"-3.50","0"]`},
		{typ: arrow.ListOf(p.Int32), json: `[[1,2],null,[],[3,null]]`, as: arrow.LargeListOf(p.Int32)},
		{typ: arrow.FixedSizeListOf(2, p.Int32), json: `[[1,2],null,[4,5],[3,null]]`},
		{typ: item, json: `[{"a":1,"b":"x"},null,{"a":null,"b":"y"},{"a":2,"b":null}]`},
		{typ: arrow.MapOf(arrow.BinaryTypes.String, p.Int64), json: `[[{"key":"a","value":1}],null,[],[{"key":"b","value":null}]]`},
		{typ: arrow.ListOf(item), json: `[[{"a":1,"b":"x"}],null,[null],[{"a":2,"b":"y"},{"a":3,"b":null}]]`},
		{typ: &arrow.DictionaryType{IndexType: p.Int8, ValueType: p.Float64}, json: `[1.5,null,1.5,2]`, as: p.Float64},
		{typ: extensions.NewUUIDType(), json: `["00000000-0000-0000-0000-000000000001",null,"00000000-0000-0000-0000-000000000002","00000000-0000-0000-0000-000000000003"]`},
	} {
		arr, _, err := array.FromJSON(memory.DefaultAllocator, c.typ, strings.NewReader(c.json))
		if err != nil {
			t.Fatalf("%s: %v", c.typ, err)
		}
		sum := func(hash func(h *columnHash)) string {
			h := newColumnHash(c.typ)
			hash(h)
			return hex.EncodeToString(h.sum())
		}
		whole := sum(func(h *columnHash) { h.add(arr, 0, arr.Len()) })
		for cut := range arr.Len() + 1 {
			if got := sum(func(h *columnHash) { h.add(arr, 0, cut); h.add(arr, cut, arr.Len()) }); got != whole {
				t.Errorf("%s: cut at %d gives another digest", c.typ, cut)
			}
			if got := sum(func(h *columnHash) {
				a, b := array.NewSlice(arr, 0, int64(cut)), array.NewSlice(arr, int64(cut), int64(arr.Len()))
				h.add(a, 0, a.Len())
				h.add(b, 0, b.Len())
			}); got != whole {
				t.Errorf("%s: slices at %d give another digest", c.typ, cut)
			}
		}
		if part := sum(func(h *columnHash) { h.add(arr, 0, 3) }); part == whole {
			t.Errorf("%s: a part has the digest of the whole", c.typ)
		}
		if ones := sum(func(h *columnHash) { h.add(arr, 0, 1); h.add(arr, 3, 4); h.add(arr, 2, 3); h.add(arr, 1, 2) }); ones == whole {
			t.Errorf("%s: another order has the same digest", c.typ)
		}
		if c.as == nil {
			continue
		}
		other, _, err := array.FromJSON(memory.DefaultAllocator, c.as, strings.NewReader(c.json))
		if err != nil {
			t.Fatal(err)
		}
		if got := sum(func(h *columnHash) { h.add(other, 0, other.Len()) }); got != whole {
			t.Errorf("%s as %s gives another digest", c.typ, c.as)
		}
	}
	nulls, h := array.NewNull(3), newColumnHash(arrow.Null)
	h.add(nulls, 0, 3)
	if h.count != 3 || len(h.sum()) != 32 {
		t.Error("a null array was not hashed")
	}
}
