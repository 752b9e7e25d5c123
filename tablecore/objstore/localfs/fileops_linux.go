package localfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// renameNoReplace moves a name to one that must be free.
func renameNoReplace(from int, old string, to int, name string) error {
	return unix.Renameat2(from, old, to, name, unix.RENAME_NOREPLACE)
}

// startWriting asks the disk to begin writing a file from an offset on. Its errors come again at the fsync.
func startWriting(f *os.File, from int64) {
	_ = withFD(f, func(fd int) error { return unix.SyncFileRange(fd, from, 0, unix.SYNC_FILE_RANGE_WRITE) })
}
