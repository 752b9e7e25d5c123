//go:build unix && !linux

package localfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// renameNoReplace says that there is no such call here.
func renameNoReplace(int, string, int, string) error { return unix.ENOTSUP }

// startWriting does nothing: the fsync writes all.
func startWriting(*os.File, int64) {}
