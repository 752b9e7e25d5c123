//go:build unix

package localfs

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// readFlags open a file for reading without waiting, should it be a pipe that somebody put there.
const readFlags = os.O_RDONLY | syscall.O_NONBLOCK

// fileOps are the system calls that change something. A test puts others in their place. Names are single parts below
// an open directory, and symbolic links are never followed.
type fileOps struct {
	// create makes a new file for writing.
	create func(dir *os.File, name string) (*os.File, error)
	// write writes at the end of a file.
	write func(f *os.File, p []byte) (int, error)
	// start asks the disk to begin writing a file from an offset on; it promises nothing.
	start func(f *os.File, from int64)
	// sync makes the content of a file, or the names in a directory, durable.
	sync func(f *os.File) error
	// link gives a file a second name; EEXIST when it is taken.
	link func(from *os.File, old string, to *os.File, name string) error
	// renameNew moves a name to one that must be free; EEXIST when it is taken.
	renameNew func(from *os.File, old string, to *os.File, name string) error
	// rename moves a name, over the one that is there.
	rename func(from *os.File, old string, to *os.File, name string) error
	// unlink removes the name of something that is no directory.
	unlink func(dir *os.File, name string) error
}

// systemOps are the calls of the operating system.
var systemOps = fileOps{
	create: createAt,
	write:  func(f *os.File, p []byte) (int, error) { return f.Write(p) },
	start:  startWriting,
	sync:   func(f *os.File) error { return f.Sync() },
	link: func(from *os.File, old string, to *os.File, name string) error {
		return withTwo(from, to, func(fromFD, toFD int) error { return unix.Linkat(fromFD, old, toFD, name, 0) })
	},
	renameNew: func(from *os.File, old string, to *os.File, name string) error {
		return withTwo(from, to, func(fromFD, toFD int) error { return renameNoReplace(fromFD, old, toFD, name) })
	},
	rename: func(from *os.File, old string, to *os.File, name string) error {
		return withTwo(from, to, func(fromFD, toFD int) error { return unix.Renameat(fromFD, old, toFD, name) })
	},
	unlink: func(dir *os.File, name string) error {
		return withFD(dir, func(fd int) error { return retry(func() error { return unix.Unlinkat(fd, name, 0) }) })
	},
}

func createAt(dir *os.File, name string) (*os.File, error) {
	var made int
	err := withFD(dir, func(fd int) error {
		return retry(func() (err error) {
			const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
			made, err = unix.Openat(fd, name, flags, 0o666)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(made), name), nil
}

// statAt describes what has a name in a directory, a symbolic link itself and not what it leads to.
func statAt(dir *os.File, name string) (unix.Stat_t, error) {
	var st unix.Stat_t
	err := withFD(dir, func(fd int) error { return fstatAt(fd, name, &st) })
	return st, err
}

func fstatAt(dir int, name string, st *unix.Stat_t) error {
	return retry(func() error { return unix.Fstatat(dir, name, st, unix.AT_SYMLINK_NOFOLLOW) })
}

// isDir and isRegular read the file type of a status.
func isDir(st *unix.Stat_t) bool     { return st.Mode&unix.S_IFMT == unix.S_IFDIR }
func isRegular(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFREG }

// sameFile reports whether an open file is the one that st describes.
func sameFile(f *os.File, st *unix.Stat_t) (bool, error) {
	var own unix.Stat_t
	err := withFD(f, func(fd int) error { return retry(func() error { return unix.Fstat(fd, &own) }) })
	return err == nil && own.Dev == st.Dev && own.Ino == st.Ino, err
}

// withFD runs call with the descriptor of f, which cannot be closed meanwhile.
func withFD(f *os.File, call func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := conn.Control(func(fd uintptr) { result = call(int(fd)) }); err != nil {
		return err
	}
	return result
}

func withTwo(a, b *os.File, call func(a, b int) error) error {
	return withFD(a, func(aFD int) error {
		return withFD(b, func(bFD int) error { return call(aFD, bFD) })
	})
}

// retry repeats a call that a signal has interrupted.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
