package datafile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/bufpool"
)

// plainDictionary is the body of a dictionary page.
func plainDictionary(values ...string) (body []byte) {
	for _, v := range values {
		body = append(body, byte(len(v)), 0, 0, 0)
		body = append(body, v...)
	}
	return body
}

// sparseCase is some slots of which those that are valid have indices.
type sparseCase struct {
	valid   []byte
	at, k   int
	indices []uint32
}

func randomSparse(r *rand.Rand, values, k int, share float64) sparseCase {
	c := sparseCase{at: r.IntN(20), k: k}
	c.valid = make([]byte, (c.at+k+7)/8)
	c.indices = make([]uint32, 0, k+1)
	for i := range k {
		if r.Float64() < share {
			setBits(c.valid, c.at+i, 1)
			c.indices = append(c.indices, uint32(r.IntN(values)))
		}
	}
	return c
}

// decode appends the case to a decoder that knows the values, by lookUpSparse or
// by its plain path, and returns offsets and data.
func (c sparseCase) decode(t testing.TB, mem memory.Allocator, values []string, plain bool) (ends []int32, data string) {
	d := &bytesDecoder{mem: bufpool.Poison(mem), limit: DefaultBatchBytes}
	defer d.release()
	if err := d.setDictionary(len(values), plainDictionary(values...)); err != nil {
		t.Fatal(err)
	}
	d.dict.allShort = d.dict.allShort && !plain
	for range 2 { // the second time behind what is there already
		if err := d.lookUpSparse(slices.Clone(c.indices), c.k, c.valid, c.at); err != nil {
			t.Fatal(err)
		}
	}
	buffers := d.take()
	defer releaseAll(buffers...)
	return slices.Clone(arrow.GetData[int32](buffers[0].Bytes())), string(buffers[1].Bytes())
}

// Short values among nulls come out as by the way that every value can go.
func TestSpreadShort(t *testing.T) {
	mem := checkedMem(t)
	r := rand.New(rand.NewPCG(3, 3))
	values := []string{"", "a", "NASDAQ", "12345678", "é"}
	for _, share := range []float64{0, 0.1, 0.5, 0.95, 1} {
		for range 50 {
			c := randomSparse(r, len(values), 1+r.IntN(200), share)
			gotEnds, got := c.decode(t, mem, values, false)
			wantEnds, want := c.decode(t, mem, values, true)
			if got != want || !slices.Equal(gotEnds, wantEnds) {
				t.Fatalf("%+v: %q %v, want %q %v", c, got, gotEnds, want, wantEnds)
			}
		}
	}
	d := &bytesDecoder{mem: mem, limit: DefaultBatchBytes}
	defer d.release()
	if err := d.setDictionary(1, plainDictionary("a")); err != nil {
		t.Fatal(err)
	}
	if err := d.lookUpSparse([]uint32{0, 1}, 3, []byte{0b101}, 0); err == nil {
		t.Error("an index behind the dictionary is taken")
	}
}

func BenchmarkSpreadShort(b *testing.B) {
	values := []string{"NYSE", "NASDAQ", "ARCA", "BATS"}
	r := rand.New(rand.NewPCG(3, 3))
	cases := make([]sparseCase, 64) // more than a processor's branch prediction remembers
	for i := range cases {
		cases[i] = randomSparse(r, len(values), 1024, 0.9)
	}
	for name, short := range map[string]bool{"fused": true, "plain": false} {
		b.Run("rows=65536/"+name, func(b *testing.B) {
			d := &bytesDecoder{mem: memory.DefaultAllocator, limit: DefaultBatchBytes}
			if err := d.setDictionary(len(values), plainDictionary(values...)); err != nil {
				b.Fatal(err)
			}
			d.dict.allShort = short
			for b.Loop() {
				for _, c := range cases {
					d.n, d.end = 0, 0
					if err := d.lookUpSparse(c.indices, c.k, c.valid, c.at); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(65536*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

// packedRun is values of a width, bit-packed.
func packedRun(r *rand.Rand, width, n int) (packed []byte, values []uint32) {
	for range n {
		values = append(values, r.Uint32()&uint32(uint64(1)<<width-1))
	}
	return appendPacked(nil, values, width), values
}

// unpackPlain is hybrid.unpack value by value.
func unpackPlain(h *hybrid, dst []uint32) {
	for i := range dst {
		dst[i] = uint32(load64(h.packedBuf, h.packedPos>>3) >> (h.packedPos & 7) & (uint64(1)<<h.width - 1))
		h.packedPos += h.width
	}
	h.packed -= len(dst)
}

// Groups of 8 come out as value by value, whatever the width and wherever
// reading stops and goes on.
func TestUnpackGroups(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for width := range 33 {
		packed, want := packedRun(r, width, 512)
		h := hybrid{width: width, packed: len(want), packedBuf: packed}
		for at := 0; at < len(want); {
			got := make([]uint32, min(len(want)-at, 1+r.IntN(100)))
			h.unpack(got)
			if !slices.Equal(got, want[at:at+len(got)]) {
				t.Fatalf("%d values of %d bits from %d on differ", len(got), width, at)
			}
			at += len(got)
		}
	}
}

func BenchmarkUnpack(b *testing.B) {
	for _, width := range []int{3, 8} {
		packed, values := packedRun(rand.New(rand.NewPCG(4, 4)), width, 1024)
		for name, unpack := range map[string]func(*hybrid, []uint32){"groups": (*hybrid).unpack, "plain": unpackPlain} {
			b.Run(fmt.Sprintf("width=%d/%s", width, name), func(b *testing.B) {
				b.SetBytes(int64(4 * len(values)))
				for b.Loop() {
					unpack(&hybrid{width: width, packed: len(values), packedBuf: packed}, values)
				}
			})
		}
	}
}

// Steps of one length take no bits at all.
func TestRegularDeltas(t *testing.T) {
	want := make([]int64, 1000)
	for i := range want {
		want[i] = 1_700_000_000_000_000 - 250_000*int64(i)
	}
	page := appendDelta(nil, want)
	if len(page) > 100 {
		t.Errorf("a regular series takes %d bytes", len(page))
	}
	var d deltaDecoder
	if err := d.reset(page, len(want)); err != nil {
		t.Fatal(err)
	}
	got := make([]uint64, len(want))
	for at := 0; at < len(got); at += 50 {
		if err := decodeDelta(&d, got[at:at+50]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range want {
		if int64(got[i]) != want[i] {
			t.Fatalf("value %d is %d, want %d", i, int64(got[i]), want[i])
		}
	}
}

func TestIsASCII(t *testing.T) {
	for n := range 100 {
		text := bytes.Repeat([]byte("x"), n)
		if !isASCII(text) {
			t.Fatalf("%d letters are not ASCII", n)
		}
		for i := range text {
			text[i] = 0x80
			if isASCII(text) {
				t.Fatalf("byte %d of %d is not seen", i, n)
			}
			text[i] = 'x'
		}
	}
}

func BenchmarkCheckText(b *testing.B) {
	for name, letter := range map[string]string{"ascii": "x", "other": "é"} {
		data := memory.NewBufferBytes([]byte(strings.Repeat(letter, 1<<16)))
		offsets := memory.NewBufferBytes(arrow.GetBytes([]int32{0, int32(data.Len())}))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(data.Len()))
			for b.Loop() {
				if _, err := checkText(nil, []*memory.Buffer{offsets, data}, 1, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
