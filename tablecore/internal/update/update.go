// Package update corrects stored rows by key: a stream brings the entity
// columns, the index column and new values for some other columns, and each of
// its rows names exactly one stored row.
//
// The stream's values are kept in memory up to a limit and beyond it in a
// scratch file; its keys are sorted, so that a key given twice is found without
// the table. The files that may hold a key are found by their entities, their
// bounds and their coverage, and of these only the pages of the index column
// that may hold one are read. Files that do hold one are written anew by package
// rewrite, in their order and with the bits of all other values. Nothing is
// visible until the caller commits what Commit returns.
package update

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/internal/parallel"
	"contrail/tablecore/internal/rewrite"
	"contrail/tablecore/internal/rowdigest"
	"contrail/tablecore/internal/scratch"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
)

// Op is the op of an update, where request ids are remembered and in the log.
const Op = "update_rows"

const (
	// atOnce is how many files are matched or rewritten at the same time.
	atOnce = 2
	// maxUnfolding is what the views and dictionaries of a batch may unfold to.
	maxUnfolding = 256 << 20
	// wideGroup is how many bytes of new values a row group may have so that
	// atOnce of them find memory.
	wideGroup = 32 << 20
)

// limits bound the memory of an update.
type limits struct {
	rowBytes int64 // of values that wait in memory
	keys     int   // that are sorted in memory
	matches  int   // that are kept until files are rewritten; others are looked up again
}

// within returns the limits of an update with a memory budget. More than a
// certain size makes nothing faster.
func within(budget int64) limits {
	return limits{rowBytes: min(64<<20, budget/8), keys: int(min(2<<20, budget/1024)), matches: int(min(4<<20, budget/512))}
}

// Config is what an update works with.
type Config struct {
	Store objstore.Store // the table's own
	Files *filecache.Files
	Mem   memory.Allocator
	// Rows is where the values wait. It gets all of it back.
	Rows memory.Allocator
	// MemoryBudget bounds what holds values and keys, in bytes. The row groups
	// that are being written, at most two at once, come on top.
	MemoryBudget int64
	// Scratch is where values and keys go that find no memory; nil keeps all of
	// them in memory.
	Scratch scratch.Space
	Now     func() time.Time
	NewID   func() (string, error)
	// Software names the writer in the files' tags.
	Software string
	// Digest asks for a digest of the rows.
	Digest bool
}

// Update is one update on its way from a stream to a commit. Its steps are New,
// Write, Commit and, unless it was published, Discard. It belongs to one
// goroutine at a time.
type Update struct {
	cfg     Config
	limits  limits
	base    *snapshot.Snapshot
	def     *tabledef.Definition // of the stream: the keys and the chosen columns
	aligner *convert.Aligner
	digest  *rowdigest.Digest // nil when none is asked for
	out     *newfile.Writer

	rows  int64
	files []rewrite.File
}

// Definition returns the definition of the streams that update some columns of
// a table: its key columns and those. INVALID with the column where one is
// named twice, unknown or a key, and where the table has no schema or no column
// is named.
func Definition(def *tabledef.Definition, columns []string) (*tabledef.Definition, error) {
	if def.Stored == nil {
		return nil, tableerr.InvalidField("table", "the table has no schema yet, so it has no rows to update")
	}
	if len(columns) == 0 {
		return nil, tableerr.InvalidField("columns", "an update names at least one column")
	}
	for i, name := range columns {
		field := "columns[" + strconv.Itoa(i) + "]"
		switch {
		case slices.Contains(columns[:i], name):
			return nil, tableerr.InvalidField(field, "column %q is named twice", name)
		case def.IsKey(name):
			return nil, tableerr.InvalidField(field, "column %q is a key column, which no update changes", name)
		case !def.Stored.HasField(name):
			return nil, tableerr.InvalidField(field, "the table has no column %q", name)
		}
	}
	fields := slices.DeleteFunc(slices.Clone(def.Stored.Fields()), func(f arrow.Field) bool {
		return !def.IsKey(f.Name) && !slices.Contains(columns, f.Name)
	})
	own := *def
	own.Stored = arrow.NewSchema(fields, nil)
	// Neither may be left out of an update.
	own.IngestTimeColumn, own.ColumnsAdded = "", false
	return &own, nil
}

// DigestOp is what the digest of an update has for its op: the op, and the
// columns, whose order means nothing.
func DigestOp(columns []string) string {
	names := slices.Clone(columns)
	slices.Sort(names)
	text, _ := json.Marshal(names) // strings always marshal
	return Op + string(text)
}

// New checks an update's columns and its stream's schema against a table.
func New(s *snapshot.Snapshot, schema *arrow.Schema, columns []string, cfg Config) (*Update, error) {
	def, err := Definition(s.Def, columns)
	if err != nil {
		return nil, err
	}
	u := &Update{cfg: cfg, limits: within(cfg.MemoryBudget), base: s, def: def}
	if u.aligner, err = convert.NewAligner(schema, def); err != nil {
		return nil, err
	}
	u.aligner.LimitUnfolding(maxUnfolding)
	if cfg.Digest {
		u.digest = rowdigest.New(DigestOp(columns), def, u.aligner)
	}
	u.out, err = newfile.NewWriter(newfile.Config{Store: cfg.Store, Def: s.Def, Write: datafile.WriteOptions{Mem: cfg.Mem},
		NewID: cfg.NewID, Software: cfg.Software, Modified: cfg.Now()})
	return u, err
}

// Base is the snapshot that the update was checked against, the only one that
// it may follow.
func (u *Update) Base() *snapshot.Snapshot { return u.base }

// Rows is the number of rows of the stream, each of which names one row.
func (u *Update) Rows() int64 { return u.rows }

// Digest is that of the stream's rows, "" where none was asked for.
func (u *Update) Digest() string {
	if u.digest == nil {
		return ""
	}
	return u.digest.Sum()
}

// Files are the data files that were written anew, in the order of the old ones
// in the table.
func (u *Update) Files() []rewrite.File { return u.files }

// Discard removes what was written.
func (u *Update) Discard(ctx context.Context) { u.out.Discard(ctx) }

// Write reads the stream to its end and writes the files anew that hold the rows
// it names. A stream without rows writes nothing.
//
// Errors of the rows are those of convert.Aligner, then, once the stream was
// read, *tableerr.DuplicateSourceKey, *tableerr.UnmatchedSourceKey and
// *tableerr.AmbiguousTargetKey in this order; errors of rows.Next come back as
// they are. After any error nothing is left.
func (u *Update) Write(ctx context.Context, rows RowReader) error {
	err := u.write(ctx, rows)
	if err != nil {
		u.Discard(ctx)
	}
	return err
}

func (u *Update) write(ctx context.Context, rows RowReader) error {
	s := newSource(u)
	defer s.close()
	if err := s.receive(ctx, rows, u); err != nil {
		return err
	}
	if u.rows = s.rows; u.rows == 0 {
		return nil
	}
	if err := s.checkDuplicates(ctx); err != nil {
		return err
	}
	m := newMatcher(u, s)
	targets, err := u.match(ctx, m)
	if err != nil {
		return err
	}
	if err := m.check(); err != nil {
		return err
	}
	return u.rewrite(ctx, m, targets)
}

// target is a file with addressed rows.
type target struct {
	file    *snapshot.File
	count   int
	matches []match // nil where they were too many to keep
}

// match finds the files that hold addressed rows.
func (u *Update) match(ctx context.Context, m *matcher) ([]target, error) {
	var targets []target
	for _, f := range u.base.Files {
		if m.candidate(f) {
			targets = append(targets, target{file: f})
		}
	}
	err := parallel.Each(ctx, len(targets), atOnce, func(ctx context.Context, i int) error {
		found, err := m.find(ctx, targets[i].file)
		if err == nil {
			targets[i].count = len(found.rows)
			targets[i].matches = m.take(found)
		}
		return err
	})
	return slices.DeleteFunc(targets, func(t target) bool { return t.count == 0 }), err
}

// rewrite writes the files of targets anew.
func (u *Update) rewrite(ctx context.Context, m *matcher, targets []target) error {
	r := replacing{update: u, matcher: m}
	for _, f := range m.source.spool.schema.Fields() {
		r.columns = append(r.columns, f.Name)
	}
	u.files = make([]rewrite.File, len(targets))
	workers := atOnce
	if m.source.spool.average()*datafile.DefaultRowsPerRowGroup > wideGroup {
		workers = 1
	}
	return parallel.Each(ctx, len(targets), workers, func(ctx context.Context, i int) (err error) {
		u.files[i], err = r.file(ctx, targets[i])
		return err
	})
}

// replacing is what the rewriting of all files has in common.
type replacing struct {
	update  *Update
	matcher *matcher
	columns []string
}

// file writes one file anew.
func (r *replacing) file(ctx context.Context, t target) (rewrite.File, error) {
	if t.matches == nil {
		found, err := r.matcher.find(ctx, t.file)
		if err != nil {
			return rewrite.File{}, err
		}
		t.matches = found.rows
	}
	u := r.update
	values := replacer{spool: &r.matcher.source.spool, matches: t.matches}
	return rewrite.Write(ctx, rewrite.Config{Snapshot: u.base, Files: u.cfg.Files, Out: u.out}, t.file,
		rewrite.Change{Columns: r.columns, Replaced: values.replaced, Replace: values.replace})
}

// Commit returns the actions of the commit that follows s.
func (u *Update) Commit(s *snapshot.Snapshot, extra map[string]json.RawMessage) (*deltalog.Commit, error) {
	c := &deltalog.Commit{Info: &deltalog.CommitInfo{Operation: "UPDATE", OperationParameters: map[string]string{}, Extra: extra}}
	for i := range u.files {
		remove := *u.files[i].Remove
		c.Removes = append(c.Removes, &remove)
		c.Adds = append(c.Adds, u.files[i].AddAt(s.Version()+1))
	}
	return c, nil
}

// Remember hands what is known of the written files to the cache.
func (u *Update) Remember() {
	for i := range u.files {
		u.cfg.Files.Keep(u.base.Def, u.files[i].Path, &u.files[i].Index)
	}
}
