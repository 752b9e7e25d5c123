package datafile

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// The coders are costly to make, so the process has one of each, made when it is
// first needed; as many pages as there are processors may be coded at once. The
// decoder never writes beyond the buffer it is given.
var (
	zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
	})
	zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithZeroFrames(true))
	})
	lz4Encoders = sync.Pool{New: func() any { return new(lz4.Compressor) }}
)

// decompress fills dst exactly with what src holds.
func decompress(codec compress.Compression, dst, src []byte) error {
	n, err := decompressSome(codec, dst, src)
	if err != nil {
		return fmt.Errorf("a page cannot be decompressed: %w", err)
	}
	if n != len(dst) {
		return fmt.Errorf("a page holds %d bytes, its header claims %d", n, len(dst))
	}
	return nil
}

func decompressSome(codec compress.Compression, dst, src []byte) (int, error) {
	switch codec {
	case compress.Codecs.Uncompressed:
		if len(src) != len(dst) {
			return len(src), nil
		}
		return copy(dst, src), nil
	case compress.Codecs.Snappy:
		n, err := s2.DecodedLen(src)
		if err != nil || n != len(dst) {
			return n, err
		}
		_, err = s2.Decode(dst, src)
		return n, err
	case compress.Codecs.Zstd:
		d, err := zstdDecoder()
		if err != nil {
			return 0, err
		}
		out, err := d.DecodeAll(src, dst[:0:len(dst)])
		return len(out), err
	case compress.Codecs.Lz4Raw:
		if len(dst) == 0 {
			return 0, nil
		}
		return lz4.UncompressBlock(src, dst)
	case compress.Codecs.Gzip, compress.Codecs.Brotli:
		return decompressStream(codec, dst, src)
	}
	return 0, fmt.Errorf("compression %s is not supported", codec)
}

func decompressStream(codec compress.Compression, dst, src []byte) (int, error) {
	c, err := compress.GetCodec(codec)
	if err != nil {
		return 0, err
	}
	streaming, ok := c.(compress.StreamingCodec)
	if !ok {
		return 0, fmt.Errorf("compression %s is not supported", codec)
	}
	r := streaming.NewReader(bytes.NewReader(src))
	defer r.Close()
	return io.ReadFull(r, dst)
}

// compressed appends src to dst in compressed form.
func compressed(codec compress.Compression, dst, src []byte) ([]byte, error) {
	switch codec {
	case compress.Codecs.Uncompressed:
		return append(dst, src...), nil
	case compress.Codecs.Snappy:
		dst = grow(dst, s2.MaxEncodedLen(len(src)))
		out := s2.EncodeSnappy(dst[len(dst):cap(dst)], src)
		return dst[:len(dst)+len(out)], nil
	case compress.Codecs.Zstd:
		e, err := zstdEncoder()
		if err != nil {
			return nil, err
		}
		return e.EncodeAll(src, dst), nil
	case compress.Codecs.Lz4Raw:
		dst = grow(dst, lz4.CompressBlockBound(len(src)))
		e := lz4Encoders.Get().(*lz4.Compressor)
		n, err := e.CompressBlock(src, dst[len(dst):cap(dst)])
		lz4Encoders.Put(e)
		return dst[:len(dst)+n], err
	}
	return nil, fmt.Errorf("compression %s is not supported", codec)
}

// grow returns b with room for n more bytes.
func grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	bigger := make([]byte, len(b), max(len(b)+n, 2*cap(b)))
	copy(bigger, b)
	return bigger
}
