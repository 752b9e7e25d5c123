package snapshot

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/tableerr"
)

// stateWith is the state of version 9 whose log has an upkeep of the given
// text, "" for none.
func stateWith(t *testing.T, text string) *deltalog.State {
	t.Helper()
	s := deltalog.NewState()
	for v := range int64(10) {
		c := &deltalog.Commit{Version: v, Protocol: deltalog.ContrailProtocol(false), Metadata: &deltalog.Metadata{ID: "id"}}
		if v == 9 && text != "" {
			c.Domains = []*deltalog.DomainMetadata{{Domain: UpkeepDomain, Configuration: text}}
		}
		var err error
		if s, err = s.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestUpkeepRoundTrip(t *testing.T) {
	for _, u := range []Upkeep{{}, {OldestVersion: 4}, {OldestVersion: 9, Abandoned: []VersionRange{{1, 1}, {3, 5}, {7, 9}}}} {
		action, err := u.Action()
		if err != nil {
			t.Fatal(err)
		}
		got, err := upkeepOf(stateWith(t, action.Configuration))
		if err != nil || !reflect.DeepEqual(got, u) {
			t.Errorf("got %+v, %v, want %+v", got, err, u)
		}
	}
}

func TestUpkeepDamaged(t *testing.T) {
	for _, text := range []string{
		`{`, `[]`, `5`, `{"oldest_version":-1}`, `{"oldest_version":10}`, `{"oldest_version":1.5}`, `{"oldest_version":"1"}`,
		`{"abandoned":[[1,10]]}`, `{"abandoned":[[2,1]]}`, `{"abandoned":[[1,2],[2,3]]}`, `{"abandoned":[[3,4],[1,2]]}`, `{"abandoned":[[-1,2]]}`, `{"abandoned":{}}`,
	} {
		if _, err := upkeepOf(stateWith(t, text)); tableerr.TokenOf(err) != tableerr.TokenCorrupt {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// TestUpkeepRollbacks follows a table through rollbacks and back.
func TestUpkeepRollbacks(t *testing.T) {
	at := map[int64]Upkeep{} // the upkeep of each version
	commit := func(version, target int64, want ...int64) {
		t.Helper()
		at[version] = Upkeep{Abandoned: at[target].RolledBack(target, version)}
		var got []int64
		for v := range version + 1 {
			if at[version].Abandons(v) {
				got = append(got, v)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("version %d, back to %d, abandons %v, want %v", version, target, got, want)
		}
	}
	commit(4, 1, 2, 3)
	at[5] = at[4]
	commit(6, 4, 2, 3, 5) // back to a rollback
	commit(7, 3, 4, 5, 6) // redo of what 4 had left behind
	commit(8, 0, 1, 2, 3, 4, 5, 6, 7)
	commit(9, 7, 4, 5, 6, 8)
}

// A table that is adopted again has none of the rows whose request ids the log
// still holds.
func TestForgetting(t *testing.T) {
	state := deltalog.NewState()
	for v := range int64(9) {
		c := &deltalog.Commit{Version: v}
		if v == 0 {
			c.Protocol, c.Metadata = deltalog.ContrailProtocol(false), &deltalog.Metadata{ID: "t"}
		}
		if v == 3 || v == 4 || v == 7 {
			id := fmt.Sprintf("contrail/0123456789abcdef/append/%d", v)
			c.Txns = []*deltalog.Txn{{AppID: id, Version: v}, {AppID: "other", Version: v - 2}}
		}
		var err error
		if state, err = state.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	u := Upkeep{OldestVersion: 1, Abandoned: []VersionRange{{1, 2}}}
	if got, want := u.Forgetting(state).Abandoned, []VersionRange{{1, 4}, {7, 7}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !slices.Equal(u.Abandoned, []VersionRange{{1, 2}}) {
		t.Errorf("it was changed to %v", u.Abandoned)
	}
}
