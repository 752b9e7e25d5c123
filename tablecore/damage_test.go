package tablecore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// damaged is a table whose files are altered one at a time. Its three appends
// hold the hours 0–3, 4–7 and 8–11 of two stations.
type damaged struct {
	t        *testing.T
	store    objstore.Store
	commits  []string // keys by version
	data     []string // keys by commit, from 1 on
	warnings []string // events of the last warehouse
	dir      string   // of a store in a directory
}

const damagedHours = 4 // of one append

func newDamaged(t *testing.T) *damaged {
	t.Helper()
	d := &damaged{t: t, store: memstore.New()}
	w := d.open()
	defer d.close(w)
	createWeather(t, w)
	d.commits, d.data = []string{d.commitKey(0)}, []string{""}
	for i := range 3 {
		var rows []string
		for hour := range damagedHours {
			rows = append(rows, rowAt("EWR", i*damagedHours+hour, fmt.Sprint(i)+".5"), rowAt("JFK", i*damagedHours+hour, "null"))
		}
		r, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rows...)
		if err != nil {
			t.Fatal(err)
		}
		d.commits = append(d.commits, d.commitKey(r.CommittedVersion))
		d.data = append(d.data, "default/weather/"+r.DataFiles[0].Path)
	}
	return d
}

func (d *damaged) commitKey(version int64) string {
	return fmt.Sprintf("default/weather/_delta_log/%020d.json", version)
}

// open returns a warehouse that has nothing in memory.
func (d *damaged) open() *tablecore.Warehouse {
	d.t.Helper()
	d.warnings = nil
	w, err := tablecore.Open(d.t.Context(), tablecore.Options{Store: sharedStore{d.store}, Clock: tabletest.NewClock().Now,
		Events: tablecore.Events{Warning: func(_ context.Context, event string, fields map[string]any) {
			d.warnings = append(d.warnings, fmt.Sprintf("%s %v: %v", event, fields["path"], fields["reason"]))
		}}})
	if err != nil {
		d.t.Fatal(err)
	}
	return w
}

func (d *damaged) close(w *tablecore.Warehouse) {
	d.t.Helper()
	if err := w.Close(); err != nil {
		d.t.Error(err)
	}
}

// with puts other bytes in the place of an object for the time of a call.
func (d *damaged) with(key string, data []byte, use func(w *tablecore.Warehouse)) {
	d.t.Helper()
	whole := d.get(key)
	if err := d.store.Put(d.t.Context(), key, data); err != nil {
		d.t.Fatal(err)
	}
	w := d.open()
	use(w)
	d.close(w)
	if err := d.store.Put(d.t.Context(), key, whole); err != nil {
		d.t.Fatal(err)
	}
}

func (d *damaged) get(key string) []byte {
	d.t.Helper()
	data, err := d.store.Get(d.t.Context(), key)
	if err != nil {
		d.t.Fatal(err)
	}
	return data
}

// rows are those of the table's appends from one on to before another.
func (d *damaged) rows(from, to int) []string {
	var rows []string
	for _, origin := range []string{"EWR", "JFK"} {
		for hour := from * damagedHours; hour < to*damagedHours; hour++ {
			temp := "null"
			if origin == "EWR" {
				temp = fmt.Sprint(hour/damagedHours) + ".5"
			}
			rows = append(rows, jsonRow(origin, hour, temp))
		}
	}
	return rows
}

// hours asks for the rows of appends from one on to before another.
func hours(from, to int) tablecore.ScanOptions {
	text := func(i int) json.RawMessage { return json.RawMessage(fmt.Sprint(int64(i*damagedHours) * 3600e6)) }
	return tablecore.ScanOptions{Start: text(from), End: text(to)}
}

// scan reads a part of the table; nothing but the right rows or an error that
// names the damaged file will do. It says whether there was one.
func (d *damaged) scan(w *tablecore.Warehouse, what, file string, o tablecore.ScanOptions, want []string) bool {
	d.t.Helper()
	table, err := w.Table(d.t.Context(), weatherName)
	var rows []string
	if err == nil {
		rows, _, err = tabletest.Scan(d.t.Context(), table, o)
	}
	if err == nil && !slices.Equal(rows, want) {
		d.t.Errorf("%s: the scan gave %q", what, rows)
	}
	if err != nil {
		d.names(what, file, err)
	}
	return err != nil
}

// names makes sure that an error is CORRUPT and names the file.
func (d *damaged) names(what, file string, err error) {
	d.t.Helper()
	var corrupt *tableerr.Corrupt
	if !errors.As(err, &corrupt) || file == "" || !strings.HasSuffix(file, "/weather/"+corrupt.Path) {
		d.t.Errorf("%s: got %v", what, err)
	}
}

// mutant is an altered object.
type mutant struct {
	what string
	data []byte
}

// mutants alters an object: a bit of each byte, or of each step-th one, cuts at
// as many places, stretches of zeros, and bytes behind its end. Under the race
// detector, which is after other faults, it takes larger steps.
func mutants(data []byte, step int) []mutant {
	if raceDetector {
		step *= 9
	}
	var all []mutant
	add := func(data []byte, format string, args ...any) {
		all = append(all, mutant{fmt.Sprintf(format, args...), data})
	}
	for i := 0; i < len(data); i += step {
		flipped := bytes.Clone(data)
		flipped[i] ^= 1 << (i / step * 5 % 8)
		add(flipped, "bit %d of byte %d", i/step*5%8, i)
		add(data[:i], "cut to %d bytes", i)
		zeros := bytes.Clone(data)
		clear(zeros[i:min(i+16, len(zeros))])
		if !bytes.Equal(zeros, data) {
			add(zeros, "16 zeros from byte %d", i)
		}
	}
	add(append(bytes.Clone(data), 'x'), "a byte behind the end")
	add(append(bytes.Clone(data), data...), "the content twice")
	return all
}

// TestDamagedDataFile: whatever happens to a data file, its rows are right or
// CORRUPT is told; others are read, and rows are appended where it does not
// matter; an append that would overlap its rows does not succeed.
func TestDamagedDataFile(t *testing.T) {
	d := newDamaged(t)
	file := d.data[2]
	told := 0
	for _, m := range mutants(d.get(file), 1) {
		d.with(file, m.data, func(w *tablecore.Warehouse) {
			if d.scan(w, m.what, file, tablecore.ScanOptions{}, d.rows(0, 3)) {
				told++
			}
			d.scan(w, m.what, file, tablecore.ScanOptions{Columns: []string{"temp", "origin"}}, swapped(d.rows(0, 3)))
			d.scan(w, m.what+", another file", "", hours(2, 3), d.rows(2, 3))
			one := int64(1)
			d.scan(w, m.what+", another version", "", tablecore.ScanOptions{Version: &one}, d.rows(0, 1))
			_, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", damagedHours+1, "9"))
			if tableerr.TokenOf(err) != tableerr.TokenIntervalOverlap {
				d.names(m.what+", an overlapping append", file, err)
			}
		})
		if t.Failed() {
			return
		}
	}
	if told == 0 {
		t.Error("no damage was noticed")
	}
	d.writes()
}

// swapped brings rows to the order in which two of their columns are printed:
// JSON objects have their names in order, so only the third is left out.
func swapped(rows []string) []string {
	var out []string
	for _, row := range rows {
		before, _, _ := strings.Cut(row, `,"time_hour"`)
		out = append(out, before+"}")
	}
	return out
}

// writes makes sure that the table, whole again, takes rows.
func (d *damaged) writes() {
	d.t.Helper()
	w := d.open()
	defer d.close(w)
	if err := writeWeather(d.t, w); err != nil {
		d.t.Error(err)
	}
}

// TestDamagedCommit: an altered commit is told by name; the table is not opened
// in part. Other tables are not touched by it. An altered format version is
// judged before all damage.
func TestDamagedCommit(t *testing.T) {
	d := newDamaged(t)
	w := d.open()
	o := weatherOptions()
	o.Name = tabledef.Name{Namespace: "default", Table: "other"}
	if _, err := w.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	d.close(w)
	for version, file := range d.commits {
		told := 0
		for _, m := range mutants(d.get(file), 1) {
			d.with(file, m.data, func(w *tablecore.Warehouse) {
				_, err := w.Table(t.Context(), weatherName)
				otherFormat := !bytes.Contains(m.data, []byte(`"contrail.format-version":"0.3.0"`))
				if otherFormat && tableerr.TokenOf(err) == tableerr.TokenFormatUnreadable {
					told++
				} else if d.scan(w, m.what, file, tablecore.ScanOptions{}, d.rows(0, 3)) {
					told++
				}
				list, err := w.ListTables(t.Context(), "")
				if err != nil || len(list) != 2 || list[0].Table != "default.other" || list[0].Version == nil {
					t.Errorf("%s: listed %+v, %v", m.what, list, err)
				}
			})
			if t.Failed() {
				t.Fatalf("in version %d", version)
			}
		}
		if told == 0 {
			t.Error("no damage was noticed")
		}
	}
	d.writes()
}

// TestDamagedCheckpoint: as long as the commits are there, a checkpoint and the
// hint that leads to it only save time. Without them the checkpoint is told by
// name.
func TestDamagedCheckpoint(t *testing.T) {
	d := newDamaged(t)
	w := d.open()
	table, err := w.Table(t.Context(), weatherName)
	if err == nil {
		err = table.WriteCheckpoint(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	d.close(w)
	hint, checkpoint := "default/weather/_delta_log/_last_checkpoint", strings.TrimSuffix(d.commits[3], "json")+"checkpoint.parquet"
	for _, file := range []string{hint, checkpoint} {
		step := max(1, len(d.get(file))/400)
		for _, m := range mutants(d.get(file), step) {
			d.with(file, m.data, func(w *tablecore.Warehouse) {
				if d.scan(w, file+" "+m.what, "", tablecore.ScanOptions{}, d.rows(0, 3)) || t.Failed() {
					t.Fatal("a damaged checkpoint is not ignored")
				}
			})
		}
	}
	for _, key := range d.commits[:3] {
		if err := d.store.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	told := 0
	for _, m := range mutants(d.get(checkpoint), max(1, len(d.get(checkpoint))/400)) {
		d.with(checkpoint, m.data, func(w *tablecore.Warehouse) {
			if d.scan(w, m.what, checkpoint, tablecore.ScanOptions{}, d.rows(0, 3)) {
				told++
			}
		})
		if t.Failed() {
			return
		}
	}
	if told == 0 {
		t.Error("no damage was noticed")
	}
	d.writes()
}

// TestDamagedSidecar: derived data beside a data file that is altered or gone
// is computed again, with a warning.
func TestDamagedSidecar(t *testing.T) {
	d := &damaged{t: t, store: memstore.New()}
	w := d.open()
	createWeather(t, w)
	var rows, want []string
	for i := range 4000 {
		origin := fmt.Sprintf("station-%05d-of-the-network", i)
		rows, want = append(rows, rowAt(origin, i%24, "1")), append(want, jsonRow(origin, i%24, "1"))
	}
	if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rows...); err != nil {
		t.Fatal(err)
	}
	d.close(w)
	files := keysUnder(t, d.store, "default/weather/_contrail/files/")
	if len(files) != 1 {
		t.Fatalf("beside the data file lie %q", files)
	}
	check := func(what string, w *tablecore.Warehouse) {
		d.scan(w, what, "", tablecore.ScanOptions{}, want)
		if len(d.warnings) == 0 || !strings.HasPrefix(d.warnings[0], "derived data recomputed data/") {
			t.Errorf("%s: warnings %q", what, d.warnings)
		}
		// A row that is there already is refused by what was computed.
		_, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rows[17])
		if tableerr.TokenOf(err) != tableerr.TokenIntervalOverlap {
			t.Errorf("%s: an overlapping append gave %v", what, err)
		}
	}
	whole := d.get(files[0])
	for _, m := range mutants(whole, len(whole)/12) {
		if bytes.HasPrefix(m.data, whole) {
			continue // what lies behind the blocks is not read
		}
		d.with(files[0], m.data, func(w *tablecore.Warehouse) { check(m.what, w) })
		if t.Failed() {
			return
		}
	}
	if err := d.store.Delete(t.Context(), files[0]); err != nil {
		t.Fatal(err)
	}
	w = d.open()
	check("a missing sidecar", w)
	d.close(w)
}

// TestMissingDataFile: a data file that is gone is told by name; other files
// are read.
func TestMissingDataFile(t *testing.T) {
	d := newDamaged(t)
	if err := d.store.Delete(t.Context(), d.data[2]); err != nil {
		t.Fatal(err)
	}
	w := d.open()
	defer d.close(w)
	var missing *tableerr.FileMissing
	if _, _, err := scanWeather(t, w); !errors.As(err, &missing) || missing.Version != 3 || !strings.HasSuffix(d.data[2], missing.Path) {
		t.Errorf("got %v", err)
	}
	d.scan(w, "another file", "", hours(2, 3), d.rows(2, 3))
	if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rowAt("EWR", 500, "1")); err != nil {
		t.Errorf("rows that have nothing to do with it: %v", err)
	}
}

// TestDamageReleases makes sure that reading damaged files gives all Arrow
// memory back.
func TestDamageReleases(t *testing.T) {
	d := newDamaged(t)
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	whole := d.get(d.data[2])
	for _, m := range mutants(whole, 7) {
		if err := d.store.Put(t.Context(), d.data[2], m.data); err != nil {
			t.Fatal(err)
		}
		w, err := tablecore.Open(t.Context(), tablecore.Options{Store: sharedStore{d.store}, Allocator: mem})
		if err != nil {
			t.Fatal(err)
		}
		_, _, _ = scanWeather(t, w) // TestDamagedDataFile looks at what it gives
		d.close(w)
		if n := mem.CurrentAlloc(); n != 0 {
			t.Fatalf("%s: %d bytes were not given back", m.what, n)
		}
	}
}
