package deltalog

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	logDir  = "_delta_log/"
	hintKey = logDir + "_last_checkpoint"
)

// CommitKey returns the store key of a commit file.
func CommitKey(version int64) string { return fmt.Sprintf("%s%020d.json", logDir, version) }

// CheckpointKey returns the store key of a classic checkpoint.
func CheckpointKey(version int64) string {
	return fmt.Sprintf("%s%020d.checkpoint.parquet", logDir, version)
}

// maxVersion keeps the arithmetic on versions from overflowing.
const maxVersion = 1 << 62

type fileKind uint8

const (
	kindOther   fileKind = iota
	kindCommit           // n.json
	kindClassic          // n.checkpoint.parquet
	kindPart             // n.checkpoint.o.p.parquet
	kindV2               // n.checkpoint.u.json or .parquet
)

// logFile is what the name of a file in the log says.
type logFile struct {
	kind        fileKind
	version     int64
	part, parts int64 // kindPart only; 1 ≤ part ≤ parts
}

// parseLogName reads the name of a file in the log's directory.
func parseLogName(name string) logFile {
	if len(name) < 21 || name[20] != '.' {
		return logFile{}
	}
	version, ok := decimal(name[:20])
	if !ok || version > maxVersion {
		return logFile{}
	}
	fields := strings.Split(name[21:], ".")
	switch {
	case len(fields) == 1 && fields[0] == "json":
		return logFile{kind: kindCommit, version: version}
	case fields[0] != "checkpoint":
	case len(fields) == 2 && fields[1] == "parquet":
		return logFile{kind: kindClassic, version: version}
	case len(fields) == 3 && (fields[2] == "parquet" || fields[2] == "json"):
		return logFile{kind: kindV2, version: version}
	case len(fields) == 4 && len(fields[1]) == 10 && len(fields[2]) == 10 && fields[3] == "parquet":
		part, ok1 := decimal(fields[1])
		parts, ok2 := decimal(fields[2])
		if ok1 && ok2 && part >= 1 && part <= parts {
			return logFile{kind: kindPart, version: version, part: part, parts: parts}
		}
	}
	return logFile{}
}

// decimal reads digits only: no sign, no underscore.
func decimal(text string) (int64, bool) {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	v, err := strconv.ParseInt(text, 10, 64)
	return v, err == nil
}
