package tablecore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// life is a table from its creation to its drop.
type life struct {
	table   *modelTable
	id      string
	created *record
	dropped *record           // nil while it is there
	commits map[int64]*record // acknowledged ones by version
	ordered []*record         // the same by version
	model   *tabletest.Model  // holds every known version
	known   int64             // versions up to here are known
	// unsure is when the first append began that was told of the drop and may
	// have landed before it; 0 if there is none.
	unsure int64
}

// checker judges the records of a run: each answer must be right for some
// version that was current while the operation ran.
type checker struct {
	script []step
	lives  map[string]*life
	errs   []error
}

// checkRun returns what is wrong with the records of a run, nil if nothing is.
func checkRun(script []step, records []record) error {
	c := &checker{script: script, lives: map[string]*life{}}
	for i := range records {
		c.note(&records[i])
	}
	for _, l := range c.lives {
		c.replay(l)
	}
	for i := range records {
		c.check(&records[i])
	}
	return errors.Join(c.errs...)
}

func (c *checker) report(r *record, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	if r.Text != "" {
		what += "; its error was: " + r.Text
	}
	c.errs = append(c.errs, fmt.Errorf("step %d (%s): %s", r.Step, c.script[r.Step].kind, what))
}

// note sorts the successful creates, drops and commits.
func (c *checker) note(r *record) {
	s := c.script[r.Step]
	writes := s.kind == stepAppend || s.kind == stepAddColumn || s.kind == stepSetTeam || s.kind == stepUpdate || s.kind == stepOptimize
	toldOfDrop := writes && r.Token == tableerr.TokenTableNotFound
	if !toldOfDrop && r.Token != "" || r.Err != "" || r.Broken || r.ID == "" {
		return
	}
	l := c.lives[r.ID]
	if l == nil {
		l = &life{table: s.table, id: r.ID, commits: map[int64]*record{}}
		c.lives[r.ID] = l
	}
	switch {
	case toldOfDrop:
		if l.unsure == 0 || r.Start < l.unsure {
			l.unsure = r.Start
		}
	case s.kind == stepCreate:
		l.created = r
	case s.kind == stepDrop:
		if l.dropped != nil {
			c.report(r, "the table was dropped in step %d already", l.dropped.Step)
		}
		l.dropped = r
	case s.kind == stepAppend:
		if r.RowCount == 0 || r.Replayed {
			return // commits nothing
		}
		c.commit(l, r)
	case s.kind == stepAddColumn, s.kind == stepSetTeam && r.Version > r.Starting, s.kind == stepUpdate && r.RowCount > 0, s.kind == stepOptimize && !r.NoOp:
		c.commit(l, r)
	}
}

// commit notes an acknowledged commit.
func (c *checker) commit(l *life, r *record) {
	if other := l.commits[r.Version]; other != nil {
		c.report(r, "version %d was also acknowledged to step %d", r.Version, other.Step)
	}
	l.commits[r.Version] = r
}

// replay makes the acknowledged commits of a table again, by version, on the
// reference.
func (c *checker) replay(l *life) {
	l.model = l.table.model()
	for v := int64(1); len(l.ordered) < len(l.commits); v++ {
		r := l.commits[v]
		if r == nil {
			if l.dropped == nil {
				c.errs = append(c.errs, fmt.Errorf("version %d of %s was acknowledged to nobody", v, l.table.name))
			}
			return // put by an append that was told of the drop
		}
		if !c.again(l, r, v) {
			return
		}
		l.ordered = append(l.ordered, r)
		l.known = v
	}
}

// again makes the commit of a version on the reference; false where the
// reference would not.
func (c *checker) again(l *life, r *record, v int64) bool {
	s := &c.script[r.Step]
	switch s.kind {
	case stepAddColumn:
		if !l.model.MayAdd(extraColumn, v-1) {
			c.report(r, "version %d adds a column that the table has, or has no schema for", v)
			return false
		}
		l.model.AddColumn(s.table.extra())
		return true
	case stepSetTeam:
		if l.model.Team(v-1) == s.team {
			c.report(r, "version %d changes nothing", v)
		}
		l.model.SetTeam(s.team)
		return true
	case stepOptimize:
		l.model.Keep()
		return true
	case stepUpdate:
		u := s.update(*r.Expected)
		if verdict := l.model.JudgeUpdate(u, v-1); verdict != (tabletest.Verdict{}) || r.RowCount != int64(len(u.Rows)) {
			c.report(r, "version %d was acknowledged with %d rows, the reference says %s", v, r.RowCount, verdict)
			return false
		}
		l.model.CommitUpdate(u)
		return true
	}
	a := c.appendOf(r)
	if verdict := l.model.Judge(a, v-1); verdict != (tabletest.Verdict{}) {
		c.report(r, "version %d was acknowledged, the reference says %s", v, verdict)
		return false
	}
	stored, replaced := l.model.Commit(a)
	if r.RowCount != int64(stored) || r.Replaced != int64(replaced) {
		c.report(r, "version %d stored %d rows for %d, want %d for %d", v, r.RowCount, r.Replaced, stored, replaced)
	}
	return true
}

func (c *checker) appendOf(r *record) tabletest.ModelAppend {
	s := &c.script[r.Step]
	schema, rows := s.stream()
	return tabletest.ModelAppend{Schema: schema, Rows: rows, Expected: r.Expected, RequestID: s.options.RequestID, BadSettings: s.bad, Broken: s.broken}
}

// window returns the versions that may have been current while r ran: from the
// newest acknowledged before it to the newest put before its end.
func (l *life) window(r *record) (lo, hi int64) {
	for _, a := range l.ordered {
		if a.End < r.Start {
			lo = max(lo, a.Version)
		}
		if a.Start < r.End {
			hi = max(hi, a.Version)
		}
	}
	return lo, hi
}

// within says whether a version may have been current while r ran.
func (l *life) within(r *record, version int64) bool {
	lo, hi := l.window(r)
	return lo <= version && version <= hi
}

func (c *checker) check(r *record) {
	s := &c.script[r.Step]
	if r.Err != "" {
		c.report(r, "an error without a token: %s", r.Err)
		return
	}
	switch {
	case s.kind == stepList:
		c.checkList(r)
		return
	case s.kind == stepReopen:
		return
	case r.Token == tableerr.TokenTableNotFound:
		if c.certainlyThere(s.table, r) {
			c.report(r, "the table is there")
		}
		return
	case s.kind == stepCreate:
		c.checkCreate(r, s)
		return
	}
	l := c.lives[r.ID]
	if l == nil || l.created == nil {
		c.report(r, "went to the table %q that nobody made", r.ID)
		return
	}
	if l.unsure > 0 && r.End > l.unsure {
		return // it may have met a commit that was acknowledged to nobody
	}
	switch s.kind {
	case stepAppend:
		c.checkAppend(r, l)
	case stepAddColumn, stepSetTeam:
		c.checkAlter(r, l, s)
	case stepUpdate:
		c.checkUpdate(r, l, s)
	case stepOptimize:
		c.checkOptimize(r, l)
	case stepScan:
		c.checkScan(r, l, s)
	case stepDescribe:
		if want := l.model.Summary(r.Version); r.Token != "" || !l.within(r, r.Version) || r.Summary != want || r.Team != l.model.Team(r.Version) {
			c.report(r, "%s, described %+v, team %q, want %+v, team %q in %v", r.Token, r.Summary, r.Team, want, l.model.Team(r.Version), windowText(l, r))
		}
	case stepDrop:
		c.checkDrop(r, l)
	case stepCheckpoint:
		if r.Token != "" {
			c.report(r, "%s", r.Token)
		}
	}
}

func windowText(l *life, r *record) string {
	lo, hi := l.window(r)
	return fmt.Sprintf("versions %d to %d", lo, hi)
}

// certainlyThere says whether one table of the kind was there all the time.
func (c *checker) certainlyThere(k *modelTable, r *record) bool {
	for _, l := range c.lives {
		if l.table == k && l.created != nil && l.created.End < r.Start && (l.dropped == nil || l.dropped.Start > r.End) {
			return true
		}
	}
	return false
}

// certainlyGone says whether no table of the kind was there at any time.
func (c *checker) certainlyGone(k *modelTable, r *record) bool {
	for _, l := range c.lives {
		if l.table == k && (l.created == nil || l.created.Start < r.End) && (l.dropped == nil || l.dropped.End > r.Start) {
			return false
		}
	}
	return true
}

func (c *checker) checkCreate(r *record, s *step) {
	switch {
	case r.Token == tableerr.TokenTableExists:
		// A create that is under way may have the name before its own start of
		// another table is known, so only a name that nobody wants is free.
		if c.certainlyGone(s.table, r) {
			c.report(r, "there is no such table")
		}
	case r.Token != "":
		c.report(r, "%s", r.Token)
	case r.Version != 0 && !c.lives[r.ID].within(r, r.Version):
		c.report(r, "a new table has version %d", r.Version)
	case c.certainlyThere(s.table, r):
		c.report(r, "the table was there already")
	}
}

func (c *checker) checkList(r *record) {
	if r.Token != "" {
		c.report(r, "%s", r.Token)
		return
	}
	for i := range modelTables {
		k := &modelTables[i]
		listed := slices.Contains(r.Tables, k.name.String())
		if c.certainlyThere(k, r) && !listed || c.certainlyGone(k, r) && listed {
			c.report(r, "%s listed: %t", k.name, listed)
		}
	}
}

func (c *checker) checkAppend(r *record, l *life) {
	a := c.appendOf(r)
	if r.Token == "" && !r.Broken && !r.Replayed && r.RowCount > 0 {
		lo, _ := l.window(r)
		if r.Version <= lo || r.Starting >= r.Version || r.Starting < 0 {
			c.report(r, "committed as version %d, which started at %d, after version %d", r.Version, r.Starting, lo)
		}
		if l.dropped != nil && l.dropped.End < r.Start {
			c.report(r, "went into a dropped table")
		}
		return
	}
	got := tabletest.Verdict{Token: r.Token, Broken: r.Broken, Detail: r.Detail}
	if r.Replayed {
		got.Replays = r.Version
	}
	lo, hi := l.window(r)
	var wants []string
	for v := lo; v <= hi; v++ {
		want := l.model.Judge(a, v)
		// Rows that are staged are judged twice; none at all fit every version.
		if want == got && (got.Token != "" || got.Broken || r.Replayed || r.Version == v || c.script[r.Step].staged) {
			return
		}
		wants = append(wants, want.String())
	}
	if got.Token == tableerr.TokenSchemaMismatch && l.table.adopts && lo == 0 {
		return // it lost the race to bring the schema, and its files are of its own
	}
	c.report(r, "answered %q on version %d, the reference on versions %d to %d %q", got, r.Version, lo, hi, slices.Compact(wants))
}

// checkOptimize judges the answer of an optimize.
func (c *checker) checkOptimize(r *record, l *life) {
	lo, hi := l.window(r)
	switch {
	case r.Token == tableerr.TokenVersionConflict && r.Expected != nil && (*r.Expected < lo || hi > lo || *r.Expected > hi):
	case r.Token != "":
		c.report(r, "expecting %v it answered %s in %s", r.Expected, r.Token, windowText(l, r))
	case r.Expected != nil && *r.Expected != r.Starting, r.NoOp && !l.within(r, r.Version), !r.NoOp && (r.Version <= lo || r.Starting >= r.Version):
		c.report(r, "answered version %d from %d in %s", r.Version, r.Starting, windowText(l, r))
	}
}

// checkUpdate judges the answer of an update.
func (c *checker) checkUpdate(r *record, l *life, s *step) {
	lo, hi := l.window(r)
	if r.Token == "" && r.RowCount > 0 {
		if r.Version <= lo || r.Starting != r.Version-1 || r.Starting != *r.Expected || l.dropped != nil && l.dropped.End < r.Start {
			c.report(r, "committed as version %d, which started at %d, after version %d", r.Version, r.Starting, lo)
		}
		return
	}
	got := tabletest.Verdict{Token: r.Token, Detail: r.Detail}
	for v := lo; v <= hi; v++ {
		if l.model.JudgeUpdate(s.update(*r.Expected), v) == got && (r.Token != "" || r.Version == v) {
			return
		}
	}
	c.report(r, "answered %q on version %d of %s", got, r.Version, windowText(l, r))
}

// checkAlter judges an answer to add_columns or set_properties.
func (c *checker) checkAlter(r *record, l *life, s *step) {
	lo, hi := l.window(r)
	invalid := func(v int64) bool { return s.kind == stepAddColumn && !l.model.MayAdd(extraColumn, v) }
	switch {
	case r.Token == "" && r.Version > r.Starting:
		if r.Version <= lo || r.Starting < 0 || l.dropped != nil && l.dropped.End < r.Start {
			c.report(r, "committed as version %d, which started at %d, after version %d", r.Version, r.Starting, lo)
		}
	case r.Token == "":
		if s.kind == stepAddColumn || r.Version < lo || r.Version > hi || l.model.Team(r.Version) != s.team || r.Expected != nil && *r.Expected != r.Version {
			c.report(r, "nothing to do on version %d of %s", r.Version, windowText(l, r))
		}
	case r.Token == tableerr.TokenInvalid:
		if !invalid(lo) && !invalid(hi) { // a column never goes
			c.report(r, "nothing is wrong with it in %s", windowText(l, r))
		}
	case r.Token == tableerr.TokenVersionConflict:
		var expected, found int64
		if _, err := fmt.Sscanf(r.Detail, "expected %d found %d", &expected, &found); err != nil || found < lo || found > hi ||
			expected == found || r.Expected != nil && *r.Expected != expected || r.Expected == nil && !l.redefined(expected, found) {
			c.report(r, "%s in %s", r.Detail, windowText(l, r))
		}
	default:
		c.report(r, "%s", r.Token)
	}
	if r.Token == "" && s.kind == stepSetTeam && r.Team != s.team {
		c.report(r, "the property is %q", r.Team)
	}
}

// redefined says whether a commit between two versions has changed what the table
// is.
func (l *life) redefined(after, upTo int64) bool {
	for v := after + 1; v <= upTo; v++ {
		if l.model.Team(v) != l.model.Team(v-1) || l.model.Schema(v) != l.model.Schema(v-1) && l.model.Schema(v-1) != nil {
			return true
		}
	}
	return false
}

func (c *checker) checkDrop(r *record, l *life) {
	lo, hi := l.window(r)
	switch {
	case r.Token == tableerr.TokenVersionConflict:
		if r.Expected == nil || *r.Expected == lo && lo == hi || !strings.HasPrefix(r.Detail, fmt.Sprintf("expected %d found ", *r.Expected)) {
			c.report(r, "%s in %s", r.Detail, windowText(l, r))
		}
	case r.Token != "":
		c.report(r, "%s", r.Token)
	case r.Version < lo || r.Version > max(hi, l.known) || r.Expected != nil && *r.Expected != r.Version:
		c.report(r, "dropped at version %d of %s", r.Version, windowText(l, r))
	}
}
