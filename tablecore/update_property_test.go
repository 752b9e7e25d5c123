package tablecore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabletest"
)

// TestRandomUpdates compares updates of random tables with a reference: all
// types, nulls everywhere, files of every layout, columns that were added
// since, and memory so small that values and keys go to disk.
func TestRandomUpdates(t *testing.T) {
	for seed := range numberFrom(t, "SEEDS", 40) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			u := newUpdated(t, uint64(seed))
			for range 1 + u.rng.IntN(3) {
				u.append(1 + u.rng.IntN(60))
				if u.rng.IntN(4) == 0 {
					u.addColumn()
				}
			}
			for range 1 + u.rng.IntN(4) {
				if u.rng.IntN(5) == 0 {
					u.addColumn()
				}
				u.update()
			}
			u.check()
		})
	}
}

// updated is a random table with a reference of its rows.
type updated struct {
	t       *testing.T
	mem     *memory.CheckedAllocator
	rng     *rand.Rand
	table   *tablecore.Table
	keys    *arrow.Schema // the key columns
	payload []arrow.Field
	version int64

	order []tabletest.Row              // keys of all rows
	rows  map[string]map[string]string // by key: column to value
}

func newUpdated(t *testing.T, seed uint64) *updated {
	t.Helper()
	u := &updated{t: t, mem: memory.NewCheckedAllocator(memory.DefaultAllocator), rng: rand.New(rand.NewPCG(seed, 7)), rows: map[string]map[string]string{}}
	t.Cleanup(func() { u.mem.AssertSize(t, 0) })
	o := tablecore.CreateOptions{Name: typesName, IndexColumn: "k", Uniqueness: []string{"reject", "none"}[u.rng.IntN(2)]}
	index := []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint64, &arrow.TimestampType{Unit: arrow.Second, TimeZone: "UTC"},
		&arrow.TimestampType{Unit: arrow.Millisecond}, &arrow.TimestampType{Unit: arrow.Nanosecond}}[u.rng.IntN(5)]
	switch index.ID() {
	case arrow.INT64:
		o.IndexType, o.IndexGranularity = "int64", "1"
	case arrow.UINT64:
		o.IndexType, o.IndexGranularity = "uint64", "1"
	default:
		o.IndexType, o.IndexGranularity = "timestamp", map[string]string{"s": "1s", "ms": "1ms", "ns": "1ns"}[index.(*arrow.TimestampType).Unit.String()]
	}
	fields := []arrow.Field{{Name: "k", Type: index}}
	for i := range u.rng.IntN(3) {
		name := fmt.Sprint("e", i)
		o.EntityColumns = append(o.EntityColumns, name)
		fields = append(fields, arrow.Field{Name: name, Type: []arrow.DataType{arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32,
			arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint64, arrow.BinaryTypes.LargeString}[u.rng.IntN(5)]})
	}
	u.keys = arrow.NewSchema(fields, nil)
	for i := range 1 + u.rng.IntN(4) {
		u.payload = append(u.payload, arrow.Field{Name: fmt.Sprint("c", i), Type: tabletest.RandomType(u.rng, 3), Nullable: u.rng.IntN(3) > 0})
	}
	o.Schema = arrow.NewSchema(append(slices.Clone(fields), u.payload...), nil)
	options := tablecore.Options{Store: memstore.New(), Allocator: u.mem, Clock: tabletest.NewClock().Now, Random: tabletest.Random(1), Scratch: t.TempDir()}
	if u.rng.IntN(2) == 0 {
		options.MemoryBudget = 64 << 10
	}
	house := tabletest.Open(t, options)
	var err error
	if _, err = house.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if u.table, err = house.Table(t.Context(), typesName); err != nil {
		t.Fatal(err)
	}
	return u
}

// newKey makes the key of the n-th row.
func (u *updated) newKey(n int) tabletest.Row {
	row := make(tabletest.Row, u.keys.NumFields())
	for i, f := range u.keys.Fields() {
		v := int64(u.rng.IntN(3))
		if i == 0 {
			v = int64(n)*3 + int64(u.rng.IntN(3))
		}
		switch f.Type.ID() {
		case arrow.STRING, arrow.LARGE_STRING:
			row[i] = strings.Repeat("ä", int(v))
		case arrow.UINT64:
			row[i] = uint64(v)
		default:
			row[i] = v - 1
			if i == 0 {
				row[i] = v - 40
			}
		}
	}
	return row
}

// batch makes a batch of rows with the given keys and random values, its
// columns in any order.
func (u *updated) batch(keys []tabletest.Row, payload []arrow.Field) arrow.RecordBatch {
	u.t.Helper()
	k, err := tabletest.BatchOf(u.mem, u.keys, keys)
	if err != nil {
		u.t.Fatal(err)
	}
	defer k.Release()
	fields, columns := slices.Clone(u.keys.Fields()), slices.Clone(k.Columns())
	for _, f := range payload {
		arr := tabletest.RandomArray(u.mem, u.rng, f, len(keys))
		defer arr.Release()
		fields, columns = append(fields, f), append(columns, arr)
	}
	for i, row := range keys {
		values := u.rows[row.String()]
		if values == nil {
			values = map[string]string{}
			u.rows[row.String()] = values
		}
		for c, f := range fields {
			values[f.Name] = tabletest.ValueText(columns[c], i)
		}
	}
	u.rng.Shuffle(len(fields), func(i, j int) {
		fields[i], fields[j] = fields[j], fields[i]
		columns[i], columns[j] = columns[j], columns[i]
	})
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, int64(len(keys)))
}

// stream cuts a batch, which it takes over, into a stream of several.
func (u *updated) stream(batch arrow.RecordBatch) *tabletest.Reader {
	defer batch.Release()
	var parts []arrow.RecordBatch
	for from := int64(0); from < batch.NumRows(); {
		n := min(1+u.rng.Int64N(30), batch.NumRows()-from)
		part := batch.NewSlice(from, from+n)
		u.t.Cleanup(part.Release)
		parts = append(parts, part)
		from += n
	}
	return tabletest.NewReader(batch.Schema(), parts...)
}

func (u *updated) append(n int) {
	u.t.Helper()
	var keys []tabletest.Row
	for range n {
		keys = append(keys, u.newKey(len(u.order)+len(keys)))
	}
	u.order = append(u.order, keys...)
	rows := int64(1 + u.rng.IntN(40))
	r, err := u.table.Append(u.t.Context(), u.stream(u.batch(keys, u.payload)), tablecore.AppendOptions{MaxRowsPerRowGroup: &rows,
		Compression: []string{"auto", "zstd", "uncompressed"}[u.rng.IntN(3)]})
	if err != nil {
		u.t.Fatal(err)
	}
	u.version = r.CommittedVersion
}

func (u *updated) addColumn() {
	u.t.Helper()
	f := arrow.Field{Name: fmt.Sprint("c", len(u.payload)), Type: tabletest.RandomType(u.rng, 2), Nullable: true}
	r, err := u.table.AddColumns(u.t.Context(), tablecore.AddColumnsOptions{Schema: arrow.NewSchema([]arrow.Field{f}, nil)})
	if err != nil {
		u.t.Fatal(err)
	}
	u.version, u.payload = r.CommittedVersion, append(u.payload, f)
	for _, values := range u.rows {
		values[f.Name] = "null"
	}
}

// update changes random columns of random rows.
func (u *updated) update() {
	u.t.Helper()
	u.rng.Shuffle(len(u.order), func(i, j int) { u.order[i], u.order[j] = u.order[j], u.order[i] })
	keys := u.order[:1+u.rng.IntN(len(u.order))]
	if u.rng.IntN(3) == 0 {
		keys = u.order[:1]
	}
	chosen := slices.Clone(u.payload)
	u.rng.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	chosen = chosen[:1+u.rng.IntN(len(chosen))]
	o := tablecore.UpdateOptions{ExpectedVersion: u.version}
	for _, f := range chosen {
		o.Columns = append(o.Columns, f.Name)
	}
	r, err := u.table.UpdateRows(u.t.Context(), u.stream(u.batch(keys, chosen)), o)
	if err != nil {
		u.t.Fatal(err)
	}
	if r.CommittedVersion != u.version+1 || r.RowsUpdated != int64(len(keys)) {
		u.t.Errorf("got %+v", r)
	}
	u.version = r.CommittedVersion
}

// check compares all rows with the reference.
func (u *updated) check() {
	u.t.Helper()
	plan, err := u.table.PlanScan(u.t.Context(), tablecore.ScanOptions{Profile: "exact"})
	if err != nil {
		u.t.Fatal(err)
	}
	seen := 0
	_, err = tabletest.EachBatch(u.t.Context(), plan, func(batch arrow.RecordBatch) error {
		keys := make([]arrow.Array, u.keys.NumFields())
		for i, f := range u.keys.Fields() {
			keys[i] = batch.Column(batch.Schema().FieldIndices(f.Name)[0])
		}
		own := array.NewRecordBatch(u.keys, keys, batch.NumRows())
		defer own.Release()
		rows, err := tabletest.RowsOf(own)
		if err != nil {
			u.t.Fatal(err)
		}
		for i, row := range rows {
			seen++
			values := u.rows[row.String()]
			for c, f := range batch.Schema().Fields() {
				if got := tabletest.ValueText(batch.Column(c), i); got != values[f.Name] {
					u.t.Errorf("row %s: %s is %s, want %s", row, f.Name, got, values[f.Name])
				}
			}
		}
		return nil
	})
	if err != nil {
		u.t.Fatal(err)
	}
	if seen != len(u.rows) {
		u.t.Errorf("%d rows of %d", seen, len(u.rows))
	}
}
