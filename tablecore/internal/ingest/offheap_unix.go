//go:build unix

package ingest

import "syscall"

// mapPages returns cleared pages, nil when the system has none.
func mapPages(size int) []byte {
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	askHugePages(b)
	return b
}

// unmapPages gives pages back; it is false for memory that is none of mapPages.
func unmapPages(b []byte) bool { return syscall.Munmap(b) == nil }
