package tablecore_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"contrail/tablecore"
	"contrail/tablecore/internal/coverage"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/objstore/memstore"
)

// TestCheckCheckpoint: a checkpoint is compared with the commits, and written
// anew by a repair.
func TestCheckCheckpoint(t *testing.T) {
	d := newDamaged(t)
	w := d.open()
	table := openWeather(t, w)
	if err := table.WriteCheckpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.close(w)
	key := strings.TrimSuffix(d.commits[3], "json") + "checkpoint.parquet"
	good := d.get(key)
	other := newDamaged(t)
	w = other.open()
	if err := writeWeather(t, w); err != nil {
		t.Fatal(err)
	}
	other.close(w)
	for what, test := range map[string]struct {
		data []byte
		want string
	}{
		"cut": {good[:len(good)-9], "warning bad_log " + inTable(key)},
		"of another table": {checkpointOf(t, other, 3), "error bad_log " + inTable(key) +
			": the checkpoint does not agree with the commits: its metadata are others"},
	} {
		d.put(key, test.data)
		w := d.open()
		// The one of another table is believed when the table is opened, so more
		// may be wrong.
		if lines, _ := checked(t, w, weatherName, false); !strings.HasPrefix(lines[0], test.want) {
			t.Errorf("%s: found %q", what, lines)
		}
		lines, report := checked(t, w, weatherName, true)
		d.close(w)
		if report.Repaired != 1 || !strings.Contains(lines[0], " repaired: ") {
			t.Errorf("%s: repaired %+v, %q", what, report, lines)
		}
		w = d.open()
		if lines, _ := checked(t, w, weatherName, false); len(lines) > 0 {
			t.Errorf("%s: after the repair %q", what, lines)
		}
		d.close(w)
	}
	// Without the commits the checkpoint is all there is.
	d.delete(d.commits[0])
	d.put(key, good[:len(good)-9])
	w = d.open()
	defer d.close(w)
	lines, report := checked(t, w, weatherName, false)
	if report.OK || report.Version != 3 || !strings.HasPrefix(lines[0], "error bad_log "+inTable(key)) {
		t.Errorf("found %q, %+v", lines, report)
	}
}

// checkpointOf returns a checkpoint of a version of a table.
func checkpointOf(t *testing.T, d *damaged, version int64) []byte {
	t.Helper()
	store, err := d.store.Sub(t.Context(), "default/weather", false)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	log := deltalog.New(store, deltalog.Options{})
	s, err := log.LoadAt(t.Context(), version)
	if err == nil {
		_, err = log.WriteCheckpoint(t.Context(), s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d.get("default/weather/" + deltalog.CheckpointKey(version))
}

// TestCheckState: the state file and the head are compared with what follows from
// the files, and written anew by a repair.
func TestCheckState(t *testing.T) {
	d := newDamaged(t)
	w := d.open()
	table := openWeather(t, w)
	if err := table.WriteState(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lines, _ := checked(t, w, weatherName, false); len(lines) > 0 {
		t.Fatalf("found %q", lines)
	}
	head, err := derived.DecodeHead(d.get("default/weather/" + derived.HeadPath))
	if err != nil {
		t.Fatal(err)
	}
	d.close(w)
	state := "default/weather/" + derived.StatePath(head.Of.TableID, head.Of.Version)
	file, err := derived.OpenState(d.get(state))
	if err != nil {
		t.Fatal(err)
	}
	with := func(of derived.Of, kind derived.SectionKind, change func([]byte) []byte) ([]byte, int64) {
		var sections []derived.Section
		for _, k := range []derived.SectionKind{derived.SectionFiles, derived.SectionCoverage, derived.SectionNewest} {
			offset, length, _ := file.Section(k)
			data, err := file.Unpack(k, d.get(state)[offset:offset+length])
			if err != nil {
				t.Fatal(err)
			}
			if k == kind {
				data = change(bytes.Clone(data))
			}
			sections = append(sections, derived.Section{Kind: k, Data: data})
		}
		data, first, err := derived.EncodeState(of, sections)
		if err != nil {
			t.Fatal(err)
		}
		return data, first
	}
	good := d.get(state)
	goodHead := d.get("default/weather/" + derived.HeadPath)
	older := head.Of
	older.Version--
	later := head
	later.Of.Version = 1_000_000
	laterHead, err := later.Encode()
	if err != nil {
		t.Fatal(err)
	}
	coverage, _ := with(head.Of, derived.SectionCoverage, otherCoverage(t))
	newest, _ := with(head.Of, derived.SectionNewest, func(b []byte) []byte {
		return bytes.Replace(b, []byte(inTable(d.data[3])), []byte(inTable(d.data[2])), 1)
	})
	damagedNewest, _ := with(head.Of, derived.SectionNewest, func(b []byte) []byte { return b[:len(b)-1] })
	files, _ := with(head.Of, derived.SectionFiles, func(b []byte) []byte {
		return bytes.Replace(b, []byte(inTable(d.data[2])[:8]), []byte("data/xx/"), 1)
	})
	foreign, _ := with(older, 0, nil)
	flipped := bytes.Clone(good)
	flipped[len(flipped)-5] ^= 1
	for what, test := range map[string]struct {
		state, head []byte
		want        string
	}{
		"a damaged state file":    {good[:20], goodHead, "warning bad_last_values " + inTable(state)},
		"one of another version":  {foreign, goodHead, "warning bad_last_values " + inTable(state)},
		"a bit in a section":      {flipped, goodHead, "warning bad_last_values " + inTable(state)},
		"a head of the future":    {good, laterHead, "warning bad_last_values _contrail/head"},
		"another coverage":        {coverage, goodHead, "error bad_coverage " + inTable(state)},
		"newest rows elsewhere":   {newest, goodHead, "error bad_last_values " + inTable(state)},
		"newest rows, cut":        {damagedNewest, goodHead, "warning bad_last_values " + inTable(state)},
		"another list of files":   {files, goodHead, "error bad_log " + inTable(state)},
		"a head without its file": {nil, goodHead, "warning bad_last_values _contrail/head"},
	} {
		t.Run(what, func(t *testing.T) {
			d.t = t
			if d.put("default/weather/"+derived.HeadPath, test.head); test.state == nil {
				d.delete(state)
			} else {
				d.put(state, test.state)
			}
			w := d.open()
			lines, _ := checked(t, w, weatherName, false)
			d.close(w)
			if len(lines) != 1 || !strings.HasPrefix(lines[0], test.want) {
				t.Errorf("found %q", lines)
			}
			w = d.open()
			lines, report := checked(t, w, weatherName, true)
			if len(lines) != 1 || report.Repaired != 1 || !report.OK {
				t.Errorf("repaired %+v: %q", report, lines)
			}
			if lines, _ := checked(t, w, weatherName, false); len(lines) > 0 {
				t.Errorf("after the repair %q", lines)
			}
			d.close(w)
			if _, err := derived.DecodeHead(d.get("default/weather/" + derived.HeadPath)); err != nil {
				t.Errorf("the head that was written is %v", err)
			}
		})
	}
}

// otherCoverage returns a coverage that lacks an entity.
func otherCoverage(t *testing.T) func([]byte) []byte {
	return func([]byte) []byte {
		set := coverageOf(t, map[string][]uint64{"EWR\x00\x01": {1 << 63}})
		return set.AppendEncoded(nil)
	}
}

// TestCheckSidecar: what lies beside a data file is compared with its rows, and
// written anew by a repair.
func TestCheckSidecar(t *testing.T) {
	d := &damaged{t: t, store: memstore.New()}
	w := d.open()
	createWeather(t, w)
	var rows []string
	for i := range 4000 {
		rows = append(rows, rowAt(fmt.Sprintf("station-%05d-of-the-network", i), i%24, "1"))
	}
	if _, err := appendWeather(t.Context(), t, w, tablecore.AppendOptions{}, rows...); err != nil {
		t.Fatal(err)
	}
	d.close(w)
	key := keysUnder(t, d.store, "default/weather/_contrail/files/")[0]
	for what, damage := range map[string]func(){
		"missing": func() { d.delete(key) },
		"cut":     func() { d.put(key, d.get(key)[:100]) },
	} {
		damage()
		d.finds(what, "warning bad_coverage data/")
		w := d.open()
		if lines, report := checked(t, w, weatherName, true); len(lines) != 1 || report.Repaired != 1 || !strings.Contains(lines[0], " repaired: ") {
			t.Errorf("%s: repaired %+v, %q", what, report, lines)
		}
		d.close(w)
		w = d.open()
		if lines, _ := checked(t, w, weatherName, false); len(lines) > 0 {
			t.Errorf("%s: after the repair %q", what, lines)
		}
		if _, _, err := scanWeather(t, w); err != nil || len(d.warnings) > 0 {
			t.Errorf("%s: after the repair %v, %q", what, err, d.warnings)
		}
		d.close(w)
	}
}

// coverageOf makes a set of entities and their intervals.
func coverageOf(t *testing.T, entities map[string][]uint64) *coverage.Set {
	t.Helper()
	b := coverage.NewBuilder()
	for _, key := range slices.Sorted(maps.Keys(entities)) {
		b.Entity(key)
		b.AddIDs(entities[key])
	}
	set, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return set
}
