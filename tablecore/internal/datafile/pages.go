package datafile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/parquet/compress"
)

const (
	readAhead      = 512 << 10 // read at once where more pages are wanted
	headerGuess    = longestHeader
	maxPageHeader  = 1 << 20
	maxKeptScratch = 4 << 20
)

// scratchPool holds byte slices for file windows and decompressed pages.
var scratchPool = sync.Pool{New: func() any { return new([]byte) }}

func takeScratch() []byte { return *scratchPool.Get().(*[]byte) }

func giveScratch(b []byte) {
	if cap(b) > 0 && cap(b) <= maxKeptScratch {
		b = b[:0]
		scratchPool.Put(&b)
	}
}

// page is a data page ready for decoding. Its slices are valid until the next
// call of the cursor that made it.
type page struct {
	entries  int // values, nulls and empty lists included
	rows     int // -1 where the page does not say
	encoding int
	reps     hybrid // repetition levels, where the leaf has any
	defs     hybrid // definition levels, where the leaf has any
	body     []byte // encoded values
}

// pageCursor walks the pages of one leaf in one row group.
type pageCursor struct {
	src   exactSource
	leaf  *leafInfo
	chunk *chunkInfo

	window      []byte // bytes of the file from windowStart
	windowStart int64
	pos         int64 // of the next page
	limit       int64 // no byte from here on is wanted
	unpacked    []byte
}

func (c *pageCursor) release() {
	giveScratch(c.window)
	giveScratch(c.unpacked)
	c.window, c.unpacked = nil, nil
}

// open moves to the start of a chunk.
func (c *pageCursor) open(chunk *chunkInfo) {
	c.chunk, c.pos, c.limit = chunk, chunk.start, chunk.end
	c.window, c.windowStart = c.window[:0], 0
}

// peek returns n bytes at the cursor, or fewer at the end of the chunk.
func (c *pageCursor) peek(n int) ([]byte, error) {
	n = int(min(int64(n), c.chunk.end-c.pos))
	if have := c.windowStart + int64(len(c.window)) - c.pos; c.pos < c.windowStart || have < int64(n) {
		if err := c.fill(n); err != nil {
			return nil, err
		}
	}
	at := int(c.pos - c.windowStart)
	return c.window[at : at+n], nil
}

// fill makes the window hold n bytes at the cursor, and more where more are
// wanted. What it has of them already is kept.
func (c *pageCursor) fill(n int) error {
	size := max(n, int(min(readAhead, c.limit-c.pos)))
	kept := 0
	if at := c.pos - c.windowStart; at >= 0 && at < int64(len(c.window)) {
		kept = copy(c.window, c.window[at:])
	}
	if c.window == nil {
		c.window = takeScratch()
	}
	c.window = slices.Grow(c.window[:kept], size-kept)[:size]
	c.windowStart = c.pos
	if _, err := c.src.ReadAt(c.window[kept:], c.pos+int64(kept)); err != nil {
		c.window = c.window[:kept]
		return err
	}
	return nil
}

// header reads the header at the cursor and moves behind it; io.EOF at the end
// of the chunk.
func (c *pageCursor) header() (pageHeader, error) {
	if c.pos >= c.chunk.end {
		return pageHeader{}, io.EOF
	}
	for guess := headerGuess; ; guess *= 4 {
		view, err := c.peek(guess)
		if err != nil {
			return pageHeader{}, err
		}
		h, n, err := parsePageHeader(view)
		if errors.Is(err, errThriftShort) && len(view) == guess && guess < maxPageHeader {
			continue
		}
		if err == nil && c.leaf.sealed && !h.sealed {
			err = errUnsealed
		}
		if err != nil {
			return h, err
		}
		c.pos += int64(n)
		if int64(h.compressed) > c.chunk.end-c.pos {
			return h, fmt.Errorf("a page claims %d bytes, its column chunk has %d left", h.compressed, c.chunk.end-c.pos)
		}
		return h, nil
	}
}

// body reads the compressed bytes of the page whose header was read.
func (c *pageCursor) body(h *pageHeader) ([]byte, error) {
	raw, err := c.peek(h.compressed)
	if err != nil {
		return nil, err
	}
	if h.hasCRC && crc32.ChecksumIEEE(raw) != h.crc {
		return nil, fmt.Errorf("a page does not match its checksum")
	}
	c.pos += int64(h.compressed)
	return raw, nil
}

// unpack decompresses part of a page. The result is valid until the next call.
func (c *pageCursor) unpack(raw []byte, size int) ([]byte, error) {
	if c.chunk.codec == compress.Codecs.Uncompressed {
		if len(raw) != size {
			return nil, fmt.Errorf("a page holds %d bytes, its header claims %d", len(raw), size)
		}
		return raw, nil
	}
	if err := plausibleSize(c.chunk.codec, len(raw), size); err != nil {
		return nil, err
	}
	if c.unpacked == nil {
		c.unpacked = takeScratch()
	}
	c.unpacked = slices.Grow(c.unpacked[:0], size)[:size]
	return c.unpacked, decompress(c.chunk.codec, c.unpacked, raw)
}

// plausibleSize refuses a size that no page of the given compressed length can
// have, before memory is taken for it.
func plausibleSize(codec compress.Compression, packed, size int) error {
	ratio := 40000 // Zstandard's and Brotli's best is a block of 128 KiB in 4 bytes
	switch codec {
	case compress.Codecs.Snappy:
		ratio = 32 // a copy of 64 bytes takes 3
	case compress.Codecs.Lz4Raw:
		ratio = 256
	case compress.Codecs.Gzip:
		ratio = 1100
	}
	if size/ratio > packed+64 {
		return fmt.Errorf("a page claims to decompress %d bytes to %d", packed, size)
	}
	return nil
}

// next reads the next data page that may hold a row at least skip rows ahead,
// and returns how many rows it passed over; io.EOF at the end of the chunk. A
// dictionary page before it goes to dict. Pages of a repeated leaf may not say
// how many rows they have and are never passed over.
func (c *pageCursor) next(skip int64, dict func(h *pageHeader, body []byte) error) (p page, passed int64, err error) {
	for {
		h, err := c.header()
		if err != nil {
			return page{}, 0, err
		}
		isData := h.kind == pageData || h.kind == pageDataV2
		if (isData && c.leaf.maxRep == 0 && passed+int64(h.values) <= skip) || (!isData && h.kind != pageDictionary) {
			c.pos += int64(h.compressed)
			if isData {
				passed += int64(h.values)
			}
			continue
		}
		raw, err := c.body(&h)
		if err != nil {
			return page{}, 0, err
		}
		if isData {
			p, err = c.dataPage(&h, raw)
			return p, passed, err
		}
		body, err := c.unpack(raw, h.uncompressed)
		if err != nil {
			return page{}, 0, err
		}
		if err := dict(&h, body); err != nil {
			return page{}, 0, err
		}
	}
}

func (c *pageCursor) dataPage(h *pageHeader, raw []byte) (page, error) {
	if h.kind == pageDataV2 {
		return c.dataPageV2(h, raw)
	}
	return c.dataPageV1(h, raw)
}

func (c *pageCursor) dataPageV1(h *pageHeader, raw []byte) (page, error) {
	body, err := c.unpack(raw, h.uncompressed)
	if err != nil {
		return page{}, err
	}
	p := page{entries: h.values, rows: -1, encoding: h.encoding}
	if c.leaf.maxRep == 0 {
		p.rows = h.values
	}
	if c.leaf.maxRep > 0 {
		if p.reps, body, err = levelsV1(body, h.repEncoding, h.values, c.leaf.maxRep); err != nil {
			return page{}, err
		}
	}
	if c.leaf.maxDef > 0 {
		if p.defs, body, err = levelsV1(body, h.defEncoding, h.values, c.leaf.maxDef); err != nil {
			return page{}, err
		}
	}
	p.body = body
	return p, nil
}

// levelsV1 takes the levels off the front of a v1 page.
func levelsV1(body []byte, encoding, entries, most int) (hybrid, []byte, error) {
	if encoding != encRLE {
		return hybrid{}, nil, fmt.Errorf("levels in encoding %d are not supported", encoding)
	}
	if len(body) < 4 {
		return hybrid{}, nil, fmt.Errorf("a page of %d values ends in its levels", entries)
	}
	n := binary.LittleEndian.Uint32(body)
	body = body[4:]
	if int64(n) > int64(len(body)) {
		return hybrid{}, nil, fmt.Errorf("a page claims %d bytes of levels of %d", n, len(body))
	}
	return newHybrid(body[:n], bitsFor(most)), body[n:], nil
}

func (c *pageCursor) dataPageV2(h *pageHeader, raw []byte) (page, error) {
	p := page{entries: h.values, rows: h.rows, encoding: h.encoding}
	if c.leaf.maxRep == 0 && h.rows != h.values {
		return page{}, fmt.Errorf("a page has %d values in %d rows", h.values, h.rows)
	}
	levels := h.repBytes + h.defBytes
	p.reps = newHybrid(raw[:h.repBytes], bitsFor(c.leaf.maxRep))
	p.defs = newHybrid(raw[h.repBytes:levels], bitsFor(c.leaf.maxDef))
	if h.plainBody {
		p.body = raw[levels:]
		return p, nil
	}
	var err error
	p.body, err = c.unpack(raw[levels:], h.uncompressed-levels)
	return p, err
}
