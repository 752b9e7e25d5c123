package deltalog

import "testing"

func TestParseLogName(t *testing.T) {
	const v = "00000000000000000012"
	for name, want := range map[string]logFile{
		v + ".json":               {kind: kindCommit, version: 12},
		v + ".checkpoint.parquet": {kind: kindClassic, version: 12},
		v + ".checkpoint.0000000002.0000000003.parquet": {kind: kindPart, version: 12, part: 2, parts: 3},
		v + ".checkpoint.80a083e8.json":                 {kind: kindV2, version: 12},
		v + ".checkpoint.80a083e8.parquet":              {kind: kindV2, version: 12},
		v + ".checkpoint.0000000004.0000000003.parquet": {},
		v + ".checkpoint.0000000000.0000000003.parquet": {},
		v + ".checkpoint.1.3.parquet":                   {},
		v + ".checkpoint.json":                          {},
		v + "." + v + ".compacted.json":                 {},
		v + ".crc":                                      {},
		v + ".json.tmp":                                 {},
		"." + v + ".json.crc":                           {},
		"_last_checkpoint":                              {},
		"99999999999999999999.json":                     {},
		"+0000000000000000012.json":                     {},
		"12.json":                                       {},
		"":                                              {},
	} {
		if got := parseLogName(name); got != want {
			t.Errorf("%q = %+v, want %+v", name, got, want)
		}
	}
	for _, v := range []int64{0, 7, 1 << 62} {
		if got := parseLogName(CommitKey(v)[len(logDir):]); got != (logFile{kind: kindCommit, version: v}) {
			t.Errorf("commit name of %d = %+v", v, got)
		}
		if got := parseLogName(CheckpointKey(v)[len(logDir):]); got != (logFile{kind: kindClassic, version: v}) {
			t.Errorf("checkpoint name of %d = %+v", v, got)
		}
	}
}
