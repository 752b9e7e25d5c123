package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"contrail/tablecore/tabledef"
)

// TestShapeByEntity gives each entity files of its own, in memory and from runs,
// also where the rows of one entity find no memory.
func TestShapeByEntity(t *testing.T) {
	var rows []observation
	for hour := range int64(3000) {
		rows = append(rows, observation{"E0", hour, 0})
		if hour%10 == 0 {
			rows = append(rows, observation{fmt.Sprint("E", 1+hour%40/10), hour, 0})
		}
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(rows), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
	for _, c := range []struct {
		name             string
		runs, mergeBytes int64
		shape            Shape
		files            int // that there are at least
	}{
		{"in memory", 0, 0, Shape{ByEntity: true, MaxFiles: 5}, 5},
		{"in memory, cut", 0, 0, Shape{ByEntity: true, FileRows: 500}, 10},
		{"from runs", 700, 1 << 20, Shape{ByEntity: true, MaxFiles: 5}, 5},
		{"from runs, little memory", 700, 50_000, Shape{ByEntity: true}, 6},
		{"by index", 0, 0, Shape{FileRows: 500}, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := start(t, weather(tabledef.UniqueReject))
			if c.runs > 0 {
				cfg = spilling(t, cfg, c.runs)
				cfg.limits.mergeBytes = c.mergeBytes
			}
			cfg.Shape = c.shape
			result, err := Run(context.Background(), cfg, observations(rows, 100))
			if err != nil {
				t.Fatal(err)
			}
			if result.Rows != int64(len(rows)) || len(result.Files) < c.files || c.shape.MaxFiles > 0 && len(result.Files) > c.files {
				t.Errorf("%d rows in %d files", result.Rows, len(result.Files))
			}
			for _, f := range result.Files {
				if single := len(f.Index.Directory) == 1; single != c.shape.ByEntity || c.shape.FileRows > 0 && f.Rows > 750 {
					t.Errorf("a file has %d rows of %d entities", f.Rows, len(f.Index.Directory))
				}
			}
			if !c.shape.ByEntity {
				return
			}
			cfg.Shape.MaxFiles = c.files - 1
			var tooMany *TooManyFilesError
			if _, err = Run(context.Background(), cfg, observations(rows, 100)); !errors.As(err, &tooMany) || tooMany.Limit != c.files-1 || err.Error() == "" {
				t.Errorf("too many files give %v", err)
			}
			if left := len(keys(t, cfg.Store)); left != len(result.Files) {
				t.Errorf("%d files are left of %d", left, len(result.Files))
			}
		})
	}
}
