package tablecore_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// oneChange appends a row of an entity, "append JFK", or gives EWR's row of an
// hour another temperature, "update 7 3 20" with the expected version 7, and
// tells the version or the token of the error.
func oneChange(table *tablecore.Table, text string) string {
	words := strings.Fields(text)
	var version int64
	var err error
	switch {
	case len(words) == 2 && words[0] == "append":
		var r *tablecore.AppendReport
		if r, err = appendJSON(table, rowsOf(rowAt(words[1], 0, "1")), tablecore.AppendOptions{}); err == nil {
			version = r.CommittedVersion
		}
	case len(words) == 4 && words[0] == "update":
		version, err = oneUpdate(table, words[1], words[2], words[3])
	default:
		return "unknown change " + text
	}
	switch {
	case err != nil && tableerr.TokenOf(err) != "":
		return string(tableerr.TokenOf(err))
	case err != nil:
		return err.Error()
	}
	return fmt.Sprint(version)
}

func oneUpdate(table *tablecore.Table, version, hour, temp string) (int64, error) {
	expected, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return 0, err
	}
	at, err := strconv.Atoi(hour)
	if err != nil {
		return 0, err
	}
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, weather, strings.NewReader(rowsOf(rowAt("EWR", at, temp))))
	if err != nil {
		return 0, err
	}
	defer b.Release()
	r, err := table.UpdateRows(context.Background(), tabletest.NewReader(weather, b), tablecore.UpdateOptions{Columns: []string{"temp"}, ExpectedVersion: expected})
	if err != nil {
		return 0, err
	}
	return r.CommittedVersion, nil
}

// updatedTable is a table with a row of EWR for each process, at hours 0, 1 …,
// and the processes.
func updatedTable(t *testing.T) (*tablecore.Table, []*child, []string) {
	t.Helper()
	dir, w := localWarehouse(t, weatherOptions())
	table := openWeather(t, w)
	var rows, want []string
	for hour := range processes {
		rows = append(rows, rowAt("EWR", hour, "0"))
		want = append(want, fmt.Sprintf("EWR %02d 0", hour))
	}
	if _, err := appendJSON(table, rowsOf(rows...), tablecore.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	return table, startChildren(t, "update", dir), want
}

func expectRows(t *testing.T, table *tablecore.Table, want []string) int64 {
	t.Helper()
	rows, stats, err := tabletest.Scan(t.Context(), table, tablecore.ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := brief(t, rows); !slices.Equal(got, want) {
		t.Errorf("version %d has %q, want %q", stats.Version, got, want)
	}
	return stats.Version
}

// TestUpdateProcesses has four processes update from the same version, each a
// row of its own: one wins, the others are told of a conflict.
func TestUpdateProcesses(t *testing.T) {
	table, children, want := updatedTable(t)
	for version := int64(1); version < 20; version++ {
		for i, c := range children {
			c.write(t, fmt.Sprint("update ", version, " ", i, " ", version))
		}
		won := 0
		for i, c := range children {
			switch answer := c.read(t); answer {
			case fmt.Sprint(version + 1):
				won++
				want[i] = fmt.Sprintf("EWR %02d %d", i, version)
			case string(tableerr.TokenVersionConflict):
			default:
				t.Errorf("process %d: %s", i, answer)
			}
		}
		if won != 1 {
			t.Errorf("version %d: %d won", version, won)
		}
		if got := expectRows(t, table, want); got != version+1 {
			t.Fatalf("version %d follows %d", got, version)
		}
	}
}

// TestUpdateAndAppendProcesses has two processes update from a version while two
// append: every appended row is there, and at most one update has won.
func TestUpdateAndAppendProcesses(t *testing.T) {
	table, children, want := updatedTable(t)
	version := int64(1)
	for round := range 15 {
		for i, c := range children {
			if i%2 == 0 {
				c.write(t, fmt.Sprint("update ", version, " ", i, " ", round))
			} else {
				name := fmt.Sprintf("F%02d-%d", round, i)
				c.write(t, "append "+name)
				want = append(want, name+" 00 1")
			}
		}
		updates := int64(0)
		for i, c := range children {
			answer := c.read(t)
			conflict := answer == string(tableerr.TokenVersionConflict)
			if _, err := strconv.Atoi(answer); err != nil && (i%2 == 1 || !conflict) {
				t.Errorf("process %d: %s", i, answer)
			}
			if i%2 == 0 && !conflict {
				updates++
				want[i] = fmt.Sprintf("EWR %02d %d", i, round)
			}
		}
		if updates > 1 {
			t.Errorf("round %d: %d updates from one version", round, updates)
		}
		before := version
		if version = expectRows(t, table, want); version != before+2+updates {
			t.Fatalf("version %d follows %d and %d updates", version, before, updates)
		}
	}
}
