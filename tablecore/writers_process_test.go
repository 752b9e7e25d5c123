package tablecore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore/localfs"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// The variables that tell a child process what it is to do, and in which
// directory.
const (
	roleVariable = "CONTRAIL_TABLECORE_TEST_ROLE"
	dirVariable  = "CONTRAIL_TABLECORE_TEST_DIR"
)

// processes is how many children write at once, writersEach how many goroutines
// each has, appendsEach how many appends each of these makes.
const (
	processes   = 4
	writersEach = 2
	appendsEach = 15
)

// runChild is the main function of a child process. It opens the weather table
// of a warehouse, says so, and then does what each line of its input says.
func runChild(role, dir string) int {
	w, table, err := openLocal(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer w.Close()
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch text := lines.Text(); role {
		case "disjoint":
			fmt.Println(disjointAppends(table, text))
		case "one":
			fmt.Println(oneAppend(table, text))
		case "grow":
			fmt.Println(growAndAppend(table, text))
		case "overwrite":
			fmt.Println(overwrites(table, text))
		case "update":
			fmt.Println(oneChange(table, text))
		default:
			fmt.Println("unknown role", role)
		}
	}
	return 0
}

func openLocal(dir string) (*tablecore.Warehouse, *tablecore.Table, error) {
	store, err := localfs.Open(dir, localfs.Options{})
	if err != nil {
		return nil, nil, err
	}
	w, err := tablecore.Open(context.Background(), tablecore.Options{Store: store, Maintenance: unmaintained})
	if err != nil {
		return nil, nil, err
	}
	table, err := w.Table(context.Background(), weatherName)
	return w, table, err
}

// disjointAppends makes the appends of one process and returns "ok", or what
// went wrong. name sets its rows apart.
func disjointAppends(table *tablecore.Table, name string) string {
	var mu sync.Mutex
	answer := "ok"
	var group sync.WaitGroup
	for g := range writersEach {
		group.Go(func() {
			for i := range appendsEach {
				r, err := appendJSON(table, rowsOf(rowAt(fmt.Sprint(name, g), i, "1")), tablecore.AppendOptions{})
				if err != nil || r.Rows != 1 {
					mu.Lock()
					answer = fmt.Sprint(err)
					mu.Unlock()
					return
				}
			}
		})
	}
	group.Wait()
	return answer
}

// oneAppend appends one row under a request id and tells the version, with a
// star where it was there already, or the token of the error.
func oneAppend(table *tablecore.Table, id string) string {
	r, err := appendJSON(table, rowsOf(rowAt("EWR", 0, "1")), tablecore.AppendOptions{RequestID: id})
	switch {
	case err != nil && tableerr.TokenOf(err) != "":
		return string(tableerr.TokenOf(err))
	case err != nil:
		return err.Error()
	case r.Replayed:
		return fmt.Sprint(r.CommittedVersion, "*")
	}
	return fmt.Sprint(r.CommittedVersion)
}

func appendJSON(table *tablecore.Table, rows string, o tablecore.AppendOptions) (*tablecore.AppendReport, error) {
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, weather, strings.NewReader(rows))
	if err != nil {
		return nil, err
	}
	defer b.Release()
	return table.Append(context.Background(), tabletest.NewReader(weather, []arrow.RecordBatch{b}...), o)
}

// child is a process that runs this test binary.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startChildren starts the processes of a role and waits until all have the
// table open.
func startChildren(t *testing.T, role, dir string) []*child {
	t.Helper()
	var children []*child
	for range processes {
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
		c := &child{cmd: cmd, in: in, out: bufio.NewReader(out)}
		t.Cleanup(func() {
			if err := errors.Join(c.in.Close(), c.cmd.Wait()); err != nil {
				t.Errorf("child: %v", err)
			}
		})
		children = append(children, c)
	}
	for _, c := range children {
		if line := c.read(t); line != "ready" {
			t.Fatalf("child: %q", line)
		}
	}
	return children
}

func (c *child) read(t *testing.T) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatalf("child: %q, %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (c *child) write(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		t.Fatal(err)
	}
}

// localWarehouse makes a warehouse on disk with an empty weather table.
func localWarehouse(t *testing.T, o tablecore.CreateOptions) (string, *tablecore.Warehouse) {
	t.Helper()
	dir := t.TempDir()
	store, err := localfs.Open(dir, localfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := tabletest.Warehouse(t, store, memory.DefaultAllocator)
	if _, err := w.CreateTable(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return dir, w
}

// TestWriterProcesses has 8 writers in four processes append rows that do not
// overlap: every append succeeds, with a version of its own.
func TestWriterProcesses(t *testing.T) {
	dir, w := localWarehouse(t, weatherOptions())
	children := startChildren(t, "disjoint", dir)
	for i, c := range children {
		c.write(t, fmt.Sprint("P", i, "-"))
	}
	for _, c := range children {
		if answer := c.read(t); answer != "ok" {
			t.Error(answer)
		}
	}
	const all = processes * writersEach * appendsEach
	rows, stats, err := tabletest.Scan(t.Context(), openWeather(t, w), tablecore.ScanOptions{})
	if err != nil || len(rows) != all || stats.Version != all || stats.Files != all {
		t.Errorf("%d rows in %d files at version %d, %v", len(rows), stats.Files, stats.Version, err)
	}
}

// TestRequestProcesses has four processes put the same request id at once, many
// times: one append is committed, and all are told its version.
func TestRequestProcesses(t *testing.T) {
	const ids = 20
	dir, w := localWarehouse(t, looseOptions())
	children := startChildren(t, "one", dir)
	for i := range ids {
		for _, c := range children {
			c.write(t, fmt.Sprint("id ", i))
		}
		versions, replayed := map[string]bool{}, 0
		for _, c := range children {
			answer, star := strings.CutSuffix(c.read(t), "*")
			versions[answer] = true
			if star {
				replayed++
			}
		}
		if len(versions) != 1 || replayed != processes-1 {
			t.Errorf("id %d: versions %v, %d were told that it is there", i, versions, replayed)
		}
	}
	rows, stats, err := tabletest.Scan(t.Context(), openWeather(t, w), tablecore.ScanOptions{})
	if err != nil || len(rows) != ids || stats.Version != ids || stats.Files != ids {
		t.Errorf("%d rows in %d files at version %d, %v", len(rows), stats.Files, stats.Version, err)
	}
}

// TestDropProcesses drops a table that four processes hold open, and makes
// another of its name: no row of theirs gets into the new table, and nobody is
// told that it has.
func TestDropProcesses(t *testing.T) {
	dir, w := localWarehouse(t, looseOptions())
	old := openWeather(t, w)
	children := startChildren(t, "one", dir)
	children[0].write(t, "before")
	if answer := children[0].read(t); answer != "1" {
		t.Fatal(answer)
	}
	if _, err := w.DropTable(t.Context(), weatherName, tablecore.DropOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.CreateTable(t.Context(), looseOptions()); err != nil {
		t.Fatal(err)
	}
	for _, c := range children {
		c.write(t, "after")
	}
	for i, c := range children {
		if answer := c.read(t); answer != string(tableerr.TokenTableNotFound) {
			t.Errorf("process %d was told %s", i, answer)
		}
	}
	table := openWeather(t, w)
	if got := contents(t, table); got != "0: " {
		t.Errorf("the new table is %s", got)
	}
	if table == old {
		t.Error("the old handle was given for the new table")
	}
	if r, err := appendJSON(table, rowsOf(rowAt("EWR", 0, "2")), tablecore.AppendOptions{RequestID: "before"}); err != nil || r.Replayed {
		t.Errorf("an id of the old table: %+v, %v", r, err)
	}
}
