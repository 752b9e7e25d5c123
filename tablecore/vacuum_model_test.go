package tablecore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// vacuumModel is a table on which random operations are tried, with the rows of
// each of its versions.
type vacuumModel struct {
	*aged
	rng    *rand.Rand
	rows   [][]string  // by version
	times  []time.Time // of the commits
	oldest int64
	hours  int
}

// TestVacuumModel tries random writes, rollbacks, optimizes and vacuums on a clock
// that moves on: the versions that must be there have their rows, in a process
// that goes on and in one that starts anew, and all others are expired.
func TestVacuumModel(t *testing.T) {
	for seed := range max(2, numberFrom(t, "SEEDS", modelSeeds)/10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			m := &vacuumModel{aged: newAged(t), rng: rand.New(rand.NewPCG(uint64(seed), 9))}
			m.committed()
			for range 60 {
				m.step()
				m.check(3)
			}
			m.vacuum(true)
			m.check(20)
		})
	}
}

// committed takes in the newest versions.
func (m *vacuumModel) committed() {
	m.t.Helper()
	d, err := m.table.Describe(m.t.Context(), tablecore.At{})
	if err != nil {
		m.t.Fatal(err)
	}
	for version := int64(len(m.rows)); version <= d.Version; version++ {
		rows, _, err := tabletest.Scan(m.t.Context(), m.table, tablecore.ScanOptions{Version: &version})
		if err != nil {
			m.t.Fatal(err)
		}
		at, err := m.table.Describe(m.t.Context(), tablecore.At{Version: &version})
		if err != nil {
			m.t.Fatal(err)
		}
		m.rows, m.times = append(m.rows, rows), append(m.times, at.CommittedAt.Time)
	}
}

func (m *vacuumModel) newest() int64 { return int64(len(m.rows)) - 1 }

func (m *vacuumModel) step() {
	m.t.Helper()
	var err error
	switch n := m.rng.IntN(20); {
	case n < 7:
		m.append(m.hours)
		m.hours++
	case n < 9 && len(m.rows[m.newest()]) > 0:
		err = m.update()
	case n < 12:
		version := m.oldest + m.rng.Int64N(m.newest()-m.oldest+1)
		_, err = m.table.Rollback(m.t.Context(), tablecore.RollbackOptions{Version: version, ExpectedVersion: m.newest()})
	case n < 14:
		_, err = m.table.Optimize(m.t.Context(), tablecore.OptimizeOptions{})
	case n < 15:
		err = m.table.WriteCheckpoint(m.t.Context())
	case n < 16:
		err = m.table.WriteState(m.t.Context())
	case n < 17:
		m.house = m.open(m.store, byte(m.rng.IntN(256)))
		m.table = openWeather(m.t, m.house)
	default:
		m.vacuum(m.rng.IntN(2) == 0)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.house.WaitForBackground()
	m.committed()
	m.clock.Advance(time.Duration(m.rng.Int64N(int64(36 * time.Hour))))
}

// update gives the first row of the table another value.
func (m *vacuumModel) update() error {
	rows, _, err := tabletest.Scan(m.t.Context(), m.table, tablecore.ScanOptions{Columns: []string{"origin", "time_hour"}})
	if err != nil {
		return err
	}
	b := tabletest.Batch(m.t, memory.DefaultAllocator, weather, "["+rows[0][:len(rows[0])-1]+fmt.Sprintf(`,"temp":%d}]`, m.rng.IntN(100)))
	defer b.Release()
	_, err = m.table.UpdateRows(m.t.Context(), tabletest.NewReader(weather, b), tablecore.UpdateOptions{Columns: []string{"temp"}, ExpectedVersion: m.newest()})
	return err
}

// vacuum runs one and works out which version is the oldest then.
func (m *vacuumModel) vacuum(expire bool) {
	m.t.Helper()
	now, newest := m.clock.Now(), m.newest()
	old := now.Add(-time.Hour)
	m.aged.vacuum(tablecore.VacuumOptions{Apply: true, Expire: expire, OlderThan: &old})
	for expire && m.oldest < newest && now.Sub(m.times[m.oldest+1]) > 7*day {
		m.oldest++
	}
}

// check reads some versions.
func (m *vacuumModel) check(n int) {
	m.t.Helper()
	anew := openWeather(m.t, m.open(m.store, 77))
	for range n {
		version := m.rng.Int64N(int64(len(m.rows)))
		for name, table := range map[string]*tablecore.Table{"the same process": m.table, "a new one": anew} {
			rows, _, err := tabletest.Scan(m.t.Context(), table, tablecore.ScanOptions{Version: &version})
			switch {
			case version < m.oldest && tableerr.TokenOf(err) != tableerr.TokenVersionExpired:
				m.t.Fatalf("%s reads version %d, which has expired: %v", name, version, err)
			case version >= m.oldest && (err != nil || !slices.Equal(rows, m.rows[version])):
				m.t.Fatalf("%s reads version %d: %q, want %q, %v", name, version, rows, m.rows[version], err)
			}
		}
	}
}
