package tablecore_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"contrail/tablecore"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// era is what a table is at one version, by the rules alone.
type era struct {
	rows      []string // sorted
	plain     bool     // without keys
	open      bool     // to other writers
	format    string
	abandoned map[int64]bool // versions whose request ids are forgotten
}

// lineage is a table with what each of its versions should be.
type lineage struct {
	*fixture
	store objstore.Store
	r     *rand.Rand
	eras  []era
	ids   map[string][]int64 // the versions that committed a request id, ascending
}

// TestLineage does upgrades, adoptions, rollbacks, redos, releases, appends with
// request ids and reads of random versions in random order, and compares each
// answer and each version with what the rules say.
func TestLineage(t *testing.T) {
	for seed := range max(2, numberFrom(t, "SEEDS", modelSeeds)/5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := newLineage(t, rand.New(rand.NewPCG(uint64(seed), 8)), seed%2 == 0)
			for range 14 {
				[]func(){l.appendSome, l.appendSome, l.upgradeSome, l.rollbackSome, l.rollbackSome, l.readSome, l.reopen}[l.r.IntN(7)]()
				if t.Failed() {
					return
				}
			}
			for version := range l.eras {
				l.read(int64(version))
			}
		})
	}
}

func newLineage(t *testing.T, r *rand.Rand, plain bool) *lineage {
	if plain {
		f, store := plainFixture(t, rowsOf(rowAt("JFK", 0, "0"), rowAt("EWR", 1, "1")), rowsOf(rowAt("EWR", 0, "0")))
		first := era{rows: []string{jsonRow("EWR", 0, "0"), jsonRow("EWR", 1, "1"), jsonRow("JFK", 0, "0")}, plain: true, open: true, format: "0.1.0"}
		return &lineage{fixture: f, store: store, r: r, eras: []era{first}, ids: map[string][]int64{}}
	}
	f, store := olderWeather(t, "0.2.0")
	return &lineage{fixture: f, store: store, r: r, eras: []era{{format: "0.3.0"}, {format: "0.2.0"}}, ids: map[string][]int64{}}
}

func (l *lineage) newest() int64 { return int64(len(l.eras)) - 1 }

// known is the version that is remembered of a request id, −1 for none.
func (l *lineage) known(id string) int64 {
	for _, version := range slices.Backward(l.ids[id]) {
		if !l.eras[l.newest()].abandoned[version] {
			return version
		}
	}
	return -1
}

// appendSome appends one of few rows, whose request id says what it is.
func (l *lineage) appendSome() {
	origin, hour := []string{"EWR", "JFK"}[l.r.IntN(2)], l.r.IntN(4)
	now, id, row := l.eras[l.newest()], fmt.Sprint(origin, hour), jsonRow(origin, hour, fmt.Sprint(hour))
	report, err := l.append(tablecore.AppendOptions{RequestID: id}, rowsOf(rowAt(origin, hour, fmt.Sprint(hour))))
	switch known := l.known(id); {
	case now.plain:
		l.wantToken(err, tableerr.TokenFormatUnwritable)
	case known >= 0:
		if err != nil || !report.Replayed || report.CommittedVersion != known {
			l.t.Errorf("%s of version %d again: %+v, %v", id, known, report, err)
		}
	case slices.Contains(now.rows, row):
		l.wantToken(err, tableerr.TokenIntervalOverlap)
	default:
		if err != nil || report.Replayed || report.CommittedVersion != l.newest()+1 {
			l.t.Errorf("%s behind version %d: %+v, %v", id, l.newest(), report, err)
		}
		now.rows = append(slices.Clone(now.rows), row)
		slices.Sort(now.rows)
		l.eras = append(l.eras, now)
		l.ids[id] = append(l.ids[id], l.newest())
	}
}

func (l *lineage) upgradeSome() {
	now, o := l.eras[l.newest()], tablecore.UpgradeOptions{NoCompact: l.r.IntN(2) == 0}
	if now.plain {
		keys := adoption()
		keys.NoCompact = o.NoCompact
		o = keys
	}
	report, err := l.table.Upgrade(l.t.Context(), o)
	if err != nil || report.StartingVersion != l.newest() || report.ToFormat != "0.3.0" {
		l.t.Errorf("an upgrade of version %d: %+v, %v", l.newest(), report, err)
		return
	}
	if now.plain { // no row of an id that the log holds is there
		now.abandoned = maps.Clone(now.abandoned)
		if now.abandoned == nil {
			now.abandoned = map[int64]bool{}
		}
		for _, versions := range l.ids {
			for _, version := range versions {
				now.abandoned[version] = true
			}
		}
	}
	now.plain, now.open, now.format = false, false, "0.3.0"
	for l.newest() < report.CommittedVersion {
		l.eras = append(l.eras, now)
	}
}

func (l *lineage) rollbackSome() {
	from, target := l.newest(), l.r.Int64N(l.newest()+1)
	now, then := l.eras[from], l.eras[target]
	release := l.r.IntN(3) == 0
	report, err := l.table.Rollback(l.t.Context(), tablecore.RollbackOptions{Version: target, ExpectedVersion: from, Release: release})
	switch {
	case now.open:
		l.wantToken(err, tableerr.TokenFormatUnwritable)
		return
	case release && !then.open:
		l.wantToken(err, tableerr.TokenInvalid)
		return
	case err != nil || report.NoOp != (from == target) || report.Rows != int64(len(then.rows)) || report.FormatVersion != then.format:
		l.t.Errorf("a rollback from %d to %d: %+v, %v", from, target, report, err)
		return
	case report.NoOp:
		return
	}
	then.open = release
	forgotten := map[int64]bool{}
	if !release {
		maps.Copy(forgotten, then.abandoned)
		for version := target + 1; version <= from; version++ {
			forgotten[version] = true
		}
	}
	then.abandoned = forgotten
	l.eras = append(l.eras, then)
}

func (l *lineage) readSome() { l.read(l.r.Int64N(l.newest() + 1)) }

// read compares a version with what it should be.
func (l *lineage) read(version int64) {
	rows, _, err := tabletest.Scan(l.t.Context(), l.table, tablecore.ScanOptions{Version: &version, Order: "unordered"})
	if slices.Sort(rows); err != nil || !slices.Equal(rows, l.eras[version].rows) {
		l.t.Errorf("version %d of %d holds %q, %v, want %q", version, l.newest(), rows, err, l.eras[version].rows)
	}
	d, err := l.table.Describe(l.t.Context(), tablecore.At{Version: &version})
	if err != nil || d.FormatVersion != l.eras[version].format || (d.IndexColumn == "") != l.eras[version].plain {
		l.t.Errorf("version %d is described as %+v, %v", version, d, err)
	}
}

// reopen goes on in another process.
func (l *lineage) reopen() {
	l.table = anotherProcess(l.t, l.store)
	if d := l.describe(); d.Version != l.newest() {
		l.t.Errorf("it is at version %d, not %d", d.Version, l.newest())
	}
}

func (l *lineage) wantToken(err error, want tableerr.Token) {
	l.t.Helper()
	if tableerr.TokenOf(err) != want {
		l.t.Errorf("behind version %d: got %v, want %s", l.newest(), err, want)
	}
}
