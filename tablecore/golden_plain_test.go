package tablecore_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// TestGoldenFilters filters the golden tables by values of each column: what
// the statistics rule out must be what the values rule out.
func TestGoldenFilters(t *testing.T) {
	for _, name := range goldenNames(t) {
		want := goldenExpectation(t, name)
		if want.Refused != nil || len(want.Rows) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			table := openPlain(t, goldenStore(t, name))
			for c, column := range want.Columns {
				if strings.ContainsAny(column[1].(string), "<") {
					continue // nested columns take no filter
				}
				for _, condition := range goldenConditions(t, want, c) {
					filtersAlike(t, table, condition)
				}
			}
		})
	}
}

// goldenConditions makes conditions of some values of a column.
func goldenConditions(t *testing.T, want golden, c int) []tablecore.Condition {
	t.Helper()
	name := want.Columns[c][0].(string)
	conditions := []tablecore.Condition{{Column: name, Op: "is null"}, {Column: name, Op: "is not null"}}
	most := 3
	if raceDetector {
		most = 1
	}
	step := max(1, len(want.Rows)/most)
	for i := 0; i < len(want.Rows); i += step {
		var row []json.RawMessage
		if err := json.Unmarshal(want.Rows[i], &row); err != nil {
			t.Fatal(err)
		}
		if string(row[c]) == "null" {
			continue
		}
		for _, op := range []string{"=", "!=", "<", ">="} {
			conditions = append(conditions, tablecore.Condition{Column: name, Op: op, Value: row[c]})
		}
	}
	return conditions
}

// filtersAlike makes sure that a filtered scan gives the same rows whether or
// not it looks at statistics.
func filtersAlike(t *testing.T, table *tablecore.Table, condition tablecore.Condition) {
	t.Helper()
	o := tablecore.ScanOptions{Filter: []tablecore.Condition{condition}}
	got, err := canonicalRows(t.Context(), table, o)
	if err != nil {
		t.Fatalf("%s %s %s: %v", condition.Column, condition.Op, condition.Value, err)
	}
	all, err := canonicalRows(t.Context(), table, o.Unpruned())
	if err != nil || !slices.Equal(got, all) {
		t.Errorf("%s %s %s: %q, and %q, %v unpruned", condition.Column, condition.Op, condition.Value, got, all, err)
	}
	if condition.Op == "=" && len(got) == 0 {
		t.Errorf("%s = %s finds nothing", condition.Column, condition.Value)
	}
}

// goldenVariant copies a golden table of ten rows with its commit edited.
func goldenVariant(t *testing.T, edit func(commit []map[string]map[string]any)) objstore.Store {
	t.Helper()
	store := goldenStore(t, "snapshot-data0")
	key := "default/plain/" + commitKeyOf(0)
	data, err := store.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	var commit []map[string]map[string]any
	for line := range bytes.Lines(data) {
		var action map[string]map[string]any
		if err := json.Unmarshal(line, &action); err != nil {
			t.Fatal(err)
		}
		commit = append(commit, action)
	}
	edit(commit)
	var out bytes.Buffer
	for _, action := range commit {
		if err := json.NewEncoder(&out).Encode(action); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Put(t.Context(), key, out.Bytes()); err != nil {
		t.Fatal(err)
	}
	return store
}

func commitKeyOf(version int) string { return fmt.Sprintf("_delta_log/%020d.json", version) }

// each gives the actions of a kind to change.
func each(kind string, change func(action map[string]any)) func([]map[string]map[string]any) {
	return func(commit []map[string]map[string]any) {
		for _, action := range commit {
			if action[kind] != nil {
				change(action[kind])
			}
		}
	}
}

func setTo(key string, value any) func(map[string]any) {
	return func(action map[string]any) { action[key] = value }
}

// protocolOf sets the protocol.
func protocolOf(reader, writer int, features ...string) func([]map[string]map[string]any) {
	return each("protocol", func(p map[string]any) {
		clear(p)
		p["minReaderVersion"], p["minWriterVersion"] = reader, writer
		if reader >= 3 {
			p["readerFeatures"] = features
		}
		if writer >= 7 {
			p["writerFeatures"] = features
		}
	})
}

// TestGoldenVariants changes one thing of a golden table each time: it is still
// read, or refused by the error that says why.
func TestGoldenVariants(t *testing.T) {
	schema := func(fields string) func([]map[string]map[string]any) {
		return each("metaData", setTo("schemaString", `{"type":"struct","fields":[`+fields+`]}`))
	}
	column := func(typ string) func([]map[string]map[string]any) {
		return schema(`{"name":"x","type":` + typ + `,"nullable":true,"metadata":{}}`)
	}
	stats := func(text any) func([]map[string]map[string]any) { return each("add", setTo("stats", text)) }
	path := func(with string) func([]map[string]map[string]any) {
		return each("add", func(a map[string]any) { a["path"] = with + a["path"].(string) })
	}
	reads := map[string]func([]map[string]map[string]any){
		"as it is":                  func([]map[string]map[string]any) {},
		"column mapping off":        protocolOf(3, 7, "columnMapping"),
		"no deletion vector":        protocolOf(3, 7, "deletionVectors"),
		"vacuum protocol check":     protocolOf(3, 7, "vacuumProtocolCheck"),
		"writer features unknown":   protocolOf(1, 7, "clustering", "rowTracking", "warp"),
		"writer version unknown":    protocolOf(1, 99),
		"path with a dot":           path("./"),
		"path encoded":              each("add", func(a map[string]any) { a["path"] = strings.ReplaceAll(a["path"].(string), "-", "%2D") }),
		"size wrong":                each("add", setTo("size", 1)),
		"statistics with NaN":       stats(`{"numRecords":5,"minValues":{"col1":NaN},"maxValues":{"col1":NaN},"nullCount":{"col1":0}}`),
		"statistics of large ints":  stats(`{"numRecords":5,"minValues":{"col1":-9e99},"maxValues":{"col1":99999999999999999999999},"nullCount":{"col1":0}}`),
		"statistics not understood": stats("junk"),
		"statistics null":           stats(nil),
		"rows below zero":           stats(`{"numRecords":-5}`),
		"bounds not tight":          stats(`{"numRecords":5,"tightBounds":false,"minValues":{"col1":7},"maxValues":{"col1":7},"nullCount":{"col1":0}}`),
		"constraint":                each("metaData", setTo("configuration", map[string]any{"delta.constraints.a": "col1 > 0"})),
		"change data feed":          each("metaData", setTo("configuration", map[string]any{"delta.enableChangeDataFeed": "true"})),
		"a column more": schema(`{"name":"col1","type":"integer","nullable":true,"metadata":{"delta.identity.start":1,"delta.generationExpression":"1"}},` +
			`{"name":"col2","type":"string","nullable":true,"metadata":{"CURRENT_DEFAULT":"'x'"}},{"name":"later","type":"timestamp_ntz","nullable":true,"metadata":{}}`),
	}
	for version := range 7 {
		reads[fmt.Sprintf("writer version %d", version)] = protocolOf(1, version)
		reads[fmt.Sprintf("reader version 2, writer version %d", version)] = protocolOf(2, version)
	}
	for name, edit := range reads {
		rows, err := scanVariant(t, goldenVariant(t, edit))
		if err != nil || len(rows) != 10 {
			t.Errorf("%s: %d rows, %v", name, len(rows), err)
		}
	}
	for name, c := range map[string]struct {
		edit  func([]map[string]map[string]any)
		token tableerr.Token
		names string
	}{
		"unknown reader feature":   {protocolOf(3, 7, "warp"), tableerr.TokenUnsupported, "warp"},
		"reader version 4":         {protocolOf(4, 7), tableerr.TokenUnsupported, "minReaderVersion 4"},
		"another file format":      {each("metaData", setTo("format", map[string]any{"provider": "orc"})), tableerr.TokenUnsupported, `format "orc"`},
		"column mapping unsaid":    {each("metaData", setTo("configuration", map[string]any{"delta.columnMapping.mode": "name"})), tableerr.TokenUnsupported, "columnMapping"},
		"type void":                {column(`"void"`), tableerr.TokenUnsupported, "type void"},
		"type variant":             {column(`"variant"`), tableerr.TokenUnsupported, "type variant"},
		"type no text":             {column(`5`), tableerr.TokenCorrupt, "_delta_log"},
		"no schema":                {each("metaData", setTo("schemaString", nil)), tableerr.TokenCorrupt, "_delta_log"},
		"no column":                {schema(""), tableerr.TokenCorrupt, "_delta_log"},
		"path that climbs":         {path("../plain/"), tableerr.TokenUnsupported, "../plain/part-00000-"},
		"path encoded that climbs": {path("%2e%2E/plain/"), tableerr.TokenUnsupported, "%2e%2E/plain/part-00000-"},
		"absolute path":            {path("/data/"), tableerr.TokenUnsupported, "/data/part-00000-"},
		"URL":                      {path("s3://bucket/"), tableerr.TokenUnsupported, "s3://bucket/part-00000-"},
		"file URL":                 {path("file:///data/"), tableerr.TokenUnsupported, "file:///data/part-00000-"},
		"statistics an object":     {stats(map[string]any{"numRecords": 5}), tableerr.TokenCorrupt, commitKeyOf(0)},
	} {
		_, err := scanVariant(t, goldenVariant(t, c.edit))
		if tableerr.TokenOf(err) != c.token || !strings.HasPrefix(namedBy(err), c.names) {
			t.Errorf("%s: %v, which names %q", name, err, namedBy(err))
		}
	}
}

func scanVariant(t *testing.T, store objstore.Store) ([]string, error) {
	t.Helper()
	table, err := tabletest.Warehouse(t, store, memory.NewGoAllocator()).Table(t.Context(), plainName)
	if err != nil {
		return nil, err
	}
	return canonicalRows(t.Context(), table, tablecore.ScanOptions{})
}

// TestGoldenDamage has data files of a copy damaged while the table it was
// copied from, which has the same identity and paths, is open beside it.
func TestGoldenDamage(t *testing.T) {
	store := goldenStore(t, "snapshot-data0")
	copyTo(t, store, os.DirFS(filepath.Join(goldenDir, "snapshot-data0")), "default/weather/")
	var path string
	for _, key := range keysUnder(t, store, "default/weather/") {
		if strings.Contains(key, "weather/part-00000") {
			path = key
		}
	}
	w := tabletest.Warehouse(t, store, memory.NewGoAllocator())
	whole, err := w.Table(t.Context(), plainName)
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := canonicalRows(t.Context(), whole, tablecore.ScanOptions{}); err != nil || len(rows) != 10 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	data, err := store.Get(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{"empty": {}, "truncated": data[:len(data)-20], "foreign": []byte("no Parquet at all")} {
		if err := store.Put(t.Context(), path, damaged); err != nil {
			t.Fatal(err)
		}
		copied := openWeather(t, w)
		if _, err := canonicalRows(t.Context(), copied, tablecore.ScanOptions{}); tableerr.TokenOf(err) != tableerr.TokenCorrupt {
			t.Errorf("%s: %v", name, err)
		}
		if d, err := copied.Describe(t.Context(), tablecore.At{}); err != nil || d.Rows != -1 {
			t.Errorf("%s: described as %+v, %v", name, d, err)
		}
	}
	if err := store.Delete(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if _, err := canonicalRows(t.Context(), openWeather(t, w), tablecore.ScanOptions{}); tableerr.TokenOf(err) != tableerr.TokenFileMissing {
		t.Errorf("missing: %v", err)
	}
}

// TestPlainTableIsOnlyRead makes sure that whatever needs an index column, or
// writes, is refused before anything else is looked at, with what to do.
func TestPlainTableIsOnlyRead(t *testing.T) {
	for _, name := range []string{"collations-table", "snapshot-data0", "only-checkpoint-files"} {
		store := memstore.New()
		copyTo(t, store, os.DirFS(filepath.Join(goldenDir, name)), "default/weather/")
		w := tabletest.Warehouse(t, store, memory.NewGoAllocator())
		table := openWeather(t, w)
		reads, calls := formatCalls(t, w, table)
		delete(calls, "upgrade") // the one that helps
		for _, verb := range []string{"entities", "latest", "coverage"} {
			calls[verb] = reads[verb]
			delete(reads, verb)
		}
		before := keysUnder(t, store, "default/")
		for verb, call := range calls {
			err := call()
			if tableerr.TokenOf(err) != tableerr.TokenFormatUnwritable || !strings.Contains(err.Error(), "flight-admin upgrade default.weather --index-column COLUMN") {
				t.Errorf("%s: %s: %v", name, verb, err)
			}
		}
		for verb, call := range reads {
			if err := call(); err != nil {
				t.Errorf("%s: %s: %v", name, verb, err)
			}
		}
		if after := keysUnder(t, store, "default/"); !slices.Equal(after, before) {
			t.Errorf("%s: the store holds %q, it held %q", name, after, before)
		}
	}
}
