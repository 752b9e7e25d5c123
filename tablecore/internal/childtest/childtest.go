// Package childtest lets a test measure memory in a process of its own, where
// that of other tests does not count.
//
// The test asks itself: Run starts the test binary with the calling test alone,
// where Asked finds the question and Answer gives the answer back.
package childtest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// variable holds the question in the child's environment.
const variable = "CONTRAIL_TEST_QUESTION"

// Run runs the calling test, or the one that a subtest belongs to, in a process of
// its own, and reads its answer. Question and answer travel as JSON. Where the
// child fails, so does the test.
func Run(t *testing.T, question, answer any) {
	t.Helper()
	text, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(t.Name(), "/")
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+name+"$", "-test.v=false", "-test.timeout=0")
	child.Env = append(os.Environ(), variable+"="+string(text))
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	if err := json.Unmarshal([]byte(line), answer); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// Asked reads the question. It is false in the process that asks it.
func Asked(t *testing.T, question any) bool {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return false
	}
	if err := json.Unmarshal([]byte(text), question); err != nil {
		t.Fatal(err)
	}
	return true
}

// Answer gives the answer, once.
func Answer(t *testing.T, answer any) {
	t.Helper()
	line, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(line))
}

// PeakMemory is the most memory that the process ever had, in bytes; 0 where the
// system does not tell.
func PeakMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}
