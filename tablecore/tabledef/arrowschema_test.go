package tabledef

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	flatbuffers "github.com/google/flatbuffers/go"
)

func pythonSchema(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/python-schema.b64")
	if err != nil {
		t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestDecodePythonSchema(t *testing.T) {
	schema, err := DecodeSchemaIPC(pythonSchema(t))
	if err != nil {
		t.Fatal(err)
	}
	got := CleanSchema(schema)
	md := got.Metadata()
	if md.Len() != 1 || md.Keys()[0] != "owner" {
		t.Errorf("schema metadata is %v", md)
	}
	var texts []string
	for _, f := range got.Fields() {
		texts = append(texts, f.Name+": "+TypeName(f.Type))
	}
	want := []string{
		"origin: dictionary<values=string, indices=int32, ordered=0>", "time_hour: timestamp[us, tz=UTC]", "a.b c: halffloat", "u8: uint64", "v: string_view",
		"fsb: fixed_size_binary[16]", "é: timestamp[ns]", "n: struct<l: list<element: int32 not null>, m: map<string, decimal256(50, 3)>>",
		"un: dense_union<a: int32=0, b: string=1>", "r: run_end_encoded<run_ends: int32, values: string>",
	}
	if strings.Join(texts, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(texts, "\n"))
	}
	if md := got.Field(1).Metadata; md.Len() != 1 || md.Keys()[0] != "unit" {
		t.Errorf("time_hour has %v", md)
	}
	elem := got.Field(7).Type.(*arrow.StructType).Field(0).Type.(*arrow.ListType).ElemField()
	if elem.Metadata.Len() != 1 || elem.Metadata.Keys()[0] != "k" {
		t.Errorf("the list's element has %v", elem.Metadata)
	}
}

func TestSchemaIPCRoundTrip(t *testing.T) {
	schema, err := DecodeSchemaIPC(pythonSchema(t))
	if err != nil {
		t.Fatal(err)
	}
	data, err := EncodeSchemaIPC(schema)
	if err != nil {
		t.Fatal(err)
	}
	again, err := DecodeSchemaIPC(data)
	if err != nil || again.String() != schema.String() {
		t.Fatalf("got %v, %v", again, err)
	}
	if _, err := DecodeSchemaIPC(append(data, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0)); err != nil {
		t.Errorf("with an end-of-stream marker: %v", err)
	}
	if second, err := EncodeSchemaIPC(schema); err != nil || !bytes.Equal(second, data) {
		t.Errorf("a second encoding differs (%v)", err)
	}
	empty := arrow.NewSchema(nil, nil)
	text, err := EncodeArrowSchema(empty)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeArrowSchema(text); err != nil || got.NumFields() != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

// strange is a type that no IPC writer knows.
type strange struct{ arrow.BooleanType }

func TestEncodeSchemaOfUnknownType(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: &strange{}}}, nil)
	if _, err := EncodeArrowSchema(schema); err == nil {
		t.Fatal("no error")
	}
}

func TestDecodeSchemaRefuses(t *testing.T) {
	data := pythonSchema(t)
	for name, bad := range map[string][]byte{
		"empty":           nil,
		"short":           data[:7],
		"no marker":       data[4:],
		"cut":             data[:len(data)-8],
		"trailing":        append(bytes.Clone(data), 0, 0, 0, 0, 0, 0, 0, 0),
		"end marker only": {0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0},
		"zeros":           append([]byte{0xFF, 0xFF, 0xFF, 0xFF, 64, 0, 0, 0}, make([]byte, 64)...),
		"huge":            make([]byte, maxSchemaBytes+1),
	} {
		if schema, err := DecodeSchemaIPC(bad); err == nil {
			t.Errorf("%s: decoded %v", name, schema)
		}
	}
	if _, err := DecodeArrowSchema(strings.Repeat("A", base64.StdEncoding.EncodedLen(maxSchemaBytes)+1)); err == nil {
		t.Error("a text over the limit was decoded")
	}
	if err := CheckSchemaMessage(make([]byte, maxSchemaBytes+1)); err == nil {
		t.Error("a message over the limit was accepted")
	}
	for i := range data {
		for _, v := range []byte{0, 1, 0x7F, 0x80, 0xFF} {
			flipped := bytes.Clone(data)
			flipped[i] = v
			_, _ = DecodeSchemaIPC(flipped) // must end, and not panic
		}
	}
}

// hostileMessage builds a schema message by hand: fields is what its vector of
// fields refers to.
func hostileMessage(header byte, body int64, fields func(b *flatbuffers.Builder) []flatbuffers.UOffsetT) []byte {
	b := flatbuffers.NewBuilder(1 << 10)
	vec := tableVector(b, fields(b))
	b.StartObject(4)
	b.PrependUOffsetTSlot(slotSchemaFields, vec, 0)
	schema := b.EndObject()
	b.StartObject(5)
	b.PrependInt16Slot(0, 4, 0)
	b.PrependByteSlot(slotMessageHeaderType, header, 0)
	b.PrependUOffsetTSlot(slotMessageHeader, schema, 0)
	b.PrependInt64Slot(slotMessageBodyLength, body, 0)
	b.Finish(b.EndObject())
	return b.FinishedBytes()
}

func tableVector(b *flatbuffers.Builder, tables []flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	b.StartVector(4, len(tables), 4)
	for i := len(tables) - 1; i >= 0; i-- {
		b.PrependUOffsetT(tables[i])
	}
	return b.EndVector(len(tables))
}

// listField builds a field of type list with the given children.
func listField(b *flatbuffers.Builder, name flatbuffers.UOffsetT, children []flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	vec := tableVector(b, children)
	b.StartObject(0)
	list := b.EndObject()
	b.StartObject(7)
	b.PrependUOffsetTSlot(slotFieldName, name, 0)
	b.PrependByteSlot(slotFieldTypeType, 12, 0)
	b.PrependUOffsetTSlot(slotFieldType, list, 0)
	b.PrependUOffsetTSlot(slotFieldChildren, vec, 0)
	return b.EndObject()
}

func TestCheckSchemaMessageBoundsUnfolding(t *testing.T) {
	for name, message := range map[string][]byte{
		// Each field has the next one twice: 2^60 fields in a few hundred bytes.
		"doubling": hostileMessage(headerSchema, 0, func(b *flatbuffers.Builder) []flatbuffers.UOffsetT {
			f := listField(b, b.CreateString("x"), nil)
			for range 60 {
				f = listField(b, b.CreateString("x"), []flatbuffers.UOffsetT{f, f})
			}
			return []flatbuffers.UOffsetT{f}
		}),
		"deep": hostileMessage(headerSchema, 0, func(b *flatbuffers.Builder) []flatbuffers.UOffsetT {
			f := listField(b, b.CreateString("x"), nil)
			for range 1000 {
				f = listField(b, b.CreateString("x"), []flatbuffers.UOffsetT{f})
			}
			return []flatbuffers.UOffsetT{f}
		}),
		// A thousand fields share one long name.
		"shared name": hostileMessage(headerSchema, 0, func(b *flatbuffers.Builder) []flatbuffers.UOffsetT {
			shared := b.CreateString(strings.Repeat("x", 100_000))
			var fields []flatbuffers.UOffsetT
			for range 1000 {
				fields = append(fields, listField(b, shared, nil))
			}
			return fields
		}),
		"other message": hostileMessage(3, 0, func(*flatbuffers.Builder) []flatbuffers.UOffsetT { return nil }),
		"body":          hostileMessage(headerSchema, 1<<40, func(*flatbuffers.Builder) []flatbuffers.UOffsetT { return nil }),
	} {
		if err := CheckSchemaMessage(message); err == nil {
			t.Errorf("%s was accepted", name)
		}
		framed := binary.LittleEndian.AppendUint32([]byte{0xFF, 0xFF, 0xFF, 0xFF}, uint32(len(message)))
		if _, err := DecodeSchemaIPC(append(framed, message...)); err == nil {
			t.Errorf("%s was decoded", name)
		}
	}
	good := hostileMessage(headerSchema, 0, func(b *flatbuffers.Builder) []flatbuffers.UOffsetT {
		return []flatbuffers.UOffsetT{listField(b, b.CreateString("x"), []flatbuffers.UOffsetT{listField(b, b.CreateString("y"), nil)})}
	})
	if err := CheckSchemaMessage(good); err != nil {
		t.Errorf("a well-formed message: %v", err)
	}
}

func FuzzDecodeSchemaIPC(f *testing.F) {
	f.Add(pythonSchema(f))
	for _, c := range storedTypes {
		dt, err := ParseType(c.declared)
		if err != nil {
			f.Fatal(err)
		}
		data, err := EncodeSchemaIPC(arrow.NewSchema([]arrow.Field{{Name: "x", Type: dt}}, nil))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		schema, err := DecodeSchemaIPC(data)
		if err != nil {
			return
		}
		for _, field := range CleanSchema(schema).Fields() {
			TypeName(field.Type)
			StorageType(field.Type)
		}
		again, err := EncodeSchemaIPC(schema)
		if err != nil {
			return
		}
		if _, err := DecodeSchemaIPC(again); err != nil {
			t.Fatalf("%v does not read back: %v", schema, err)
		}
	})
}
