package datafile

import (
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/compress"
)

// Compression says how the pages of a file are compressed.
type Compression uint8

const (
	// Auto picks encoding and codec per column: what encodes well stays
	// uncompressed, the rest is Snappy.
	Auto Compression = iota
	// Zstd compresses every column with Zstandard.
	Zstd
	// Snappy compresses every column with Snappy.
	Snappy
	// LZ4Raw compresses every column with LZ4 blocks.
	LZ4Raw
	// Uncompressed compresses nothing.
	Uncompressed
	// Cold is for files that are written once and stay: Auto, but Zstandard where
	// that gains much over it. Nobody asks for it by name.
	Cold
)

var compressionNames = [...]string{"auto", "zstd", "snappy", "lz4_raw", "uncompressed"}

// String returns the name that ParseCompression reads.
func (c Compression) String() string {
	if int(c) < len(compressionNames) {
		return compressionNames[c]
	}
	return fmt.Sprintf("compression(%d)", uint8(c))
}

// ParseCompression reads a compression's name in any case. The empty text is
// Auto.
func ParseCompression(text string) (Compression, error) {
	name := strings.ToLower(text)
	if name == "" {
		return Auto, nil
	}
	for i, known := range compressionNames {
		if name == known {
			return Compression(i), nil
		}
	}
	return Auto, fmt.Errorf("compression %q is unknown; use one of %s", text, strings.Join(compressionNames[:], ", "))
}

// codec returns the codec for a column, given whether its encoding alone
// already makes it small.
func (c Compression) codec(compact bool) compress.Compression {
	switch c {
	case Zstd:
		return compress.Codecs.Zstd
	case LZ4Raw:
		return compress.Codecs.Lz4Raw
	case Uncompressed:
		return compress.Codecs.Uncompressed
	case Auto, Cold:
		if compact {
			return compress.Codecs.Uncompressed
		}
	}
	return compress.Codecs.Snappy
}

// adaptive says whether the first page of a column decides if its codec is of
// use.
func (c Compression) adaptive(compact bool) bool { return (c == Auto || c == Cold) && !compact }

// Row group limits that hold where WriteOptions sets none.
const (
	DefaultRowsPerRowGroup  = 256 << 10
	DefaultBytesPerRowGroup = 128 << 20
)

// WriteOptions are the options of a Writer. The zero value is ready to use.
type WriteOptions struct {
	Compression Compression
	// MaxRowsPerRowGroup and MaxBytesPerRowGroup bound a row group; the bytes
	// are those of the Arrow arrays it is made from. Zero means the defaults.
	MaxRowsPerRowGroup  int64
	MaxBytesPerRowGroup int64
	// Mem is where Arrow memory comes from; nil means Go's heap.
	Mem memory.Allocator
}

func (o WriteOptions) withDefaults() WriteOptions {
	if o.MaxRowsPerRowGroup <= 0 {
		o.MaxRowsPerRowGroup = DefaultRowsPerRowGroup
	}
	if o.MaxBytesPerRowGroup <= 0 {
		o.MaxBytesPerRowGroup = DefaultBytesPerRowGroup
	}
	if o.Mem == nil {
		o.Mem = memory.DefaultAllocator
	}
	return o
}

// Source is the object a file is read from: an objstore.Reader, or anything
// else that can be read at any position from several goroutines at once.
type Source interface {
	io.ReaderAt
	// Size returns the object's size in bytes.
	Size() int64
}
