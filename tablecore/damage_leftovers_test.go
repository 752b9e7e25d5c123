package tablecore_test

import (
	"os"
	"path/filepath"
	"testing"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/localfs"
)

// TestLeftovers: what dead writers and other software leave in a table's
// directory stands in nobody's way.
func TestLeftovers(t *testing.T) {
	junk := map[string]string{
		"_contrail/tmp/0123456789abcdef-1":                                         "half a data file",
		"_contrail/tmp/00000000000000000004.json":                                  `{"commitInfo":{"oper`,
		"_contrail/tmp/.part":                                                      "",
		"_contrail/unknown/file":                                                   "x",
		"_contrail/files/00000000000000000000000000000000":                         "x",
		"_contrail/head":                                                           "no head",
		"data/00/stray.parquet":                                                    "no Parquet",
		"data/ff/4af21500-133c-4d19-9ef1-1831a7a49c1d.parquet":                     "",
		"duckdb-4af21500-133c-4d19-9ef1-1831a7a49c1d.parquet":                      "left by a refused INSERT",
		"_delta_log/_commits/junk":                                                 "x",
		"_delta_log/.00000000000000000004.json.crc":                                "x",
		"_delta_log/00000000000000000004.json.tmp":                                 `{"commitInfo":{"oper`,
		"_delta_log/00000000000000000004.json~":                                    "x",
		"_delta_log/4.json":                                                        "x",
		"_delta_log/00000000000000000003.crc":                                      "x",
		"_delta_log/00000000000000000002.00000000000000000003.compacted.json":      "x",
		"_delta_log/00000000000000000002.checkpoint.0000000001.0000000002.parquet": "one part of two",
		"_delta_log/_last_checkpoint.tmp":                                          "{",
		"_delta_log/zzz":                                                           "x",
		"_delta_log/99999999999999999999.json":                                     "beyond any version",
		"_delta_log/_sidecars/4af21500-133c-4d19-9ef1-1831a7a49c1d.parquet":        "x",
	}
	for _, kind := range []string{"memory", "directory"} {
		t.Run(kind, func(t *testing.T) {
			d := newDamaged(t)
			if kind == "directory" {
				d = d.inDirectory()
			}
			for key, text := range junk {
				d.leave("default/weather/"+key, []byte(text))
			}
			w := d.open()
			d.scan(w, "leftovers", "", tablecore.ScanOptions{}, d.rows(0, 3))
			for range 2 {
				if err := writeWeather(t, w); err != nil {
					t.Fatal(err)
				}
			}
			table, err := w.Table(t.Context(), weatherName)
			if err == nil {
				err = table.WriteCheckpoint(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			d.close(w)
			w = d.open()
			defer d.close(w)
			if rows, version, err := scanWeather(t, w); err != nil || version != 5 || len(rows) != 26 {
				t.Fatalf("%d rows at version %d, %v", len(rows), version, err)
			}
		})
	}
}

// inDirectory copies the table into a store in a directory.
func (d *damaged) inDirectory() *damaged {
	d.t.Helper()
	c := &damaged{t: d.t, dir: fastDir(d.t), commits: d.commits, data: d.data}
	store, err := localfs.Open(c.dir, localfs.Options{Create: true})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if err := store.Close(); err != nil {
			d.t.Error(err)
		}
	})
	c.store = store
	for _, key := range keysUnder(d.t, d.store, "") {
		if err := store.Put(d.t.Context(), key, d.get(key)); err != nil {
			d.t.Fatal(err)
		}
	}
	return c
}

// leave puts an object where only others, or dead processes, would.
func (d *damaged) leave(key string, data []byte) {
	d.t.Helper()
	var err error
	switch path := filepath.Join(d.dir, filepath.FromSlash(key)); {
	case d.dir != "":
		if err = os.MkdirAll(filepath.Dir(path), 0o777); err == nil {
			err = os.WriteFile(path, data, 0o666)
		}
	case objstore.InTempDir(key):
		return // stores in memory have no temporary files
	default:
		err = d.store.Put(d.t.Context(), key, data)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}
