package datafile

import (
	"fmt"
	"math"
)

// Page types, encodings and codecs as parquet.thrift numbers them.
const (
	pageData       = 0
	pageIndex      = 1
	pageDictionary = 2
	pageDataV2     = 3

	encPlain         = 0
	encPlainDict     = 2
	encRLE           = 3
	encBitPacked     = 4
	encDeltaBinary   = 5
	encDeltaLength   = 6
	encDeltaByteArr  = 7
	encRLEDict       = 8
	encByteStreamSpl = 9
)

// pageHeader is the header before each page.
type pageHeader struct {
	kind         int
	uncompressed int
	compressed   int
	crc          uint32
	hasCRC       bool
	sealed       bool
	values       int // entries of a data page, nulls and empty lists included, or dictionary values
	encoding     int

	// data page v1
	defEncoding, repEncoding int
	// data page v2
	rows               int
	defBytes, repBytes int
	plainBody          bool // the body is not compressed although the chunk is
}

// longestHeader bounds what append writes.
const longestHeader = 96

// append writes the header of a dictionary page or a v1 data page, with a seal.
func (h *pageHeader) append(b []byte) []byte {
	start := len(b)
	w := thriftWriter{b: b}
	w.i32(1, int32(h.kind))
	w.i32(2, int32(h.uncompressed))
	w.i32(3, int32(h.compressed))
	if h.hasCRC {
		w.i32(4, int32(h.crc))
	}
	if h.kind == pageDictionary {
		w.structure(7, func() {
			w.i32(1, int32(h.values))
			w.i32(2, int32(h.encoding))
		})
	} else {
		w.structure(5, func() {
			w.i32(1, int32(h.values))
			w.i32(2, int32(h.encoding))
			w.i32(3, encRLE)
			w.i32(4, encRLE)
		})
	}
	return sealed(append(w.b, 0), start)
}

// parsePageHeader reads the header at the start of b and returns its length.
// The error errThriftShort may mean that b holds too little of it.
func parsePageHeader(b []byte) (pageHeader, int, error) {
	h := pageHeader{kind: -1, uncompressed: -1, compressed: -1, values: -1, encoding: -1}
	r := thriftReader{b: b}
	number := func(to *int) bool {
		v := r.int()
		if v < 0 || v > math.MaxInt32 {
			r.fail(fmt.Errorf("a page header holds the number %d", v))
			v = 0
		}
		*to = int(v)
		return true
	}
	r.structure(0, func(id int, typ byte) bool {
		switch {
		case id == 1 && typ == thriftI32:
			return number(&h.kind)
		case id == 2 && typ == thriftI32:
			return number(&h.uncompressed)
		case id == 3 && typ == thriftI32:
			return number(&h.compressed)
		case id == 4 && typ == thriftI32:
			h.crc, h.hasCRC = uint32(r.int()), true
			return true
		case id == 5 && typ == thriftStruct:
			h.parseData(&r, number)
			return true
		case id == 7 && typ == thriftStruct:
			h.parseDictionary(&r, number)
			return true
		case id == 8 && typ == thriftStruct:
			h.parseDataV2(&r, number)
			return true
		}
		return r.seal(id, typ)
	})
	h.sealed = r.sealed
	if r.err != nil {
		return h, 0, r.err
	}
	return h, r.pos, h.check()
}

func (h *pageHeader) parseData(r *thriftReader, number func(*int) bool) {
	fields := []*int{1: &h.values, 2: &h.encoding, 3: &h.defEncoding, 4: &h.repEncoding}
	r.structure(1, func(id int, typ byte) bool {
		return id >= 1 && id < len(fields) && typ == thriftI32 && number(fields[id])
	})
}

func (h *pageHeader) parseDictionary(r *thriftReader, number func(*int) bool) {
	fields := []*int{1: &h.values, 2: &h.encoding}
	r.structure(1, func(id int, typ byte) bool {
		return id >= 1 && id < len(fields) && typ == thriftI32 && number(fields[id])
	})
}

func (h *pageHeader) parseDataV2(r *thriftReader, number func(*int) bool) {
	var nulls int
	fields := []*int{1: &h.values, 2: &nulls, 3: &h.rows, 4: &h.encoding, 5: &h.defBytes, 6: &h.repBytes}
	r.structure(1, func(id int, typ byte) bool {
		if id == 7 && (typ == thriftTrue || typ == thriftFalse) {
			h.plainBody = typ == thriftFalse
			return true
		}
		return id >= 1 && id < len(fields) && typ == thriftI32 && number(fields[id])
	})
}

func (h *pageHeader) check() error {
	if h.kind < 0 || h.compressed < 0 || h.uncompressed < 0 {
		return fmt.Errorf("a page header lacks its type or sizes")
	}
	switch h.kind {
	case pageData, pageDictionary, pageDataV2:
		if h.values < 0 || h.encoding < 0 {
			return fmt.Errorf("a page header lacks its number of values or encoding")
		}
	}
	if h.kind == pageDataV2 && (h.defBytes+h.repBytes > h.compressed || h.defBytes+h.repBytes > h.uncompressed || h.rows > h.values) {
		return fmt.Errorf("a page header claims %d bytes of levels of %d, %d rows of %d values",
			h.defBytes+h.repBytes, h.compressed, h.rows, h.values)
	}
	return nil
}
