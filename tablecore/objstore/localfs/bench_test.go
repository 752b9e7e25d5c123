package localfs

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"contrail/tablecore/objstore"
)

// openBench opens a store for a benchmark. It lies in the temporary directory: set TMPDIR to a file system whose fsync
// is worth measuring.
func openBench(b *testing.B) objstore.Store {
	b.Helper()
	s, err := Open(b.TempDir(), Options{Create: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

func BenchmarkPutIfAbsent(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			s := openBench(b)
			data := bytes.Repeat([]byte("x"), size)
			for i := 0; b.Loop(); i++ {
				if err := s.PutIfAbsent(b.Context(), fmt.Sprintf("log/%020d.json", i), data); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "puts/s")
		})
	}
}

func BenchmarkPutAllIfAbsent(b *testing.B) {
	for _, count := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("objects=%d", count), func(b *testing.B) {
			s := openBench(b)
			batch := make([]objstore.Object, count)
			for i := range batch {
				batch[i].Data = bytes.Repeat([]byte("x"), 1<<10)
			}
			for i := 0; b.Loop(); i++ {
				for j := range batch {
					batch[j].Key = fmt.Sprintf("log/%020d.json", i*count+j)
				}
				if _, err := s.PutAllIfAbsent(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*count)/b.Elapsed().Seconds(), "puts/s")
		})
	}
}

// BenchmarkSmallAppend makes the store operations of a small append: a data file and then a commit.
func BenchmarkSmallAppend(b *testing.B) { benchmarkSmallAppend(b, openBench(b)) }

func benchmarkSmallAppend(b *testing.B, s objstore.Store) {
	data, commit := bytes.Repeat([]byte("x"), 4<<10), bytes.Repeat([]byte("x"), 1<<10)
	for i := 0; b.Loop(); i++ {
		w, err := s.Create(b.Context(), fmt.Sprintf("data/%02x/%d.parquet", i%256, i))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			b.Fatal(err)
		}
		if _, err := w.Commit(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := s.PutIfAbsent(b.Context(), fmt.Sprintf("log/%020d.json", i), commit); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}

func BenchmarkList(b *testing.B) {
	s := openBench(b)
	const count = 10_000
	batch := make([]objstore.Object, count)
	for i := range batch {
		batch[i].Key = fmt.Sprintf("log/%020d.json", i)
	}
	if _, err := s.PutAllIfAbsent(b.Context(), batch); err != nil {
		b.Fatal(err)
	}
	for _, after := range []int{0, 9_900} {
		b.Run(fmt.Sprintf("objects=%d/after=%d", count, after), func(b *testing.B) {
			for b.Loop() {
				for _, err := range s.List(b.Context(), "log/", fmt.Sprintf("log/%020d.json", after)) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkHeadAbsent is what a warm table's freshness check asks: is there a next commit?
func BenchmarkHeadAbsent(b *testing.B) {
	s := openBench(b)
	if err := s.PutIfAbsent(b.Context(), "log/0", nil); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Head(b.Context(), "log/1"); err == nil {
			b.Fatal("found what is not there")
		}
	}
}

// BenchmarkSmallAppendCPU is BenchmarkSmallAppend without its waits for the disk: what the store itself costs.
func BenchmarkSmallAppendCPU(b *testing.B) {
	ops := systemOps
	ops.sync = func(*os.File) error { return nil }
	s, err := open(b.TempDir(), Options{Create: true}, ops)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	b.ReportAllocs()
	benchmarkSmallAppend(b, s)
}
