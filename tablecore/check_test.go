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
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/internal/check"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// checked runs a check through a warehouse and returns its findings, one line
// each, and its report.
func checked(t *testing.T, w *tablecore.Warehouse, name tabledef.Name, repair bool) ([]string, *tablecore.CheckReport) {
	t.Helper()
	var lines []string
	report, err := w.Check(t.Context(), name, tablecore.CheckOptions{Repair: repair, Findings: func(found []tablecore.CheckFinding) error {
		for _, f := range found {
			lines = append(lines, findingLine(f))
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if report.OK != (report.Errors == 0) || report.Errors+report.Warnings+report.Repaired != int64(len(lines)) {
		t.Errorf("report %+v of %q", report, lines)
	}
	return lines, report
}

// clean makes sure that a check of each table finds nothing, or at most that
// files are left over.
func clean(ctx context.Context, w *tablecore.Warehouse, leftovers bool) error {
	names, err := w.TableNames(ctx, "")
	if err != nil {
		return err
	}
	for _, name := range names {
		var errs []error
		_, err := w.Check(ctx, name, tablecore.CheckOptions{Findings: func(found []tablecore.CheckFinding) error {
			for _, f := range found {
				if !leftovers || f.Kind != check.Orphan {
					errs = append(errs, fmt.Errorf("check of %s: %s", name, findingLine(f)))
				}
			}
			return nil
		}})
		if tableerr.TokenOf(err) == tableerr.TokenTableNotFound {
			continue // dropped meanwhile
		}
		if err := errors.Join(append(errs, err)...); err != nil {
			return err
		}
	}
	return nil
}

func findingLine(f tablecore.CheckFinding) string {
	line := fmt.Sprintf("%s %s %s", f.Severity, f.Kind, f.Path)
	if f.Column != "" {
		line += " column " + f.Column
	}
	if f.Row != nil {
		line += fmt.Sprintf(" row %d", *f.Row)
	}
	if f.Repaired {
		line += " repaired"
	}
	return line + ": " + f.Text
}

// finds makes sure that a check finds one thing, which begins like want.
func (d *damaged) finds(what, want string) {
	d.t.Helper()
	w := d.open()
	defer d.close(w)
	lines, _ := checked(d.t, w, weatherName, false)
	if len(lines) != 1 || !strings.HasPrefix(lines[0], want) {
		d.t.Errorf("%s: found\n%s\nwant %s", what, strings.Join(lines, "\n"), want)
	}
}

// put replaces an object for the rest of the test.
func (d *damaged) put(key string, data []byte) {
	d.t.Helper()
	if err := d.store.Put(d.t.Context(), key, data); err != nil {
		d.t.Fatal(err)
	}
}

func (d *damaged) delete(key string) {
	d.t.Helper()
	if err := d.store.Delete(d.t.Context(), key); err != nil {
		d.t.Fatal(err)
	}
}

// inTable is a key relative to the table.
func inTable(key string) string { return strings.TrimPrefix(key, "default/weather/") }

// recommit writes a version's commit anew after a change to its actions, with a
// checksum that is right: what a writer with a bug would leave.
func (d *damaged) recommit(version int64, change func(c *deltalog.Commit)) {
	d.t.Helper()
	c, err := deltalog.ParseCommit(version, d.get(d.commits[version]))
	if err != nil {
		d.t.Fatal(err)
	}
	change(c)
	data, err := deltalog.EncodeCommit(c)
	if err != nil {
		d.t.Fatal(err)
	}
	d.put(d.commits[version], data)
}

// TestCheckFindsDamage damages one thing after the other.
func TestCheckFindsDamage(t *testing.T) {
	tag := func(key, value string) func(d *damaged) {
		return func(d *damaged) { d.recommit(2, func(c *deltalog.Commit) { c.Adds[0].Tags[key] = value }) }
	}
	stats := func(old, fresh string) func(d *damaged) {
		return func(d *damaged) {
			d.recommit(2, func(c *deltalog.Commit) {
				if !strings.Contains(c.Adds[0].Stats, old) {
					d.t.Fatalf("the statistics are %s", c.Adds[0].Stats)
				}
				c.Adds[0].Stats = strings.Replace(c.Adds[0].Stats, old, fresh, 1)
			})
		}
	}
	for name, test := range map[string]struct {
		damage func(d *damaged)
		want   func(d *damaged) string
	}{
		"a missing data file": {func(d *damaged) { d.delete(d.data[2]) }, func(d *damaged) string {
			return "error missing_file " + inTable(d.data[2]) + ": data file of version 3 is missing"
		}},
		"a data file without its end": {func(d *damaged) { d.put(d.data[2], d.get(d.data[2])[:700]) }, nil},
		"a bit in a page": {func(d *damaged) {
			data := bytes.Clone(d.get(d.data[2]))
			data[40] ^= 4
			d.put(d.data[2], data)
		}, func(d *damaged) string { return "error bad_file " + inTable(d.data[2]) }},
		"a bit in a footer": {func(d *damaged) {
			data := bytes.Clone(d.get(d.data[2]))
			data[len(data)-100] ^= 4
			d.put(d.data[2], data)
		}, func(d *damaged) string { return "error bad_file " + inTable(d.data[2]) }},
		"another file's content": {func(d *damaged) { d.put(d.data[2], d.get(d.data[1])) }, nil},
		"a wrong count of rows": {stats(`"numRecords":8`, `"numRecords":7`), func(d *damaged) string {
			return "error bad_statistics " + inTable(d.data[2]) + ": it has 8 rows, the log says 7"
		}},
		"a maximum that is too low": {stats(`T07:00:00.000Z","temp":1.5`, `T07:00:00.000Z","temp":1.25`), func(d *damaged) string {
			return "error bad_statistics " + inTable(d.data[2]) + " column temp: the statistics in the log: the maximum is 1.25, there is 1.5"
		}},
		"a minimum that is too high": {stats(`"origin":"EWR"`, `"origin":"EWS"`), func(d *damaged) string {
			return "error bad_statistics " + inTable(d.data[2]) + ` column origin: the statistics in the log: the minimum is "EWS", there is "EWR"`
		}},
		"a minimum that is too low": {stats(`"origin":"EWR"`, `"origin":"EWA"`), func(d *damaged) string {
			return "warning bad_statistics " + inTable(d.data[2]) + " column origin"
		}},
		"a wrong count of nulls": {stats(`"nullCount":{"origin":0,"time_hour":0,"temp":4`, `"nullCount":{"origin":0,"time_hour":0,"temp":3`), func(d *damaged) string {
			return "error bad_statistics " + inTable(d.data[2]) + " column temp: the statistics in the log: 3 nulls are told of, there are 4"
		}},
		"a wrong lower bound": {tag(tabledef.TagIndexMin, "14400000001"), func(d *damaged) string {
			return "error bad_statistics " + inTable(d.data[2]) + " column time_hour: the index values go from 1970-01-01T04:00:00"
		}},
		"no bounds": {func(d *damaged) {
			d.recommit(2, func(c *deltalog.Commit) { delete(c.Adds[0].Tags, tabledef.TagIndexMin) })
		}, func(d *damaged) string {
			return "warning bad_statistics " + inTable(d.data[2]) + " column time_hour"
		}},
		"a wrong entity": {func(d *damaged) {
			d.recommit(2, func(c *deltalog.Commit) {
				c.Adds[0].Tags[tabledef.TagLayout], c.Adds[0].Tags[tabledef.TagEntity] = tabledef.LayoutSingle, `{"origin":"EWR"}`
			})
		}, func(d *damaged) string {
			return "error bad_statistics " + inTable(d.data[2]) + `: the log says that all rows are of {"origin":"EWR"}, they are not`
		}},
		"an entity that is none": {func(d *damaged) {
			d.recommit(2, func(c *deltalog.Commit) {
				c.Adds[0].Tags[tabledef.TagLayout], c.Adds[0].Tags[tabledef.TagEntity] = tabledef.LayoutSingle, `{}`
			})
		}, func(d *damaged) string {
			return "error bad_statistics " + inTable(d.data[2]) + `: the entity that the log names`
		}},
		"a file twice under two names": {func(d *damaged) {
			copied := "default/weather/data/aa/aa.parquet"
			d.put(copied, d.get(d.data[2]))
			d.recommit(3, func(c *deltalog.Commit) {
				again, err := deltalog.ParseCommit(2, d.get(d.commits[2]))
				if err != nil {
					d.t.Fatal(err)
				}
				add := *again.Adds[0]
				add.Path = "data/aa/aa.parquet"
				c.Adds = append(c.Adds, &add)
			})
		}, func(d *damaged) string { return "error duplicate_interval data/" }},
		"a missing commit": {func(d *damaged) { d.delete(d.commits[2]) }, func(d *damaged) string {
			return "error bad_log " + inTable(d.commits[2]) + ": the commit is missing although later ones exist"
		}},
		"a bit in a commit": {func(d *damaged) {
			data := bytes.Clone(d.get(d.commits[2]))
			data[len(data)/2] ^= 1
			d.put(d.commits[2], data)
		}, func(d *damaged) string {
			return "error bad_log " + inTable(d.commits[2]) + ": its bytes do not have the checksum they were written with"
		}},
		"a hint to nowhere": {func(d *damaged) { d.put("default/weather/_delta_log/_last_checkpoint", []byte(`{"version":2}`)) }, func(d *damaged) string {
			return "warning bad_log _delta_log/_last_checkpoint"
		}},
		"a hint of no sense": {func(d *damaged) { d.put("default/weather/_delta_log/_last_checkpoint", []byte(`{`)) }, func(d *damaged) string {
			return "warning bad_log _delta_log/_last_checkpoint"
		}},
		"a head of no sense": {func(d *damaged) { d.put("default/weather/_contrail/head", []byte("CTRH no head")) }, func(d *damaged) string {
			return "warning bad_last_values _contrail/head"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDamaged(t)
			test.damage(d)
			if test.want != nil {
				d.finds(name, test.want(d))
				return
			}
			w := d.open() // several things are wrong
			defer d.close(w)
			lines, report := checked(t, w, weatherName, false)
			if report.OK || !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, inTable(d.data[2])) }) {
				t.Errorf("found %q", lines)
			}
		})
	}
}

// TestCheckOpenTable: a table that is open already, and so could be read from
// memory, is checked on the store.
func TestCheckOpenTable(t *testing.T) {
	d := newDamaged(t)
	w := d.open()
	defer d.close(w)
	if lines, report := checked(t, w, weatherName, false); len(lines) > 0 || report.Version != 3 || report.FilesChecked != 3 {
		t.Errorf("found %q, %+v", lines, report)
	}
	if _, _, err := scanWeather(t, w); err != nil {
		t.Fatal(err)
	}
	data := bytes.Clone(d.get(d.data[1]))
	data[len(data)-100] ^= 4
	d.put(d.data[1], data)
	d.delete(d.commits[1])
	lines, _ := checked(t, w, weatherName, false)
	want := []string{"error bad_log " + inTable(d.commits[1]), "error bad_file " + inTable(d.data[1])}
	if len(lines) != len(want) || !strings.HasPrefix(lines[0], want[0]) || !strings.HasPrefix(lines[1], want[1]) {
		t.Errorf("found %q", lines)
	}
}

// TestCheckOrphans: files that nobody refers to are told of once they are old
// enough to be no commit's.
func TestCheckOrphans(t *testing.T) {
	d := newDamaged(t)
	for _, key := range []string{"data/00/stray.parquet", "stray.parquet", "_contrail/files/00", "_contrail/state/x", "_change_data/x", ".part", "_contrail/attempts/x", "_contrail/staged/x"} {
		d.put("default/weather/"+key, []byte("x"))
	}
	for _, test := range []struct {
		age  time.Duration
		want []string
	}{
		{0, nil},
		{14 * time.Minute, nil},
		{15 * time.Minute, []string{"warning orphan _contrail/files/00", "warning orphan data/00/stray.parquet", "warning orphan stray.parquet"}},
	} {
		// The store's own clock stands in 2000.
		now := time.Date(2000, 1, 1, 0, 0, 1, 0, time.UTC).Add(test.age)
		w, err := tablecore.Open(t.Context(), tablecore.Options{Store: sharedStore{d.store}, Clock: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		lines, report := checked(t, w, weatherName, false)
		d.close(w)
		if !report.OK || len(lines) != len(test.want) {
			t.Errorf("after %v %q", test.age, lines)
			continue
		}
		for i, line := range lines {
			if !strings.HasPrefix(line, test.want[i]+": no version refers to this file of 1 bytes") {
				t.Errorf("after %v %q", test.age, lines)
			}
		}
	}
}

// TestCheckStagedFiles: files that wait for their commit are told of when that
// can come no more.
func TestCheckStagedFiles(t *testing.T) {
	f := newStageFixture(t)
	f.stage(rowAt("EWR", 0, "1"))
	if lines, _ := checked(t, f.house, weatherName, false); len(lines) != 0 {
		t.Errorf("staged: %q", lines)
	}
	f.clock.Advance(25 * time.Hour)
	lines, report := checked(t, f.house, weatherName, false)
	if len(lines) != 1 || !report.OK || !strings.HasPrefix(lines[0], "warning orphan data/") {
		t.Errorf("expired: %q", lines)
	}
}

// TestCheckOldVersions: a file that only an older version has must be there, too.
func TestCheckOldVersions(t *testing.T) {
	d := newDamaged(t)
	w := d.open()
	table := openWeather(t, w)
	if _, err := table.Rollback(t.Context(), tablecore.RollbackOptions{Version: 1, ExpectedVersion: 3}); err != nil {
		t.Fatal(err)
	}
	d.close(w)
	whole := d.get(d.data[2])
	d.put(d.data[2], whole[:len(whole)-1])
	d.finds("a file of an older version that was cut", fmt.Sprintf("error bad_file %s: data file of version 3 has %d bytes, the log says %d", inTable(d.data[2]), len(whole)-1, len(whole)))
	d.delete(d.data[2])
	d.finds("a file of an older version", "error missing_file "+inTable(d.data[2])+": data file of version 3 is missing")
}

// TestCheckUnsorted: a file that is said to be sorted and is not, and rows that
// share an interval.
func TestCheckUnsorted(t *testing.T) {
	d := newDamaged(t)
	rows := []string{rowAt("JFK", 5, "1"), rowAt("EWR", 4, "1"), rowAt("EWR", 4, "2")}
	path, size := foreignFile(t, d.store, "data/zz/unsorted.parquet", rows)
	d.recommit(2, func(c *deltalog.Commit) {
		add := c.Adds[0]
		add.Path, add.Size, add.Stats = path, size, `{"numRecords":3}`
		add.Tags[tabledef.TagIndexMin], add.Tags[tabledef.TagIndexMax] = fmt.Sprint(4*3600e6), fmt.Sprint(int64(5*3600e6))
		add.Tags[tabledef.TagIndexMin] = fmt.Sprint(int64(4 * 3600e6))
	})
	w := d.open()
	defer d.close(w)
	lines, _ := checked(t, w, weatherName, false)
	want := []string{
		"error bad_order data/zz/unsorted.parquet row 1: ",
		"warning bad_coverage data/zz/unsorted.parquet: contrail.entities is missing",
		`error duplicate_interval data/zz/unsorted.parquet row 2: 1 of its rows lie in an interval that has a row already, such as [1970-01-01T04:00:00Z, 1970-01-01T05:00:00Z) of {"origin":"EWR"}`,
		"warning orphan " + inTable(d.data[2]),
	}
	if len(lines) != len(want) {
		t.Fatalf("found %q", lines)
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) {
			t.Errorf("found %q, want %q", lines[i], want[i])
		}
	}
}

// foreignFile writes a file of rows of the weather table as another writer would.
func foreignFile(t *testing.T, store objstore.Store, path string, rows []string) (string, int64) {
	t.Helper()
	batch := tabletest.Batch(t, memory.DefaultAllocator, tabledef.StorageSchema(weather), rowsOf(rows...))
	defer batch.Release()
	var b bytes.Buffer
	w, err := datafile.NewWriter(&b, batch.Schema(), datafile.WriteOptions{})
	if err == nil {
		err = w.Write(batch)
	}
	if err == nil {
		_, err = w.Close()
	}
	if err == nil {
		err = store.Put(t.Context(), "default/weather/"+path, b.Bytes())
	}
	if err != nil {
		t.Fatal(err)
	}
	return path, int64(b.Len())
}

// TestCheckMany: findings come a thousand at a time, progress is told, and a
// callback's error or a cancelled context ends the check.
func TestCheckMany(t *testing.T) {
	d := newDamaged(t)
	for i := range 2500 {
		d.put(fmt.Sprintf("default/weather/stray/%d", i), nil)
	}
	w := d.open()
	defer d.close(w)
	var sizes []int
	steps := map[string]tablecore.Progress{}
	_, err := w.Check(t.Context(), weatherName, tablecore.CheckOptions{
		Findings: func(found []tablecore.CheckFinding) error { sizes = append(sizes, len(found)); return nil },
		Progress: func(p tablecore.Progress) { steps[p.Step] = p },
	})
	if err != nil || !slices.Equal(sizes, []int{1000, 1000, 500}) {
		t.Errorf("got %v, %v", sizes, err)
	}
	if p := steps["files"]; p.Done != 3 || p.Total == nil || *p.Total != 3 || p.Unit != "files" || len(steps) != 4 {
		t.Errorf("progress %+v", steps)
	}
	stop := errors.New("stop")
	if _, err := w.Check(t.Context(), weatherName, tablecore.CheckOptions{Findings: func([]tablecore.CheckFinding) error { return stop }}); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = w.Check(ctx, weatherName, tablecore.CheckOptions{Progress: func(p tablecore.Progress) {
		if p.Step == "files" {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestCheckRefusals: which tables cannot be checked or repaired.
func TestCheckRefusals(t *testing.T) {
	d := newDamaged(t)
	w := d.open()
	for _, test := range []struct {
		name tabledef.Name
		o    tablecore.CheckOptions
		want tableerr.Token
	}{
		{tabledef.Name{Namespace: "default", Table: "none"}, tablecore.CheckOptions{}, tableerr.TokenTableNotFound},
		{weatherName, tablecore.CheckOptions{TableID: "another"}, tableerr.TokenTableNotFound},
	} {
		if _, err := w.Check(t.Context(), test.name, test.o); tableerr.TokenOf(err) != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
	d.close(w)
	setFormat := func(version string) {
		d.recommit(0, func(c *deltalog.Commit) { c.Metadata.Configuration["contrail.format-version"] = version })
	}
	setFormat("9.0.0")
	w = d.open()
	defer d.close(w)
	if _, err := w.Check(t.Context(), weatherName, tablecore.CheckOptions{}); tableerr.TokenOf(err) != tableerr.TokenFormatUnreadable {
		t.Errorf("got %v", err)
	}
	raw, err := json.Marshal(tablecore.CheckFinding{Severity: "error", Kind: "bad_file", Path: "p", Text: "t"})
	if want := `{"severity":"error","kind":"bad_file","path":"p","text":"t"}`; err != nil || string(raw) != want {
		t.Errorf("a finding is %s", raw)
	}
}
