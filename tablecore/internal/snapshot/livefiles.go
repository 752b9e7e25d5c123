package snapshot

import (
	"cmp"
	"iter"
	"slices"
	"sync/atomic"

	"contrail/tablecore/internal/deltalog"
)

// span is the bounds of a file, which lie side by side for whoever looks for
// the few files of many that meet a range.
type span struct{ min, max uint64 }

// room is what is left in the arrays of a snapshot's files, which the snapshots
// after it share: a commit that adds a file to many must not copy them all. Of
// several snapshots made from one the first takes the places behind its files,
// the others copy.
type room struct {
	taken atomic.Int64
}

// Meeting yields the files that may hold an index ordinal in [first, last], in
// the order of Files.
func (s *Snapshot) Meeting(first, last uint64) iter.Seq[*File] {
	return func(yield func(*File) bool) {
		for i, b := range s.spans {
			if b.min <= last && first <= b.max && !yield(s.Files[i]) {
				return
			}
		}
	}
}

// add appends files.
func (s *Snapshot) add(adds []*deltalog.Add) error {
	r, files := fileReader{snapshot: s}, make([]File, len(adds))
	at := len(s.Files)
	s.grow(len(adds))
	for i, a := range adds {
		f := &files[i]
		if err := r.file(f, a); err != nil {
			return err
		}
		s.Files[at+i], s.spans[at+i] = f, span{f.Min, f.Max}
		s.count(f, 1)
	}
	s.arrange(at)
	return nil
}

// arrange brings files into their order of which those from a place on are new.
// Commits but for those of optimize and rollback add them in order.
func (s *Snapshot) arrange(from int) {
	compare := func(a, b *File) int { return cmp.Compare(a.Order, b.Order) }
	if slices.IsSortedFunc(s.Files[max(0, from-1):], compare) {
		return
	}
	s.Files, s.room = slices.Clone(s.Files), nil // others share the array
	slices.SortStableFunc(s.Files, compare)
	s.spans = make([]span, len(s.Files))
	for i, f := range s.Files {
		s.spans[i] = span{f.Min, f.Max}
	}
}

// grow makes place for n more files, behind those of the snapshot that s was
// copied from if nobody else has.
func (s *Snapshot) grow(n int) {
	from := len(s.Files)
	to := from + n
	if s.room != nil && to <= cap(s.Files) && s.room.taken.CompareAndSwap(int64(from), int64(to)) {
		s.Files, s.spans = s.Files[:to], s.spans[:to]
		return
	}
	const share = 8 // of the files is left free
	free := to + to/share
	files, spans := make([]*File, to, free), make([]span, to, free)
	copy(files, s.Files)
	copy(spans, s.spans)
	s.Files, s.spans, s.room = files, spans, &room{}
	s.room.taken.Store(int64(to))
}

// without takes files out.
func (s *Snapshot) without(gone map[string]bool) {
	files, spans := make([]*File, 0, len(s.Files)), make([]span, 0, len(s.Files))
	for i, f := range s.Files {
		if gone[f.Path] {
			s.count(f, -1)
			continue
		}
		files, spans = append(files, f), append(spans, s.spans[i])
	}
	s.Files, s.spans, s.room = files, spans, nil
}

func (s *Snapshot) count(f *File, by int64) {
	s.Bytes += by * f.Add.Size
	if s.Rows >= 0 && f.Rows >= 0 {
		s.Rows += by * f.Rows
	} else {
		s.Rows = -1
	}
}
