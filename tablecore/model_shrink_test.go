package tablecore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// shrink returns a script that is as short as it gets within a time and that
// still fails: parts of it are left out, first large ones, then single steps,
// then rows of appends.
func shrink(script []step, fails func([]step) bool, until time.Time) []step {
	for size := len(script) / 2; size > 0 && time.Now().Before(until); {
		shorter := false
		for at := 0; at < len(script) && time.Now().Before(until); {
			rest := slices.Delete(slices.Clone(script), at, min(at+size, len(script)))
			if fails(rest) {
				script, shorter = rest, true
			} else {
				at += size
			}
		}
		if !shorter || size > 1 {
			size /= 2
		}
	}
	for i := range script {
		for at := 0; at < len(script[i].rows) && time.Now().Before(until); {
			fewer := slices.Clone(script)
			fewer[i].rows = slices.Delete(slices.Clone(fewer[i].rows), at, at+1)
			if fails(fewer) {
				script = fewer
			} else {
				at++
			}
		}
	}
	return script
}

// scriptText is how a script is shown to whoever looks for a fault.
func scriptText(script []step) string {
	var b strings.Builder
	for i, s := range script {
		fmt.Fprintf(&b, "%3d %s\n", i, s)
	}
	return b.String()
}

func TestShrink(t *testing.T) {
	script := newScript(1, 300, 2)
	// A fault that takes an append of at least two rows and a later scan.
	fails := func(s []step) bool {
		at := slices.IndexFunc(s, func(s step) bool { return s.kind == stepAppend && len(s.rows) >= 2 })
		return at >= 0 && slices.ContainsFunc(s[at:], func(s step) bool { return s.kind == stepScan })
	}
	small := shrink(script, fails, time.Now().Add(time.Minute))
	if len(small) != 2 || len(small[0].rows) != 2 || !fails(small) {
		t.Fatalf("shrunk to %d steps:\n%s", len(small), scriptText(small))
	}
	if !fails(script) || len(script) != 300 {
		t.Fatal("the script itself was changed")
	}
}
