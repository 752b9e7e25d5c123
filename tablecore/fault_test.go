package tablecore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// walk runs an operation once for each store operation it makes and each kind
// of fault. prepare fills the store before the fault is armed; verify looks at
// the store afterwards, through a warehouse of its own, and is told what the
// operation answered.
type walk struct {
	prepare func(t *testing.T, w *tablecore.Warehouse)
	run     func(t *testing.T, w *tablecore.Warehouse) error
	verify  func(t *testing.T, w *tablecore.Warehouse, store objstore.Store, stopped bool, err error)
}

func (k walk) all(t *testing.T) {
	ops := k.once(t, faultstore.Plan{})
	if ops == 0 {
		t.Fatal("the operation does not use the store")
	}
	for _, kind := range faultstore.Kinds() {
		for i := range ops {
			t.Run(fmt.Sprintf("%s/%d", kind, i), func(t *testing.T) {
				k.once(t, faultstore.Plan{At: i, Kind: kind})
			})
		}
	}
}

// once runs the operation under one plan and returns how many store operations
// it made.
func (k walk) once(t *testing.T, plan faultstore.Plan) int {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	inner := memstore.New()
	fault := faultstore.Wrap(inner, faultstore.Plan{})
	w, err := tablecore.Open(t.Context(), tablecore.Options{Store: fault, Allocator: mem, Clock: tabletest.NewClock().Now, Random: tabletest.Random(1)})
	if err != nil {
		t.Fatal(err)
	}
	k.prepare(t, w)
	fault.Arm(plan)
	err = k.run(t, w)
	ops := fault.Ops()
	stopped := plan.Kind == faultstore.Stop || plan.Kind == faultstore.StopAfterEffect
	// What a process that goes on finds, and what one that starts anew finds.
	fresh, openErr := tablecore.Open(t.Context(), tablecore.Options{Store: inner, Allocator: mem, Clock: tabletest.NewClock().Now, Random: tabletest.Random(2)})
	if openErr != nil {
		t.Fatal(openErr)
	}
	k.verify(t, fresh, inner, stopped, err)
	if !stopped {
		fault.Arm(faultstore.Plan{})
		k.verify(t, w, inner, stopped, err)
	}
	return ops
}

// dataFiles lists the data files in a store, committed or not.
func dataFiles(t *testing.T, store objstore.Store) []string {
	t.Helper()
	var files []string
	for info, err := range store.List(t.Context(), "default/weather/data/", "") {
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, info.Key)
	}
	return files
}

func TestAppendFaults(t *testing.T) {
	first := rowsOf(rowAt("EWR", 0, "0"), rowAt("JFK", 0, "10"))
	second := rowsOf(rowAt("JFK", 1, "11"), rowAt("EWR", 1, "1"))
	before := []string{"EWR 00 0", "JFK 00 10"}
	after := []string{"EWR 00 0", "EWR 01 1", "JFK 00 10", "JFK 01 11"}
	appendRows := func(t *testing.T, w *tablecore.Warehouse, rows string) error {
		table, err := w.Table(t.Context(), weatherName)
		if err != nil {
			return err
		}
		b := tabletest.Batch(t, memory.DefaultAllocator, weather, rows)
		defer b.Release()
		_, err = table.Append(t.Context(), tabletest.NewReader(weather, b), tablecore.AppendOptions{})
		return err
	}
	walk{
		prepare: func(t *testing.T, w *tablecore.Warehouse) {
			if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
				t.Fatal(err)
			}
			if err := appendRows(t, w, first); err != nil {
				t.Fatal(err)
			}
		},
		run: func(t *testing.T, w *tablecore.Warehouse) error { return appendRows(t, w, second) },
		verify: func(t *testing.T, w *tablecore.Warehouse, store objstore.Store, stopped bool, err error) {
			table, openErr := w.Table(t.Context(), weatherName)
			if openErr != nil {
				t.Fatal(openErr)
			}
			rows, stats, scanErr := tabletest.Scan(t.Context(), table, tablecore.ScanOptions{})
			if scanErr != nil {
				t.Fatal(scanErr)
			}
			got := brief(t, rows)
			landed := stats.Version == 2
			want := before
			if landed {
				want = after
			}
			if !slices.Equal(got, want) {
				t.Fatalf("version %d holds %q, want %q", stats.Version, got, want)
			}
			unclear := stopped || tableerr.TokenOf(err) == tableerr.TokenCommitUnknown
			switch {
			case err == nil && !landed:
				t.Fatal("the append was acknowledged and is lost")
			case err != nil && landed && !unclear:
				t.Fatalf("the append was refused with %v and is there", err)
			case err != nil && !landed && !unclear && len(dataFiles(t, store)) != 1:
				t.Fatalf("after %v these files are left: %q", err, dataFiles(t, store))
			}
			checkTyped(t, err)
		},
	}.all(t)
}

// checkTyped makes sure that a fault surfaces as a typed error.
func checkTyped(t *testing.T, err error) {
	t.Helper()
	if err != nil && tableerr.TokenOf(err) == "" && !errors.Is(err, faultstore.ErrStopped) {
		t.Fatalf("the error %v (%T) has no token", err, err)
	}
}

func TestCreateFaults(t *testing.T) {
	walk{
		prepare: func(*testing.T, *tablecore.Warehouse) {},
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			_, err := w.CreateTable(t.Context(), weatherOptions())
			return err
		},
		verify: func(t *testing.T, w *tablecore.Warehouse, store objstore.Store, stopped bool, err error) {
			table, openErr := w.Table(t.Context(), weatherName)
			switch {
			case openErr == nil:
				if d, err := table.Describe(t.Context(), tablecore.At{}); err != nil || d.Version != 0 || len(d.Columns) != 3 {
					t.Fatalf("described %+v, %v", d, err)
				}
			case tableerr.TokenOf(openErr) != tableerr.TokenTableNotFound:
				t.Fatal(openErr)
			case err == nil:
				t.Fatal("the table was acknowledged and is lost")
			default: // nothing may stand in the way of another try
				if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
					t.Fatal(err)
				}
			}
			checkTyped(t, err)
		},
	}.all(t)
}

func TestDropFaults(t *testing.T) {
	walk{
		prepare: func(t *testing.T, w *tablecore.Warehouse) {
			if _, err := w.CreateTable(t.Context(), weatherOptions()); err != nil {
				t.Fatal(err)
			}
		},
		run: func(t *testing.T, w *tablecore.Warehouse) error {
			_, err := w.DropTable(t.Context(), weatherName, tablecore.DropOptions{})
			return err
		},
		verify: func(t *testing.T, w *tablecore.Warehouse, store objstore.Store, stopped bool, err error) {
			_, openErr := w.Table(t.Context(), weatherName)
			gone := tableerr.TokenOf(openErr) == tableerr.TokenTableNotFound
			if openErr != nil && !gone {
				t.Fatal(openErr)
			}
			if err == nil && !gone {
				t.Fatal("the drop was acknowledged and the table is there")
			}
			for info, err := range store.List(t.Context(), "default/", "") {
				if err != nil {
					t.Fatal(err)
				}
				if gone && strings.HasPrefix(info.Key, "default/weather/") {
					t.Fatalf("%s is left", info.Key)
				}
			}
			checkTyped(t, err)
		},
	}.all(t)
}
