package derived

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"regexp"

	"github.com/klauspost/compress/s2"
)

// A state file holds what is worth keeping of one version of a table as a
// whole, in sections that can be read one by one:
//
//	magic "CTRS"                                     4 bytes
//	version of the layout                            1 byte
//	length of the header                             4 bytes, little-endian
//	CRC-32C of the header                            4 bytes, little-endian
//	header:
//	  table id                                       uvarint length, bytes
//	  version of the table                           uvarint
//	  SHA-256 of that version's commit file          32 bytes
//	  number of sections                             uvarint
//	  for each section:
//	    kind                                         1 byte
//	    length                                       uvarint
//	    length when unpacked, 0 if it is not packed  uvarint
//	    CRC-32C of its bytes                         4 bytes, little-endian
//	the sections, one after another, packed ones as a Snappy block
const (
	stateMagic   = "CTRS"
	stateVersion = 1
	// fixedStateBytes lie before the header.
	fixedStateBytes = len(stateMagic) + 1 + 4 + 4
)

// Limits on what is read, so that no file makes its reader allocate without
// bounds.
const (
	maxStateHeader  = 64 << 10
	maxSectionBytes = 1 << 30
	// maxUnpack is more than a Snappy block can grow by.
	maxUnpack = 32
)

// StateDir is where state files lie.
const StateDir = "_contrail/state/"

// Of names the version of a table that something was made of.
type Of struct {
	TableID string
	Version int64
	// Commit is the SHA-256 of the version's commit file. A log that holds
	// another one is not the table it was made of.
	Commit [sha256.Size]byte
}

// SectionKind says what a section of a state file holds.
type SectionKind byte

// The sections there are. SectionFiles is the log's state, as
// deltalog.EncodeState writes it, and the first section; the others are the two
// indexes of package series.
const (
	SectionFiles    SectionKind = 'F'
	SectionCoverage SectionKind = 'C'
	SectionNewest   SectionKind = 'N'
)

// Section is a part of a state file.
type Section struct {
	Kind SectionKind
	Data []byte
}

// EncodeState returns the bytes of a state file, and how many of them it takes
// to read the first section.
func EncodeState(of Of, sections []Section) (data []byte, first int64, err error) {
	header, err := of.append(nil)
	if err != nil {
		return nil, 0, err
	}
	header = binary.AppendUvarint(header, uint64(len(sections)))
	stored := make([][]byte, len(sections))
	size := fixedStateBytes
	for i, s := range sections {
		if len(s.Data) > maxSectionBytes {
			return nil, 0, fmt.Errorf("a section of %d bytes is too long for a state file", len(s.Data))
		}
		unpacked := 0
		if stored[i] = s.Data; len(s.Data) > 0 {
			if packed := s2.EncodeSnappy(nil, s.Data); len(packed) < len(s.Data)-len(s.Data)/8 {
				stored[i], unpacked = packed, len(s.Data)
			}
		}
		header = append(header, byte(s.Kind))
		header = binary.AppendUvarint(header, uint64(len(stored[i])))
		header = binary.AppendUvarint(header, uint64(unpacked))
		header = binary.LittleEndian.AppendUint32(header, crc32.Checksum(stored[i], castagnoli))
		size += len(stored[i])
	}
	if len(header) > maxStateHeader {
		return nil, 0, errors.New("the header of the state file is too long")
	}
	data = make([]byte, 0, size+len(header))
	data = append(append(data, stateMagic...), stateVersion)
	data = binary.LittleEndian.AppendUint32(data, uint32(len(header)))
	data = binary.LittleEndian.AppendUint32(data, crc32.Checksum(header, castagnoli))
	data = append(data, header...)
	first = int64(len(data))
	for i, section := range stored {
		data = append(data, section...)
		if i == 0 {
			first = int64(len(data))
		}
	}
	return data, first, nil
}

func (of Of) append(dst []byte) ([]byte, error) {
	if of.Version < 0 {
		return nil, fmt.Errorf("version %d", of.Version)
	}
	dst = binary.AppendUvarint(dst, uint64(len(of.TableID)))
	dst = append(dst, of.TableID...)
	dst = binary.AppendUvarint(dst, uint64(of.Version))
	return append(dst, of.Commit[:]...), nil
}

// StateFile is the header of a state file.
type StateFile struct {
	Of       Of
	sections []sectionPlace
}

// sectionPlace says where a section lies in its file.
type sectionPlace struct {
	kind                     SectionKind
	offset, length, unpacked int64
	sum                      uint32
}

// OpenState reads the header of a state file out of the file's beginning. The
// error says what is wrong with it.
func OpenState(beginning []byte) (*StateFile, error) {
	if len(beginning) < fixedStateBytes || string(beginning[:len(stateMagic)]) != stateMagic {
		return nil, errDamaged
	}
	if v := beginning[len(stateMagic)]; v != stateVersion {
		return nil, fmt.Errorf("of version %d", v)
	}
	n := binary.LittleEndian.Uint32(beginning[len(stateMagic)+1:])
	sum := binary.LittleEndian.Uint32(beginning[len(stateMagic)+5:])
	rest := beginning[fixedStateBytes:]
	if n > maxStateHeader || uint64(n) > uint64(len(rest)) || crc32.Checksum(rest[:n], castagnoli) != sum {
		return nil, errDamaged
	}
	r := headerReader{rest: rest[:n]}
	f := &StateFile{Of: r.of()}
	offset := int64(fixedStateBytes) + int64(n)
	for range r.number(maxStateHeader) {
		if r.bad {
			break
		}
		p := sectionPlace{kind: SectionKind(r.byte()), offset: offset, length: r.number(maxSectionBytes), unpacked: r.number(maxSectionBytes), sum: r.uint32()}
		if offset += p.length; p.unpacked > maxUnpack*p.length || offset < 0 {
			r.bad = true
		}
		f.sections = append(f.sections, p)
	}
	if r.bad || len(r.rest) > 0 {
		return nil, errDamaged
	}
	return f, nil
}

// Section returns where a section lies in the file; ok is false when there is
// none of the kind.
func (f *StateFile) Section(kind SectionKind) (offset, length int64, ok bool) {
	for _, p := range f.sections {
		if p.kind == kind {
			return p.offset, p.length, true
		}
	}
	return 0, 0, false
}

// Size returns the length of the whole file.
func (f *StateFile) Size() int64 {
	if len(f.sections) == 0 {
		return 0
	}
	last := f.sections[len(f.sections)-1]
	return last.offset + last.length
}

// Unpack returns the content of a section from its bytes in the file.
func (f *StateFile) Unpack(kind SectionKind, stored []byte) ([]byte, error) {
	for _, p := range f.sections {
		if p.kind != kind {
			continue
		}
		if int64(len(stored)) != p.length || crc32.Checksum(stored, castagnoli) != p.sum {
			return nil, errDamaged
		}
		if p.unpacked == 0 {
			return stored, nil
		}
		if n, err := s2.DecodedLen(stored); err != nil || int64(n) != p.unpacked {
			return nil, errDamaged
		}
		data, err := s2.Decode(nil, stored)
		if err != nil {
			return nil, errDamaged
		}
		return data, nil
	}
	return nil, errors.New("it has no such section")
}

var errDamaged = errors.New("damaged")

var plainID = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// StatePath returns the path of a state file, relative to the table.
func StatePath(tableID string, version int64) string {
	if !plainID.MatchString(tableID) { // of another writer, who may write what he likes
		sum := sha256.Sum256([]byte(tableID))
		tableID = hex.EncodeToString(sum[:16])
	}
	return fmt.Sprintf("%s%020d-%s", StateDir, version, tableID)
}

// headerReader reads a header. After damage it gives zero values and bad is
// set.
type headerReader struct {
	rest []byte
	bad  bool
}

func (r *headerReader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.rest, r.bad = nil, true
		return make([]byte, max(0, min(n, sha256.Size)))
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

// number reads a number up to most.
func (r *headerReader) number(most int64) int64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > uint64(most) {
		r.rest, r.bad = nil, true
		return 0
	}
	r.rest = r.rest[n:]
	return int64(v)
}

func (r *headerReader) byte() byte { return r.take(1)[0] }

func (r *headerReader) uint32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }

func (r *headerReader) of() Of {
	of := Of{TableID: string(r.take(int(r.number(maxStateHeader)))), Version: r.number(math.MaxInt64)}
	copy(of.Commit[:], r.take(sha256.Size))
	return of
}
