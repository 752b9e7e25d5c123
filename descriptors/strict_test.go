package descriptors

import (
	"errors"
	"math"
	"strings"
	"testing"

	"contrail/tablecore/tableerr"
)

const scanHead = `{"op":"scan","table":"t",`

func TestRefusedScans(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	cases := []struct{ name, body, field string }{
		{"empty", ``, "command"},
		{"blanks only", " \n", "command"},
		{"no object", `["scan"]`, "command"},
		{"a number", `7`, "command"},
		{"cut off", `{"op":"scan"`, "command"},
		{"cut off in a value", `{"op":"scan","columns":["a`, "columns[0]"},
		{"trailing bytes", scanHead + `"version":1}x`, "command"},
		{"two objects", `{"op":"scan","table":"t"}{}`, "command"},
		{"NUL behind", "{\"op\":\"scan\",\"table\":\"t\"}\x00", "command"},
		{"invalid UTF-8", "{\"op\":\"scan\",\"table\":\"\xff\"}", "command"},
		{"byte order mark", "\ufeff{}", "command"},
		{"single quotes", `{'op':'scan'}`, "command"},
		{"trailing comma", scanHead + `}`, "command"},
		{"trailing comma in a list", scanHead + `"columns":["a",]}`, "columns[1]"},
		{"missing colon", `{"op" "scan"}`, "op"},
		{"missing comma", `{"op":"scan" "table":"t"}`, "command"},
		{"missing comma in a list", scanHead + `"columns":["a" "b"]}`, "columns"},
		{"leading zero", scanHead + `"version":01}`, "command"},
		{"plus sign", scanHead + `"version":+1}`, "version"},
		{"hexadecimal", scanHead + `"version":0x1}`, "command"},
		{"lone minus", scanHead + `"version":-}`, "version"},
		{"dot without digits", scanHead + `"version":1.}`, "version"},
		{"exponent without digits", scanHead + `"version":1e}`, "version"},
		{"huge exponent", scanHead + `"start":1e99999}`, "start"},
		{"huge number", scanHead + `"start":` + strings.Repeat("9", 513) + `}`, "start"},
		{"NaN", scanHead + `"version":NaN}`, "version"},
		{"capital true", scanHead + `"version":True}`, "version"},
		{"control character", "{\"op\":\"scan\",\"table\":\"a\nb\"}", "table"},
		{"control character behind an escape", "{\"op\":\"scan\",\"table\":\"\\\\a\nb\"}", "table"},
		{"unknown escape", `{"op":"scan","table":"\x41"}`, "table"},
		{"escape at the end", `{"op":"scan","table":"\`, "table"},
		{"text cut behind an escape", `{"op":"scan","table":"\\a`, "table"},
		{"bad hexadecimal digit", `{"op":"scan","table":"\u12g4"}`, "table"},
		{"half a surrogate pair", `{"op":"scan","table":"\ud800x"}`, "table"},
		{"two high surrogates", `{"op":"scan","table":"\ud800\ud800"}`, "table"},
		{"surrogate and a bad escape", `{"op":"scan","table":"\ud800\uzzzz"}`, "table"},
		{"half a pair in a key", scanHead + `"\udc00":1}`, "command"},
		{"no key", `{1:2}`, "command"},
		{"duplicate key", scanHead + `"table":"t"}`, "table"},
		{"duplicate key by escape", scanHead + `"t\u0061ble":"t"}`, "table"},
		{"duplicate key deep down", scanHead + `"entities":[{"a":1},{"b":1,"b":2}]}`, "entities[1].b"},
		{"duplicate unknown key in a refused value", scanHead + `"filter":[["a","in",[{"x":1,"x":1}]]]}`, "filter[0][2][0].x"},
		{"too deep", scanHead + `"filter":` + deep + `}`, "filter" + strings.Repeat("[0]", MaxDepth-1)},
		{"too deep by objects", strings.Repeat(`{"a":`, MaxDepth+1), strings.TrimSuffix(strings.Repeat("a.", MaxDepth), ".")},
		{"too large", scanHead + `"columns":["` + strings.Repeat("x", MaxRequestBytes) + `"]}`, "command"},

		{"no op", `{"table":"t"}`, "op"},
		{"null op", `{"op":null,"table":"t"}`, "op"},
		{"op of another kind", `{"op":["scan"],"table":"t"}`, "op"},
		{"unknown op", `{"op":"delete","table":"t"}`, "op"},
		{"op in capitals", `{"op":"SCAN","table":"t"}`, "op"},
		{"op of another RPC", `{"op":"append","table":"t"}`, "op"},
		{"no table", `{"op":"scan"}`, "table"},
		{"null table", `{"op":"scan","table":null}`, "table"},
		{"empty table", `{"op":"scan","table":""}`, "table"},
		{"table of another kind", `{"op":"scan","table":["default","t"]}`, "table"},
		{"unknown key", scanHead + `"colums":["a"]}`, "colums"},
		{"unknown null key", scanHead + `"colums":null}`, "colums"},
		{"key in another case", scanHead + `"Columns":["a"]}`, "Columns"},
		{"odd key", scanHead + `"a b":1}`, `["a b"]`},
		{"empty key", scanHead + `"":1}`, `[""]`},
		{"long key", scanHead + `"` + strings.Repeat("k", 100) + `":1}`, `["` + strings.Repeat("k", 61) + `…"]`},

		{"no column", scanHead + `"columns":[]}`, "columns"},
		{"columns as text", scanHead + `"columns":"a"}`, "columns"},
		{"a column as number", scanHead + `"columns":["a",1]}`, "columns[1]"},
		{"a null column", scanHead + `"columns":[null]}`, "columns[0]"},
		{"a column twice", scanHead + `"columns":["a","b","a"]}`, "columns[2]"},
		{"entities as object", scanHead + `"entities":{"a":1}}`, "entities"},
		{"an entity as text", scanHead + `"entities":["a"]}`, "entities[0]"},
		{"a null entity", scanHead + `"entities":[{"a":1},null]}`, "entities[1]"},
		{"a null in an entity", scanHead + `"entities":[{"a":null}]}`, "entities[0].a"},
		{"a list in an entity", scanHead + `"entities":[{"a b":[1]}]}`, `entities[0]["a b"]`},
		{"a list and a bad number in it", scanHead + `"entities":[{"a b":[1,-]}]}`, `entities[0]["a b"][1]`},
		{"start as boolean", scanHead + `"start":true}`, "start"},
		{"end as list", scanHead + `"end":[]}`, "end"},
		{"negative version", scanHead + `"version":-1}`, "version"},
		{"version of 2^63", scanHead + `"version":9223372036854775808}`, "version"},
		{"fractional version", scanHead + `"version":4.0}`, "version"},
		{"version with exponent", scanHead + `"version":4e0}`, "version"},
		{"boolean version", scanHead + `"version":true}`, "version"},
		{"version as word", scanHead + `"version":"four"}`, "version"},
		{"version as text with a blank", scanHead + `"version":" 4"}`, "version"},
		{"version as text with zeros", scanHead + `"version":"04"}`, "version"},
		{"version as empty text", scanHead + `"version":""}`, "version"},
		{"version as minus", scanHead + `"version":"-"}`, "version"},
		{"version as fraction in text", scanHead + `"version":"4.5"}`, "version"},
		{"version as list", scanHead + `"version":[4]}`, "version"},
		{"no batch rows", scanHead + `"batch_rows":0}`, "batch_rows"},
		{"no endpoints", scanHead + `"max_endpoints":0}`, "max_endpoints"},
		{"unknown profile", scanHead + `"profile":"Compat"}`, "profile"},
		{"profile of another kind", scanHead + `"profile":1}`, "profile"},
		{"empty table id", scanHead + `"table_id":""}`, "table_id"},
		{"split in a descriptor", scanHead + `"version":1,"split":{"index":0,"count":1}}`, "split"},

		{"filter of another kind", scanHead + `"filter":{}}`, "filter"},
		{"newest first of another kind", scanHead + `"newest_first":"false"}`, "newest_first"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := parseScanCommand([]byte(c.body))
			refusedAt(t, err, c.field)
			if !strings.HasPrefix(err.Error(), c.field+" ") {
				t.Errorf("the text %q does not begin with the field", err)
			}
		})
	}
}

func TestRefusedTickets(t *testing.T) {
	for body, field := range map[string]string{
		``:           "ticket",
		`{"op":"x"}`: "op",
		scanHead + `"split":{"index":0,"count":1}}`:                       "split",
		scanHead + `"version":1,"split":{"index":1,"count":1}}`:           "split.index",
		scanHead + `"version":1,"split":{"index":-1,"count":1}}`:          "split.index",
		scanHead + `"version":1,"split":{"index":0,"count":0}}`:           "split.count",
		scanHead + `"version":1,"split":{"index":0}}`:                     "split.count",
		scanHead + `"version":1,"split":{"index":0,"count":1,"first":1}}`: "split.first",
		scanHead + `"version":1,"split":[0,1]}`:                           "split",
	} {
		_, err := parseScanTicket([]byte(body))
		refusedAt(t, err, field)
	}
}

func TestRefusedAppends(t *testing.T) {
	const head = `{"op":"append","table":"t",`
	for body, field := range map[string]string{
		``:                                 "command",
		`{"op":"scan","table":"t"}`:        "op",
		`{"op":"truncate","table":"t"}`:    "op",
		`{"op":"append"}`:                  "table",
		head + `"rows":-1}`:                "rows",
		head + `"rows":1.5}`:               "rows",
		head + `"rows":true}`:              "rows",
		head + `"end":"Marker"}`:           "end",
		head + `"end":true}`:               "end",
		head + `"rows":1,"end":"marker"}`:  "end",
		head + `"expected_version":false}`: "expected_version",
		head + `"expected_version":-1}`:    "expected_version",
		head + `"expected_version":0.5}`:   "expected_version",
		head + `"request_id":""}`:          "request_id",
		head + `"request_id":5}`:           "request_id",
		head + `"request_id":"é"}`:         "request_id",
		head + `"request_id":"a\tb"}`:      "request_id",
		head + `"request_id":"` + strings.Repeat("a", 129) + `"}`: "request_id",
		head + `"compression":""}`:                                "compression",
		head + `"max_rows_per_row_group":0}`:                      "max_rows_per_row_group",
		head + `"max_bytes_per_row_group":"0"}`:                   "max_bytes_per_row_group",
		head + `"filter":[]}`:                                     "filter",
	} {
		_, err := ParsePut([]byte(body))
		refusedAt(t, err, field)
	}
}

func TestRefusedStages(t *testing.T) {
	const head = `{"op":"stage","table":"t",`
	for body, field := range map[string]string{
		`{"op":"stage"}`:                     "table",
		head + `"rows":-1}`:                  "rows",
		head + `"rows":1,"end":"marker"}`:    "end",
		head + `"compression":5}`:            "compression",
		head + `"max_rows_per_row_group":0}`: "max_rows_per_row_group",
		head + `"expected_version":1}`:       "expected_version",
		head + `"request_id":"r"}`:           "request_id",
	} {
		_, err := ParsePut([]byte(body))
		refusedAt(t, err, field)
	}
}

func TestRefusedUpdates(t *testing.T) {
	const head = `{"op":"update_rows","table":"t","expected_version":0,"columns":["a"],`
	for body, field := range map[string]string{
		`{"op":"update_rows","columns":["a"],"expected_version":0}`:                "table",
		`{"op":"update_rows","table":"t","expected_version":0}`:                    "columns",
		`{"op":"update_rows","table":"t","columns":["a"]}`:                         "expected_version",
		`{"op":"update_rows","table":"t","columns":"a","expected_version":0}`:      "columns",
		`{"op":"update_rows","table":"t","columns":[1],"expected_version":0}`:      "columns[0]",
		`{"op":"update_rows","table":"t","columns":["a"],"expected_version":-1}`:   "expected_version",
		`{"op":"update_rows","table":"t","columns":["a"],"expected_version":true}`: "expected_version",
		`{"op":"update_rows","table":"t","columns":["a"],"expected_version":1.5}`:  "expected_version",
		head + `"rows":-1}`:               "rows",
		head + `"rows":1,"end":"marker"}`: "end",
		head + `"end":"x"}`:               "end",
		head + `"request_id":""}`:         "request_id",
		head + `"table_id":""}`:           "table_id",
		head + `"compression":"zstd"}`:    "compression",
	} {
		_, err := ParsePut([]byte(body))
		refusedAt(t, err, field)
	}
}

func TestRefusedBodies(t *testing.T) {
	const create = `{"table":"t","index_column":"i","index_type":"int64",`
	parsers := map[string]func([]byte) error{
		"create_table":   func(b []byte) error { _, err := ParseCreateTable(b); return err },
		"drop_table":     func(b []byte) error { _, err := ParseDropTable(b); return err },
		"add_columns":    func(b []byte) error { _, err := ParseAddColumns(b); return err },
		"optimize":       func(b []byte) error { _, err := ParseOptimize(b); return err },
		"upgrade":        func(b []byte) error { _, err := ParseUpgrade(b); return err },
		"rollback":       func(b []byte) error { _, err := ParseRollback(b); return err },
		"commit_staged":  func(b []byte) error { _, err := ParseCommitStaged(b); return err },
		"abort_staged":   func(b []byte) error { _, err := ParseAbortStaged(b); return err },
		"vacuum":         func(b []byte) error { _, err := ParseVacuum(b); return err },
		"check":          func(b []byte) error { _, err := ParseCheck(b); return err },
		"set_properties": func(b []byte) error { _, err := ParseSetProperties(b); return err },
		"checkpoint":     func(b []byte) error { _, err := ParseCheckpoint(b); return err },
		"list_tables":    func(b []byte) error { _, err := ParseListTables(b); return err },
		"describe_table": func(b []byte) error { _, err := ParseDescribeTable(b); return err },
		"server_info":    ParseServerInfo,
	}
	cases := []struct{ action, body, field string }{
		{"create_table", ``, "table"},
		{"create_table", `{"table":"t"}`, "index_column"},
		{"create_table", `{"table":"t","index_column":"i"}`, "index_type"},
		{"create_table", create + `"index_granularity":1.5}`, "index_granularity"},
		{"create_table", create + `"index_granularity":true}`, "index_granularity"},
		{"create_table", create + `"index_granularity":""}`, "index_granularity"},
		{"create_table", create + `"entity_columns":"a"}`, "entity_columns"},
		{"create_table", create + `"entity_columns":["a",{}]}`, "entity_columns[1]"},
		{"create_table", create + `"timezone":5}`, "timezone"},
		{"create_table", create + `"ingest_time_column":false}`, "ingest_time_column"},
		{"create_table", create + `"properties":[]}`, "properties"},
		{"create_table", create + `"properties":{"team":5}}`, "properties.team"},
		{"create_table", create + `"properties":{"contrail.retention":5}}`, `properties["contrail.retention"]`},
		{"create_table", create + `"columns":{}}`, "columns"},
		{"create_table", create + `"columns":[]}`, "columns"},
		{"create_table", create + `"columns":["a"]}`, "columns[0]"},
		{"create_table", create + `"columns":[{"name":"a"}]}`, "columns[0].type"},
		{"create_table", create + `"columns":[{"name":"a","type":""}]}`, "columns[0].type"},
		{"create_table", create + `"columns":[{"name":"a","type":"int8","nullable":"no"}]}`, "columns[0].nullable"},
		{"create_table", create + `"columns":[{"name":"a","type":"int8","null":true}]}`, "columns[0].null"},
		{"create_table", create + `"schema_ipc":"%"}`, "schema_ipc"},
		{"create_table", create + `"schema_ipc":"AA=\n="}`, "schema_ipc"},
		{"create_table", create + `"schema_ipc":""}`, "schema_ipc"},
		{"create_table", create + `"schema_ipc":"AAAA","columns":[{"name":"a","type":"int8"}]}`, "schema_ipc"},
		{"create_table", create + `"expected_version":1}`, "expected_version"},
		{"drop_table", `{}`, "table"},
		{"drop_table", `{"table":"t","dry_run":1}`, "dry_run"},
		{"drop_table", `{"table":"t","force":true}`, "force"},
		{"optimize", `{"table":"t","layout":1}`, "layout"},
		{"optimize", `{"table":"t","target_file_bytes":0}`, "target_file_bytes"},
		{"optimize", `{"table":"t","max_files":-1}`, "max_files"},
		{"optimize", `{"table":"t","dry_run":"yes"}`, "dry_run"},
		{"upgrade", `{}`, "table"},
		{"upgrade", `{"table":"t","index_column":""}`, "index_column"},
		{"upgrade", `{"table":"t","index_granularity":1.5}`, "index_granularity"},
		{"upgrade", `{"table":"t","entity_columns":"origin"}`, "entity_columns"},
		{"upgrade", `{"table":"t","timezone":5}`, "timezone"},
		{"upgrade", `{"table":"t","uniqueness":true}`, "uniqueness"},
		{"upgrade", `{"table":"t","keep_snapshots":7}`, "keep_snapshots"},
		{"upgrade", `{"table":"t","keep_snapshots_until":"2026-12-07"}`, "keep_snapshots_until"},
		{"upgrade", `{"table":"t","keep_snapshots":"7d","keep_snapshots_until":"2026-12-07T00:00:00Z"}`, "keep_snapshots_until"},
		{"upgrade", `{"table":"t","compact":"no"}`, "compact"},
		{"upgrade", `{"table":"t","dry_run":1}`, "dry_run"},
		{"upgrade", `{"table":"t","expected_version":-1}`, "expected_version"},
		{"upgrade", `{"table":"t","format":"0.3.0"}`, "format"},
		{"rollback", `{"table":"t","version":1}`, "expected_version"},
		{"commit_staged", `{"table":"t","staged":["a"]}`, "request_id"},
		{"commit_staged", `{"table":"t","request_id":"","staged":["a"]}`, "request_id"},
		{"commit_staged", `{"table":"t","request_id":"\u00e9","staged":["a"]}`, "request_id"},
		{"commit_staged", `{"table":"t","request_id":"r"}`, "staged"},
		{"commit_staged", `{"table":"t","request_id":"r","staged":[]}`, "staged"},
		{"commit_staged", `{"table":"t","request_id":"r","staged":"a"}`, "staged"},
		{"commit_staged", `{"table":"t","request_id":"r","staged":["a",5]}`, "staged[1]"},
		{"commit_staged", `{"table":"t","request_id":"r","staged":["a"],"expected_version":-1}`, "expected_version"},
		{"commit_staged", `{"table":"t","request_id":"r","staged":["a"],"rows":1}`, "rows"},
		{"abort_staged", `{"staged":["a"]}`, "table"},
		{"abort_staged", `{"table":"t"}`, "staged"},
		{"abort_staged", `{"table":"t","staged":[null]}`, "staged[0]"},
		{"abort_staged", `{"table":"t","staged":["a"],"request_id":"r"}`, "request_id"},
		{"rollback", `{"table":"t","expected_version":1}`, "version"},
		{"rollback", `{"table":"t","version":-1,"expected_version":1}`, "version"},
		{"rollback", `{"table":"t","version":1,"expected_version":true}`, "expected_version"},
		{"rollback", `{"table":"t","version":1,"expected_version":2,"release":"yes"}`, "release"},
		{"rollback", `{"table":"t","version":1,"expected_version":2,"dry_run":1}`, "dry_run"},
		{"add_columns", `{"table":"t"}`, "columns"},
		{"add_columns", `{"columns":[{"name":"a","type":"int8"}]}`, "table"},
		{"add_columns", `{"table":"t","columns":[]}`, "columns"},
		{"add_columns", `{"table":"t","columns":null,"schema_ipc":null}`, "columns"},
		{"add_columns", `{"table":"t","columns":{}}`, "columns"},
		{"add_columns", `{"table":"t","columns":[{"name":"a"}]}`, "columns[0].type"},
		{"add_columns", `{"table":"t","columns":[{"name":"a","type":"int8","nullable":0}]}`, "columns[0].nullable"},
		{"add_columns", `{"table":"t","schema_ipc":"%"}`, "schema_ipc"},
		{"add_columns", `{"table":"t","schema_ipc":"AAAA","columns":[]}`, "schema_ipc"},
		{"add_columns", `{"table":"t","columns":[{"name":"a","type":"int8"}],"expected_version":true}`, "expected_version"},
		{"add_columns", `{"table":"t","columns":[{"name":"a","type":"int8"}],"dry_run":true}`, "dry_run"},
		{"set_properties", `{"table":"t"}`, "properties"},
		{"set_properties", `{"table":"t","properties":null}`, "properties"},
		{"set_properties", `{"table":"t","properties":[]}`, "properties"},
		{"set_properties", `{"table":"t","properties":{"team":5}}`, "properties.team"},
		{"set_properties", `{"table":"t","properties":{"contrail.retention":{}}}`, `properties["contrail.retention"]`},
		{"set_properties", `{"table":"t","properties":{},"expected_version":-1}`, "expected_version"},
		{"set_properties", `{"table":"t","properties":{},"columns":[]}`, "columns"},
		{"checkpoint", `{}`, "table"},
		{"checkpoint", `{"table":"t","version":1}`, "version"},
		{"checkpoint", `{"table":"t","expected_version":1.5}`, "expected_version"},
		{"list_tables", `{"namespace":5}`, "namespace"},
		{"list_tables", `{"table":"t"}`, "table"},
		{"list_tables", `null`, "body"},
		{"describe_table", `{"table":"t","version":1,"as_of":"2026-11-30T00:00:00Z"}`, "as_of"},
		{"describe_table", `{"table":"t","version":1e3}`, "version"},
		{"server_info", `{"verbose":true}`, "verbose"},
		{"server_info", `{} ` + "\v", "body"},
	}
	for _, c := range cases {
		t.Run(c.action+c.body, func(t *testing.T) { refusedAt(t, parsers[c.action]([]byte(c.body)), c.field) })
	}
}

func TestRefusalNamesTheTable(t *testing.T) {
	for text, want := range map[string]string{
		`"t"`: "default.t", `"plant.sensors"`: "plant.sensors", `5`: "", `".."`: "", `"a.b.c"`: "", `""`: "", `"` + strings.Repeat("a", 129) + `"`: "",
	} {
		_, err := parseScanCommand([]byte(`{"op":"scan","version":true,"table":` + text + `}`))
		var invalid *tableerr.Invalid
		if !errors.As(err, &invalid) || invalid.Table != want {
			t.Errorf("%s: got %+v", text, err)
		}
	}
}

func TestRefusalKeepsTheCause(t *testing.T) {
	_, err := ParseCreateTable([]byte(`{"table":"t","index_column":"i","schema_ipc":"%"}`))
	if errors.Unwrap(err) == nil {
		t.Errorf("%v has no cause", err)
	}
}

func TestNullMeansLeftOut(t *testing.T) {
	var body strings.Builder
	body.WriteString(`{"op":"scan","table":"t"`)
	for _, f := range describe(scanFields) {
		if !f.Required {
			body.WriteString(`,"` + f.Name + `":null`)
		}
	}
	body.WriteString("}")
	scan, err := parseScanCommand([]byte(body.String()))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := scan.Encode(); string(got) != `{"op":"scan","table":"t"}` {
		t.Errorf("got %s", got)
	}
}

func TestIntegersAreExact(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, `"0"`: 0, "-0": 0, "9007199254740993": 1<<53 + 1, `"9007199254740993"`: 1<<53 + 1,
		"9223372036854775807": math.MaxInt64, `"9223372036854775807"`: math.MaxInt64,
	} {
		scan, err := parseScanCommand([]byte(scanHead + `"version":` + text + `}`))
		if err != nil || *scan.Version != want {
			t.Errorf("%s: got %v, %v", text, scan, err)
		}
	}
	table, err := ParseCreateTable([]byte(`{"table":"t","index_column":"i","index_type":"uint64","index_granularity":18446744073709551615}`))
	if err != nil || table.IndexGranularity != "18446744073709551615" {
		t.Errorf("got %+v, %v", table, err)
	}
}

func TestWrittenDefaultsAreAccepted(t *testing.T) {
	_, err := parseScanCommand([]byte(scanHead + `"filter":[ ],"order":"entity_index","newest_first":false,"compression":"none"}`))
	if err != nil {
		t.Error(err)
	}
}

func TestEmptyBodies(t *testing.T) {
	for _, body := range []string{"", "{}", " { } ", `{"namespace":null}`} {
		list, err := ParseListTables([]byte(body))
		if err != nil || list.Namespace != "" {
			t.Errorf("%q: got %+v, %v", body, list, err)
		}
	}
	if err := ParseServerInfo(nil); err != nil {
		t.Error(err)
	}
}

func TestMarkers(t *testing.T) {
	ignored := []string{``, `commit`, `hello`, `{"rows":1}`, `["commit"]`, `{"a":"commit"}`, `{"commit":true`, "\xffcommit", `{"commit":true,"rows":1,"rows":1}`}
	for _, m := range ignored {
		if _, ok, err := ParseMarker([]byte(m)); ok || err != nil {
			t.Errorf("%q: got %t, %v", m, ok, err)
		}
	}
	for m, field := range map[string]string{
		`{"commit":false,"rows":1}`:         "marker.commit",
		`{"commit":"yes","rows":1}`:         "marker.commit",
		`{"commit":null,"rows":1}`:          "marker.commit",
		`{"commit":true}`:                   "marker.rows",
		`{"commit":true,"rows":-1}`:         "marker.rows",
		`{"commit":true,"rows":1.0}`:        "marker.rows",
		`{"commit":true,"rows":1,"more":1}`: "marker.more",
	} {
		_, ok, err := ParseMarker([]byte(m))
		if ok {
			t.Errorf("%q was taken for a marker", m)
		}
		refusedAt(t, err, field)
	}
}

func TestTableOfPath(t *testing.T) {
	for _, c := range []struct {
		path        []string
		want, field string
	}{
		{[]string{"weather"}, "weather", ""},
		{[]string{"plant", "sensors"}, "plant.sensors", ""},
		{nil, "", "path"},
		{[]string{"a", "b", "c"}, "", "path"},
		{[]string{"a.b"}, "", "path[0]"},
		{[]string{"a", ".."}, "", "path[1]"},
	} {
		got, err := TableOfPath(c.path)
		if c.field != "" {
			refusedAt(t, err, c.field)
		} else if err != nil || got != c.want {
			t.Errorf("%v: got %q, %v", c.path, got, err)
		}
	}
}

func TestManyKeys(t *testing.T) {
	var body strings.Builder
	body.WriteString(`{"table":"t","index_column":"i","index_type":"int64","properties":{`)
	for i := range 100 {
		body.WriteString(`"k` + strings.Repeat("x", i) + `":"v",`)
	}
	refused := body.String() + `"kxxxxxxxxxxxxxxxxxxxx":"v"}}`
	_, err := ParseCreateTable([]byte(refused))
	refusedAt(t, err, "properties.kxxxxxxxxxxxxxxxxxxxx")
	table, err := ParseCreateTable([]byte(body.String() + `"last":"v","gone":null}}`))
	if err != nil || len(table.Properties) != 101 {
		t.Errorf("got %+v, %v", table, err)
	}
}
