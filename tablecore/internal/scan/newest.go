package scan

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"sort"
	"strings"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/predicate"
)

const (
	// windowBytes is about what the rows of a window hold, which exist twice
	// while they are put in order.
	windowBytes = 24 << 20
	// minWindow and maxWindow bound the rows of a window.
	minWindow = 4 << 10
	maxWindow = 512 << 10
	// crowd is how many times more rows than it should a window may have because
	// many lie at its lowest index value.
	crowd = 2
)

// newest gives the rows of a plan by index descending over all entities, then
// by entity, then as in a sorted scan. It goes down the index in windows: the
// next window begins at the index value that leaves about a given number of
// rows at or above it, found by reading index values only, from the end of each
// run. The rows of a window are read in file order and then sorted.
type newest struct {
	r    *Reader
	runs []tail // by entity and file, with rows that were not given yet
	rows int64  // of a window
	top  uint64 // the highest ordinal that was not given yet

	counted map[int]bool // files whose row groups are in the statistics
	nested  *Reader      // of the rows of one crowded ordinal
}

// tail is a run whose rows from end on were given.
type tail struct {
	file        int
	key         string
	start, end  int64
	first, last uint64 // bounds of what is left
	look        int64  // how many rows from the end are looked at first
}

func newNewest(r *Reader) *newest {
	n := &newest{r: r, top: ^uint64(0), counted: map[int]bool{}}
	for file, runs := range r.plan.runs {
		for _, run := range runs {
			n.runs = append(n.runs, tail{file: file, key: run.Key, start: run.Start, end: run.End, first: run.First, last: run.Last})
		}
	}
	slices.SortStableFunc(n.runs, func(a, b tail) int { return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.file, b.file)) })
	n.rows = max(minWindow, min(maxWindow, windowBytes/r.plan.rowWidth(r.columns)))
	if r.limit >= 0 && r.plan.query.filter == nil {
		n.rows = max(1024, min(n.rows, r.limit))
	}
	return n
}

func (n *newest) release() {
	if n.nested != nil {
		n.nested.Release()
	}
}

// fill gives the rows of the next window.
func (n *newest) fill(ctx context.Context) error {
	if n.nested != nil {
		return n.forward(ctx)
	}
	if len(n.runs) == 0 || n.r.limit == 0 {
		n.r.done = true
		return nil
	}
	low, count, err := n.threshold(ctx)
	if err != nil {
		return err
	}
	window := predicate.Span{First: low, Last: n.top}
	if count > crowd*n.rows && low < n.top {
		window.First++ // without the crowd, which comes next
	} else if count > crowd*n.rows {
		return n.crowded(ctx, low)
	}
	b := &block{}
	defer b.release()
	if err := n.gather(ctx, window, b); err != nil {
		return err
	}
	n.below(window.First)
	return n.r.emit(b)
}

// below makes everything at or above an ordinal count as given.
func (n *newest) below(ordinal uint64) {
	if ordinal == 0 {
		n.runs = nil
		return
	}
	n.top = ordinal - 1
	n.runs = slices.DeleteFunc(n.runs, func(t tail) bool { return t.start >= t.end || t.first > n.top })
	for i := range n.runs {
		n.runs[i].last = min(n.runs[i].last, n.top)
	}
}

// threshold returns the ordinal of the row that is the window's last, the
// lowest one where no more are left, and how many rows lie at or above it.
func (n *newest) threshold(ctx context.Context) (low uint64, count int64, err error) {
	each := max(256, 4*n.rows/int64(len(n.runs)))
	for i := range n.runs {
		n.runs[i].look = min(each, n.rows+1)
	}
	for {
		top, err := n.highest(ctx)
		if err != nil {
			return 0, 0, err
		}
		if int64(len(top.values)) < n.rows {
			low = 0
		} else {
			low = top.cut()
		}
		// A run that was not looked at down to the threshold may hold more.
		short := false
		for i := range n.runs {
			t := &n.runs[i]
			switch {
			case t.start >= t.end-t.look || top.lowest[i] < low:
			case t.look > n.rows: // so many rows of one entity at the threshold
				return low, math.MaxInt64, nil
			default:
				t.look = min(4*t.look, n.rows+1)
				short = true
			}
		}
		if !short {
			for _, v := range top.values {
				if v >= low {
					count++
				}
			}
			return low, count + top.dropped(low), nil
		}
	}
}

// ranking keeps the highest ordinals it is shown.
type ranking struct {
	rows    int
	values  []uint64
	floor   uint64   // ordinals below it do not matter any more
	atFloor int64    // how many ordinals equal to floor were let go
	lowest  []uint64 // by run, the lowest ordinal that was looked at
}

func (k *ranking) add(values []uint64) {
	for _, v := range values {
		if v >= k.floor {
			k.values = append(k.values, v)
		}
	}
	if len(k.values) >= 4*k.rows {
		k.cut()
	}
}

// cut keeps the rows highest ordinals, and returns the lowest of these.
func (k *ranking) cut() uint64 {
	slices.SortFunc(k.values, func(a, b uint64) int { return cmp.Compare(b, a) })
	if low := k.values[k.rows-1]; low > k.floor {
		k.floor, k.atFloor = low, 0
	}
	end := sort.Search(len(k.values), func(i int) bool { return k.values[i] < k.floor })
	k.atFloor += int64(max(0, end-k.rows))
	k.values = k.values[:k.rows]
	return k.floor
}

// dropped counts the ordinals equal to low that were let go.
func (k *ranking) dropped(low uint64) int64 {
	if low == k.floor {
		return k.atFloor
	}
	return 0
}

// highest looks at the ends of all runs, those with the highest values first.
func (n *newest) highest(ctx context.Context) (*ranking, error) {
	top := &ranking{rows: int(n.rows), lowest: make([]uint64, len(n.runs))}
	p := n.r.plan
	for _, file := range n.filesByLast() {
		c := p.newCursor(p.files[file.file], []string{p.snap.Def.IndexColumn}, indexRows, true)
		var some []int
		for _, i := range file.runs {
			if t := n.runs[i]; t.last >= top.floor {
				c.want(datafile.RowRange{Start: max(t.start, t.end-t.look), End: t.end})
				some = append(some, i)
			}
		}
		var values []uint64
		for _, i := range some {
			var err error
			if values, err = c.ordinals(ctx, p.snap.Domain, n.runs[i].end, values[:0]); err != nil {
				c.close()
				return nil, err
			}
			if len(values) > 0 {
				top.lowest[i] = values[0]
				top.add(values[:sort.Search(len(values), func(k int) bool { return values[k] > n.top })])
			}
		}
		c.close()
	}
	return top, nil
}

// fileTails are the runs of one file, by their rows.
type fileTails struct {
	file int
	last uint64
	runs []int // indices into newest.runs
}

// filesByLast groups the runs by file, the file with the highest index value
// first.
func (n *newest) filesByLast() []fileTails {
	at := map[int]int{}
	var files []fileTails
	for i, t := range n.runs {
		k, known := at[t.file]
		if !known {
			k = len(files)
			at[t.file] = k
			files = append(files, fileTails{file: t.file})
		}
		files[k].runs = append(files[k].runs, i)
		files[k].last = max(files[k].last, t.last)
	}
	slices.SortFunc(files, func(a, b fileTails) int { return cmp.Or(cmp.Compare(b.last, a.last), cmp.Compare(a.file, b.file)) })
	return files
}

// ranked is a row of a window.
type ranked struct {
	ordinal     uint64
	run         int // by entity, then file
	source, row int
}

// gather reads the rows of a window and adds them to a block in order.
func (n *newest) gather(ctx context.Context, window predicate.Span, b *block) error {
	var rows []ranked
	for _, file := range n.filesByLast() {
		if file.last < window.First {
			break
		}
		var err error
		if rows, err = n.gatherFile(ctx, file, window, b, rows); err != nil {
			return err
		}
	}
	slices.SortFunc(rows, func(x, y ranked) int {
		return cmp.Or(cmp.Compare(y.ordinal, x.ordinal), cmp.Compare(x.run, y.run), cmp.Compare(x.source, y.source), cmp.Compare(x.row, y.row))
	})
	if n.r.limit >= 0 {
		rows = rows[:min(int64(len(rows)), n.r.limit)]
		n.r.limit -= int64(len(rows))
	}
	for _, row := range rows {
		b.add(row.source, row.row, 1)
	}
	return nil
}

// gatherFile reads the rows of a window that lie in one file.
func (n *newest) gatherFile(ctx context.Context, file fileTails, window predicate.Span, b *block, rows []ranked) ([]ranked, error) {
	wanted, owners, err := n.locate(ctx, file, window)
	if err != nil || len(wanted) == 0 {
		return rows, err
	}
	p := n.r.plan
	f, err := p.data.Open(ctx, p.snap, p.files[file.file])
	if err != nil {
		return rows, err
	}
	defer f.Close()
	n.count(file.file, f)
	c := p.newCursor(p.files[file.file], n.r.columns, 0, true) // only to apply the filter
	c.filter = p.query.filter
	// Batches join ranges: the rows of a window are few among many.
	reader, err := f.Read(ctx, datafile.ReadRequest{Fields: c.fields, Ranges: wanted, Join: true, BatchRows: DefaultBatchRows})
	if err != nil {
		return rows, err
	}
	defer reader.Release()
	var ordinals []uint64
	left := wanted[0].End - wanted[0].Start
	for {
		batch, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		c.batch = batch
		if err := c.screen(); err != nil {
			return rows, err
		}
		if ordinals, err = appendOrdinals(ordinals[:0], p.snap.Domain, batch.Column(n.r.index), 0, int(batch.NumRows())); err != nil {
			return rows, err
		}
		before := len(rows)
		for i, ordinal := range ordinals {
			for left == 0 {
				wanted, owners = wanted[1:], owners[1:]
				left = wanted[0].End - wanted[0].Start
			}
			left--
			if c.mask == nil || c.mask[i] {
				rows = append(rows, ranked{ordinal, owners[0], len(b.sources), i})
			}
		}
		if len(rows) > before {
			batch.Retain()
			b.sources = append(b.sources, batch)
		}
	}
}

// count enters the row groups of a file that is read into the statistics.
func (n *newest) count(file int, f *filecache.File) {
	if n.counted[file] {
		return
	}
	n.counted[file] = true
	ranges := make([]datafile.RowRange, len(n.r.plan.runs[file]))
	for i, run := range n.r.plan.runs[file] {
		ranges[i] = datafile.RowRange{Start: run.Start, End: run.End}
	}
	kept := groupsOf(f.RowGroups(), coalesce(ranges))
	n.r.stats.RowGroups += int64(kept)
	n.r.stats.RowGroupsSkipped += int64(len(f.RowGroups()) - kept)
}

// locate finds the rows of a file that lie in a window, takes them off the runs,
// and says to which run each range belongs.
func (n *newest) locate(ctx context.Context, file fileTails, window predicate.Span) (ranges []datafile.RowRange, owners []int, err error) {
	p := n.r.plan
	c := p.newCursor(p.files[file.file], []string{p.snap.Def.IndexColumn}, indexRows, true)
	defer c.close()
	from := func(t *tail) int64 { // threshold looked at least that far down
		return max(t.start, t.end-max(t.look, 1))
	}
	for _, i := range file.runs {
		if t := &n.runs[i]; t.last >= window.First {
			c.want(datafile.RowRange{Start: from(t), End: t.end})
		}
	}
	var values []uint64
	for _, i := range file.runs {
		t := &n.runs[i]
		if t.last < window.First {
			continue
		}
		if values, err = c.ordinals(ctx, p.snap.Domain, t.end, values[:0]); err != nil {
			return nil, nil, err
		}
		at := from(t) + int64(sort.Search(len(values), func(k int) bool { return values[k] >= window.First }))
		if at < t.end {
			ranges, owners = append(ranges, datafile.RowRange{Start: at, End: t.end}), append(owners, i)
			t.end = at
		}
	}
	return ranges, owners, nil
}

// crowded gives the rows of one ordinal that many entities share, by a sorted
// scan of that ordinal alone.
func (n *newest) crowded(ctx context.Context, ordinal uint64) error {
	p := n.r.plan
	q := *p.query
	q.newest, q.span, q.limit = false, predicate.Span{First: ordinal, Last: ordinal}, n.r.limit
	nested := &Plan{snap: p.snap, query: &q, data: p.data, mem: p.mem, files: p.files}
	reader, err := nested.Open(ctx)
	if err != nil {
		return err
	}
	n.nested = reader
	for i := range n.runs { // what the nested scan gives is not looked at again
		t := &n.runs[i]
		if run, found := derived.Directory(nested.runs[t.file]).Find(t.key); found {
			t.end = min(t.end, run.Start)
		}
	}
	n.below(ordinal)
	return nil
}

// forward hands on a batch of the nested scan.
func (n *newest) forward(ctx context.Context) error {
	batch, err := n.nested.Next(ctx)
	if errors.Is(err, io.EOF) {
		n.nested.Release()
		n.nested = nil
		return nil
	}
	if err != nil {
		return err
	}
	if n.r.limit >= 0 {
		n.r.limit -= batch.NumRows()
	}
	batch.Retain()
	n.r.pending = append(n.r.pending, batch)
	return nil
}
