package convert_test

import (
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// inSpark names the types that Spark gives in place of the stored ones.
var inSpark = map[string]string{
	"timestamp[ns, tz=UTC]": "timestamp[us, tz=UTC]",
}

// TestSparkGivesWhatIsStored takes every type through storage to Spark's types:
// but for nanoseconds these are the stored values.
func TestSparkGivesWhatIsStored(t *testing.T) {
	for _, c := range storageCases {
		want, differs := inSpark[tabledef.TypeName(c.declared)]
		if !differs {
			want = c.storage
		}
		if got := tabledef.TypeName(convert.Spark(c.declared)); got != want {
			t.Errorf("%s becomes %s, want %s", c.declared, got, want)
		}
		if differs {
			continue
		}
		mem := checked(t)
		stored := fromJSON(t, mem, tabledef.StorageType(c.declared), `[null]`)
		given, err := convert.ToSpark(mem, stored, c.declared)
		if err != nil {
			t.Fatal(err)
		}
		sameValues(t, given, stored)
		given.Release()
		stored.Release()
	}
}

func TestSparkTakesWholeMicroseconds(t *testing.T) {
	nanos := stamp(arrow.Nanosecond, "Asia/Kolkata")
	nested := arrow.ListOf(arrow.StructOf(
		arrow.Field{Name: "at", Type: stamp(arrow.Nanosecond, ""), Nullable: true}, arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Uint8, Nullable: true}))
	for _, c := range []struct {
		declared                arrow.DataType
		stored, as, want, wrong string
	}{
		{nanos, `[-1000,null,9223372036854775000]`, "timestamp[us, tz=UTC]", `[-1,null,9223372036854775]`, `[0,null,-1001]`},
		{nested, `[[{"at":5000,"n":255},null],null,[{"at":null,"n":null}]]`, "list<element: struct<at: timestamp[us], n: int16>>",
			`[[{"at":5,"n":255},null],null,[{"at":null,"n":null}]]`, `[[{"at":5001,"n":1}]]`},
	} {
		mem := checked(t)
		to := convert.Spark(c.declared)
		if got := tabledef.TypeName(to); got != c.as {
			t.Errorf("%s becomes %s, want %s", c.declared, got, c.as)
		}
		stored := fromJSON(t, mem, tabledef.StorageType(c.declared), c.stored)
		want := fromJSON(t, mem, to, c.want)
		given, err := convert.ToSpark(mem, stored, c.declared)
		if err != nil {
			t.Fatal(err)
		}
		sameValues(t, given, want)
		wrong := fromJSON(t, mem, tabledef.StorageType(c.declared), c.wrong)
		var invalid *tableerr.Invalid
		if got, err := convert.ToSpark(mem, wrong, c.declared); !errors.As(err, &invalid) || got != nil {
			t.Errorf("%s gives %v, %v", c.wrong, got, err)
		}
		var corrupt *tableerr.Corrupt
		if got, err := convert.ToSpark(mem, given, c.declared); !errors.As(err, &corrupt) || got != nil {
			t.Errorf("values that are not stored ones give %v, %v", got, err)
		}
		given.Release()
		stored.Release()
		want.Release()
		wrong.Release()
	}
}
