package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// uncompressed stands for a body without compression; other values are codecs
// of BodyCompression.
const uncompressed = -1

const (
	// compressedPrefix is the length that precedes a compressed buffer.
	compressedPrefix = 8
	// maxZstdWindow is the window any decoder should support (RFC 8878,
	// section 3.1.1.1.2). A decoder allocates the window that a frame asks for,
	// whatever it holds; klauspost/compress, as arrow-go sets it up, up to 512 MiB.
	maxZstdWindow = 8 << 20
)

var errZstd = errors.New("it is not one well-formed zstd frame")

// compression returns the codec of a RecordBatch table's body.
func compression(batch fbTable) (int, error) {
	t, ok, err := batch.table(batchCompression)
	if err != nil {
		return 0, err
	}
	if !ok {
		return uncompressed, nil
	}
	codec, err := t.uint8(compressionCodec)
	if err != nil {
		return 0, err
	}
	if codec != codecLZ4Frame && codec != codecZstd {
		return 0, fmt.Errorf("its body is compressed with unknown codec %d", codec)
	}
	return int(codec), nil
}

// expandedSize returns how much memory a compressed buffer needs, by its own
// claim, which decompression then holds it to.
func expandedSize(codec int, buf []byte) (int64, error) {
	if len(buf) == 0 {
		return 0, nil
	}
	if len(buf) < compressedPrefix {
		return 0, fmt.Errorf("a compressed buffer has %d bytes", len(buf))
	}
	size := int64(binary.LittleEndian.Uint64(buf))
	if size == -1 { // sent as it is, since compression did not help
		return int64(len(buf) - compressedPrefix), nil
	}
	if size < 0 {
		return 0, fmt.Errorf("a compressed buffer claims %d bytes", size)
	}
	if codec == codecZstd {
		return size, checkZstdFrame(buf[compressedPrefix:], size)
	}
	return size, nil
}

// checkZstdFrame walks the one frame of a buffer without decompressing it, and
// refuses a window that is larger than decoders should need, content of another
// size than claimed, and anything behind the frame.
// Format: RFC 8878, section 3.1.1.
func checkZstdFrame(b []byte, size int64) error {
	const magic = 0xFD2FB528
	if len(b) < 6 || binary.LittleEndian.Uint32(b) != magic {
		return errZstd
	}
	descriptor := b[4]
	b = b[5:]
	single := descriptor&0x20 != 0
	var window uint64
	if !single {
		exponent, mantissa := b[0]>>3, uint64(b[0]&7)
		base := uint64(1) << (10 + exponent)
		window = base + base/8*mantissa
		b = b[1:]
	}
	dictionaryBytes := [4]int{0, 1, 2, 4}[descriptor&3]
	contentBytes := [4]int{0, 2, 4, 8}[descriptor>>6]
	if single && contentBytes == 0 {
		contentBytes = 1
	}
	if len(b) < dictionaryBytes+contentBytes {
		return errZstd
	}
	b = b[dictionaryBytes:]
	if contentBytes > 0 {
		var raw [8]byte
		copy(raw[:], b[:contentBytes])
		content := binary.LittleEndian.Uint64(raw[:])
		if contentBytes == 2 {
			content += 256
		}
		if content != uint64(size) {
			return fmt.Errorf("its zstd frame holds %d bytes where %d are claimed", content, size)
		}
		b = b[contentBytes:]
	}
	// A writer that does not know the size in advance may round the window up.
	if window > maxZstdWindow && window > 1<<bits.Len64(uint64(size)) {
		return fmt.Errorf("its zstd frame needs a window of %d bytes, more than %d", window, maxZstdWindow)
	}
	return checkZstdBlocks(b, descriptor&0x04 != 0)
}

// checkZstdBlocks walks the blocks of a frame to its end, which must be the end
// of b.
func checkZstdBlocks(b []byte, checksum bool) error {
	const raw, rle, compressed = 0, 1, 2
	for last := false; !last; {
		if len(b) < 3 {
			return errZstd
		}
		head := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
		last = head&1 != 0
		n := int(head >> 3)
		switch head >> 1 & 3 {
		case raw, compressed:
		case rle:
			n = 1
		default:
			return errZstd
		}
		if len(b)-3 < n {
			return errZstd
		}
		b = b[3+n:]
	}
	if checksum {
		if len(b) < 4 {
			return errZstd
		}
		b = b[4:]
	}
	if len(b) != 0 {
		return errZstd
	}
	return nil
}
