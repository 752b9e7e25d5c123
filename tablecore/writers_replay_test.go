package tablecore_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/internal/txn"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// looseOptions is the weather table without a rule that would refuse a row
// that is there already: what keeps rows from doubling is the request id alone.
func looseOptions() tablecore.CreateOptions {
	o := weatherOptions()
	o.Uniqueness = "none"
	return o
}

// looseTable is a table made from looseOptions, in a store that other
// warehouses may open, too.
func looseTable(t *testing.T) (*tablecore.Table, objstore.Store) {
	t.Helper()
	store := memstore.New()
	w := tabletest.Warehouse(t, sharedStore{store}, memory.DefaultAllocator)
	if _, err := w.CreateTable(t.Context(), looseOptions()); err != nil {
		t.Fatal(err)
	}
	return openWeather(t, w), store
}

// anotherProcess opens the weather table of a store anew, with randomness of
// its own.
func anotherProcess(t *testing.T, store objstore.Store) *tablecore.Table {
	t.Helper()
	return openWeather(t, tabletest.Open(t, tablecore.Options{Store: sharedStore{store}, Clock: tabletest.NewClock().Now}))
}

// putRows appends JSON rows, each argument a batch.
func putRows(t *testing.T, table *tablecore.Table, o tablecore.AppendOptions, batches ...string) (*tablecore.AppendReport, error) {
	t.Helper()
	var built []arrow.RecordBatch
	for _, rows := range batches {
		b := tabletest.Batch(t, memory.DefaultAllocator, weather, rows)
		defer b.Release()
		built = append(built, b)
	}
	return table.Append(t.Context(), tabletest.NewReader(weather, built...), o)
}

// contents is the version and the rows of a table.
func contents(t *testing.T, table *tablecore.Table) string {
	t.Helper()
	rows, stats, err := tabletest.Scan(t.Context(), table, tablecore.ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d: %s", stats.Version, strings.Join(brief(t, rows), ", "))
}

// TestReplay repeats an append under its request id, in every way that leaves
// the rows the same.
func TestReplay(t *testing.T) {
	table, store := looseTable(t)
	a, b, c := rowAt("EWR", 0, "0"), rowAt("JFK", 1, "null"), rowAt("EWR", 2, "2.5")
	id := `weather/2013 "04"`
	first, err := putRows(t, table, tablecore.AppendOptions{RequestID: id}, rowsOf(a, b, c))
	if err != nil || first.Replayed || *first.RequestID != id {
		t.Fatalf("got %+v, %v", first, err)
	}
	if _, err := putRows(t, table, tablecore.AppendOptions{}, rowsOf(rowAt("LGA", 5, "5"))); err != nil {
		t.Fatal(err)
	}
	zero, nine := int64(0), int64(9)
	for name, put := range map[string]func() (*tablecore.AppendReport, error){
		"again": func() (*tablecore.AppendReport, error) {
			return putRows(t, table, tablecore.AppendOptions{RequestID: id}, rowsOf(a, b, c))
		},
		"other batches": func() (*tablecore.AppendReport, error) {
			return putRows(t, table, tablecore.AppendOptions{RequestID: id}, rowsOf(a), "[]", rowsOf(b, c))
		},
		"other settings": func() (*tablecore.AppendReport, error) {
			return putRows(t, table, tablecore.AppendOptions{RequestID: id, Compression: "zstd", MaxRowsPerRowGroup: &nine}, rowsOf(a, b, c))
		},
		"the version it was made on": func() (*tablecore.AppendReport, error) {
			return putRows(t, table, tablecore.AppendOptions{RequestID: id, ExpectedVersion: &zero}, rowsOf(a, b, c))
		},
		"a version that never was": func() (*tablecore.AppendReport, error) {
			return putRows(t, table, tablecore.AppendOptions{RequestID: id, ExpectedVersion: &nine}, rowsOf(a, b, c))
		},
		"another process": func() (*tablecore.AppendReport, error) {
			return putRows(t, anotherProcess(t, store), tablecore.AppendOptions{RequestID: id}, rowsOf(a, b, c))
		},
	} {
		want := *first
		want.Replayed = true
		if got, err := put(); err != nil || !reflect.DeepEqual(got, &want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
	want := "2: EWR 00 0, EWR 02 2.5, JFK 01 null, LGA 05 5"
	if got := contents(t, table); got != want {
		t.Errorf("the table is %s, want %s", got, want)
	}
}

// TestRequestIDReused puts other rows under an id that is known.
func TestRequestIDReused(t *testing.T) {
	table, store := looseTable(t)
	rows := rowsOf(rowAt("EWR", 0, "0"), rowAt("EWR", 1, "1"))
	o := tablecore.AppendOptions{RequestID: "once"}
	if _, err := putRows(t, table, o, rows); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error) {
		t.Helper()
		var reused *tableerr.RequestIDReused
		if !errors.As(err, &reused) || reused.RequestID != "once" || reused.Version != 1 || reused.Table != "default.weather" {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, other := range map[string]string{
		"fewer":       rowsOf(rowAt("EWR", 0, "0")),
		"more":        rowsOf(rowAt("EWR", 0, "0"), rowAt("EWR", 1, "1"), rowAt("EWR", 2, "2")),
		"other order": rowsOf(rowAt("EWR", 1, "1"), rowAt("EWR", 0, "0")),
		"other value": rowsOf(rowAt("EWR", 0, "0"), rowAt("EWR", 1, "1.5")),
		"none":        "[]",
		"null key":    `[{"origin":null,"time_hour":0,"temp":1}]`,
	} {
		_, err := putRows(t, table, o, other)
		refused(what, err)
		_, err = putRows(t, anotherProcess(t, store), o, other)
		refused(what+" in another process", err)
	}
	odd := arrow.NewSchema([]arrow.Field{{Name: "origin", Type: arrow.BinaryTypes.String}}, nil)
	refused("a schema the table does not take", table.CheckAppend(t.Context(), odd, o))
	if err := table.CheckAppend(t.Context(), weather, o); err != nil {
		t.Errorf("a schema the table takes: %v", err)
	}
	if got := contents(t, table); got != "1: EWR 00 0, EWR 01 1" {
		t.Errorf("the table is %s", got)
	}
	// A setting that makes no sense is told first.
	o.Compression = "rar"
	if _, err := putRows(t, table, o, rows); tableerr.TokenOf(err) != tableerr.TokenInvalid {
		t.Errorf("got %v", err)
	}
}

// TestEmptyRequest makes sure that a stream without rows leaves its id free.
func TestEmptyRequest(t *testing.T) {
	table, _ := looseTable(t)
	o := tablecore.AppendOptions{RequestID: "later"}
	for range 2 {
		if r, err := putRows(t, table, o, "[]"); err != nil || r.Rows != 0 || r.CommittedVersion != 0 || r.Replayed || *r.RequestID != "later" {
			t.Fatalf("got %+v, %v", r, err)
		}
	}
	if r, err := putRows(t, table, o, rowsOf(rowAt("EWR", 0, "0"))); err != nil || r.CommittedVersion != 1 || r.Replayed {
		t.Fatalf("got %+v, %v", r, err)
	}
}

// TestReplayFails makes sure that a repetition whose stream breaks is not
// answered, and that a report which is not there any more is not made up.
func TestReplayFails(t *testing.T) {
	table, store := looseTable(t)
	rows := rowsOf(rowAt("EWR", 0, "0"))
	o := tablecore.AppendOptions{RequestID: "once"}
	if _, err := putRows(t, table, o, rows); err != nil {
		t.Fatal(err)
	}
	b := tabletest.Batch(t, memory.DefaultAllocator, weather, rows)
	defer b.Release()
	broken := errors.New("the client went away")
	r := tabletest.NewReader(weather, b)
	r.Err = broken
	if _, err := table.Append(t.Context(), r, o); !errors.Is(err, broken) {
		t.Errorf("a broken stream: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := table.Append(ctx, tabletest.NewReader(weather, b), o); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that has gone: %v", err)
	}
	for range 2 { // version 1 lies below a checkpoint
		if _, err := putRows(t, table, tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 9, "9"))); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.WriteCheckpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	commit := "default/weather/_delta_log/00000000000000000001.json"
	text, err := store.Get(t.Context(), commit)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		text  string
		token tableerr.Token
	}{
		"no report":      {strings.Replace(string(text), `"contrailReport":{`, `"contrailOther":{`, 1), tableerr.TokenCorrupt},
		"another commit": {strings.Replace(string(text), `append/once`, `append/other`, 1), tableerr.TokenCorrupt},
		"half a commit":  {string(text[:len(text)/2]), tableerr.TokenCorrupt},
		"no commit":      {"", tableerr.TokenVersionExpired},
	} {
		if err := store.Delete(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
		if c.text != "" {
			if err := store.Put(t.Context(), commit, []byte(c.text)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := putRows(t, anotherProcess(t, store), o, rows); tableerr.TokenOf(err) != c.token {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestRacingRequests puts one request id from two processes and many
// goroutines at once: one append is committed, the others are told of it.
func TestRacingRequests(t *testing.T) {
	table, store := looseTable(t)
	tables := []*tablecore.Table{table, anotherProcess(t, store)}
	rows := rowsOf(rowAt("EWR", 0, "0"), rowAt("JFK", 1, "1"))
	const ids, each = 5, 8
	var mu sync.Mutex
	fresh, versions := map[string]int{}, map[string]map[int64]bool{}
	var group sync.WaitGroup
	for i := range ids * each {
		id := fmt.Sprint("id-", i%ids)
		group.Go(func() {
			r, err := putRows(t, tables[i%len(tables)], tablecore.AppendOptions{RequestID: id}, rows)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if !r.Replayed {
				fresh[id]++
			}
			if versions[id] == nil {
				versions[id] = map[int64]bool{}
			}
			versions[id][r.CommittedVersion] = true
		})
	}
	group.Wait()
	for id := range versions {
		if fresh[id] != 1 || len(versions[id]) != 1 {
			t.Errorf("%s was committed %d times, as versions %v", id, fresh[id], versions[id])
		}
	}
	for _, table := range append(tables, anotherProcess(t, store)) {
		rows, stats, err := tabletest.Scan(t.Context(), table, tablecore.ScanOptions{})
		if err != nil || len(rows) != 2*ids || stats.Version != ids || stats.Files != ids {
			t.Errorf("%d rows in %d files at version %d, %v", len(rows), stats.Files, stats.Version, err)
		}
	}
	if n := len(dataFiles(t, store)); n != ids {
		t.Errorf("%d data files are left", n)
	}
}

// TestRetriedFaults walks every fault at every operation of an append with a
// request id, and repeats it in the same process and in another: whatever
// happened, the rows are there once.
func TestRetriedFaults(t *testing.T) {
	rows := rowsOf(rowAt("JFK", 1, "11"), rowAt("EWR", 1, "1"))
	put := func(t *testing.T, w *tablecore.Warehouse, rows string) (*tablecore.AppendReport, error) {
		table, err := w.Table(t.Context(), weatherName)
		if err != nil {
			return nil, err
		}
		return putRows(t, table, tablecore.AppendOptions{RequestID: "once"}, rows)
	}
	walk{
		prepare: func(t *testing.T, w *tablecore.Warehouse) {
			if _, err := w.CreateTable(t.Context(), looseOptions()); err != nil {
				t.Fatal(err)
			}
		},
		run: func(t *testing.T, w *tablecore.Warehouse) error { _, err := put(t, w, rows); return err },
		verify: func(t *testing.T, w *tablecore.Warehouse, store objstore.Store, _ bool, err error) {
			checkTyped(t, err)
			r, retryErr := put(t, w, rows)
			if retryErr != nil || r.CommittedVersion != 1 || err == nil && !r.Replayed {
				t.Fatalf("after %v the repetition gives %+v, %v", err, r, retryErr)
			}
			if _, err := put(t, w, rowsOf(rowAt("LGA", 1, "1"))); tableerr.TokenOf(err) != tableerr.TokenRequestIDReused {
				t.Fatalf("other rows: %v", err)
			}
			table, openErr := w.Table(t.Context(), weatherName)
			if openErr != nil {
				t.Fatal(openErr)
			}
			if got := contents(t, table); got != "1: EWR 01 1, JFK 01 11" {
				t.Fatalf("after %v the table is %s", err, got)
			}
		},
	}.all(t)
}

// TestCommitUnknown makes sure that an outcome that cannot be learned deletes
// nothing and names an id that leads to the commit: the client's, which clears
// it up, or one that the server has made.
func TestCommitUnknown(t *testing.T) {
	for _, id := range []string{"", "mine"} {
		for _, kind := range []faultstore.Kind{faultstore.ErrorAfterEffect, faultstore.Unknown} {
			t.Run(id+"/"+kind.String(), func(t *testing.T) {
				_, store := looseTable(t)
				commit := "_delta_log/00000000000000000001.json"
				// The put's answer is lost, and the commit cannot be read.
				unreadable := faultstore.Wrap(sharedStore{store}, faultstore.Plan{})
				lost := faultstore.Wrap(unreadable, faultstore.Plan{})
				table := openWeather(t, tabletest.Warehouse(t, lost, memory.DefaultAllocator))
				lost.Arm(faultstore.Plan{Kind: kind, Match: func(op objstore.Op, key string) bool { return op == objstore.OpPutAllIfAbsent },
					Before: func(objstore.Op, string) {
						unreadable.Arm(faultstore.Plan{Kind: faultstore.Error, Match: func(op objstore.Op, key string) bool { return op == objstore.OpGet && key == commit }})
					}})
				rows := rowsOf(rowAt("EWR", 0, "0"))
				_, err := putRows(t, table, tablecore.AppendOptions{RequestID: id}, rows)
				var unknown *tableerr.CommitUnknown
				if !errors.As(err, &unknown) || unknown.RequestID == "" || id != "" && unknown.RequestID != id || unknown.Table != "default.weather" {
					t.Fatalf("got %v", err)
				}
				if n := len(dataFiles(t, store)); n != 1 {
					t.Fatalf("%d data files are left", n)
				}
				landed := kind == faultstore.ErrorAfterEffect
				text, err := store.Get(t.Context(), "default/weather/"+commit)
				if landed != (err == nil) || landed && !strings.Contains(string(text), `"contrailRequestId":"`+unknown.RequestID+`"`) {
					t.Fatalf("the commit is %s, %v", text, err)
				}
				if id == "" {
					return
				}
				for _, table := range []*tablecore.Table{table, anotherProcess(t, store)} {
					r, err := putRows(t, table, tablecore.AppendOptions{RequestID: id}, rows)
					if err != nil || r.CommittedVersion != 1 || landed && !r.Replayed {
						t.Fatalf("the repetition gives %+v, %v", r, err)
					}
					landed = true
					if got := contents(t, table); got != "1: EWR 00 0" {
						t.Errorf("the table is %s", got)
					}
				}
			})
		}
	}
}

// TestRequestIDOfServer makes sure that an append without a client's id answers
// without one, and that its commit has one all the same.
func TestRequestIDOfServer(t *testing.T) {
	table, store := looseTable(t)
	r, err := putRows(t, table, tablecore.AppendOptions{}, rowsOf(rowAt("EWR", 0, "0")))
	if err != nil || r.RequestID != nil {
		t.Fatalf("got %+v, %v", r, err)
	}
	text, err := store.Get(t.Context(), "default/weather/_delta_log/00000000000000000001.json")
	if err != nil || !strings.Contains(string(text), `"contrailRequestId":"`) || strings.Contains(string(text), `"txn"`) {
		t.Fatalf("the commit is %s, %v", text, err)
	}
	if !slices.Equal(dataFiles(t, store), []string{"default/weather/" + r.DataFiles[0].Path}) {
		t.Errorf("the files are %v", dataFiles(t, store))
	}
}

// TestCreateUnknown makes sure that a create whose outcome cannot be learned
// names an id that stands in the table's first commit.
func TestCreateUnknown(t *testing.T) {
	commit := "_delta_log/00000000000000000000.json"
	store := memstore.New()
	unreadable := faultstore.Wrap(sharedStore{store}, faultstore.Plan{Kind: faultstore.Error,
		Match: func(op objstore.Op, key string) bool { return op == objstore.OpGet && key == commit }})
	lost := faultstore.Wrap(unreadable, faultstore.Plan{Kind: faultstore.ErrorAfterEffect,
		Match: func(op objstore.Op, key string) bool { return op == objstore.OpPutIfAbsent && key == commit }})
	w := tabletest.Warehouse(t, lost, memory.DefaultAllocator)
	_, err := w.CreateTable(t.Context(), weatherOptions())
	var unknown *tableerr.CommitUnknown
	if !errors.As(err, &unknown) || unknown.RequestID == "" {
		t.Fatalf("got %v", err)
	}
	text, err := store.Get(t.Context(), "default/weather/"+commit)
	if err != nil || !strings.Contains(string(text), `"contrailRequestId":"`+unknown.RequestID+`"`) {
		t.Fatalf("the commit is %s, %v", text, err)
	}
	if d, err := anotherProcess(t, store).Describe(t.Context(), tablecore.At{}); err != nil || d.TableID != unknown.RequestID {
		t.Errorf("described %+v, %v", d, err)
	}
}

// TestKnownRequest: who finds his request id committed is answered with the first
// report, but not while his own put may yet turn up.
func TestKnownRequest(t *testing.T) {
	known := &txn.KnownRequest{Request: &snapshot.Request{ID: "mine"}}
	if got := tablecore.KnownRequest(fmt.Errorf("publishing: %w", known)); got != known.Request {
		t.Errorf("got %+v", got)
	}
	for _, err := range []error{nil, errBroken, &tableerr.CommitUnknown{RequestID: "mine", Cause: known}} {
		if got := tablecore.KnownRequest(err); got != nil {
			t.Errorf("%v: got %+v", err, got)
		}
	}
}
