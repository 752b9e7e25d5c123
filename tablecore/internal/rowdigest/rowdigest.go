// Package rowdigest tells whether two puts have the same rows: a digest of the
// rows of a put that has a request id, and of those of its repetition.
package rowdigest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/convert"
	"contrail/tablecore/internal/snapshot"
	"contrail/tablecore/tabledef"
)

// magic begins what a digest hashes. It changes with the encoding.
const magic = "contrail request digest 1\n"

// Digest hashes the rows of a put that has a request id (table-format.md,
// "Request ids"). Equal rows in equal order give equal digests, whatever the
// batches they came in, the order of their columns, and the types they came in
// as, if these widen to the same declared ones.
//
// It is SHA-256 over magic, the op, the number of rows and of columns,
// and for each of the stream's own columns in the byte order of the names its
// name and its hash. Texts have their length in front; numbers are uvarints. A
// column's hash is SHA-256 over
//
//	kind     a byte: what follows
//	count    the number of values
//	nulls    SHA-256 over the runs of nulls, each the first position and the
//	         length; adjacent runs are one
//	fixed    (kind 1) the width in bytes, SHA-256 over the valid values in
//	         Arrow's little-endian form; booleans are a byte each (width 0)
//	bytes    (kind 2: strings and binaries) SHA-256 over the lengths of the valid
//	         values, SHA-256 over their bytes
//	list     (kind 3: lists and maps) SHA-256 over the lengths of the valid
//	         values, the hash of their elements as a column
//	struct   (kind 4) the number of children, the hash of each, over the valid
//	         rows
//
// Columns are hashed in the type that they are aligned to (convert.AlignedType).
// Dictionaries count as the values they stand for, extension types as their
// storage. What lies under a null is in none of it, neither is a column that
// the stream leaves out or a time that is stamped.
//
// A Digest belongs to one goroutine.
type Digest struct {
	op      string
	columns []hashedColumn
	rows    uint64
}

type hashedColumn struct {
	name string
	at   int // of the stored column
	hash *columnHash
}

// New returns the digest of no rows yet of a stream that was aligned with
// a table.
func New(op string, def *tabledef.Definition, aligner *convert.Aligner) *Digest {
	d := &Digest{op: op}
	for i, f := range def.Stored.Fields() {
		if aligner.Has(i) {
			d.columns = append(d.columns, hashedColumn{f.Name, i, newColumnHash(convert.AlignedType(f.Type))})
		}
	}
	slices.SortFunc(d.columns, func(a, b hashedColumn) int { return strings.Compare(a.name, b.name) })
	return d
}

// Add hashes the rows of the next batch, which it borrows.
func (d *Digest) Add(b *convert.Batch) {
	for _, c := range d.columns {
		c.hash.add(b.Columns[c.at], 0, b.Rows)
	}
	d.rows += uint64(b.Rows)
}

// aside is the number of rows from which a batch is hashed beside the
// copying of its rows.
const aside = 1 << 12

// Begin hashes a batch, perhaps in the background, and returns what waits for
// it. A nil Digest does nothing.
func (d *Digest) Begin(b *convert.Batch) (wait func()) {
	switch {
	case d == nil:
		return func() {}
	case b.Rows < aside:
		d.Add(b)
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Add(b)
	}()
	return func() { <-done }
}

// Sum returns what is kept of the digest of the rows so far, in hex.
func (d *Digest) Sum() string {
	head := append([]byte(magic), lengthPrefixed(d.op)...)
	head = binary.AppendUvarint(head, d.rows)
	head = binary.AppendUvarint(head, uint64(len(d.columns)))
	h := sha256.New()
	h.Write(head)
	for _, c := range d.columns {
		h.Write(lengthPrefixed(c.name))
		h.Write(c.hash.sum())
	}
	return hex.EncodeToString(h.Sum(nil))[:snapshot.DigestLen]
}

func lengthPrefixed(text string) []byte {
	return append(binary.AppendUvarint(nil, uint64(len(text))), text...)
}

// The kinds of column hashes.
const (
	hashFixed  = 1
	hashBytes  = 2
	hashList   = 3
	hashStruct = 4
)

// columnHash hashes a column or, in a nested one, a child.
type columnHash struct {
	kind     byte
	width    int // of fixed values; 0 for booleans
	children []*columnHash

	count uint64
	nulls hashStream
	// open is a run of nulls that may go on in the next batch.
	open struct{ first, n uint64 }

	values  hashStream // of fixed, the bytes of bytes
	lengths hashStream // of bytes and list
}

// newColumnHash returns the hash of a column of a declared type.
func newColumnHash(t arrow.DataType) *columnHash {
	switch t := t.(type) {
	case arrow.ExtensionType:
		return newColumnHash(t.StorageType())
	case *arrow.DictionaryType:
		return newColumnHash(t.ValueType)
	case arrow.ListLikeType: // maps are lists of structs
		return &columnHash{kind: hashList, children: []*columnHash{newColumnHash(t.Elem())}}
	case *arrow.StructType:
		h := &columnHash{kind: hashStruct}
		for _, f := range t.Fields() {
			h.children = append(h.children, newColumnHash(f.Type))
		}
		return h
	case arrow.FixedWidthDataType:
		return &columnHash{kind: hashFixed, width: t.BitWidth() / 8}
	default:
		return &columnHash{kind: hashBytes}
	}
}

// sum returns the hash of what was added. Nothing may be added afterwards.
func (c *columnHash) sum() []byte {
	c.endRun()
	out := binary.AppendUvarint([]byte{c.kind}, c.count)
	out = c.nulls.appendSum(out)
	switch c.kind {
	case hashFixed:
		out = binary.AppendUvarint(out, uint64(c.width))
		out = c.values.appendSum(out)
	case hashBytes:
		out = c.values.appendSum(c.lengths.appendSum(out))
	case hashList:
		out = c.lengths.appendSum(out)
	case hashStruct:
		out = binary.AppendUvarint(out, uint64(len(c.children)))
	}
	for _, child := range c.children {
		out = append(out, child.sum()...)
	}
	sum := sha256.Sum256(out)
	return sum[:]
}

// null counts n nulls.
func (c *columnHash) null(n uint64) {
	if c.open.n > 0 && c.open.first+c.open.n == c.count {
		c.open.n += n
	} else {
		c.endRun()
		c.open.first, c.open.n = c.count, n
	}
	c.count += n
}

// endRun hashes the run of nulls that is open.
func (c *columnHash) endRun() {
	if c.open.n > 0 {
		c.nulls.number(c.open.first)
		c.nulls.number(c.open.n)
		c.open.n = 0
	}
}

// hashStream hashes a stream of bytes. Short pieces are gathered, since a
// call of the hash costs as much as hashing a line.
type hashStream struct {
	hash hash.Hash // nil until there are bytes to hash
	buf  []byte
}

const (
	streamBuffer = 4 << 10
	// direct is the size from which bytes go into the hash uncopied.
	direct = 512
)

func (s *hashStream) number(n uint64) {
	s.room(binary.MaxVarintLen64)
	s.buf = binary.AppendUvarint(s.buf, n)
}

func (s *hashStream) bytes(b []byte) {
	if len(b) < direct {
		s.room(len(b))
		s.buf = append(s.buf, b...)
		return
	}
	s.flush()
	s.hash.Write(b)
}

// room makes sure that n bytes can be appended to the buffer.
func (s *hashStream) room(n int) {
	if s.buf == nil {
		s.buf = make([]byte, 0, direct)
	}
	if len(s.buf)+n > streamBuffer {
		s.flush()
	}
}

func (s *hashStream) flush() {
	if s.hash == nil {
		s.hash = sha256.New()
	}
	s.hash.Write(s.buf)
	s.buf = s.buf[:0]
}

func (s *hashStream) appendSum(to []byte) []byte {
	s.flush()
	return s.hash.Sum(to)
}
