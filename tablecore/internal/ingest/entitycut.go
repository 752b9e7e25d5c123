package ingest

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/internal/entitykey"
)

// keyRange is a range of entities: low ≤ key < high.
type keyRange struct {
	low    string
	high   *string // nil for no end
	places []int64 // where the rows that were loaded stand in their part
}

func (k *keyRange) holds(key []byte) bool {
	return string(key) >= k.low && (k.high == nil || string(key) < *k.high)
}

// keyCuts chooses the entities at which a part of one interval is cut, so that
// the rows between two of them find memory: by a sample, for there may be as
// many entities as rows. No entity is cut: that of a part whose rows are
// compared has at most one row a run.
func (m *merger) keyCuts(ctx context.Context, p indexRange) ([]string, error) {
	sample, err := m.sampleKeys(ctx, p)
	if err != nil {
		return nil, err
	}
	// A quarter more for the error of the sample, and for keyRange.places.
	n := int(m.need(p.rows)*5/4/m.capacity) + 1
	var cuts []string
	for i := 1; i < n; i++ {
		c := sample[i*len(sample)/n]
		if len(cuts) == 0 && c > sample[0] || len(cuts) > 0 && c > cuts[len(cuts)-1] {
			cuts = append(cuts, c)
		}
	}
	return cuts, nil
}

// largestEntity estimates the rows of the entity that has most of a part.
func (m *merger) largestEntity(ctx context.Context, p indexRange) (int64, error) {
	sample, err := m.sampleKeys(ctx, p)
	most := 0
	for from := 0; from < len(sample); {
		to := from + 1
		for to < len(sample) && sample[to] == sample[from] {
			to++
		}
		most, from = max(most, to-from), to
	}
	return p.rows * int64(most) / int64(max(1, len(sample))), err
}

// sampleKeys returns the entity keys of rows at equal steps over a part, in
// order.
func (m *merger) sampleKeys(ctx context.Context, p indexRange) ([]string, error) {
	step := max(1, p.rows/sampleRows)
	var sample []string
	skip := int64(0)
	err := m.keys(ctx, p, func(_ *convert.Batch, keys entitykey.Keys) error {
		n := int64(keys.Len())
		for ; skip < n; skip += step {
			sample = append(sample, string(keys.Key(int(skip))))
		}
		skip -= n
		return nil
	})
	slices.Sort(sample)
	return sample, err
}

// keys yields the batches of a part with their rows' entity keys.
func (m *merger) keys(ctx context.Context, p indexRange, do func(*convert.Batch, entitykey.Keys) error) error {
	s, err := m.newStore(&heap{mem: m.cfg.Rows, limit: 1 << 62}) // knows what a batch holds
	if err != nil {
		return err
	}
	defer s.free()
	encoder := entitykey.NewEncoder(s.entities.Layout())
	columns := make([]arrow.Array, len(s.keys))
	return m.runs.scan(ctx, p, func(rec arrow.RecordBatch, from, to int64) error {
		b := s.batchOf(rec, from, to)
		defer b.Release()
		for i, key := range s.keys {
			columns[i] = b.Columns[key]
		}
		keys, err := encoder.Encode(columns, b.Rows)
		if err != nil {
			return err
		}
		return do(b, keys)
	})
}

// loadSome is load for the rows of some entities.
func (m *merger) loadSome(ctx context.Context, s *store, p indexRange, only *keyRange) error {
	at := int64(0)
	return m.keys(ctx, p, func(b *convert.Batch, keys entitykey.Keys) error {
		for from := 0; from < b.Rows; {
			n := 0
			for from+n < b.Rows && only.holds(keys.Key(from+n)) {
				only.places = append(only.places, at+int64(from+n))
				n++
			}
			if n > 0 {
				piece := pieceOf(b, from, n)
				err := s.add(piece)
				piece.Release()
				if err != nil {
					return err
				}
			}
			from += n + 1
		}
		at += int64(b.Rows)
		return nil
	})
}
