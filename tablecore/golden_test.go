package tablecore_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// goldenDir holds tables that Spark wrote and what other software reads in
// them; its README says how the expectations are written.
const goldenDir = "../integration/testdata/delta"

// golden is what is expected of a table.
type golden struct {
	Readers map[string]string
	Note    string
	Refused *struct {
		Token tableerr.Token
		Names *string
	}
	Columns  [][3]any
	Count    int
	SHA256   string
	Rows     []json.RawMessage
	Versions map[string]json.RawMessage
}

// goldenNames returns the names of the golden tables.
func goldenNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, pattern := range []string{"*.json", "*/*.json"} {
		files, err := filepath.Glob(filepath.Join(goldenDir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name, err := filepath.Rel(goldenDir, strings.TrimSuffix(file, ".json"))
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(strings.TrimSuffix(file, ".json")); err == nil && info.IsDir() {
				names = append(names, name)
			}
		}
	}
	const tables = 102 // with the three inside of others
	if len(names) != tables {
		t.Fatalf("%d golden tables, want %d", len(names), tables)
	}
	return names
}

func goldenExpectation(t *testing.T, name string) golden {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(goldenDir, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// goldenStore returns a store with a golden table under the name
// default.plain.
func goldenStore(t *testing.T, name string) objstore.Store {
	t.Helper()
	store := memstore.New()
	copyTo(t, store, os.DirFS(filepath.Join(goldenDir, name)), "default/plain/")
	return store
}

// copyTo puts the files of a folder into a store.
func copyTo(t *testing.T, store objstore.Store, folder fs.FS, prefix string) {
	t.Helper()
	err := fs.WalkDir(folder, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(folder, path)
		if err != nil {
			return err
		}
		return store.Put(context.Background(), prefix+path, data)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestGoldenDelta scans every golden table: the rows are those that other
// software reads, or the error says what stands against it.
func TestGoldenDelta(t *testing.T) {
	for _, name := range goldenNames(t) {
		t.Run(name, func(t *testing.T) {
			want := goldenExpectation(t, name)
			store := goldenStore(t, name)
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			t.Cleanup(func() { mem.AssertSize(t, 0) })
			table, err := tabletest.Warehouse(t, store, mem).Table(t.Context(), plainName)
			var rows []string
			if err == nil {
				rows, err = canonicalRows(t.Context(), table, tablecore.ScanOptions{})
			}
			if want.Refused != nil {
				goldenRefused(t, err, want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			goldenRows(t, rows, want)
			goldenDescription(t, table, want)
			goldenVersions(t, table, want)
		})
	}
}

// goldenRefused holds an error against the expectation.
func goldenRefused(t *testing.T, err error, want golden) {
	t.Helper()
	if tableerr.TokenOf(err) != want.Refused.Token {
		t.Fatalf("got %v, want %s", err, want.Refused.Token)
	}
	if want.Refused.Names != nil && namedBy(err) != *want.Refused.Names {
		t.Errorf("%v names %q, not %q", err, namedBy(err), *want.Refused.Names)
	}
}

// namedBy returns the feature or the path that an error names.
func namedBy(err error) string {
	var typed tableerr.Error
	if errors.As(err, &typed) {
		for _, f := range typed.Fields() {
			if f.Key == "feature" || f.Key == "path" {
				return f.Value.(string)
			}
		}
	}
	return ""
}

func goldenRows(t *testing.T, rows []string, want golden) {
	t.Helper()
	slices.Sort(rows)
	if want.SHA256 != "" {
		if len(rows) != want.Count || digestOf(rows) != want.SHA256 {
			t.Errorf("%d rows with digest %s", len(rows), digestOf(rows))
		}
		return
	}
	expected := make([]string, len(want.Rows))
	for i, row := range want.Rows {
		expected[i] = string(row)
	}
	slices.Sort(expected)
	if !slices.Equal(rows, expected) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(expected, "\n"))
	}
}

func digestOf(rows []string) string {
	sum := sha256.Sum256([]byte(strings.Join(rows, "\n")))
	return hex.EncodeToString(sum[:])
}

// goldenDescription holds what is told about a table against the expectation.
func goldenDescription(t *testing.T, table *tablecore.Table, want golden) {
	t.Helper()
	d, err := table.Describe(t.Context(), tablecore.At{})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(d); err != nil || !strings.Contains(string(text), `"index_column":null,"index_type":null,`) || !strings.Contains(string(text), `"uniqueness":null`) {
		t.Errorf("described %s, %v", text, err)
	}
	if d.IndexColumn != "" || d.FormatVersion != "0.1.0" || d.Rows != int64(want.Count) || len(d.Columns) != len(want.Columns) {
		t.Errorf("described as %+v", d)
		return
	}
	for i, c := range d.Columns {
		if w := want.Columns[i]; c.Name != w[0] || c.Type != w[1] || c.Nullable != w[2] {
			t.Errorf("column %d is %+v, want %v", i, c, w)
		}
	}
	files, err := table.Files(t.Context(), tablecore.At{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := table.PlanScan(t.Context(), tablecore.ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	explained := listedRows(t, plan.Explain())
	rows := 0.0
	for i, f := range listedRows(t, files) {
		rows += f["rows"].(float64)
		if e := explained[i]; e["path"] != f["path"] || e["kept"] != true || e["row_groups_kept"] != f["row_groups"] {
			t.Errorf("file %v is explained as %v", f, e)
		}
	}
	if rows != float64(want.Count) || int64(len(explained)) != d.Files {
		t.Errorf("%d files with %v rows are listed", len(explained), rows)
	}
}

// goldenVersions reads every version.
func goldenVersions(t *testing.T, table *tablecore.Table, want golden) {
	t.Helper()
	if len(want.Versions) == 1 {
		return // the newest
	}
	for text, held := range want.Versions {
		version, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := canonicalRows(t.Context(), table, tablecore.ScanOptions{Version: &version})
		var w struct {
			Count  int
			SHA256 string
		}
		if json.Unmarshal(held, &w) != nil { // the name of an error
			if tableerr.TokenOf(err) == "" {
				t.Errorf("version %d: %d rows and %v, where others give %s", version, len(rows), err, held)
			}
			continue
		}
		slices.Sort(rows)
		if err != nil || len(rows) != w.Count || w.Count > 0 && digestOf(rows) != w.SHA256 {
			t.Errorf("version %d: %d rows, %v, want %s", version, len(rows), err, held)
		}
	}
}

// canonicalRows scans a table into the form of the expectations.
func canonicalRows(ctx context.Context, table *tablecore.Table, o tablecore.ScanOptions) ([]string, error) {
	plan, err := table.PlanScan(ctx, o)
	if err != nil {
		return nil, err
	}
	var rows []string
	_, err = tabletest.EachBatch(ctx, plan, func(batch arrow.RecordBatch) error {
		for i := range int(batch.NumRows()) {
			row := []byte{'['}
			for c, column := range batch.Columns() {
				if c > 0 {
					row = append(row, ',')
				}
				row = appendCanonical(row, column, i)
			}
			rows = append(rows, string(append(row, ']')))
		}
		return nil
	})
	return rows, err
}

// appendCanonical appends one value of a column in the form of the
// expectations.
func appendCanonical(out []byte, column arrow.Array, i int) []byte {
	if column.IsNull(i) {
		return append(out, "null"...)
	}
	switch c := column.(type) {
	case *array.Boolean:
		return strconv.AppendBool(out, c.Value(i))
	case *array.Int8:
		return strconv.AppendInt(out, int64(c.Value(i)), 10)
	case *array.Int16:
		return strconv.AppendInt(out, int64(c.Value(i)), 10)
	case *array.Int32:
		return strconv.AppendInt(out, int64(c.Value(i)), 10)
	case *array.Int64:
		return strconv.AppendInt(out, c.Value(i), 10)
	case *array.Float32:
		return appendFloat(out, float64(c.Value(i)))
	case *array.Float64:
		return appendFloat(out, c.Value(i))
	case *array.Decimal128:
		return strconv.AppendQuote(out, c.Value(i).ToString(c.DataType().(*arrow.Decimal128Type).Scale))
	case *array.String:
		return appendText(out, c.Value(i))
	case *array.Binary:
		return appendText(out, base64.StdEncoding.EncodeToString(c.Value(i)))
	case *array.Date32:
		return appendText(out, c.Value(i).ToTime().Format(time.DateOnly))
	case *array.Timestamp:
		return strconv.AppendInt(out, int64(c.Value(i)), 10)
	}
	return appendNested(out, column, i)
}

func appendNested(out []byte, column arrow.Array, i int) []byte {
	switch c := column.(type) {
	case *array.Map: // before List, which it is as well
		from, to := c.ValueOffsets(i)
		return appendEach(out, from, to, func(out []byte, k int) []byte {
			out = append(appendCanonical(append(out, '['), c.Keys(), k), ',')
			return append(appendCanonical(out, c.Items(), k), ']')
		})
	case *array.List:
		from, to := c.ValueOffsets(i)
		return appendEach(out, from, to, func(out []byte, k int) []byte { return appendCanonical(out, c.ListValues(), k) })
	case *array.Struct:
		out = append(out, '{')
		for k, f := range c.DataType().(*arrow.StructType).Fields() {
			if k > 0 {
				out = append(out, ',')
			}
			out = append(appendText(out, f.Name), ':')
			out = appendCanonical(out, c.Field(k), i)
		}
		return append(out, '}')
	}
	panic("no golden table has a " + column.DataType().String())
}

func appendEach(out []byte, from, to int64, one func([]byte, int) []byte) []byte {
	out = append(out, '[')
	for k := from; k < to; k++ {
		if k > from {
			out = append(out, ',')
		}
		out = one(out, int(k))
	}
	return append(out, ']')
}

func appendText(out []byte, text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string can be encoded
	return append(out, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// appendFloat writes a number as Python prints it.
func appendFloat(out []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(out, `"NaN"`...)
	case math.IsInf(v, 0):
		return append(out, map[bool]string{true: `"Infinity"`, false: `"-Infinity"`}[v > 0]...)
	case v != 0 && (math.Abs(v) >= 1e16 || math.Abs(v) < 1e-4):
		return strconv.AppendFloat(out, v, 'e', -1, 64)
	}
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return append(out, text...)
}
