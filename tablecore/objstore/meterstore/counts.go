package meterstore

import (
	"fmt"
	"strings"
	"sync"

	"contrail/tablecore/objstore"
)

// Counts says how often each operation was called, with success or not, and how many bytes went through.
type Counts struct {
	Get, Open, ReadAt                int64
	Put, PutIfAbsent, PutAllIfAbsent int64
	Create, Commit, Abort            int64
	Head, List, ListDirs             int64
	Delete, DeleteAll, DeleteTree    int64
	Sub, Current, Trash              int64
	// Listed is how many objects the listings have yielded.
	Listed int64
	// BytesRead counts what Get and ReadAt have returned, BytesWritten what writes that returned success have stored.
	BytesRead, BytesWritten int64
}

// Requests returns how many requests to a store were made: all operations, but Create and Commit of one object together
// are one, and Abort is none.
func (c Counts) Requests() int64 {
	var sum int64
	for _, f := range c.fields() {
		sum += f.count
	}
	return sum - c.Commit - c.Abort
}

// DurableWrites returns how many writes were waited for until they were durable.
func (c Counts) DurableWrites() int64 { return c.Put + c.PutIfAbsent + c.PutAllIfAbsent + c.Commit }

// Minus returns what was counted since the earlier counts before.
func (c Counts) Minus(before Counts) Counts {
	return Counts{
		Get: c.Get - before.Get, Open: c.Open - before.Open, ReadAt: c.ReadAt - before.ReadAt,
		Put: c.Put - before.Put, PutIfAbsent: c.PutIfAbsent - before.PutIfAbsent,
		PutAllIfAbsent: c.PutAllIfAbsent - before.PutAllIfAbsent,
		Create:         c.Create - before.Create, Commit: c.Commit - before.Commit, Abort: c.Abort - before.Abort,
		Head: c.Head - before.Head, List: c.List - before.List, ListDirs: c.ListDirs - before.ListDirs,
		Delete: c.Delete - before.Delete, DeleteAll: c.DeleteAll - before.DeleteAll, DeleteTree: c.DeleteTree - before.DeleteTree,
		Sub: c.Sub - before.Sub, Current: c.Current - before.Current, Trash: c.Trash - before.Trash,
		Listed: c.Listed - before.Listed, BytesRead: c.BytesRead - before.BytesRead,
		BytesWritten: c.BytesWritten - before.BytesWritten,
	}
}

// String lists what is not zero.
func (c Counts) String() string {
	var text []string
	for _, f := range c.fields() {
		if f.count != 0 {
			text = append(text, fmt.Sprintf("%s: %d", f.op, f.count))
		}
	}
	text = append(text, fmt.Sprintf("objects listed: %d", c.Listed),
		fmt.Sprintf("bytes read: %d", c.BytesRead), fmt.Sprintf("bytes written: %d", c.BytesWritten))
	return strings.Join(text, ", ")
}

// wrote counts the bytes of a write that returned err.
func (c *Counts) wrote(n int, err error) {
	if err == nil {
		c.BytesWritten += int64(n)
	}
}

type field struct {
	op    objstore.Op
	count int64
}

// fields returns the count of each operation.
func (c Counts) fields() []field {
	return []field{
		{objstore.OpGet, c.Get}, {objstore.OpOpen, c.Open}, {objstore.OpReadAt, c.ReadAt},
		{objstore.OpPut, c.Put}, {objstore.OpPutIfAbsent, c.PutIfAbsent}, {objstore.OpPutAllIfAbsent, c.PutAllIfAbsent},
		{objstore.OpCreate, c.Create}, {objstore.OpCommit, c.Commit}, {objstore.OpAbort, c.Abort},
		{objstore.OpHead, c.Head}, {objstore.OpList, c.List}, {objstore.OpListDirs, c.ListDirs},
		{objstore.OpDelete, c.Delete}, {objstore.OpDeleteAll, c.DeleteAll}, {objstore.OpDeleteTree, c.DeleteTree},
		{objstore.OpSub, c.Sub}, {objstore.OpCurrent, c.Current}, {objstore.OpTrash, c.Trash},
	}
}

// meter is what a store and its sub-stores count into.
type meter struct {
	mu     sync.Mutex
	counts Counts
}

func (m *meter) add(count func(*Counts)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	count(&m.counts)
}
