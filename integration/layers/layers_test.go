// Package layers_test is the architecture document that can fail: a literal
// picture of which package may import which, held against what the go command
// says the tree does. The picture and the tree must be equal, so that neither
// a new import nor a stale line can hide.
package layers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "contrail/"

// arrow is arrow-go's module, of which any package may use the in-memory half.
const arrow = "github.com/apache/arrow-go/v18/"

// layers names every package of the module and the module's packages that its
// code, tests aside, imports. Read it from the top: nothing imports upwards.
var layers = map[string][]string{
	// commands, on top of all
	"cmd/flightsrv": {
		"cmd/internal/config", "cmd/internal/logging", "cmd/internal/serving", "descriptors", "flightsrv", "tablecore",
		"tablecore/tabledef",
	},
	"cmd/flight-admin": {
		"cmd/internal/config", "cmd/internal/flightclient", "cmd/internal/rowfile", "cmd/internal/serving", "descriptors",
		"tablecore/objstore", "tablecore/tabledef", "tablecore/tableerr",
	},
	"cmd/internal/serving":      {"cmd/internal/config", "flightsrv", "tablecore", "tablecore/objstore/localfs"},
	"cmd/internal/flightclient": {"descriptors"},
	"cmd/internal/rowfile":      {"tablecore/tabledef"},
	"cmd/internal/config":       {},
	"cmd/internal/logging":      {},

	// the Flight service
	"flightsrv": {
		"descriptors", "flightsrv/internal/admission", "flightsrv/internal/wire", "tablecore",
		"tablecore/bufpool", "tablecore/tabledef", "tablecore/tableerr",
	},
	"flightsrv/internal/admission": {"tablecore/tableerr"},
	"flightsrv/internal/wire":      {"descriptors", "tablecore/bufpool", "tablecore/tabledef", "tablecore/tableerr"},

	// the wire contract
	"descriptors": {"tablecore/tableerr"},

	// the engine's surface wires the parts; tabletest is for the tests of whoever embeds it
	"tablecore": {
		"tablecore/bufpool", "tablecore/internal/alter", "tablecore/internal/attempt", "tablecore/internal/check", "tablecore/internal/coverage", "tablecore/internal/datafile",
		"tablecore/internal/deltalog", "tablecore/internal/derived", "tablecore/internal/filecache",
		"tablecore/internal/gaps", "tablecore/internal/ingest", "tablecore/internal/interval", "tablecore/internal/maintain",
		"tablecore/internal/newfile", "tablecore/internal/parallel", "tablecore/internal/predicate", "tablecore/internal/rowdigest", "tablecore/internal/scan",
		"tablecore/internal/scratch", "tablecore/internal/series", "tablecore/internal/snapshot",
		"tablecore/internal/staging", "tablecore/internal/statecache", "tablecore/internal/txn", "tablecore/internal/update",
		"tablecore/objstore",
		"tablecore/tabledef", "tablecore/tableerr",
	},
	"tablecore/internal/childtest": {}, // for tests that measure memory
	"tablecore/tabletest":          {"tablecore", "tablecore/bufpool", "tablecore/objstore", "tablecore/tableerr"},

	// verbs: each returns an edit or a reader, and knows no other verb
	"tablecore/internal/ingest": {
		"tablecore/bufpool", "tablecore/internal/assemble", "tablecore/internal/convert", "tablecore/internal/coverage",
		"tablecore/internal/datafile", "tablecore/internal/deltalog", "tablecore/internal/derived",
		"tablecore/internal/entitykey", "tablecore/internal/filecache", "tablecore/internal/interval",
		"tablecore/internal/newfile", "tablecore/internal/parallel", "tablecore/internal/rewrite", "tablecore/internal/rowdigest",
		"tablecore/internal/scratch", "tablecore/internal/snapshot", "tablecore/internal/txn", "tablecore/objstore",
		"tablecore/tabledef", "tablecore/tableerr",
	},
	"tablecore/internal/update": {
		"tablecore/internal/assemble", "tablecore/internal/convert", "tablecore/internal/datafile",
		"tablecore/internal/deltalog", "tablecore/internal/derived", "tablecore/internal/entitykey",
		"tablecore/internal/filecache", "tablecore/internal/newfile", "tablecore/internal/parallel", "tablecore/internal/rewrite",
		"tablecore/internal/rowdigest", "tablecore/internal/scratch", "tablecore/internal/snapshot",
		"tablecore/objstore", "tablecore/tabledef", "tablecore/tableerr",
	},
	"tablecore/internal/alter": {
		"tablecore/internal/deltalog", "tablecore/internal/snapshot", "tablecore/internal/txn", "tablecore/tabledef",
	},
	"tablecore/internal/maintain": {
		"tablecore/internal/attempt", "tablecore/internal/convert", "tablecore/internal/coverage", "tablecore/internal/datafile",
		"tablecore/internal/deltalog", "tablecore/internal/derived", "tablecore/internal/filecache", "tablecore/internal/newfile",
		"tablecore/internal/parallel", "tablecore/internal/rewrite", "tablecore/internal/snapshot", "tablecore/internal/staging", "tablecore/objstore",
		"tablecore/tabledef", "tablecore/tableerr",
	},
	"tablecore/internal/check": {
		"tablecore/internal/attempt", "tablecore/internal/coverage", "tablecore/internal/datafile", "tablecore/internal/deltalog",
		"tablecore/internal/derived", "tablecore/internal/entitykey", "tablecore/internal/filecache",
		"tablecore/internal/predicate", "tablecore/internal/series", "tablecore/internal/snapshot", "tablecore/internal/staging",
		"tablecore/objstore", "tablecore/tabledef", "tablecore/tableerr",
	},
	"tablecore/internal/scan": {
		"tablecore/internal/assemble", "tablecore/internal/convert", "tablecore/internal/datafile",
		"tablecore/internal/derived", "tablecore/internal/entitykey", "tablecore/internal/filecache", "tablecore/internal/interval",
		"tablecore/internal/lastvalue", "tablecore/internal/predicate", "tablecore/internal/series",
		"tablecore/internal/snapshot", "tablecore/tabledef", "tablecore/tableerr",
	},
	"tablecore/internal/gaps": {
		"tablecore/internal/convert", "tablecore/internal/coverage", "tablecore/internal/entitykey",
		"tablecore/internal/interval", "tablecore/internal/predicate", "tablecore/internal/series",
		"tablecore/internal/snapshot", "tablecore/tableerr",
	},

	// data files of a commit: new ones, and live ones written anew
	"tablecore/internal/rewrite": {
		"tablecore/internal/datafile", "tablecore/internal/deltalog", "tablecore/internal/derived",
		"tablecore/internal/filecache", "tablecore/internal/newfile", "tablecore/internal/snapshot",
		"tablecore/tabledef", "tablecore/tableerr",
	},
	"tablecore/internal/newfile": {
		"tablecore/internal/datafile", "tablecore/internal/deltalog", "tablecore/internal/derived",
		"tablecore/internal/entitykey", "tablecore/internal/txn", "tablecore/objstore", "tablecore/tabledef",
	},

	// files that wait for their commit
	"tablecore/internal/staging": {"tablecore/internal/newfile", "tablecore/objstore", "tablecore/tableerr"},

	// whether two puts have the same rows
	"tablecore/internal/rowdigest": {"tablecore/internal/convert", "tablecore/internal/snapshot", "tablecore/tabledef"},

	// publishing, and what is known of a table at a version
	"tablecore/internal/txn": {
		"tablecore/internal/deltalog", "tablecore/internal/snapshot", "tablecore/objstore", "tablecore/tabledef",
		"tablecore/tableerr",
	},
	"tablecore/internal/statecache": {
		"tablecore/internal/deltalog", "tablecore/internal/derived", "tablecore/internal/snapshot", "tablecore/objstore",
	},
	"tablecore/internal/series": {
		"tablecore/internal/assemble", "tablecore/internal/coverage", "tablecore/internal/datafile",
		"tablecore/internal/derived", "tablecore/internal/entitykey", "tablecore/internal/filecache",
		"tablecore/internal/lastvalue", "tablecore/internal/snapshot", "tablecore/tabledef", "tablecore/tableerr",
	},
	"tablecore/internal/filecache": {
		"tablecore/internal/datafile", "tablecore/internal/derived", "tablecore/internal/snapshot",
		"tablecore/objstore", "tablecore/tabledef", "tablecore/tableerr",
	},
	"tablecore/internal/snapshot": {
		"tablecore/internal/deltalog", "tablecore/internal/entitykey", "tablecore/internal/interval",
		"tablecore/internal/pmap", "tablecore/internal/predicate", "tablecore/tabledef", "tablecore/tableerr",
	},

	// formats: the log, derived data, data files
	"tablecore/internal/derived": {
		"tablecore/internal/coverage", "tablecore/internal/datafile", "tablecore/internal/entitykey",
		"tablecore/internal/interval", "tablecore/objstore", "tablecore/tabledef", "tablecore/tableerr",
	},
	"tablecore/internal/deltalog": {
		"tablecore/internal/datafile", "tablecore/internal/pmap", "tablecore/objstore", "tablecore/tabledef", "tablecore/tableerr",
	},
	"tablecore/internal/datafile": {"tablecore/bufpool", "tablecore/tableerr"},

	// which writers are at work
	"tablecore/internal/attempt": {"tablecore/internal/parallel", "tablecore/objstore", "tablecore/tableerr"},

	// where rows lie that find no memory
	"tablecore/internal/scratch": {"tablecore/objstore"},

	// algorithms, no I/O
	"tablecore/internal/convert":   {"tablecore/internal/assemble", "tablecore/tabledef", "tablecore/tableerr"},
	"tablecore/internal/predicate": {"tablecore/internal/entitykey", "tablecore/tabledef", "tablecore/tableerr"},
	"tablecore/internal/coverage":  {"tablecore/internal/entitykey"},
	"tablecore/internal/interval":  {"tablecore/tabledef", "tablecore/tableerr"},
	"tablecore/internal/entitykey": {"tablecore/tabledef", "tablecore/tableerr"},
	"tablecore/internal/lastvalue": {"tablecore/internal/assemble"},
	"tablecore/internal/assemble":  {"tablecore/bufpool"},
	"tablecore/internal/pmap":      {},
	"tablecore/internal/parallel":  {},

	// leaves
	"tablecore/bufpool":  {},
	"tablecore/tabledef": {"tablecore/tableerr"},
	"tablecore/tableerr": {},
	"tablecore/objstore": {},

	// drivers and wrappers of the store; none knows another
	"tablecore/objstore/localfs":    {"tablecore/objstore"},
	"tablecore/objstore/memstore":   {"tablecore/objstore"},
	"tablecore/objstore/faultstore": {"tablecore/objstore"},
	"tablecore/objstore/meterstore": {"tablecore/objstore"},
	"tablecore/objstore/storetest":  {"tablecore/objstore"},
}

// homes names every foreign library that the module's code, tests aside,
// imports directly, by the longest matching prefix, and the packages that may.
// An empty list means any package.
var homes = map[string][]string{
	arrow + "arrow":         {},
	arrow + "arrow/compute": {"tablecore/internal/datafile"},
	arrow + "arrow/flight":  {"flightsrv", "flightsrv/internal/wire", "cmd/internal/flightclient"},
	arrow + "parquet":       {"tablecore/internal/datafile", "cmd/internal/rowfile"},

	"google.golang.org/grpc":     {"flightsrv", "flightsrv/internal/wire", "cmd/internal/flightclient", "cmd/internal/serving", "cmd/flight-admin"},
	"google.golang.org/protobuf": {"flightsrv", "flightsrv/internal/wire"},
	"github.com/rs/zerolog":      {"cmd/flightsrv", "cmd/flight-admin", "cmd/internal/logging", "cmd/internal/serving", "flightsrv"},
	"github.com/knadh/koanf":     {"cmd/internal/config"},
	"go.yaml.in/yaml/v3":         {"cmd/internal/config"},
	"github.com/spf13/cobra":     {"cmd/flightsrv", "cmd/flight-admin"},
	"github.com/spf13/pflag":     {"cmd/internal/config", "cmd/flight-admin"},

	"github.com/mattn/go-isatty":    {"cmd/flight-admin"},
	"github.com/mattn/go-runewidth": {"cmd/flight-admin"},
	"github.com/vbauerster/mpb/v8":  {"cmd/flight-admin"},

	"github.com/klauspost/compress": {"tablecore/internal/datafile", "tablecore/internal/derived"}, // pages, and sections of state files
	"github.com/pierrec/lz4/v4":     {"tablecore/internal/datafile"},
	"github.com/maypok86/otter/v2":  {"tablecore/internal/filecache"},
	"golang.org/x/sys":              {"tablecore/objstore/localfs", "tablecore/internal/scratch"},
	"golang.org/x/text":             {"tablecore/tabledef"},
	"golang.org/x/sync":             {},
	"github.com/google/uuid":        {},
}

// pkg is what this test reads of `go list -json`.
type pkg struct {
	ImportPath string
	Name       string
	Imports    []string
	GoFiles    []string
}

// list asks the go command for every package of the module that has code
// beside its tests.
func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Imports,GoFiles", module+"...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var found []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles) > 0 {
			found = append(found, p)
		}
	}
}

func TestPackagesImportWhatThePictureShows(t *testing.T) {
	seen := map[string]bool{}
	found := list(t)
	for _, p := range found {
		name := strings.TrimPrefix(p.ImportPath, module)
		seen[name] = true
		want, drawn := layers[name]
		if !drawn {
			t.Errorf("package %s is not in the picture", name)
			continue
		}
		got := own(p)
		for _, i := range got {
			if !slices.Contains(want, i) {
				t.Errorf("%s imports %s, which the picture does not allow", name, i)
			}
		}
		for _, i := range want {
			if !slices.Contains(got, i) {
				t.Errorf("%s no longer imports %s: take the line out of the picture", name, i)
			}
		}
	}
	for name := range layers {
		if !seen[name] {
			t.Errorf("package %s is in the picture but not in the tree", name)
		}
	}
	if t.Failed() {
		t.Logf("the tree as it is, to paste where the change is meant:\n%s", draw(found))
	}
}

// TestPictureKeepsTheRules judges the picture itself, so that editing it to
// let a forbidden import pass is caught too.
func TestPictureKeepsTheRules(t *testing.T) {
	const core, inner = "tablecore", "tablecore/internal/"
	verbs := []string{inner + "alter", inner + "check", inner + "ingest", inner + "scan", inner + "update", inner + "maintain"}
	for name, imports := range layers {
		for _, i := range imports {
			switch {
			case under(name, "descriptors") && i != "tablecore/tableerr":
				t.Errorf("%s imports %s: the wire contract knows errors alone", name, i)
			case under(name, core) && !under(i, core):
				t.Errorf("%s imports %s: the core knows nothing of what serves it", name, i)
			case slices.Contains(verbs, name) && slices.Contains(verbs, i):
				t.Errorf("%s imports %s: verbs do not know each other", name, i)
			case under(name, "flightsrv") && under(i, "cmd"):
				t.Errorf("%s imports %s: commands stand on top", name, i)
			case under(name, inner) && i == core:
				t.Errorf("%s imports %s: the core wires its parts, never the other way", name, i)
			}
		}
	}
	leaves := map[string][]string{
		"tablecore/tableerr": {},
		"tablecore/objstore": {},
		"tablecore/tabledef": {"tablecore/tableerr"},
	}
	for leaf, may := range leaves {
		for _, i := range layers[leaf] {
			if !slices.Contains(may, i) {
				t.Errorf("%s imports %s: a leaf stays a leaf", leaf, i)
			}
		}
	}
}

func TestForeignLibrariesHaveOneHome(t *testing.T) {
	used := map[string]map[string]bool{}
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, i := range p.Imports {
			if !strings.Contains(i, ".") || strings.HasPrefix(i, module) {
				continue
			}
			library := longest(i)
			if library == "" {
				t.Errorf("%s imports %s, which no line of homes covers", name, i)
				continue
			}
			if used[library] == nil {
				used[library] = map[string]bool{}
			}
			used[library][name] = true
			if may := homes[library]; len(may) > 0 && !slices.Contains(may, name) {
				t.Errorf("%s imports %s, whose home is %v", name, i, may)
			}
		}
	}
	for library, may := range homes {
		for _, name := range may {
			if !used[library][name] {
				t.Errorf("%s no longer imports %s: take it out of homes", name, library)
			}
		}
		if len(used[library]) == 0 {
			t.Errorf("nothing imports %s any more: take it out of homes", library)
		}
	}
}

// TestCoreNeverNamesTheService repeats the most important rule in words of its
// own: no package under tablecore names a Flight, gRPC, configuration, logging
// or metrics library, whatever homes says.
func TestCoreNeverNamesTheService(t *testing.T) {
	banned := []string{arrow + "arrow/flight", "google.golang.org/grpc", "github.com/knadh/koanf",
		"github.com/rs/zerolog", "github.com/prometheus"}
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if !under(name, "tablecore") && !under(name, "descriptors") {
			continue
		}
		for _, i := range p.Imports {
			if slices.ContainsFunc(banned, func(b string) bool { return i == b || strings.HasPrefix(i, b+"/") }) {
				t.Errorf("%s imports %s", name, i)
			}
		}
	}
}

// own returns the package's imports inside the module.
func own(p pkg) []string {
	var in []string
	for _, i := range p.Imports {
		if rest, ok := strings.CutPrefix(i, module); ok {
			in = append(in, rest)
		}
	}
	return in
}

// under reports whether a package is root or lies below it.
func under(name, root string) bool { return name == root || strings.HasPrefix(name, root+"/") }

// longest returns the line of homes that covers an import, "" if none does.
func longest(imported string) string {
	for at := imported; at != "." && at != "/"; at = path.Dir(at) {
		if _, ok := homes[at]; ok {
			return at
		}
	}
	return ""
}

// draw returns the picture of the tree as Go source.
func draw(found []pkg) string {
	var b strings.Builder
	byName := map[string][]string{}
	for _, p := range found {
		byName[strings.TrimPrefix(p.ImportPath, module)] = own(p)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		fmt.Fprintf(&b, "\t%q: {", name)
		for n, i := range byName[name] {
			if n > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%q", i)
		}
		b.WriteString("},\n")
	}
	return b.String()
}
