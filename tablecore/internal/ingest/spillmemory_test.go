package ingest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/internal/childtest"
	"contrail/tablecore/internal/scratch"
	"contrail/tablecore/objstore/localfs"
)

// memoryRun is what the child process of the memory test does.
type memoryRun struct {
	Rows, Budget int64
	Dir          string
}

// memoryReport is what it answers.
type memoryReport struct {
	Rows, Files, Peak int64
	Seconds           float64
}

// TestSpillMemory appends shuffled ticks with a small budget in a child process
// and looks at the most memory it ever had. CONTRAIL_TEST_SPILL_ROWS and
// CONTRAIL_TEST_SPILL_BUDGET (bytes) make it larger: see make spill.
func TestSpillMemory(t *testing.T) {
	var run memoryRun
	if childtest.Asked(t, &run) {
		childtest.Answer(t, run.append(t))
		return
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Log("this system does not tell the peak memory of a process; the rows alone are checked")
	}
	run = memoryRun{Rows: 6_000_000, Budget: 64 << 20, Dir: t.TempDir()}
	if raceDetector {
		run.Rows, run.Budget = 300_000, 4<<20
	}
	run.Rows = envNumber(t, "CONTRAIL_TEST_SPILL_ROWS", run.Rows)
	run.Budget = envNumber(t, "CONTRAIL_TEST_SPILL_BUDGET", run.Budget)
	var got memoryReport
	childtest.Run(t, run, &got)
	t.Logf("%d rows, budget %d MiB: %d files, peak %d MiB, %.1f s", got.Rows, run.Budget>>20, got.Files, got.Peak>>20, got.Seconds)
	if got.Rows != run.Rows {
		t.Errorf("%d rows, want %d", got.Rows, run.Rows)
	}
	if most := run.Budget + 150_000_000; got.Peak > most && !raceDetector {
		t.Errorf("the peak is %d bytes, more than %d", got.Peak, most)
	}
	if left, err := os.ReadDir(run.Dir + "/scratch"); err != nil || len(left) > 0 {
		t.Errorf("scratch holds %v, %v", left, err)
	}
}

func envNumber(t *testing.T, name string, otherwise int64) int64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// append appends the rows.
func (run memoryRun) append(t *testing.T) memoryReport {
	t.Helper()
	store, err := localfs.Open(run.Dir+"/table", localfs.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	cfg := testConfig(t, tickDefinition(), memory.DefaultAllocator)
	cfg.Rows = OffHeap() // as a warehouse has it
	cfg.Store, cfg.Scratch, cfg.MemoryBudget = store, scratch.Dir(run.Dir+"/scratch"), run.Budget
	began := time.Now()
	result, err := Run(context.Background(), cfg, newTickStream(run.Rows))
	if err != nil {
		t.Fatal(err)
	}
	return memoryReport{Rows: result.Rows, Files: int64(len(result.Files)), Peak: childtest.PeakMemory(), Seconds: time.Since(began).Seconds()}
}

// tickStream makes shuffled ticks as they are asked for: every second of every
// symbol once, in no order.
type tickStream struct {
	rows, next int64
	bits       uint // of a half
	rng        *rand.Rand
	names      []string
	last       arrow.RecordBatch
}

func newTickStream(rows int64) *tickStream {
	s := &tickStream{rows: rows, rng: rand.New(rand.NewPCG(3, 3)), bits: 1}
	for int64(1)<<(2*s.bits) < rows {
		s.bits++
	}
	for i := range tickSymbols {
		s.names = append(s.names, fmt.Sprintf("S%04d", i))
	}
	return s
}

func (s *tickStream) Schema() *arrow.Schema { return tickSchema }

// place returns where row i of the stream stands in time: a Feistel network is
// a permutation of its domain, and walking on from what is outside the rows
// makes it one of them.
func (s *tickStream) place(i int64) int64 {
	mask := uint64(1)<<s.bits - 1
	for {
		left, right := uint64(i)>>s.bits, uint64(i)&mask
		for round := range uint64(4) {
			h := (right + round*0x9E3779B97F4A7C15 + 1) * 0xBF58476D1CE4E5B9
			left, right = right, (left^h>>29)&mask
		}
		if i = int64(left<<s.bits | right); i < s.rows {
			return i
		}
	}
}

func (s *tickStream) Next(context.Context) (arrow.RecordBatch, error) {
	if s.last != nil {
		s.last.Release()
		s.last = nil
	}
	if s.next == s.rows {
		return nil, io.EOF
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, tickSchema)
	defer b.Release()
	n := min(65536, s.rows-s.next)
	b.Reserve(int(n))
	for range n {
		at := s.place(s.next)
		s.next++
		second, symbol := at/tickSymbols, at%tickSymbols
		b.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(1_767_225_600_000_000 + second*1_000_000 + symbol*1000))
		b.Field(1).(*array.StringBuilder).Append(s.names[symbol])
		b.Field(2).(*array.Float64Builder).Append(float64(10000+s.rng.IntN(500)) / 100)
		b.Field(3).(*array.Int32Builder).Append(int32(100 * (1 + s.rng.IntN(99))))
		b.Field(4).(*array.BooleanBuilder).Append(s.rng.IntN(10) == 0)
		if s.rng.IntN(20) == 0 {
			b.Field(5).(*array.StringBuilder).AppendNull()
		} else {
			b.Field(5).(*array.StringBuilder).Append(tickVenues[s.rng.IntN(len(tickVenues))])
		}
	}
	s.last = b.NewRecordBatch()
	return s.last, nil
}
