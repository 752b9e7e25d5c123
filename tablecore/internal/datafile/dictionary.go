package datafile

import (
	"bytes"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Limits beyond which values count as not repeating.
const (
	maxDictionaryValues = 1 << 17
	maxDictionaryBytes  = 4 << 20
	// repetitionSample is the number of slots after which a dictionary that
	// grew with more than every other slot is given up early.
	repetitionSample = 16 << 10
)

var errNoRepetition = errors.New("the values do not repeat")

// dictionaryBuilder makes one dictionary of the values of a row group, in the
// order in which they first occur, and the indices of its valid slots. Values
// that come as one dictionary array after another with the same dictionary are
// never hashed.
type dictionaryBuilder struct {
	values  [][]byte // in the arrays' memory
	indices []uint32
	size    int

	sources []dictionarySource
	hashed  bool
	index   map[string]uint32
}

// dictionarySource maps the indices of one Arrow dictionary to ours; those not
// met yet are -1.
type dictionarySource struct {
	buffers [2]*memory.Buffer
	offset  int
	to      []int32
}

func (d *dictionaryBuilder) reset() {
	clear(d.values)
	d.values, d.indices, d.size = d.values[:0], d.indices[:0], 0
	d.sources, d.hashed = d.sources[:0], false
	clear(d.index)
}

// build takes in the arrays of a row group. errNoRepetition says that a
// dictionary would be of no use.
func (d *dictionaryBuilder) build(arrays []arrow.Array) error {
	d.reset()
	for _, arr := range arrays {
		view, err := viewBytes(arr)
		if err != nil {
			return err
		}
		if dict, ok := arr.(*array.Dictionary); ok {
			err = d.addIndices(dict, &view)
		} else {
			d.hash()
			err = d.addValues(&view)
		}
		if err != nil {
			return err
		}
	}
	if len(d.values)*2 > len(d.indices) {
		return errNoRepetition
	}
	return nil
}

func (d *dictionaryBuilder) addIndices(dict *array.Dictionary, view *bytesView) error {
	source := d.source(dict.Dictionary())
	allValid := dict.NullN() == 0
	for i, from := range view.indices {
		if !allValid && dict.IsNull(i) {
			continue
		}
		if uint64(uint32(from)) >= uint64(len(source.to)) {
			_, err := view.at(i)
			return err
		}
		to := source.to[from]
		if to < 0 {
			if dict.Dictionary().IsNull(int(from)) {
				continue
			}
			v, err := view.at(i)
			if err != nil {
				return err
			}
			if to, err = d.add(v); err != nil {
				return err
			}
			source.to[from] = to
		}
		d.indices = append(d.indices, uint32(to))
	}
	return nil
}

// source returns the map of a dictionary, a new one where none of the arrays
// before had the same.
func (d *dictionaryBuilder) source(dict arrow.Array) *dictionarySource {
	buffers := [2]*memory.Buffer{dict.Data().Buffers()[1], dict.Data().Buffers()[2]}
	for i := range d.sources {
		s := &d.sources[i]
		if s.buffers == buffers && s.offset == dict.Data().Offset() && len(s.to) == dict.Len() {
			return s
		}
	}
	if len(d.sources) > 0 {
		d.hash()
	}
	to := make([]int32, dict.Len())
	for i := range to {
		to[i] = -1
	}
	d.sources = append(d.sources, dictionarySource{buffers, dict.Data().Offset(), to})
	return &d.sources[len(d.sources)-1]
}

// hash begins to find values by their content.
func (d *dictionaryBuilder) hash() {
	if d.hashed {
		return
	}
	d.hashed = true
	if d.index == nil {
		d.index = make(map[string]uint32)
	}
	for i, v := range d.values {
		d.index[string(v)] = uint32(i)
	}
}

func (d *dictionaryBuilder) addValues(view *bytesView) error {
	last, lastIndex := []byte(nil), int32(-1)
	allValid := view.arr.NullN() == 0
	for i := range view.arr.Len() {
		if !allValid && view.arr.IsNull(i) {
			continue
		}
		v, err := view.at(i)
		if err != nil {
			return err
		}
		if lastIndex < 0 || !bytes.Equal(v, last) {
			if lastIndex, err = d.add(v); err != nil {
				return err
			}
			last = v
		}
		d.indices = append(d.indices, uint32(lastIndex))
	}
	return nil
}

// add returns the index of a value, a new one where it is not known.
func (d *dictionaryBuilder) add(v []byte) (int32, error) {
	if d.hashed {
		if i, ok := d.index[string(v)]; ok {
			return int32(i), nil
		}
	}
	d.size += len(v)
	n := len(d.values)
	if n >= maxDictionaryValues || d.size > maxDictionaryBytes || (len(d.indices) >= repetitionSample && n*2 > len(d.indices)) {
		return 0, errNoRepetition
	}
	if d.hashed {
		d.index[string(v)] = uint32(n)
	}
	d.values = append(d.values, v)
	return int32(n), nil
}

// bounds returns the bounds of the values at indices. seen remembers for each
// value the page, numbered from 1, that it was last met in.
func (d *dictionaryBuilder) bounds(indices []uint32, seen []int, page int) (e extremes[[]byte]) {
	for _, i := range indices {
		if seen[i] != page {
			seen[i] = page
			addBytes(&e, d.values[i])
		}
	}
	return e
}
