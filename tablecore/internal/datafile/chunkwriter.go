package datafile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/metadata"
)

const (
	// pageRows and pageBytes bound a data page. All columns are cut at the same
	// rows unless a column's values are long, so that a point read touches one
	// page of each.
	pageRows  = 32 << 10
	pageBytes = 1 << 20
	// A page that compression makes smaller by less than a sixteenth is not
	// worth decompressing at each read.
	minGain = 16
	// Zstandard, which takes several times as long, has to make it smaller by a
	// quarter than it would be without.
	minGainZstd = 4
)

// pageRecord describes one data page for the page index.
type pageRecord struct {
	start    int // in the chunk
	length   int
	firstRow int64
	stats    metadata.EncodedStatistics
}

// chunkWriter encodes the values of one leaf in one row group. It gathers
// whole pages with their headers, so that chunks can be encoded side by side
// and written one after another.
type chunkWriter struct {
	codec    compress.Compression
	adaptive bool // whether the first page decides if the codec is of use
	cold     bool // whether it decides if Zstandard gains much, too

	out          []byte
	pages        []pageRecord
	dictionary   int // bytes of the dictionary page, 0 for none
	encoding     int // of the data pages
	entries      int64
	nulls        int64
	rows         int64
	uncompressed int64 // bytes of all pages with their headers
}

func (c *chunkWriter) reset(codec compress.Compression, adaptive, cold bool) {
	*c = chunkWriter{codec: codec, adaptive: adaptive, cold: cold, out: c.out[:0], pages: c.pages[:0]}
}

// chooseCold settles the codec by a page: Zstandard where that gains much over
// what an append would write.
func (c *chunkWriter) chooseCold(body []byte) error {
	least := len(body)
	if c.codec != compress.Codecs.Uncompressed {
		packed, err := compressed(c.codec, nil, body)
		if err != nil {
			return err
		}
		if least = len(packed); least > len(body)-len(body)/minGain {
			c.codec, least = compress.Codecs.Uncompressed, len(body)
		}
	}
	packed, err := compressed(compress.Codecs.Zstd, nil, body)
	if err != nil {
		return err
	}
	if len(packed) <= least-least/minGainZstd {
		c.codec = compress.Codecs.Zstd
	}
	c.adaptive, c.cold = false, false
	return nil
}

// dictionaryPage writes values in PLAIN as the dictionary of the pages to come.
func (c *chunkWriter) dictionaryPage(values int, plain []byte) error {
	err := c.page(pageHeader{kind: pageDictionary, values: values, encoding: encPlain}, plain)
	c.dictionary = len(c.out)
	return err
}

// dataPage writes levels and encoded values as one page.
func (c *chunkWriter) dataPage(rows, entries, nulls, encoding int, body []byte, stats metadata.EncodedStatistics) error {
	start := len(c.out)
	if err := c.page(pageHeader{kind: pageData, values: entries, encoding: encoding}, body); err != nil {
		return err
	}
	stats.SetNullCount(int64(nulls))
	stats.AllNullValue = nulls == entries
	c.pages = append(c.pages, pageRecord{start: start, length: len(c.out) - start, firstRow: c.rows, stats: stats})
	c.encoding = encoding
	c.rows += int64(rows)
	c.entries += int64(entries)
	c.nulls += int64(nulls)
	return nil
}

// page compresses a body and appends it behind its header.
func (c *chunkWriter) page(h pageHeader, body []byte) error {
	if len(body) > math.MaxInt32-64 {
		return fmt.Errorf("a page of %d bytes is too large", len(body))
	}
	if c.cold && h.kind == pageData {
		if err := c.chooseCold(body); err != nil {
			return err
		}
	}
	start := len(c.out)
	if c.codec == compress.Codecs.Uncompressed {
		h.uncompressed, h.compressed = len(body), len(body)
		h.crc, h.hasCRC = crc32.ChecksumIEEE(body), true
		c.out = append(h.append(grow(c.out, longestHeader+len(body))), body...)
		c.uncompressed += int64(len(c.out) - start)
		return nil
	}
	// The header's length is known only when the body's is, so the body is
	// compressed behind the longest header and moved down.
	c.out = grow(c.out, longestHeader+len(body)/2)[:start+longestHeader]
	out, err := compressed(c.codec, c.out, body)
	if err != nil {
		return err
	}
	if c.adaptive && h.kind == pageData {
		c.adaptive = false
		if len(out)-len(c.out) > len(body)-len(body)/minGain {
			c.codec, c.out = compress.Codecs.Uncompressed, c.out[:start]
			return c.page(h, body)
		}
	}
	packed := out[start+longestHeader:]
	h.uncompressed, h.compressed = len(body), len(packed)
	h.crc, h.hasCRC = crc32.ChecksumIEEE(packed), true
	headed := h.append(out[: start : start+longestHeader])
	if len(headed) > start+longestHeader {
		return fmt.Errorf("a page header takes %d bytes", len(headed)-start)
	}
	c.out = out[:len(headed)+copy(out[len(headed):], packed)]
	c.uncompressed += int64(len(headed) - start + len(body))
	return nil
}

// encodings lists all encodings in the chunk.
func (c *chunkWriter) encodings() []int {
	if c.dictionary > 0 {
		return []int{c.encoding, encPlain, encRLE}
	}
	return []int{c.encoding, encRLE}
}

// appendLevels appends levels as a v1 page holds them: their length, then runs.
func appendLevels(body []byte, runs func(body []byte) []byte) []byte {
	at := len(body)
	body = runs(append(body, 0, 0, 0, 0))
	binary.LittleEndian.PutUint32(body[at:], uint32(len(body)-at-4))
	return body
}
