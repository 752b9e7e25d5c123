package tablecore_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/objstore"
	"contrail/tablecore/objstore/faultstore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// at scans a version through a process that starts anew.
func (a *aged) at(version int64) ([]string, error) {
	a.t.Helper()
	rows, _, err := tabletest.Scan(a.t.Context(), openWeather(a.t, a.open(a.store, 9)), tablecore.ScanOptions{Version: &version})
	return rows, err
}

// commits lists the versions whose commits are in the log, and the checkpoints.
func (a *aged) log() (commits, checkpoints []int64) {
	a.t.Helper()
	for _, key := range keysUnder(a.t, a.store, "default/weather/_delta_log/") {
		var version int64
		name := strings.TrimPrefix(key, "default/weather/_delta_log/")
		if _, err := fmt.Sscanf(name, "%d.", &version); err != nil {
			continue
		}
		if strings.HasSuffix(name, ".json") {
			commits = append(commits, version)
		} else {
			checkpoints = append(checkpoints, version)
		}
	}
	return commits, checkpoints
}

// replaced makes a table of which a row was written anew on each of some days,
// each version of which has other files.
func replaced(t *testing.T, days int) (*aged, []string) {
	a := newAged(t)
	files := []string{a.append(0)}
	for i := range days {
		a.clock.Advance(day)
		a.rollback(0)
		files = append(files, a.append(i+1))
	}
	a.clock.Advance(time.Hour)
	return a, files // versions 1, 3, 5 …
}

// TestExpire: versions go that were succeeded longer ago than the retention, and
// their files with them; nothing else.
func TestExpire(t *testing.T) {
	a, files := replaced(t, 10) // the newest is version 21
	// Version 6 was succeeded a little longer than 7 days ago, version 7 a day later.
	dry, _ := a.vacuum(tablecore.VacuumOptions{Expire: true})
	if dry.CommittedVersion != 21 || dry.Removable.Files != 3 {
		t.Errorf("%+v", dry)
	}
	without, _ := a.vacuum(tablecore.VacuumOptions{Apply: true})
	if without.Deleted.Files != 0 {
		t.Errorf("%+v", without)
	}
	r, fates := a.vacuum(tablecore.VacuumOptions{Expire: true, Apply: true})
	if r.StartingVersion != 21 || r.CommittedVersion != 22 || r.Deleted.Files != 3 {
		t.Errorf("%+v", r)
	}
	for i, path := range files {
		want := "deleted unreferenced"
		if version := int64(2*i + 1); version >= 7 {
			want = fmt.Sprintf("retained referenced_by_commit %d", version)
		}
		if got := fate(fates[path]); got != want {
			t.Errorf("the file of version %d is %q, want %q", 2*i+1, got, want)
		}
	}
	for version := int64(0); version <= 22; version++ {
		rows, err := a.at(version)
		var expired *tableerr.VersionExpired
		if version < 7 {
			if !errors.As(err, &expired) || expired.Current != 22 {
				t.Errorf("version %d: %q, %v", version, rows, err)
			}
		} else if err != nil || len(rows) != int(version%2) && version != 22 {
			t.Errorf("version %d: %q, %v", version, rows, err)
		}
	}
	again, _ := a.vacuum(tablecore.VacuumOptions{Expire: true, Apply: true})
	if again.StartingVersion != 22 || again.CommittedVersion != 22 || again.Deleted.Files != 0 {
		t.Errorf("%+v", again)
	}
	a.clock.Advance(100 * day)
	r, _ = a.vacuum(tablecore.VacuumOptions{Expire: true, Apply: true})
	if r.CommittedVersion != 23 || r.Deleted.Files != 7 {
		t.Errorf("%+v", r)
	}
	if rows, version, err := scanWeather(t, a.open(a.store, 8)); err != nil || version != 23 || len(rows) != 1 {
		t.Errorf("%q at %d, %v", rows, version, err)
	}
	expireInHistory(t, a)
}

// expireInHistory looks at what the history tells of versions and expiries.
func expireInHistory(t *testing.T, a *aged) {
	t.Helper()
	l, err := a.table.History(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	rows := listedRows(t, l)
	if len(rows) != 24 {
		t.Fatalf("%v", rows)
	}
	for i, want := range map[int]string{0: "23 vacuum false", 1: "22 vacuum false", 2: "21 append true"} {
		if got := fmt.Sprint(rows[i]["version"], " ", rows[i]["operation"], " ", rows[i]["expired"]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got, want := rows[1]["report"], `{"starting_version":21,"committed_version":22,"oldest_version":7}`; got != want {
		t.Errorf("the report is %v", got)
	}
}

// TestExpireHolds: versions that are held, that a reader has or that there is a
// ticket for stay, and a retention that is shorter than tickets counts as theirs.
func TestExpireHolds(t *testing.T) {
	a, _ := replaced(t, 10)
	expire := func(o tablecore.VacuumOptions) int64 {
		t.Helper()
		o.Expire = true
		r, _ := a.vacuum(o)
		return r.Removable.Files
	}
	if got := expire(tablecore.VacuumOptions{LeastSnapshotRetention: 9 * day}); got != 1 {
		t.Errorf("with a retention of at least 9 days %d go", got)
	}
	one, three := int64(1), int64(3)
	plan, err := a.table.PlanScan(t.Context(), tablecore.ScanOptions{Version: &three})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := plan.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ticket, err := a.table.PlanScan(t.Context(), tablecore.ScanOptions{Version: &one})
	if err != nil {
		t.Fatal(err)
	}
	ticket.Pin(a.clock.Now().Add(time.Hour))
	plan.Pin(a.clock.Now().Add(time.Minute))
	if got := expire(tablecore.VacuumOptions{}); got != 0 {
		t.Errorf("with a ticket for version 1 %d go", got)
	}
	a.clock.Advance(2 * time.Hour)
	if got := expire(tablecore.VacuumOptions{Apply: true}); got != 0 {
		t.Errorf("%d are removable", got)
	}
	if _, err := a.at(1); tableerr.TokenOf(err) != tableerr.TokenVersionExpired {
		t.Errorf("version 1: %v", err)
	}
	rows := 0
	for {
		batch, err := reader.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		rows += int(batch.NumRows())
	}
	reader.Release()
	reader.Release()
	if rows != 1 {
		t.Errorf("the slow reader has %d rows", rows)
	}
	if got := expire(tablecore.VacuumOptions{}); got != 2 {
		t.Errorf("without readers %d go", got)
	}
}

// TestExpireKeepsUntil: nothing expires, and nothing that was dropped goes, while
// versions are held.
func TestExpireKeepsUntil(t *testing.T) {
	a, _ := replaced(t, 10)
	a.hold(a.clock.Now().Add(3 * day).Format(time.RFC3339))
	r, _ := a.vacuum(tablecore.VacuumOptions{Expire: true, Apply: true})
	if r.CommittedVersion != r.StartingVersion || r.Deleted.Files != 0 {
		t.Errorf("%+v", r)
	}
	a.clock.Advance(3 * day)
	if r, _ = a.vacuum(tablecore.VacuumOptions{Expire: true, Apply: true}); r.CommittedVersion != r.StartingVersion+1 || r.Deleted.Files != 6 {
		t.Errorf("%+v", r)
	}
	a.hold("whenever")
	a.clock.Advance(100 * day)
	if r, _ = a.vacuum(tablecore.VacuumOptions{Expire: true, Apply: true}); r.CommittedVersion != r.StartingVersion || r.Deleted.Files != 0 {
		t.Errorf("%+v", r)
	}
}

// hold puts a commit that holds versions.
func (a *aged) hold(until string) {
	a.t.Helper()
	store, err := a.store.Sub(a.t.Context(), "default/weather", false)
	if err != nil {
		a.t.Fatal(err)
	}
	s, err := deltalog.New(store, deltalog.Options{}).LoadLatest(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	m := *s.Metadata()
	m.Configuration = map[string]string{"contrail.keep-snapshots-until": until}
	for k, v := range s.Metadata().Configuration {
		if k != "contrail.keep-snapshots-until" {
			m.Configuration[k] = v
		}
	}
	now := s.NextTimestamp(a.clock.Now().UnixMilli())
	data, err := deltalog.EncodeCommit(&deltalog.Commit{Info: &deltalog.CommitInfo{Timestamp: &now, InCommitTimestamp: &now, Operation: "HOLD"}, Metadata: &m})
	if err == nil {
		err = store.PutIfAbsent(a.t.Context(), deltalog.CommitKey(s.Version()+1), data)
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

// TestExpireWithinRetention: a file that a commit has dropped stays for the
// retention from then on, also where its version has expired under a shorter one.
func TestExpireWithinRetention(t *testing.T) {
	a, files := replaced(t, 10)
	short, long := "1d", "30d"
	set := func(value *string) {
		t.Helper()
		if _, err := a.table.SetProperties(t.Context(), tablecore.SetPropertiesOptions{Properties: map[string]*string{"contrail.snapshot-retention": value}}); err != nil {
			t.Fatal(err)
		}
	}
	set(&short)
	stop := errors.New("stop")
	if _, err := a.table.Vacuum(t.Context(), tablecore.VacuumOptions{Expire: true, Apply: true, Artifacts: func([]tablecore.VacuumArtifact) error { return stop }}); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	set(&long)
	old := a.clock.Now()
	a.clock.Advance(time.Hour)
	_, fates := a.vacuum(tablecore.VacuumOptions{Apply: true, OlderThan: &old})
	kept := 0
	for _, path := range files {
		if fate(fates[path]) == "retained within_retention" {
			kept++
		}
	}
	if kept == 0 {
		t.Error(fates)
	}
}

// TestLogCleanUp: the log loses what lies below the checkpoint that the oldest
// version is read from, and a process that slept with an old version in mind
// writes no second history.
func TestLogCleanUp(t *testing.T) {
	a, _ := replaced(t, 10)
	sleeper := openWeather(a.t, a.open(a.store, 5)) // knows version 21
	if _, err := a.table.Checkpoint(t.Context(), tablecore.CheckpointOptions{}); err != nil {
		t.Fatal(err)
	}
	a.append(50) // version 22
	a.vacuum(tablecore.VacuumOptions{Expire: true, Apply: true})
	if commits, checkpoints := a.log(); len(commits) != 24 || len(checkpoints) != 1 {
		t.Fatalf("%d commits are left before the checkpoint has expired, checkpoints %d", len(commits), checkpoints)
	}
	a.clock.Advance(8 * day)
	a.append(51) // version 24
	a.clock.Advance(8 * day)
	if r, _ := a.vacuum(tablecore.VacuumOptions{Expire: true, Apply: true}); r.CommittedVersion != 25 {
		t.Fatalf("%+v", r)
	}
	a.house.WaitForBackground()
	if commits, checkpoints := a.log(); !slices.Equal(commits, []int64{21, 22, 23, 24, 25}) || !slices.Equal(checkpoints, []int64{21}) {
		t.Fatalf("commits %d, checkpoints %d", commits, checkpoints)
	}
	if _, err := a.table.Checkpoint(t.Context(), tablecore.CheckpointOptions{}); err != nil {
		t.Fatal(err)
	}
	a.append(52)
	a.clock.Advance(8 * day)
	a.append(53)
	a.clock.Advance(8 * day)
	a.vacuum(tablecore.VacuumOptions{Expire: true, Apply: true})
	if commits, _ := a.log(); commits[0] != 25 {
		t.Fatalf("commits %d", commits)
	}
	b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rowAt("JFK", 1, "2")))
	defer b.Release()
	r, err := sleeper.Append(t.Context(), tabletest.NewReader(weather, b), tablecore.AppendOptions{})
	if err != nil || r.CommittedVersion != 29 {
		t.Fatalf("the sleeper's append: %+v, %v", r, err)
	}
	if rows, version, err := scanWeather(t, a.open(a.store, 6)); err != nil || version != 29 || len(rows) != 6 {
		t.Errorf("%d rows at %d, %v", len(rows), version, err)
	}
}

// TestLogCleanUpKeepsReports: the commit of a request id that is remembered stays,
// and all behind it; a repetition finds its report.
func TestLogCleanUpKeepsReports(t *testing.T) {
	a := newAged(t)
	first, err := appendWeather(t.Context(), t, a.house, tablecore.AppendOptions{RequestID: "r"}, rowAt("EWR", 0, "1"))
	if err != nil {
		t.Fatal(err)
	}
	short := "1d"
	if _, err := a.table.SetProperties(t.Context(), tablecore.SetPropertiesOptions{Properties: map[string]*string{"contrail.snapshot-retention": &short}}); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		a.clock.Advance(day)
		a.append(i + 1)
		if err := a.table.WriteCheckpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	a.clock.Advance(day)
	a.append(10)
	a.clock.Advance(day + time.Minute)
	a.vacuum(tablecore.VacuumOptions{Expire: true, Apply: true}) // 6 days after the first append
	if commits, checkpoints := a.log(); commits[0] != 1 || !slices.Equal(checkpoints, []int64{6}) {
		t.Fatalf("commits %d, checkpoints %d", commits, checkpoints)
	}
	again, err := appendWeather(t.Context(), t, a.house, tablecore.AppendOptions{RequestID: "r"}, rowAt("EWR", 0, "1"))
	if err != nil || !again.Replayed || again.CommittedVersion != first.CommittedVersion {
		t.Fatalf("%+v, %v", again, err)
	}
	a.clock.Advance(2 * day)
	a.append(11)
	a.vacuum(tablecore.VacuumOptions{Expire: true, Apply: true})
	if commits, _ := a.log(); commits[0] != 6 {
		t.Fatalf("commits %d", commits)
	}
}

// TestExpireConflicts: an expire follows the version that it was planned on, or
// none, whatever others have committed.
func TestExpireConflicts(t *testing.T) {
	ops := "ops"
	for name, commit := range map[string]func(t *testing.T, rival *tablecore.Table) error{
		"append": func(t *testing.T, rival *tablecore.Table) error {
			b := tabletest.Batch(t, memory.DefaultAllocator, weather, rowsOf(rowAt("JFK", 1, "2")))
			defer b.Release()
			_, err := rival.Append(t.Context(), tabletest.NewReader(weather, b), tablecore.AppendOptions{})
			return err
		},
		"set_properties": func(t *testing.T, rival *tablecore.Table) error {
			_, err := rival.SetProperties(t.Context(), tablecore.SetPropertiesOptions{Properties: map[string]*string{"team": &ops}})
			return err
		},
		"rollback": func(t *testing.T, rival *tablecore.Table) error {
			_, err := rival.Rollback(t.Context(), tablecore.RollbackOptions{Version: 1, ExpectedVersion: 21})
			return err
		},
		"expire": func(t *testing.T, rival *tablecore.Table) error {
			_, err := rival.Vacuum(t.Context(), tablecore.VacuumOptions{Expire: true, Apply: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := replaced(t, 10)
			rival := openWeather(a.t, a.open(a.store, 5))
			raced := faultstore.Wrap(sharedStore{a.store}, faultstore.Plan{
				Match: func(op objstore.Op, _ string) bool { return op == objstore.OpPutAllIfAbsent },
				Before: func(objstore.Op, string) {
					if err := commit(t, rival); err != nil {
						t.Error(err)
					}
				}})
			_, err := openWeather(a.t, a.open(raced, 6)).Vacuum(t.Context(), tablecore.VacuumOptions{Expire: true, Apply: true})
			var conflict *tableerr.VersionConflict
			if !errors.As(err, &conflict) || conflict.Expected != 21 || conflict.Found != 22 {
				t.Fatal(err)
			}
		})
	}
}

// TestExpireFull: where there is no room for the commit of an expire nothing goes.
func TestExpireFull(t *testing.T) {
	a, files := replaced(t, 10)
	full := faultstore.Wrap(sharedStore{a.store}, faultstore.Plan{Kind: faultstore.Error, Err: objstore.ErrNoSpace,
		Match: func(op objstore.Op, _ string) bool { return op == objstore.OpPutAllIfAbsent }})
	_, err := openWeather(a.t, a.open(full, 6)).Vacuum(t.Context(), tablecore.VacuumOptions{Expire: true, Apply: true})
	if tableerr.TokenOf(err) != tableerr.TokenStorageFull {
		t.Fatal(err)
	}
	if left := dataFiles(t, a.store); len(left) != len(files) {
		t.Errorf("%q are left", left)
	}
	if rows, err := a.at(1); err != nil || len(rows) != 1 {
		t.Errorf("%q, %v", rows, err)
	}
}
