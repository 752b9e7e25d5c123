package localfs

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"contrail/tablecore/objstore"
)

// The variables that tell a child process what it is to do, and in which directory.
const (
	roleVariable = "CONTRAIL_LOCALFS_TEST_ROLE"
	dirVariable  = "CONTRAIL_LOCALFS_TEST_DIR"
)

// runChild is the main function of a child process.
func runChild(role, dir string) int {
	err := fmt.Errorf("unknown role %q", role)
	switch role {
	case "race":
		err = raceChild(dir)
	case "write":
		err = writeChild(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// child is a process that runs this test binary.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startChild(t *testing.T, role, dir string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, dirVariable+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, unless the test has failed
		_ = cmd.Wait()
	})
	return &child{cmd: cmd, in: in, out: bufio.NewReader(out)}
}

const (
	raceProcesses = 8
	racePerChild  = 8
)

// TestRacingProcesses has 64 callers in 8 processes put the same object, many times: each time exactly one succeeds.
func TestRacingProcesses(t *testing.T) {
	dir := t.TempDir()
	var children []*child
	for range raceProcesses {
		children = append(children, startChild(t, "race", dir))
	}
	for _, c := range children {
		if line, err := c.out.ReadString('\n'); line != "ready\n" {
			t.Fatalf("child: %q, %v", line, err)
		}
	}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for round := range 30 {
		key := fmt.Sprintf("log/%020d.json", round)
		for _, c := range children {
			if _, err := fmt.Fprintln(c.in, key); err != nil {
				t.Fatal(err)
			}
		}
		var winners []string
		for i, c := range children {
			line, err := c.out.ReadString('\n')
			if err != nil {
				t.Fatalf("child %d: %v", i, err)
			}
			winners = append(winners, strings.Fields(line)...)
		}
		data, err := s.Get(t.Context(), key)
		if err != nil || len(winners) != 1 || winners[0] != string(data) {
			t.Fatalf("%s was put by %q and holds %q, %v", key, winners, data, err)
		}
	}
	for _, c := range children {
		if err := c.in.Close(); err != nil {
			t.Fatal(err)
		}
		if err := c.cmd.Wait(); err != nil {
			t.Fatalf("child: %v", err)
		}
	}
	for info := range s.List(t.Context(), objstore.TempDir+"/", "") {
		t.Errorf("left: %s", info.Key)
	}
}

// raceChild reads keys and puts each with several goroutines, alone or in a batch; it answers with the names of those that
// have won, which are also the objects' contents.
func raceChild(dir string) error {
	s, err := Open(dir, Options{Create: true})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for keys := bufio.NewScanner(os.Stdin); keys.Scan(); {
		var winners [racePerChild]string
		var errs [racePerChild]error
		var all sync.WaitGroup
		for i := range racePerChild {
			all.Go(func() {
				name := fmt.Sprintf("%d/%d", os.Getpid(), i)
				if i%2 == 0 {
					errs[i] = s.PutIfAbsent(context.Background(), keys.Text(), []byte(name))
				} else {
					batch := []objstore.Object{{Key: keys.Text(), Data: []byte(name)}}
					_, errs[i] = s.PutAllIfAbsent(context.Background(), batch)
				}
				if errs[i] == nil {
					winners[i] = name
				}
				if errors.Is(errs[i], objstore.ErrExist) {
					errs[i] = nil
				}
			})
		}
		all.Wait()
		if err := errors.Join(errs[:]...); err != nil {
			return err
		}
		fmt.Println(strings.Join(winners[:], " "))
	}
	return s.Close()
}

// TestKilledWriters kills processes that write: what they have acknowledged is there, all that is there is whole, and
// what else they leave lies among the temporary files, where it can be removed.
func TestKilledWriters(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	acknowledged := make(map[string]bool)
	for round := range 10 {
		c := startChild(t, "write", dir)
		for lines := 0; ; lines++ {
			line, err := c.out.ReadString('\n')
			if err != nil {
				break
			}
			acknowledged[strings.TrimSpace(line)] = true
			if lines == 0 {
				time.AfterFunc(time.Duration(7*round)*time.Millisecond, func() { _ = c.cmd.Process.Kill() })
			}
		}
	}
	seen := 0
	for info, err := range s.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		data, err := s.Get(t.Context(), info.Key)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, content(info.Key)) {
			t.Fatalf("%s holds %d bytes that are not those put", info.Key, len(data))
		}
		if acknowledged[info.Key] {
			seen++
		}
	}
	if seen != len(acknowledged) || seen == 0 {
		t.Fatalf("%d objects were acknowledged, %d of them are there", len(acknowledged), seen)
	}
	for info, err := range s.List(t.Context(), objstore.TempDir+"/", "") {
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), info.Key); err != nil {
			t.Fatalf("delete of a temporary file: %v", err)
		}
	}
}

// content is what an object of this key holds: enough to be cut in the middle.
func content(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return bytes.Repeat(sum[:], 1+int(sum[0])*32)
}

// writeChild puts new objects in every way until it is killed.
func writeChild(dir string) error {
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	for i := 0; ; i++ {
		keys := []string{
			fmt.Sprintf("log/%d-%d", os.Getpid(), i), fmt.Sprintf("log/%d-%d.next", os.Getpid(), i),
			fmt.Sprintf("data/%02x/%d-%d", i%256, os.Getpid(), i), fmt.Sprintf("head/%d", os.Getpid()),
		}
		batch := []objstore.Object{{Key: keys[0], Data: content(keys[0])}, {Key: keys[1], Data: content(keys[1])}}
		if _, err := s.PutAllIfAbsent(ctx, batch); err != nil {
			return err
		}
		w, err := s.Create(ctx, keys[2])
		if err != nil {
			return err
		}
		if _, err := w.Write(content(keys[2])); err != nil {
			return err
		}
		if _, err := w.Commit(ctx); err != nil {
			return err
		}
		if err := s.Put(ctx, keys[3], content(keys[3])); err != nil {
			return err
		}
		fmt.Println(strings.Join(keys, "\n"))
	}
}
