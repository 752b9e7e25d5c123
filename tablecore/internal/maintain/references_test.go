package maintain

import (
	"testing"

	"contrail/tablecore/internal/deltalog"
)

// TestDropped: a file was dropped when the commit that removes it was made, or
// later if that says so; without a time, no earlier than the commit before.
func TestDropped(t *testing.T) {
	r := &references{at: 10, live: map[string]int64{}, dropped: map[string]int64{}}
	commit := func(at int64, removed string, deleted int64) *deltalog.Commit {
		info := &deltalog.CommitInfo{}
		if at > 0 {
			info.Timestamp = &at
		}
		return &deltalog.Commit{Info: info, Removes: []*deltalog.Remove{{Path: removed, DeletionTimestamp: deleted}}}
	}
	for _, c := range []*deltalog.Commit{commit(0, "before", 0), commit(100, "silent", 0), commit(200, "early", 1), commit(300, "late", 400), commit(0, "timeless", 0)} {
		r.take(c)
	}
	for path, want := range map[string]int64{"before": 10, "silent": 100, "early": 200, "late": 400, "timeless": 300} {
		if got := r.dropped[path]; got != want {
			t.Errorf("%s was dropped at %d, want %d", path, got, want)
		}
	}
}
