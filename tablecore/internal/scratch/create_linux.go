package scratch

import (
	"os"

	"golang.org/x/sys/unix"
)

// create makes a file that never has a name, where the file system can.
func (d Dir) create() (*os.File, error) {
	fd, err := unix.Open(string(d), unix.O_TMPFILE|unix.O_EXCL|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return d.named() // its error says what is wrong with the directory
	}
	return os.NewFile(uintptr(fd), string(d)+"/(scratch)"), nil
}
