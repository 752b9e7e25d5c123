package snapshot

import (
	"testing"

	"contrail/tablecore/internal/deltalog"
)

func TestChangeOf(t *testing.T) {
	change := &deltalog.Add{Path: "a", DataChange: true}
	move := &deltalog.Add{Path: "b"}
	for what, c := range map[string]struct {
		commit *deltalog.Commit
		want   Change
		files  int
	}{
		"nothing":             {&deltalog.Commit{}, NoRow, 0},
		"an append":           {&deltalog.Commit{Adds: []*deltalog.Add{change, change}}, AddedRows, 2},
		"an append that says": {&deltalog.Commit{Adds: []*deltalog.Add{change}, Info: &deltalog.CommitInfo{Operation: "WRITE"}}, AddedRows, 1},
		"an optimize":         {&deltalog.Commit{Adds: []*deltalog.Add{move}, Removes: []*deltalog.Remove{{Path: "a"}}}, NoRow, 0},
		"both":                {&deltalog.Commit{Adds: []*deltalog.Add{move, change}, Removes: []*deltalog.Remove{{Path: "c"}}}, AddedRows, 1},
		"an update":           {&deltalog.Commit{Adds: []*deltalog.Add{change}, Removes: []*deltalog.Remove{{Path: "c", DataChange: true}}}, ChangedRows, 0},
		"a delete":            {&deltalog.Commit{Removes: []*deltalog.Remove{{Path: "c", DataChange: true}}}, ChangedRows, 0},
		"nothing undone":      {&deltalog.Commit{Info: &deltalog.CommitInfo{Operation: "RESTORE"}}, NoRow, 0},
		"a redo":              {&deltalog.Commit{Adds: []*deltalog.Add{change}, Info: &deltalog.CommitInfo{Operation: "RESTORE"}}, ChangedRows, 0},
	} {
		if got, files := ChangeOf(c.commit); got != c.want || len(files) != c.files {
			t.Errorf("%s: %d with %d files", what, got, len(files))
		}
	}
}

func TestOnly(t *testing.T) {
	s := follow(t, newTable(t), &deltalog.Commit{Adds: []*deltalog.Add{fileOf("one", 1, 1), fileOf("two", 2, 2)}})
	only, err := s.Only([]*deltalog.Add{fileOf("gone", 3, 4), fileOf("two", 2, 2)})
	if err != nil {
		t.Fatal(err)
	}
	if len(only.Files) != 2 || only.Files[0].Path != "gone" || only.Rows != only.Files[0].Rows+only.Files[1].Rows || only.Version() != s.Version() {
		t.Errorf("got %+v", only)
	}
	if len(s.Files) != 2 || s.Files[0].Path != "one" {
		t.Errorf("the snapshot has changed: %+v", s.Files)
	}
	met := 0
	for range only.Meeting(only.Files[0].Min, only.Files[0].Min) {
		met++
	}
	if met != 1 {
		t.Errorf("%d files meet", met)
	}
	if _, err := s.Only([]*deltalog.Add{{Path: "../x"}}); err == nil {
		t.Error("a file outside of the table is taken")
	}
	consistent(t, follow(t, s, &deltalog.Commit{Adds: []*deltalog.Add{fileOf("three", 3, 3)}}))
}
