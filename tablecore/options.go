// Package tablecore is the table engine of Contrail, an embeddable library.
//
// A Warehouse holds tables; a Table appends rows and serves scans of its
// versions. Every table is a Delta Lake table on disk. The package wires the
// parts below internal/ together and holds no algorithm of its own; it knows
// nothing of Flight, gRPC, configuration or logging.
//
// Errors are the types of package tableerr. Arrow values that are passed in
// are borrowed, those that are returned belong to the caller.
package tablecore

import (
	"context"
	"crypto/rand"
	"io"
	"os"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore/bufpool"
	"contrail/tablecore/internal/maintain"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
)

// DefaultMemoryBudget bounds what all appends together may buffer, in bytes.
const DefaultMemoryBudget = 2 << 30

// DefaultSeriesMemory bounds what is kept of the series of all tables, in bytes.
const DefaultSeriesMemory = 256 << 20

// Options configure a Warehouse. Only Store is required; the zero value of
// every other field means its default.
type Options struct {
	// Store is where the tables lie. The Warehouse closes it.
	Store objstore.Store
	// Allocator is where Arrow memory comes from; default Go's heap.
	Allocator memory.Allocator
	// Batches is where the rows of data files are decoded to. It need not clear
	// what it hands out, since all of it is filled, and what is never freed must be
	// the garbage collector's where batches go over a network. Default: Allocator
	// where that is given, otherwise a pool that keeps what is released for the
	// next batch.
	Batches memory.Allocator
	// Clock tells the time; default time.Now.
	Clock func() time.Time
	// Random is the source of ids and file names; default crypto/rand.
	Random io.Reader
	// Events are told what happens.
	Events Events
	// MemoryBudget bounds what all appends that are under way may buffer
	// together, in bytes. One that finds it used up goes on in scratch files; one
	// that finds no memory at all is MESSAGE_TOO_LARGE.
	MemoryBudget int64
	// SeriesMemory bounds what is kept of the series of all tables together for
	// coverage queries and newest rows, in bytes. What does not fit is made again
	// from the files' derived data each time.
	SeriesMemory int64
	// Scratch is a local directory for the rows of appends that find no memory;
	// default os.TempDir(). It is made when it is needed. Its files have no names
	// and are gone when the append or the process ends. A full one is
	// STORAGE_FULL. A file system in memory (tmpfs) makes no sense here.
	Scratch string
	// StagedLifetime is how long staged rows wait for their commit; default 24 h,
	// at most MaxStagedLifetime.
	StagedLifetime time.Duration
	// Maintenance says how the tables are kept in order in the background.
	Maintenance Maintenance
	// AllowExternalPaths accepts data files outside the table's directory.
	AllowExternalPaths bool
	// Software names the writer in commits; default "Contrail/<version>".
	Software string
}

// Events are optional callbacks. They are called synchronously and must return
// quickly; a nil one is not called.
type Events struct {
	// Warning reports something odd that cost only time, such as damaged
	// derived data that was recomputed.
	Warning func(ctx context.Context, event string, fields map[string]any)
	// Info reports what the warehouse has done by itself, such as maintenance.
	Info func(ctx context.Context, event string, fields map[string]any)
	// Committed reports a version that this process published.
	Committed func(ctx context.Context, table string, version int64, operation string)
}

func (e Events) warn(ctx context.Context, event string, fields map[string]any) {
	if e.Warning != nil {
		e.Warning(ctx, event, fields)
	}
}

func (e Events) info(ctx context.Context, event string, fields map[string]any) {
	if e.Info != nil {
		e.Info(ctx, event, fields)
	}
}

func (e Events) committed(ctx context.Context, table string, version int64, operation string) {
	if e.Committed != nil {
		e.Committed(ctx, table, version, operation)
	}
}

// withDefaults fills what was left out.
func (o Options) withDefaults() Options {
	if o.Batches == nil {
		if o.Batches = o.Allocator; o.Batches == nil {
			o.Batches = &bufpool.Pool{}
		}
	}
	if o.Allocator == nil {
		o.Allocator = memory.DefaultAllocator
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.MemoryBudget <= 0 {
		o.MemoryBudget = DefaultMemoryBudget
	}
	if o.SeriesMemory <= 0 {
		o.SeriesMemory = DefaultSeriesMemory
	}
	if o.StagedLifetime <= 0 {
		o.StagedLifetime = DefaultStagedLifetime
	}
	if o.Maintenance.MergeFiles <= 0 {
		o.Maintenance.MergeFiles = maintain.DefaultMergeFiles
	}
	o.Maintenance.MergeFiles = max(2, o.Maintenance.MergeFiles)
	if o.Maintenance.Quiet == 0 {
		o.Maintenance.Quiet = defaultQuiet
	}
	if o.Scratch == "" {
		o.Scratch = os.TempDir()
	}
	if o.Software == "" {
		o.Software = "Contrail/" + tabledef.SoftwareVersion
	}
	return o
}
