package derived

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"
)

func testOf() Of {
	return Of{TableID: "0b6d1a2e-0000-4000-8000-000000000001", Version: 41, Commit: sha256.Sum256([]byte("commit"))}
}

func testSections() []Section {
	return []Section{{SectionFiles, bytes.Repeat([]byte("data/00/x.parquet "), 20)}, {SectionCoverage, []byte("short")}, {SectionNewest, nil}}
}

// section reads a section out of a whole file.
func section(f *StateFile, file []byte, kind SectionKind) ([]byte, error) {
	offset, length, ok := f.Section(kind)
	if !ok || offset+length > int64(len(file)) {
		return nil, fmt.Errorf("no section %c", kind)
	}
	return f.Unpack(kind, file[offset:offset+length])
}

func TestStateFile(t *testing.T) {
	file, first, err := EncodeState(testOf(), testSections())
	if err != nil {
		t.Fatal(err)
	}
	f, err := OpenState(file[:first])
	if err != nil || f.Of != testOf() || f.Size() != int64(len(file)) {
		t.Fatalf("%+v, %v", f, err)
	}
	for _, s := range testSections() {
		if got, err := section(f, file, s.Kind); err != nil || !bytes.Equal(got, s.Data) {
			t.Errorf("section %c is %q, %v", s.Kind, got, err)
		}
	}
	if _, err := section(f, file[:first], SectionFiles); err != nil {
		t.Errorf("the first section does not end at %d: %v", first, err)
	}
	if _, _, ok := f.Section('X'); ok {
		t.Error("there is a section X")
	}
	if _, err := f.Unpack('X', nil); err == nil {
		t.Error("section X is unpacked")
	}
}

// TestStateFileDamage alters every byte and cuts the file at every place: what
// is read is what was written or an error.
func TestStateFileDamage(t *testing.T) {
	file, _, err := EncodeState(testOf(), testSections())
	if err != nil {
		t.Fatal(err)
	}
	read := func(file []byte) (found int) {
		f, err := OpenState(file)
		if err != nil {
			return 0
		}
		if f.Of != testOf() {
			t.Fatalf("of %+v", f.Of)
		}
		for _, s := range testSections() {
			if got, err := section(f, file, s.Kind); err == nil {
				if found++; !bytes.Equal(got, s.Data) {
					t.Fatalf("section %c became %q", s.Kind, got)
				}
			}
		}
		return found
	}
	if read(file) != 3 {
		t.Fatal("undamaged, it is not read")
	}
	for i := range file {
		for bit := range 8 {
			damaged := bytes.Clone(file)
			damaged[i] ^= 1 << bit
			if read(damaged) == 3 {
				t.Fatalf("bit %d of byte %d does not matter", bit, i)
			}
		}
		read(file[:i])
	}
}

func TestStateFileOfAnotherVersion(t *testing.T) {
	file, _, err := EncodeState(testOf(), nil)
	if err != nil {
		t.Fatal(err)
	}
	file[len(stateMagic)]++
	if _, err := OpenState(file); err == nil || err.Error() != "of version 2" {
		t.Error(err)
	}
	head, err := Head{Of: testOf()}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	head[len(headMagic)]++
	if _, err := DecodeHead(head); err == nil || err.Error() != "of version 2" {
		t.Error(err)
	}
}

func TestEncodeStateRefuses(t *testing.T) {
	negative, long := testOf(), testOf()
	negative.Version = -1
	long.TableID = strings.Repeat("x", maxStateHeader+1)
	for _, of := range []Of{negative, long} {
		if _, _, err := EncodeState(of, nil); err == nil {
			t.Errorf("a state file of version %d is made", of.Version)
		}
		if _, err := (Head{Of: of}).Encode(); err == nil {
			t.Errorf("a head of version %d is made", of.Version)
		}
	}
	if _, err := (Head{Of: testOf(), First: -1}).Encode(); err == nil {
		t.Error("a head with a negative length is made")
	}
}

func TestHead(t *testing.T) {
	want := Head{Of: testOf(), First: 1 << 40}
	data, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeHead(data); err != nil || got != want {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := DecodeHead(append(bytes.Clone(data), 0)); err == nil {
		t.Error("a head with something behind it is read")
	}
	for i := range data {
		for bit := range 8 {
			damaged := bytes.Clone(data)
			damaged[i] ^= 1 << bit
			if _, err := DecodeHead(damaged); err == nil {
				t.Fatalf("bit %d of byte %d does not matter", bit, i)
			}
		}
		if _, err := DecodeHead(data[:i]); err == nil {
			t.Fatalf("the first %d bytes are read", i)
		}
	}
}

func TestStatePath(t *testing.T) {
	for id, want := range map[string]string{
		testOf().TableID: "_contrail/state/00000000000000000041-0b6d1a2e-0000-4000-8000-000000000001",
		"../../x":        "_contrail/state/00000000000000000041-9cdf6a50100a862e14286c7a334296da",
		"":               "_contrail/state/00000000000000000041-e3b0c44298fc1c149afbf4c8996fb924",
	} {
		if got := StatePath(id, 41); got != want {
			t.Errorf("%q has %s, want %s", id, got, want)
		}
	}
}

// TestGoldenState holds what is persisted. A change of these bytes needs a new
// version of the layout.
func TestGoldenState(t *testing.T) {
	file, first, err := EncodeState(testOf(), testSections())
	if err != nil {
		t.Fatal(err)
	}
	head, err := Head{Of: testOf(), First: first}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%x\n%x\n", file, head)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile("testdata/state.golden.txt", []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/state.golden.txt")
	if err != nil || got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func FuzzStateFile(f *testing.F) {
	file, first, err := EncodeState(testOf(), testSections())
	if err != nil {
		f.Fatal(err)
	}
	head, err := Head{Of: testOf(), First: first}.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	f.Add(head)
	f.Fuzz(func(t *testing.T, data []byte) {
		if h, err := DecodeHead(data); err == nil {
			if again, err := h.Encode(); err != nil || !bytes.Equal(again, data) && len(again) >= len(data) {
				t.Fatalf("%x became %x, %v", data, again, err)
			}
		}
		s, err := OpenState(data)
		if err != nil {
			return
		}
		for _, kind := range []SectionKind{SectionFiles, SectionCoverage, SectionNewest} {
			_, _ = section(s, data, kind)
		}
	})
}
