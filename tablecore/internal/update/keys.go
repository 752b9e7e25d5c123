package update

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sort"

	"contrail/tablecore/internal/scratch"
)

// maxRows is how many rows one update may have: they are numbered in 32 bits.
const maxRows = 1<<32 - 1

// key is a row of the source: its index ordinal and its number.
type key struct {
	ordinal uint64
	row     uint32
}

// keyBytes is the size of a key in a scratch file.
const keyBytes = 12

// keys are the keys of a source, grouped by entity code and in the order of
// (ordinal, row) within an entity. They lie in memory or in a scratch file; then
// only where each entity begins is in memory. Reading may be done by several
// goroutines at once.
type keys struct {
	starts []int64 // by code where its keys begin, and at the end how many there are
	list   []key   // nil when they lie in file
	file   io.ReaderAt
}

// count returns the number of keys.
func (k *keys) count() int64 { return k.starts[len(k.starts)-1] }

// of returns the keys of an entity whose ordinals lie in [first, last], and the
// place of the first of them among all.
func (k *keys) of(code uint32, first, last uint64) ([]key, int64, error) {
	from, err := k.search(code, first, false)
	if err != nil {
		return nil, 0, err
	}
	to, err := k.search(code, last, true)
	if err != nil || from >= to {
		return nil, 0, err
	}
	list, err := k.slice(from, to)
	return list, from, err
}

// search returns the place of an entity's first key that is not below ordinal,
// or, with after, that is above it.
func (k *keys) search(code uint32, ordinal uint64, after bool) (int64, error) {
	var failed error
	start, end := k.starts[code], k.starts[code+1]
	n := sort.Search(int(end-start), func(i int) bool {
		at, err := k.at(start + int64(i))
		if err != nil {
			failed = err
		}
		return at.ordinal > ordinal || !after && at.ordinal == ordinal
	})
	return start + int64(n), failed
}

// at returns the key in a place.
func (k *keys) at(place int64) (key, error) {
	if k.file == nil {
		return k.list[place], nil
	}
	one, err := k.slice(place, place+1)
	if err != nil {
		return key{}, err
	}
	return one[0], nil
}

// slice returns the keys in places [from, to); the caller must not change them.
func (k *keys) slice(from, to int64) ([]key, error) {
	if k.file == nil {
		return k.list[from:to], nil
	}
	return readKeys(k.file, from*keyBytes, int(to-from))
}

// readKeys reads n keys of a scratch file.
func readKeys(r io.ReaderAt, at int64, n int) ([]key, error) {
	raw := make([]byte, n*keyBytes)
	if _, err := r.ReadAt(raw, at); err != nil {
		return nil, fmt.Errorf("scratch space: %w", err)
	}
	list := make([]key, n)
	for i := range list {
		b := raw[i*keyBytes:]
		list[i] = key{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:])}
	}
	return list, nil
}

// pieces yields an entity's keys in order, a bounded number at a time, with the
// place of the first of them.
func (k *keys) pieces(code uint32, do func(list []key, place int64) error) error {
	const most = 1 << 16
	for from, end := k.starts[code], k.starts[code+1]; from < end; from += most {
		list, err := k.slice(from, min(from+most, end))
		if err != nil {
			return err
		}
		if err := do(list, from); err != nil {
			return err
		}
	}
	return nil
}

// keySorter brings keys into the order of keys. Beyond limit keys it sorts what
// it has and puts it into a scratch file as a run.
type keySorter struct {
	limit int
	space scratch.Space // nil keeps all keys in memory

	codes []uint32
	list  []key
	file  scratch.File // of the runs, nil until there is one
	size  int64        // bytes in file
	runs  []keys
}

// add takes the key of a row.
func (s *keySorter) add(code uint32, k key) error {
	s.codes, s.list = append(s.codes, code), append(s.list, k)
	if len(s.list) < s.limit || s.space == nil {
		return nil
	}
	return s.spill()
}

// spill makes a run of the keys in memory.
func (s *keySorter) spill() (err error) {
	if s.file == nil {
		if s.file, err = s.space.Create(); err != nil {
			return err
		}
	}
	run := s.sorted(0)
	begin := s.size
	w := keyWriter{to: s.file}
	for _, k := range run.list {
		if err := w.add(k); err != nil {
			return err
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	s.size += w.size
	s.runs = append(s.runs, keys{starts: run.starts, file: io.NewSectionReader(s.file, begin, w.size)})
	s.codes, s.list = s.codes[:0], s.list[:0]
	return nil
}

// sorted returns the keys in memory in order; there may be more entities than
// they have.
func (s *keySorter) sorted(entities int) keys {
	for _, code := range s.codes {
		entities = max(entities, int(code)+1)
	}
	var k keys
	k.starts, k.list = arrange(s.codes, s.list, entities)
	return k
}

// arrange returns keys grouped by their codes, which are below entities, and in
// order within a code, and where each code begins.
func arrange(codes []uint32, list []key, entities int) (starts []int64, sorted []key) {
	starts = make([]int64, entities+1)
	for _, code := range codes {
		starts[code+1]++
	}
	for i := range entities {
		starts[i+1] += starts[i]
	}
	next := slices.Clone(starts)
	sorted = make([]key, len(list))
	for i, k := range list {
		code := codes[i]
		sorted[next[code]] = k
		next[code]++
	}
	for i := range entities {
		one := sorted[starts[i]:starts[i+1]]
		if !slices.IsSortedFunc(one, compareKeys) {
			slices.SortFunc(one, compareKeys)
		}
	}
	return starts, sorted
}

func compareKeys(a, b key) int {
	switch {
	case a.ordinal < b.ordinal || a.ordinal == b.ordinal && a.row < b.row:
		return -1
	case a == b:
		return 0
	}
	return 1
}

// finish returns all keys of so many entities. Nothing may be added afterwards.
func (s *keySorter) finish(ctx context.Context, entities int) (*keys, error) {
	if s.runs == nil {
		k := s.sorted(entities)
		s.codes, s.list = nil, nil
		return &k, nil
	}
	if len(s.list) > 0 {
		if err := s.spill(); err != nil {
			return nil, err
		}
	}
	s.codes, s.list = nil, nil
	return s.merge(ctx, entities)
}

// merge writes the keys of all runs behind them, in order.
func (s *keySorter) merge(ctx context.Context, entities int) (*keys, error) {
	out := &keys{starts: make([]int64, 1, entities+1)}
	w := keyWriter{to: s.file}
	sources := make([]keyReader, len(s.runs))
	for i := range s.runs {
		sources[i] = keyReader{run: &s.runs[i]}
	}
	for code := range entities {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for {
			least := -1
			for i := range sources {
				ok, err := sources[i].has(code)
				if err != nil {
					return nil, err
				}
				if ok && (least < 0 || compareKeys(sources[i].head(), sources[least].head()) < 0) {
					least = i
				}
			}
			if least < 0 {
				break
			}
			if err := w.add(sources[least].head()); err != nil {
				return nil, err
			}
			sources[least].place++
		}
		out.starts = append(out.starts, (w.size+int64(len(w.buffer)))/keyBytes)
	}
	if err := w.flush(); err != nil {
		return nil, err
	}
	out.file = io.NewSectionReader(s.file, s.size, w.size)
	s.runs = nil
	return out, nil
}

// close gives the scratch file back.
func (s *keySorter) close() {
	if s.file != nil {
		_ = s.file.Close() // nobody needs what is in it
	}
}

// keyReader reads the keys of a run one after another.
type keyReader struct {
	run    *keys
	place  int64
	buffer []key
	first  int64 // place of the buffer's first key
}

// has says whether the next key belongs to an entity.
func (r *keyReader) has(code int) (bool, error) {
	if code+1 >= len(r.run.starts) || r.place >= r.run.starts[code+1] {
		return false, nil
	}
	if r.place < r.first+int64(len(r.buffer)) {
		return true, nil
	}
	const most = 1 << 13
	var err error
	r.first = r.place
	r.buffer, err = r.run.slice(r.place, min(r.place+most, r.run.count()))
	return err == nil, err
}

// head returns the next key, which has found.
func (r *keyReader) head() key { return r.buffer[r.place-r.first] }

// keyWriter writes keys one behind the other.
type keyWriter struct {
	to     io.Writer
	buffer []byte
	size   int64 // bytes written
}

func (w *keyWriter) add(k key) error {
	w.buffer = binary.LittleEndian.AppendUint64(w.buffer, k.ordinal)
	w.buffer = binary.LittleEndian.AppendUint32(w.buffer, k.row)
	if len(w.buffer) < 1<<18 {
		return nil
	}
	return w.flush()
}

func (w *keyWriter) flush() error {
	n, err := w.to.Write(w.buffer)
	w.size += int64(n)
	w.buffer = w.buffer[:0]
	return err
}
