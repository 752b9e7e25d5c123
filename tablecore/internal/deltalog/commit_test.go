package deltalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"contrail/tablecore/tableerr"
)

func ptr[T any](v T) *T { return &v }

// fullCommit uses every action and every member.
func fullCommit() *Commit {
	return &Commit{
		Info: &CommitInfo{
			Timestamp: ptr(int64(1700000000001)), InCommitTimestamp: ptr(int64(1700000000002)), Operation: "APPEND",
			OperationParameters: map[string]string{"mode": "Append", "empty": ""}, OperationMetrics: map[string]string{"numFiles": "1"},
			EngineInfo: "Contrail/0.1.0", Extra: map[string]json.RawMessage{"contrail": json.RawMessage(`{"request_id":"r","n":9007199254740993}`)},
		},
		Protocol: ContrailProtocol(true),
		Metadata: &Metadata{
			ID: "7afc4b76-09fb-4b06-836d-f9972b9c1f91", Name: "weather", Description: "a \"quoted\"\ntext\twith \u2028 and é", Provider: "parquet",
			SchemaString: `{"type":"struct","fields":[]}`, PartitionColumns: []string{"d"},
			Configuration: map[string]string{"delta.appendOnly": "true", "contrail.timezone": ""}, CreatedTime: ptr(int64(9007199254740993)),
		},
		Txns:    []*Txn{{AppID: "contrail/0/append/r", Version: 1, LastUpdated: ptr(int64(5))}, {AppID: "x", Version: -1}},
		Domains: []*DomainMetadata{{Domain: "contrail.state", Configuration: `{"oldest_version":3}`}, {Domain: "gone", Removed: true}},
		Removes: []*Remove{
			{Path: "data/00/old.parquet", DeletionTimestamp: 17, DataChange: true, ExtendedFileMetadata: true, PartitionValues: map[string]string{"d": ""}, Size: ptr(int64(3))},
			{Path: "data/00/older.parquet", DeletionVector: &DeletionVector{StorageType: "u", PathOrInline: "ab", Offset: ptr(int64(1)), SizeInBytes: 2, Cardinality: 3}},
		},
		Adds: []*Add{{
			Path: "data/ab/a%20b.parquet", PartitionValues: map[string]string{"d": "2020-01-01", "e": ""}, Size: 1 << 60, ModificationTime: 12, DataChange: true,
			Stats: `{"numRecords":2,"maxValues":{"a":18446744073709551615}}`, Tags: map[string]string{"b": "2", "a": "1"},
		}},
	}
}

func TestEncodeCommitGolden(t *testing.T) {
	got, err := EncodeCommit(fullCommit())
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/commit.golden.json"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for line := range bytes.Lines(got) {
		if !json.Valid(line) {
			t.Errorf("no JSON: %s", line)
		}
	}
	back := parse(t, string(got))
	if back.Size != int64(len(got)) || back.Digest == [32]byte{} {
		t.Error("size or digest is not set")
	}
	want2 := fullCommit()
	want2.Size, want2.Digest = back.Size, back.Digest
	for _, a := range want2.Adds {
		a.settle()
	}
	for _, a := range want2.Removes {
		a.settle()
	}
	if !reflect.DeepEqual(back, want2) {
		t.Errorf("back = %+v\nwant %+v", back, want2)
	}
	if file, err := back.Adds[0].File(); err != nil || file != "data/ab/a b.parquet" {
		t.Error(file, err)
	}
	if file, err := (&Remove{Path: "a%20b"}).File(); err != nil || file != "a b" {
		t.Error(file, err)
	}
	if *back.Timestamp() != 1700000000002 {
		t.Error(*back.Timestamp())
	}
}

func parse(t *testing.T, text string) *Commit {
	t.Helper()
	c, err := ParseCommit(0, []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

func TestEncodeCommitRefuses(t *testing.T) {
	for name, c := range map[string]*Commit{
		"UTF-8":          {Adds: []*Add{{Path: "a", Stats: "\xff"}}},
		"UTF-8 key":      {Metadata: &Metadata{Configuration: map[string]string{"\xff": ""}}},
		"no path":        {Adds: []*Add{{}}},
		"negative":       {Adds: []*Add{{Path: "a", Size: -1}}},
		"remove":         {Removes: []*Remove{{}}},
		"extra":          {Info: &CommitInfo{Extra: map[string]json.RawMessage{"x": json.RawMessage(`{`)}}},
		"extra UTF-8":    {Info: &CommitInfo{Extra: map[string]json.RawMessage{"x": json.RawMessage("\"\xff\"")}}},
		"nothing":        {},
		"line too long":  {Metadata: &Metadata{SchemaString: strings.Repeat("x", MaxLineBytes)}},
		"domain, UTF-8 ": {Domains: []*DomainMetadata{{Domain: "d\xc0"}}},
	} {
		if _, err := EncodeCommit(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestParseCommitIsLenient(t *testing.T) {
	c := parse(t, `
{"unknownAction":{"deep":[[{}]]}}
{"add":{"path":"a","size":1,"modificationTime":2,"dataChange":true,"newField":{"x":1},"PATH":"b"},"remove":null}
{"commitInfo":{"timestamp":"yesterday","operation":{"a":1},"operationParameters":{"mode":"Append","n":1,"o":{"p":[1]},"z":null},"isBlindAppend":true}}
{"cdc":{"path":"c"}}
{"txn":{"appId":"x","new":[1]}}
{"domainMetadata":{"domain":"d","new":{}}}
{"metaData":{"id":"i","new":1,"format":{"provider":"parquet","options":{"x":[]}},"partitionColumns":null}}
{"remove":{"path":"r","new":"x","deletionVector":{"storageType":"p","new":true}}}
{}
null
{"commitInfo":"free text"}

{"protocol":{"minReaderVersion":1,"minWriterVersion":2,"new":{}}}`)
	if len(c.Adds) != 1 || c.Adds[0].Path != "a" || len(c.Removes) != 1 || c.Removes[0].DeletionVector.StorageType != "p" || len(c.Txns) != 1 || len(c.Domains) != 1 || c.Metadata.ID != "i" || c.Metadata.PartitionColumns != nil {
		t.Fatalf("%+v", c)
	}
	info := c.Info
	if info.Timestamp != nil || string(info.Extra["timestamp"]) != `"yesterday"` || string(info.Extra["operation"]) != `{"a":1}` || string(info.Extra["isBlindAppend"]) != "true" {
		t.Errorf("%+v", info)
	}
	if want := map[string]string{"mode": "Append", "n": "1", "o": `{"p":[1]}`, "z": ""}; !reflect.DeepEqual(info.OperationParameters, want) {
		t.Error(info.OperationParameters)
	}
	if c.Timestamp() != nil || (&Commit{}).Timestamp() != nil {
		t.Error("a time out of nothing")
	}
	if c.Protocol.ReaderFeatures != nil {
		t.Error("features out of nothing")
	}
}

func TestParseCommitDamage(t *testing.T) {
	for _, text := range []string{
		`{"add":{"path":"a"}`, `{"add":{"path":1}}`, `{"add":{"size":1}}`, `{"add":{"path":"a","size":-1}}`, `{"add":{"path":"a","size":1.5}}`,
		`{"add":{"path":"a","size":9223372036854775808}}`, `{"add":[]}`, `{"remove":{}}`, `{"remove":{"path":true}}`, `[]`, `x`, `{"add":{"path":"a"}} x`,
		"{\"add\":{\"path\":\"\xff\"}}", `{"protocol":{"minReaderVersion":-1}}`, `{"protocol":{"minReaderVersion":2147483648}}`, `{"protocol":{"readerFeatures":[1]}}`,
		`{"metaData":{"configuration":[]}}`, `{"metaData":{"configuration":{"a":[}}}`, `{"metaData":{"partitionColumns":{}}}`, `{"metaData":{"partitionColumns":["a" "b"]}}`, `{"metaData":{"format":1}}`, `{"txn":{"version":"1"}}`, `{"domainMetadata":{"removed":1}}`, `{"add":{"path":"a","deletionVector":{"offset":"x"}}}`,
		`{"commitInfo":{"x":}}`, `{"unknown":` + strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1) + `}`,
		`{"commitInfo":{"operation":"` + strings.Repeat("x", MaxLineBytes) + `"}}`,
	} {
		_, err := ParseCommit(7, []byte("\n"+text))
		var corrupt *tableerr.Corrupt
		if !errors.As(err, &corrupt) || corrupt.Path != "_delta_log/00000000000000000007.json" || !strings.Contains(corrupt.Msg, "line 2") {
			t.Errorf("%.80s: %v", text, err)
		}
	}
}

func TestParseCommitKeepsOneActionAFile(t *testing.T) {
	c := parse(t, `{"add":{"path":"a%20b","size":1}}
{"add":{"path":"c","size":2}}
{"add":{"path":"a b","size":3}}
{"remove":{"path":"c"}}
{"remove":{"path":"d","dataChange":true}}
{"remove":{"path":"d"}}
{"remove":{"path":"c","deletionVector":{"storageType":"u","pathOrInlineDv":"x"}}}`)
	if len(c.Adds) != 2 || c.Adds[0].Size != 3 || c.Adds[1].Size != 2 {
		t.Errorf("adds %+v", c.Adds)
	}
	if len(c.Removes) != 2 || c.Removes[0].Path != "d" || c.Removes[0].DataChange || c.Removes[1].DeletionVector == nil {
		t.Errorf("removes %+v", c.Removes)
	}
}

// FuzzParseCommit: whatever is read can be written, and is read the same again.
func FuzzParseCommit(f *testing.F) {
	full, err := EncodeCommit(fullCommit())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	f.Add([]byte(`{"commitInfo":{"timestamp":"x","timestamp":1,"a":[1e400,{"b":null}]}}`))
	f.Add([]byte(`{"remove":{"path":"file:/x"}}` + "\n" + `{"add":{"path":"/x"}}`))
	f.Add([]byte("{}\n\n null\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseCommit(3, data)
		if err != nil {
			if tableerr.TokenOf(err) != tableerr.TokenCorrupt {
				t.Fatal(err)
			}
			return
		}
		first, err := EncodeCommit(c)
		if errors.Is(err, errNoAction) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseCommit(3, first)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		second, err := EncodeCommit(again)
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%s\n%s\n%v", first, second, err)
		}
		if _, err := NewState().Apply(c); err == nil {
			t.Fatal("version 3 applied to nothing")
		}
		c.Version = 0
		if s, err := NewState().Apply(c); err == nil && s.NumFiles() > len(c.Adds) {
			t.Fatal("files out of nothing")
		}
	})
}
