package ingest

import "syscall"

// hugePage is the size of a large page on the usual machines.
const hugePage = 2 << 20

// askHugePages asks for large pages where memory has room for one: the first
// touch of small ones costs more than filling them.
func askHugePages(b []byte) {
	if len(b) >= hugePage {
		_ = syscall.Madvise(b, syscall.MADV_HUGEPAGE) // small pages are slower, not wrong
	}
}
