package coverage

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// sparse makes what ticks at 1 µs give: ids at random within a day.
func sparse(b *testing.B, entities, ids int) *Set {
	rng := rand.New(rand.NewPCG(1, 2))
	builder := NewBuilder()
	own := make([]uint64, ids)
	for e := range entities {
		for i := range own {
			own[i] = 1<<63 + 1_700_000_000_000_000 + rng.Uint64N(86_400_000_000)
		}
		slices.Sort(own)
		builder.Entity(fmt.Sprintf("SYM%06d\x00\x01", e))
		builder.AddIDs(own)
	}
	return finish(b, builder)
}

func BenchmarkBuild(b *testing.B) {
	for _, c := range []struct{ entities, ids int }{{1, 1_000_000}, {1000, 1000}, {100_000, 5}} {
		for _, dense := range []bool{true, false} {
			b.Run(fmt.Sprintf("entities=%d/rows=%d/dense=%v", c.entities, c.entities*c.ids, dense), func(b *testing.B) {
				ids := make([]uint64, c.ids)
				for i := range ids {
					if ids[i] = uint64(i); !dense {
						ids[i] *= 8_640_000
					}
				}
				var s *Set
				for b.Loop() {
					builder := NewBuilder()
					for e := range c.entities {
						builder.Entity(fmt.Sprintf("SYM%06d\x00\x01", e))
						builder.AddIDs(ids)
					}
					s = finish(b, builder)
				}
				b.ReportMetric(float64(c.entities*c.ids)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
				b.ReportMetric(float64(len(s.AppendEncoded(nil))), "encoded-bytes")
				b.ReportMetric(float64(s.Bytes()), "bytes")
			})
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, c := range []struct{ entities, ids int }{{1, 1_000_000}, {1000, 1000}, {100_000, 5}} {
		b.Run(fmt.Sprintf("entities=%d/rows=%d", c.entities, c.entities*c.ids), func(b *testing.B) {
			data := sparse(b, c.entities, c.ids).AppendEncoded(nil)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := Decode(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkIntersect(b *testing.B) {
	large := sparse(b, 1, 1_000_000)
	wide := sparse(b, 100_000, 5)
	one := NewBuilder()
	one.Entity("SYM000000\x00\x01")
	one.Add(large.First(0) + 1234567)
	row := finish(b, one)
	for name, c := range map[string][2]*Set{
		"one row in 1M":               {row, large},
		"one row in 100,000 entities": {row, wide},
		"1M with itself":              {large, large},
		"100,000 with themselves":     {wide, wide},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Intersect(c[0], c[1])
			}
		})
	}
}

// BenchmarkUnion joins what the files of an append cover: cut by time, or not.
func BenchmarkUnion(b *testing.B) {
	const files, entities, ids = 12, 1000, 100
	for _, c := range []struct {
		name string
		id   func(file, i uint64) uint64
	}{
		{"by time", func(file, i uint64) uint64 { return 8_640_000 * (file*ids + i) }},
		{"mixed", func(file, i uint64) uint64 { return 8_640_000 * (file + i*files) }},
	} {
		sets := make([]*Set, files)
		for file := range sets {
			builder := NewBuilder()
			for e := range entities {
				builder.Entity(fmt.Sprintf("SYM%06d\x00\x01", e))
				for i := range uint64(ids) {
					builder.Add(c.id(uint64(file), i))
				}
			}
			sets[file] = finish(b, builder)
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Union(sets...); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(files*entities*ids)*float64(b.N)/b.Elapsed().Seconds(), "runs/s")
		})
	}
}

// BenchmarkTenMillion reports the memory of the largest case that has to fit.
func BenchmarkTenMillion(b *testing.B) {
	for _, c := range []struct{ entities, ids int }{{1, 10_000_000}, {1000, 10_000}} {
		b.Run(fmt.Sprintf("entities=%d", c.entities), func(b *testing.B) {
			for b.Loop() {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				s := sparse(b, c.entities, c.ids)
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc), "heap-bytes")
				b.ReportMetric(float64(s.Bytes()), "bytes")
				runtime.KeepAlive(s)
			}
		})
	}
}
