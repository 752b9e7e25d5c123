package update

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sort"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/entitykey"
	"contrail/tablecore/internal/filecache"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tableerr"
)

// match says that a row of a file is addressed by a row of the source.
type match struct {
	row    uint32 // of the file
	source uint32
}

// matches are the addressed rows of a file, ascending, and the places of their
// keys.
type matches struct {
	rows   []match
	places []int64
}

// matcher finds the stored rows that a source addresses.
type matcher struct {
	files  *filecache.Files
	source *source
	codes  map[string]uint32 // by entity key
	index  arrow.Field       // storage field of the index column

	mu sync.Mutex
	// once and twice have a bit a key, by place: it was found, and found again.
	once, twice []uint64
	room        int // for matches
}

func newMatcher(u *Update, s *source) *matcher {
	m := &matcher{files: u.cfg.Files, source: s, codes: make(map[string]uint32, s.coder.Len()),
		index: snapshot.StorageFields(u.base.Def, []string{u.base.Def.IndexColumn})[0]}
	for code := range s.coder.Len() {
		m.codes[s.coder.Key(uint32(code))] = uint32(code)
	}
	words := (s.keys.count() + 63) / 64
	m.once, m.twice, m.room = make([]uint64, words), make([]uint64, words), u.limits.matches
	return m
}

// take notes what was found in a file, and returns the matches unless they are
// too many to keep.
func (m *matcher) take(found matches) []match {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, at := range found.places {
		bit := uint64(1) << (at & 63)
		m.twice[at>>6] |= m.once[at>>6] & bit
		m.once[at>>6] |= bit
	}
	if m.room -= len(found.rows); m.room < 0 {
		return nil
	}
	return found.rows
}

// check refuses a source of which a key was not found, or more than once.
func (m *matcher) check() error {
	found, again := int64(0), int64(0)
	for i := range m.once {
		found += int64(bits.OnesCount64(m.once[i]))
		again += int64(bits.OnesCount64(m.twice[i]))
	}
	switch {
	case found < m.source.keys.count():
		v, err := m.violation(func(at int64) bool { return m.once[at>>6]>>(at&63)&1 == 0 })
		if err != nil {
			return err
		}
		return &tableerr.UnmatchedSourceKey{KeyViolation: v}
	case again > 0:
		v, err := m.violation(func(at int64) bool { return m.twice[at>>6]>>(at&63)&1 == 1 })
		if err != nil {
			return err
		}
		return &tableerr.AmbiguousTargetKey{KeyViolation: v}
	}
	return nil
}

// violation counts the keys in the places that wrong tells.
func (m *matcher) violation(wrong func(place int64) bool) (tableerr.KeyViolation, error) {
	v := violation{source: m.source}
	for _, code := range m.source.coder.Order() {
		err := m.source.keys.pieces(code, func(list []key, place int64) error {
			for i, k := range list {
				if wrong(place + int64(i)) {
					v.note(code, k.ordinal)
				}
			}
			return nil
		})
		if err != nil {
			return tableerr.KeyViolation{}, err
		}
	}
	return v.report(), nil
}

// candidate says whether a file may hold a row that the source addresses.
func (m *matcher) candidate(f *snapshot.File) bool {
	if !f.Meets(m.source.low, m.source.high) {
		return false
	}
	if !f.Single {
		return true
	}
	code, known := m.codes[f.Entity]
	return known && m.source.keys.starts[code] < m.source.keys.starts[code+1]
}

// find returns the addressed rows of a file.
func (m *matcher) find(ctx context.Context, f *snapshot.File) (matches, error) {
	index, err := m.files.Index(ctx, m.source.snap, f)
	if err != nil {
		return matches{}, err
	}
	if index.Rows > maxRows {
		return matches{}, &tableerr.Unsupported{Path: f.Path, Msg: "a file of more than 2^32 rows cannot be updated"}
	}
	var spans []span
	if index.Sorted() {
		if spans, err = m.spans(index); err != nil || len(spans) == 0 {
			return matches{}, err
		}
	}
	file, err := m.files.Open(ctx, m.source.snap, f)
	if err != nil {
		return matches{}, err
	}
	defer file.Close()
	if !index.Sorted() {
		return m.unsorted(ctx, file, f.Path)
	}
	ranges, err := m.ranges(ctx, file, spans)
	if err != nil || len(ranges) == 0 {
		return matches{}, err
	}
	return m.read(ctx, file, f.Path, spans, ranges)
}

// span is an entity's rows in a file that is sorted, with the keys of the
// source that may be among them.
type span struct {
	run   derived.Run
	keys  []key
	place int64 // of the first key
}

// spans returns the entities of a file that the source has keys for, in file
// order.
func (m *matcher) spans(index *derived.FileIndex) ([]span, error) {
	var spans []span
	add := func(run derived.Run, code uint32) error {
		list, place, err := m.source.keys.of(code, run.First, run.Last)
		if err == nil && len(list) > 0 && m.covered(index, run.Key, list) {
			spans = append(spans, span{run, list, place})
		}
		return err
	}
	if m.source.coder.Len() < len(index.Directory)/8 {
		for _, code := range m.source.coder.Order() {
			if run, ok := index.Directory.Find(m.source.coder.Key(code)); ok {
				if err := add(run, code); err != nil {
					return nil, err
				}
			}
		}
		return spans, nil
	}
	for _, run := range index.Directory {
		if code, ok := m.codes[run.Key]; ok {
			if err := add(run, code); err != nil {
				return nil, err
			}
		}
	}
	return spans, nil
}

// fewKeys is up to how many keys of an entity a file's coverage is asked.
const fewKeys = 1 << 10

// covered says whether a file may hold one of an entity's keys.
func (m *matcher) covered(index *derived.FileIndex, entity string, list []key) bool {
	if index.Coverage == nil || len(list) > fewKeys {
		return true
	}
	at, found := index.Coverage.Find(entity)
	if !found {
		return false
	}
	probe := index.Coverage.Probe(at)
	for _, k := range list {
		if probe.Has(m.source.snap.Domain.ID(k.ordinal)) {
			return true
		}
	}
	return false
}

// ranges returns the rows whose index has to be read: the pages of the spans
// that may hold a key.
func (m *matcher) ranges(ctx context.Context, file *filecache.File, spans []span) ([]datafile.RowRange, error) {
	var ranges []datafile.RowRange
	add := func(r datafile.RowRange) {
		if n := len(ranges); n > 0 && ranges[n-1].End == r.Start {
			ranges[n-1].End = r.End
		} else {
			ranges = append(ranges, r)
		}
	}
	for g, group := range file.RowGroups() {
		end := group.FirstRow + group.Rows
		zones, err := file.PageZones(ctx, g, m.index.Name, m.index.Type)
		if err != nil {
			return nil, err
		}
		if zones == nil {
			zones = []datafile.Zone{{Rows: datafile.RowRange{Start: group.FirstRow, End: end}}}
		}
		for len(spans) > 0 && spans[0].run.Start < end {
			s := spans[0]
			for _, z := range zones {
				r := datafile.RowRange{Start: max(s.run.Start, z.Rows.Start), End: min(s.run.End, z.Rows.End)}
				if r.Start < r.End && m.meets(s, z) {
					add(r)
				}
			}
			if s.run.End > end {
				break // it goes on in the next row group
			}
			spans = spans[1:]
		}
	}
	return ranges, nil
}

// meets says whether a span has a key between a zone's bounds.
func (m *matcher) meets(s span, z datafile.Zone) bool {
	low, okLow := m.ordinal(z.Min)
	high, okHigh := m.ordinal(z.Max)
	if !okLow || !okHigh {
		return true
	}
	at := sort.Search(len(s.keys), func(i int) bool { return s.keys[i].ordinal >= low })
	return at < len(s.keys) && s.keys[at].ordinal <= high
}

// ordinal returns the index ordinal of a bound in a file.
func (m *matcher) ordinal(bound any) (uint64, bool) {
	switch v := bound.(type) {
	case int64:
		return m.source.snap.Domain.StoredOrdinal(m.index.Type, v), true
	case decimal128.Num:
		return v.LowBits(), v.HighBits() == 0
	}
	return 0, false
}

// read compares the index values of ranges with the keys of the spans.
func (m *matcher) read(ctx context.Context, file *filecache.File, path string, spans []span, ranges []datafile.RowRange) (found matches, err error) {
	var ordinals []uint64
	err = file.Each(ctx, datafile.ReadRequest{Fields: []arrow.Field{m.index}, Ranges: ranges}, func(first int64, batch arrow.RecordBatch) (err error) {
		if ordinals, err = m.source.snap.Domain.AppendOrdinals(ordinals[:0], batch.Column(0)); err != nil {
			return corruptKeys(path, first, err)
		}
		end := first + int64(len(ordinals))
		for len(spans) > 0 && spans[0].run.End <= first {
			spans = spans[1:]
		}
		for _, s := range spans {
			if s.run.Start >= end {
				break
			}
			from, to := max(s.run.Start, first), min(s.run.End, end)
			join(s, ordinals[from-first:to-first], func(row, k int) {
				found.rows = append(found.rows, match{uint32(from) + uint32(row), s.keys[k].row})
				found.places = append(found.places, s.place+int64(k))
			})
		}
		return nil
	})
	if err != nil {
		return matches{}, err
	}
	return found, nil
}

func corruptKeys(path string, row int64, err error) error {
	return &tableerr.Corrupt{Path: path, Msg: fmt.Sprintf("its key columns, from row %d on: %v", row, err), Cause: err}
}

// join yields the pairs of stored ordinals and of keys that are equal. Both
// ascend; stored ones may repeat.
func join(s span, stored []uint64, pair func(row, k int)) {
	if len(stored) == 0 {
		return
	}
	k := sort.Search(len(s.keys), func(i int) bool { return s.keys[i].ordinal >= stored[0] })
	for row := 0; k < len(s.keys) && row < len(stored); k++ {
		want := s.keys[k].ordinal
		if stored[row] < want {
			row += skip(stored[row:], want)
		}
		for at := row; at < len(stored) && stored[at] == want; at++ {
			pair(at, k)
		}
	}
}

// skip returns how many of the first values, which ascend, are below want. It
// looks near first: keys often lie close together.
func skip(values []uint64, want uint64) int {
	step := 1
	for step < len(values) && values[step] < want {
		step *= 2
	}
	low := step / 2
	high := min(step, len(values))
	return low + sort.Search(high-low, func(i int) bool { return values[low+i] >= want })
}

// unsorted looks at every row of a file whose rows are in no order.
func (m *matcher) unsorted(ctx context.Context, file *filecache.File, path string) (matches, error) {
	def := m.source.snap.Def
	fields := snapshot.StorageFields(def, append(slices.Clone(def.EntityColumns), def.IndexColumn))
	scan := unsortedScan{matcher: m, encoder: entitykey.NewEncoder(m.source.snap.Layout)}
	err := file.Each(ctx, datafile.ReadRequest{Fields: fields}, func(first int64, batch arrow.RecordBatch) error {
		if err := scan.keysOf(batch); err != nil {
			return corruptKeys(path, first, err)
		}
		return scan.compare(first)
	})
	if err != nil {
		return matches{}, err
	}
	return scan.found, nil
}

// unsortedScan compares rows that are in no order with the keys.
type unsortedScan struct {
	*matcher
	encoder  *entitykey.Encoder
	names    entitykey.Keys
	ordinals []uint64
	found    matches
}

// keysOf reads the keys of a batch of entity columns and the index column.
func (u *unsortedScan) keysOf(batch arrow.RecordBatch) (err error) {
	columns := batch.Columns()
	last := len(columns) - 1
	if u.names, err = u.encoder.Encode(columns[:last], int(batch.NumRows())); err != nil {
		return err
	}
	u.ordinals, err = u.source.snap.Domain.AppendOrdinals(u.ordinals[:0], columns[last])
	return err
}

// compare looks the keys up of rows that begin with first.
func (u *unsortedScan) compare(first int64) error {
	for row, ordinal := range u.ordinals {
		code, known := u.codes[string(u.names.Key(row))]
		if !known {
			continue
		}
		list, place, err := u.source.keys.of(code, ordinal, ordinal)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			u.found.rows = append(u.found.rows, match{uint32(first) + uint32(row), list[0].row})
			u.found.places = append(u.found.places, place)
		}
	}
	return nil
}
