package tablecore_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore"
	"contrail/tablecore/internal/scan"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// unsortedScans are scans that need an order, or the rows of some entities or of
// a part of the index.
func unsortedScans() map[string]tablecore.ScanOptions {
	at := func(hour int) json.RawMessage { return json.RawMessage(strconv.FormatInt(int64(hour)*3600e6, 10)) }
	ewr := []tablecore.EntityFilter{{"origin": json.RawMessage(`"EWR"`)}}
	warm := []tablecore.Condition{{Column: "temp", Op: ">", Value: json.RawMessage("50")}}
	return map[string]tablecore.ScanOptions{
		"all":                       {},
		"in small batches":          {BatchRows: 7},
		"one entity":                {Entities: ewr},
		"nobody":                    {Entities: []tablecore.EntityFilter{{"origin": json.RawMessage(`"XXX"`)}}},
		"a range":                   {Start: at(100), End: at(300)},
		"an empty range":            {Start: at(9000)},
		"an entity's range":         {Entities: ewr, Start: at(17), End: at(18)},
		"a filter":                  {Filter: warm, Columns: []string{"time_hour"}},
		"a limit":                   {Limit: ptr(int64(13)), Start: at(5)},
		"a filter and a limit":      {Filter: warm, Limit: ptr(int64(13))},
		"unordered, of an entity":   {Order: "unordered", Entities: ewr},
		"unordered, within a range": {Order: "unordered", Start: at(100), End: at(300)},
	}
}

// unsortedFixture is an adopted table whose files lie as another writer has left
// them, in random order.
func unsortedFixture(t *testing.T) *fixture {
	random := rand.New(rand.NewPCG(8, 8))
	var rows []string
	for _, origin := range []string{"EWR", "JFK", "LGA"} {
		for hour := range 400 {
			rows = append(rows, rowAt(origin, hour, strconv.Itoa(random.IntN(100))))
		}
	}
	random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	f, _ := plainFixture(t, rowsOf(rows[:500]...), rowsOf(rows[500:501]...), rowsOf(rows[501:]...))
	o := adoption()
	o.NoCompact = true
	f.upgrade(o)
	f.mustAppend(rowsOf(rowAt("EWR", 1000, "51")))
	return f
}

// TestScanUnsortedFiles compares scans of files that are not sorted with those of
// the same rows once the files were rewritten.
func TestScanUnsortedFiles(t *testing.T) {
	f := unsortedFixture(t)
	before := map[string][]string{}
	for name, o := range unsortedScans() {
		before[name], _ = f.scan(o)
	}
	parts := scanParts(t, f, 3)
	if !slices.Equal(parts, before["all"]) {
		t.Errorf("in parts it gives %d rows", len(parts))
	}
	f.upgrade(tablecore.UpgradeOptions{})
	for name, o := range unsortedScans() {
		after, _ := f.scan(o)
		if o.Order == "unordered" {
			slices.Sort(after)
			slices.Sort(before[name])
		}
		if !slices.Equal(before[name], after) {
			t.Errorf("%s: %d rows before the rewriting, %d after it, or in another order", name, len(before[name]), len(after))
		}
	}
}

// scanParts scans a table in parts and returns the rows of all, in order.
func scanParts(t *testing.T, f *fixture, most int) (rows []string) {
	t.Helper()
	plan, err := f.table.PlanScan(t.Context(), tablecore.ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	splits, err := plan.Splits(t.Context(), most)
	if err != nil || len(splits) != most {
		t.Fatalf("%d splits, %v", len(splits), err)
	}
	for i := range splits {
		part, _ := f.scan(tablecore.ScanOptions{Split: &tablecore.Split{Index: i, Count: len(splits)}})
		rows = append(rows, part...)
	}
	return rows
}

// TestExplainUnsortedFiles has files that are not sorted explained.
func TestExplainUnsortedFiles(t *testing.T) {
	f := unsortedFixture(t)
	for entity, want := range map[string]string{"JFK": "kept", "XXX": "entity"} {
		plan, err := f.table.PlanScan(t.Context(), tablecore.ScanOptions{Entities: []tablecore.EntityFilter{{"origin": json.RawMessage(`"` + entity + `"`)}}})
		if err != nil {
			t.Fatal(err)
		}
		reasons := map[string]int{}
		err = plan.Explain().Run(t.Context(), func(batch arrow.RecordBatch) error {
			for i := range int(batch.NumRows()) {
				reasons[batch.Column(2).ValueStr(i)]++
			}
			return nil
		})
		if err != nil || reasons[want] < 2 {
			t.Errorf("%s: %v, %v", entity, reasons, err)
		}
	}
}

// TestScanTooMuchUnsorted keeps to the memory that files may be sorted in, and
// does not go down the index of such files.
func TestScanTooMuchUnsorted(t *testing.T) {
	f := unsortedFixture(t)
	refused := func(o tablecore.ScanOptions) {
		t.Helper()
		if _, _, err := tabletest.Scan(t.Context(), f.table, o); tableerr.TokenOf(err) != tableerr.TokenUnsupported {
			t.Errorf("got %v", err)
		}
	}
	refused(tablecore.ScanOptions{NewestFirst: true})
	defer func(bytes int64) { scan.UnsortedBytes = bytes }(scan.UnsortedBytes)
	scan.UnsortedBytes = 50_000 // the rows of one file, but not of both
	refused(tablecore.ScanOptions{})
	plan, err := f.table.PlanScan(t.Context(), tablecore.ScanOptions{Columns: []string{"temp"}})
	if err == nil {
		_, err = plan.Splits(t.Context(), 2)
	}
	if tableerr.TokenOf(err) != tableerr.TokenUnsupported {
		t.Errorf("splits: %v", err)
	}
	if rows, _ := f.scan(tablecore.ScanOptions{Order: "unordered"}); len(rows) != 1201 {
		t.Errorf("unordered it gives %d rows", len(rows))
	}
}
