package datafile

import (
	"bytes"
	"testing"
)

// TestScratchesForget gives memory back: nothing in it holds on to the arrays
// that were encoded, and of the dictionary only room is left.
func TestScratchesForget(t *testing.T) {
	var s scratch
	for _, batch := range ticks(1000, 10, true) {
		for _, i := range []int{1, 5} {
			if err := s.dict.build(batch.Columns()[i : i+1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s.forget() == 0 || cap(s.dict.values) == 0 {
		t.Error("no memory is left for the next file")
	}
	if s.dict.sources != nil || s.dict.index != nil || len(s.dict.indices) != 0 {
		t.Error("a dictionary is left")
	}
	for _, v := range s.dict.values[:cap(s.dict.values)] {
		if v != nil {
			t.Fatalf("the value %q is left", v)
		}
	}
}

// TestWriterMemoryIsUsedAgain writes files of several sizes one after another:
// each is the one that fresh memory gives.
func TestWriterMemoryIsUsedAgain(t *testing.T) {
	var first [][]byte
	for round := range 3 {
		for i, rows := range []int{1000, 1, 100_000, 10} {
			file := writeTicks(t, ticks(rows, 1, i%2 == 0), WriteOptions{})
			if round == 0 {
				first = append(first, file)
			} else if !bytes.Equal(file, first[i]) {
				t.Errorf("a file of %d rows has other bytes in round %d", rows, round)
			}
		}
	}
}

// A writer that was closed gives nothing back twice.
func TestWriterClosedTwice(t *testing.T) {
	w, err := NewWriter(&bytes.Buffer{}, tickSchema, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != errClosed || w.scratches != nil {
		t.Errorf("closed again: %v", err)
	}
}
