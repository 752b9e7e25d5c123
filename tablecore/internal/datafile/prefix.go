package datafile

import "fmt"

// prefixDecoder decodes DELTA_BYTE_ARRAY: each value begins with a part of the
// one before it.
type prefixDecoder struct {
	prefixes deltaDecoder
	suffixes deltaDecoder
	body     []byte
	last     []byte
}

func (d *prefixDecoder) reset(body []byte, most int) (err error) {
	d.last = d.last[:0]
	var rest []byte
	if d.prefixes, rest, err = deltaLengths(body, most); err != nil {
		return err
	}
	if d.suffixes, d.body, err = deltaLengths(rest, most); err != nil {
		return err
	}
	if d.prefixes.left != d.suffixes.left {
		return fmt.Errorf("a page has %d prefixes and %d suffixes", d.prefixes.left, d.suffixes.left)
	}
	return nil
}

// next returns the next value, which is valid until the call after.
func (d *prefixDecoder) next() ([]byte, error) {
	var prefix, suffix [1]uint32
	if err := decodeDelta(&d.prefixes, prefix[:]); err != nil {
		return nil, err
	}
	if err := decodeDelta(&d.suffixes, suffix[:]); err != nil {
		return nil, err
	}
	p, s := int64(prefix[0]), int64(suffix[0])
	if p > int64(len(d.last)) || s > int64(len(d.body)) {
		return nil, fmt.Errorf("a string claims %d bytes of %d and %d of %d", p, len(d.last), s, len(d.body))
	}
	d.last = append(d.last[:p], d.body[:s]...)
	d.body = d.body[s:]
	return d.last, nil
}
