package tablecore_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tabletest"
)

// goldenStep is something that writes. A step more is one entry here, behind the
// others, and a run with -update.
type goldenStep struct {
	name string
	run  func(t *testing.T, g *goldenRun) error
}

// goldenRun is the table that the golden steps write to.
type goldenRun struct {
	fixture fixtureTable
	table   *tablecore.Table
	clock   *tabletest.Clock
}

func (g *goldenRun) version(t *testing.T) int64 {
	t.Helper()
	d, err := g.table.Describe(t.Context(), tablecore.At{})
	if err != nil {
		t.Fatal(err)
	}
	return d.Version
}

var goldenSteps = []goldenStep{
	{"append", func(t *testing.T, g *goldenRun) error {
		g.fixture.append(t, g.table, tablecore.AppendOptions{RequestID: "golden", Compression: "uncompressed"}, g.fixture.rows(0, 4, "1.5"))
		return nil
	}},
	{"append_snappy", func(t *testing.T, g *goldenRun) error {
		g.fixture.append(t, g.table, tablecore.AppendOptions{Compression: "snappy", MaxRowsPerRowGroup: ptr(int64(3))}, g.fixture.rows(6, 9, "null"))
		return nil
	}},
	{"update_rows", func(t *testing.T, g *goldenRun) error { g.fixture.update(t, g.table, 1, 2, "-2.25"); return nil }},
	{"add_columns", func(t *testing.T, g *goldenRun) error {
		_, err := g.table.AddColumns(t.Context(), tablecore.AddColumnsOptions{Schema: quality})
		return err
	}},
	{"set_properties", func(t *testing.T, g *goldenRun) error {
		_, err := g.table.SetProperties(t.Context(), tablecore.SetPropertiesOptions{Properties: properties("team", "ops")})
		return err
	}},
	{"rollback", func(t *testing.T, g *goldenRun) error {
		_, err := g.table.Rollback(t.Context(), tablecore.RollbackOptions{Version: 2, ExpectedVersion: g.version(t)})
		return err
	}},
	{"optimize", func(t *testing.T, g *goldenRun) error {
		_, err := g.table.Optimize(t.Context(), tablecore.OptimizeOptions{})
		return err
	}},
	{"expire", func(t *testing.T, g *goldenRun) error {
		g.clock.Advance(30 * 24 * time.Hour)
		_, err := g.table.Vacuum(t.Context(), tablecore.VacuumOptions{Apply: true, Expire: true})
		return err
	}},
	{"checkpoint", func(t *testing.T, g *goldenRun) error {
		_, err := g.table.Checkpoint(t.Context(), tablecore.CheckpointOptions{})
		return err
	}},
	{"state_and_head", func(t *testing.T, g *goldenRun) error { return g.table.WriteState(t.Context()) }},
}

// TestGoldenBytes compares all that the writers of log, data, derived data and
// head leave behind each step, under a fixed clock and fixed ids, with the bytes
// that they left when the format was made.
func TestGoldenBytes(t *testing.T) {
	store, clock := memstore.New(), tabletest.NewClock()
	w := deterministic(t, store, clock)
	g := &goldenRun{fixture: fixtureTables()["timestamp-composite"], clock: clock}
	o := tablecore.CreateOptions{Name: weatherName, IndexColumn: "at", IndexGranularity: "1h", EntityColumns: g.fixture.entities, Schema: g.fixture.schema()}
	if _, err := w.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	g.table = openWeather(t, w)
	written, last := map[string][]byte{}, map[string][]byte{}
	keep := func(number int, step string) {
		g.table.WaitForBackground()
		for path, data := range newFiles(t, store, last) {
			written[fmt.Sprintf("%02d-%s/%s", number, step, path)] = data
		}
	}
	keep(0, "create_table")
	for i, step := range goldenSteps {
		clock.Advance(time.Minute)
		if err := step.run(t, g); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		keep(i+1, step.name)
	}
	compareGolden(t, "table", written)
}

// TestGoldenUpgrade does the same for the upgrade of the oldest format.
func TestGoldenUpgrade(t *testing.T) {
	store, _ := loadFixture(t, formats[0], "timestamp-composite")
	last := map[string][]byte{}
	newFiles(t, store, last)
	clock := tabletest.NewClock()
	clock.Advance(24 * time.Hour)
	table := openWeather(t, deterministic(t, store, clock))
	if _, err := table.Upgrade(t.Context(), tablecore.UpgradeOptions{}); err != nil {
		t.Fatal(err)
	}
	table.WaitForBackground()
	compareGolden(t, "upgrade", newFiles(t, store, last))
}

// newFiles returns the files of a table that are not as they were last, and
// remembers them.
func newFiles(t *testing.T, store objstore.Store, last map[string][]byte) map[string][]byte {
	t.Helper()
	written := map[string][]byte{}
	for path, data := range filesOfTable(t, store) {
		if !bytes.Equal(data, last[path]) {
			written[path], last[path] = data, data
		}
	}
	return written
}

// compareGolden compares files with the golden ones, or writes them.
func compareGolden(t *testing.T, run string, written map[string][]byte) {
	t.Helper()
	dir := filepath.Join(formatDir, tabledef.CurrentFormat.String(), "golden", run)
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		writeFiles(t, dir, written)
	}
	store := memstore.New()
	copyTo(t, store, os.DirFS(dir), "")
	golden := keysUnder(t, store, "")
	for _, path := range golden {
		if !bytes.Equal(written[path], mustGet(t, store, path)) {
			t.Errorf("%s is not what it was: bump the version, or declare it compatible in compatibility.md and regenerate with -update", path)
		}
	}
	if len(golden) != len(written) {
		t.Errorf("%d files were written, want %d: bump the version, or declare it compatible in compatibility.md and regenerate with -update", len(written), len(golden))
	}
}
