package ingest

import (
	"context"
	"errors"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/newfile"
	"contrail/tablecore/internal/snapshot"
)

const (
	// mostInputs is how many files are merged side by side.
	mostInputs = 64
	// mostOutputs is how many files are written side by side.
	mostOutputs = 64
	// blockRows and blockBytes are about how many rows are merged before they go
	// to the files; as much is decoded of all inputs together.
	blockRows  = 128 << 10
	blockBytes = 32 << 20
	// leastBatch is the least that is decoded of an input at once, in rows.
	leastBatch = 512
	// leastGroup is what the row group of a file may take at least, unless it
	// needs less: files of smaller ones read slowly.
	leastGroup = 16 << 20
	// guessedBytes stands for a value whose size its type does not tell.
	guessedBytes = 24
	// decodedShare is the part of its memory that a merge may have decoded side by
	// side.
	decodedShare = 4
)

// errTooMuch says that the rows are larger than they seemed to be.
var errTooMuch = errors.New("too much is decoded side by side")

// SortedFiles are data files of a table whose rows each has in the order of
// (entity, index).
type SortedFiles struct {
	Snapshot *snapshot.Snapshot
	Cache    *filecache.Files
	// List are the files. Of equal rows those of an earlier one come first.
	List []*snapshot.File
}

// Merge writes the rows of sorted files as Run would, into files cut by ranges of
// the index, but holds no more of them than a row group for each file and what is
// decoded side by side. Each input is read once, and before that its index column
// where the rows make several files. It leaves nothing and returns false where
// that would take too many files at once or too much memory, or where a directory
// is missing: Run can do it.
//
// A missing or damaged input is *tableerr.FileMissing or *tableerr.Corrupt. After
// an error nothing is left.
func Merge(ctx context.Context, cfg Config, in SortedFiles) (files []newfile.File, done bool, err error) {
	cfg = cfg.withDefaults()
	if cfg.Shape.ByEntity || len(in.List) > mostInputs {
		return nil, false, nil
	}
	m := &fileMerger{cfg: cfg, in: in, fields: mergedFields(cfg), place: cfg.Def.Stored.FieldIndices(cfg.Def.IndexColumn)[0]}
	defer m.close()
	if sorted, err := m.open(ctx); err != nil || !sorted {
		return nil, false, err
	}
	if fit, err := m.plan(ctx); err != nil || !fit {
		return nil, false, err
	}
	if !m.memory.fit(cfg.Budget, m.need()) {
		return nil, false, nil
	}
	files, err = m.write(ctx)
	if errors.Is(err, errTooMuch) {
		return nil, false, nil
	}
	return files, err == nil, err
}

// fileMerger merges sorted files.
type fileMerger struct {
	cfg    Config
	in     SortedFiles
	fields []arrow.Field // in storage types
	place  int           // of the index column among them

	inputs  []*sortedInput
	memory  grant
	rows    int64
	width   int64    // bytes of a row, estimated
	cuts    []uint64 // where the ranges of the second file and those behind it begin
	group   int64    // bytes that a row group may take
	decoded int64    // bytes of the inputs' batches
	outputs []*mergedFile

	merging mergeSpace
	block   *mergeBlock
}

// open opens the inputs; false where the order of one is not known.
func (m *fileMerger) open(ctx context.Context) (bool, error) {
	bytes := int64(0)
	for _, f := range m.in.List {
		index, err := m.in.Cache.Index(ctx, m.in.Snapshot, f)
		if err != nil || !index.Sorted() {
			return false, err
		}
		m.inputs = append(m.inputs, &sortedInput{path: f.Path, runs: index.Directory})
		m.rows += index.Rows
		bytes += f.Add.Size
	}
	for i, f := range m.in.List {
		var err error
		if m.inputs[i].file, err = m.in.Cache.Open(ctx, m.in.Snapshot, f); err != nil {
			return false, err
		}
	}
	m.width = max(rowWidth(m.fields), 2*bytes/max(1, m.rows))
	return true, nil
}

func (m *fileMerger) close() {
	for _, in := range m.inputs {
		in.close()
	}
	m.memory.end(m.cfg.Budget)
}

// rowWidth estimates the memory that a row takes.
func rowWidth(fields []arrow.Field) int64 {
	width := int64(0)
	for _, f := range fields {
		if t, ok := f.Type.(arrow.FixedWidthDataType); ok {
			width += int64(t.BitWidth()+7) / 8
		} else {
			width += guessedBytes
		}
	}
	return width
}

// need estimates what the row groups of all files take, each once in memory and
// once encoded, and adds what may be decoded.
func (m *fileMerger) need() int64 {
	all := m.rows * m.width
	return 2*min(int64(len(m.cuts)+1)*m.group, all) + min(m.cfg.MemoryBudget/decodedShare, all)
}

// plan cuts the rows into files; false where a range would have too many rows or
// the files' row groups too little memory.
func (m *fileMerger) plan(ctx context.Context) (bool, error) {
	p := planner{domain: m.cfg.Domain, limits: m.cfg.limits}
	if n := p.pieces(m.rows); n > 1 {
		step := max(1, m.rows/sampleRows)
		sample, err := m.sample(ctx, step)
		if err != nil {
			return false, err
		}
		m.cuts = p.cutsOf(sample, slices.Min(sample), n)
		if len(m.cuts) >= mostOutputs || m.mostRows(sample)*step > m.cfg.limits.maxRows {
			return false, nil
		}
	}
	files := int64(len(m.cuts) + 1)
	m.group = min(datafile.DefaultBytesPerRowGroup, m.cfg.MemoryBudget*3/8/files)
	return m.group >= min(leastGroup, m.rows*m.width/files), nil
}

// mostRows returns how many ordinals of a sample in order, which has one at least,
// the fullest range has.
func (m *fileMerger) mostRows(sample []uint64) int64 {
	most, from := 0, 0
	for _, c := range m.cuts {
		to, _ := slices.BinarySearch(sample, c)
		most, from = max(most, to-from), to
	}
	return int64(max(most, len(sample)-from))
}

// sample returns the index ordinals of every step-th row.
func (m *fileMerger) sample(ctx context.Context, step int64) ([]uint64, error) {
	var sample, ordinals []uint64
	skip := int64(0)
	for _, in := range m.inputs {
		err := in.file.Each(ctx, datafile.ReadRequest{Fields: m.fields[m.place : m.place+1]}, func(_ int64, batch arrow.RecordBatch) (err error) {
			if ordinals, err = m.cfg.Domain.AppendOrdinals(ordinals[:0], batch.Column(0)); err != nil {
				return in.damaged(err)
			}
			n := batch.NumRows()
			for ; skip < n; skip += step {
				sample = append(sample, ordinals[skip])
			}
			skip -= n
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return sample, nil
}

// mergedFields are the columns of the files, in storage types.
func mergedFields(cfg Config) []arrow.Field {
	names := make([]string, cfg.Def.Stored.NumFields())
	for i, f := range cfg.Def.Stored.Fields() {
		names[i] = f.Name
	}
	return snapshot.StorageFields(cfg.Def, names)
}

// write merges the rows and writes the files side by side.
func (m *fileMerger) write(ctx context.Context) ([]newfile.File, error) {
	cfg := m.cfg
	cfg.Write.MaxBytesPerRowGroup = m.group
	out, err := cfg.newFiles(cfg.Now())
	if err != nil {
		return nil, err
	}
	for range len(m.cuts) + 1 {
		path, err := out.NewPath()
		if err != nil {
			return nil, err
		}
		m.outputs = append(m.outputs, newMergedFile(m, path))
	}
	writers, ctx := errgroup.WithContext(ctx)
	for _, o := range m.outputs {
		writers.Go(func() error { return o.write(ctx, out) })
	}
	writers.Go(func() error { return m.merge(ctx) })
	err = writers.Wait()
	var files []newfile.File
	for _, o := range m.outputs {
		o.drop()
		if o.rows > 0 {
			files = append(files, o.file)
		}
	}
	if err != nil {
		out.Discard(ctx)
		return nil, err
	}
	return files, nil
}

// merge gives the rows of all inputs to the files.
func (m *fileMerger) merge(ctx context.Context) error {
	defer func() { m.block.release() }()
	m.block = &mergeBlock{}
	for {
		key, some := m.first()
		if len(some) == 0 {
			break
		}
		for len(some) > 0 {
			var err error
			if some, err = m.step(ctx, key, some); err != nil {
				return err
			}
			if err := m.pass(ctx, false); err != nil {
				return err
			}
		}
	}
	if err := m.pass(ctx, true); err != nil {
		return err
	}
	for _, o := range m.outputs {
		if err := o.finish(); err != nil {
			return err
		}
	}
	return nil
}

// first returns the smallest entity of the rows that are left, and the inputs that
// have some of it.
func (m *fileMerger) first() (key string, some []*sortedInput) {
	for _, in := range m.inputs {
		if len(in.runs) == 0 {
			continue
		}
		if next := in.runs[0].Key; len(some) == 0 || next < key {
			key, some = next, append(some[:0], in)
		} else if next == key {
			some = append(some, in)
		}
	}
	return key, some
}

// step merges as many rows of an entity as can be put into order with what is
// decoded: those up to the last one of the input that ends first. It returns the
// inputs that have more of the entity.
func (m *fileMerger) step(ctx context.Context, key string, some []*sortedInput) ([]*sortedInput, error) {
	windows := make([][]uint64, len(some))
	limit, limiting := uint64(0), -1
	for i, in := range some {
		var err error
		if windows[i], err = m.window(ctx, in); err != nil {
			return nil, err
		}
		last := windows[i][len(windows[i])-1]
		if int64(len(windows[i])) < in.runs[0].End-in.row() && (limiting < 0 || last < limit) {
			limit, limiting = last, i
		}
	}
	more := some[:0]
	m.merging.reset()
	for i, in := range some {
		n := len(windows[i])
		if limiting >= 0 && i != limiting {
			n = upTo(windows[i], limit, i < limiting)
		}
		m.merging.add(windows[i][:n], m.block.take(in, n))
		if in.take(n); len(in.runs) > 0 && in.runs[0].Key == key {
			more = append(more, in)
		}
	}
	keys, places := m.merging.sorted()
	for i, o := range m.outputs {
		n := len(keys)
		if i < len(m.cuts) {
			n, _ = slices.BinarySearch(keys, m.cuts[i])
		}
		o.add(key, keys[:n], places[:n])
		keys, places = keys[n:], places[n:]
	}
	return more, nil
}

// upTo returns how many of some ascending values lie below a limit, or at it.
func upTo(values []uint64, limit uint64, at bool) int {
	n, found := slices.BinarySearch(values, limit)
	for at && found && n < len(values) && values[n] == limit {
		n++
	}
	return n
}

// window returns the ordinals of the decoded rows of an input's first run, at
// least one.
func (m *fileMerger) window(ctx context.Context, in *sortedInput) ([]uint64, error) {
	if in.at == len(in.ordinals) {
		if err := m.load(ctx, in); err != nil {
			return nil, err
		}
	}
	values := in.ordinals[in.at:min(int64(len(in.ordinals)), in.runs[0].End-in.first)]
	if !slices.IsSorted(values) {
		return nil, in.damaged(errDisorder)
	}
	return values, nil
}

// atOnce is about how many rows are merged before they go to the files.
func (m *fileMerger) atOnce() int64 {
	if few := m.cfg.limits.blockRows; few > 0 {
		return few
	}
	bytes := min(blockBytes, m.cfg.MemoryBudget/(2*decodedShare))
	return max(min(blockRows, bytes/max(1, m.width)), leastBatch*int64(len(m.inputs)))
}

// load decodes the next rows of an input.
func (m *fileMerger) load(ctx context.Context, in *sortedInput) error {
	if in.rows == nil {
		most := min(max(m.atOnce()/int64(len(m.inputs)), 1), mostPlaces-1)
		rows, err := in.file.Read(ctx, datafile.ReadRequest{Fields: m.fields, BatchRows: int(most)})
		if err != nil {
			return err
		}
		in.rows = rows
	}
	m.decoded -= in.bytes
	if err := in.next(ctx, m.cfg.Domain, m.place); err != nil {
		return err
	}
	// Inputs that are read later take less at once where rows turn out to be wide.
	m.width = max(m.width, in.bytes/in.batch.NumRows())
	if m.decoded += in.bytes; m.decoded > m.cfg.MemoryBudget/decodedShare {
		return errTooMuch
	}
	return nil
}

// pass gives the rows of the block to the files once they are enough, or there
// are no more, and begins another one.
func (m *fileMerger) pass(ctx context.Context, all bool) error {
	if !all && !m.block.full(m.atOnce()) {
		return nil
	}
	for _, o := range m.outputs {
		if err := o.pass(ctx, m.block); err != nil {
			return err
		}
	}
	m.block.release()
	m.block = &mergeBlock{}
	return nil
}
