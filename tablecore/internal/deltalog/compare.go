package deltalog

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// Difference says where s, the state that a log's commits lead to, and another
// record of it differ: a checkpoint or a state file, which may have forgotten
// tombstones and txn actions. It is "" where the record is as good as s.
func (s *State) Difference(record *State) string {
	switch {
	case !sameProtocol(s.protocol, record.protocol):
		return "its protocol is another"
	case !sameMetadata(s.metadata, record.metadata):
		return "its metadata are others"
	case s.domains.Len() != record.domains.Len():
		return "its domains are others"
	}
	for name, d := range record.domains.All() {
		if own, ok := s.domains.Get(name); !ok || own.Configuration != d.Configuration {
			return "its domain " + quoted(name) + " is another"
		}
	}
	for key, f := range record.files.All() {
		own, live := s.files.Get(key)
		if !live {
			return "it holds the file " + quoted(f.add.Path) + ", which is not live"
		}
		if !sameAdd(own.add, f.add) {
			return "it tells otherwise of the file " + quoted(f.add.Path)
		}
	}
	if record.files.Len() != s.files.Len() {
		return "it lacks live files"
	}
	for key, r := range record.removes.All() {
		if _, known := s.removes.Get(key); !known {
			return "it says that " + quoted(r.Path) + " was removed, which the log does not"
		}
	}
	for app, t := range record.txns.All() {
		if own, known := s.txns.Get(app); !known || own.Version != t.Version {
			return "its txn action of " + quoted(app) + " is another"
		}
	}
	return ""
}

func sameProtocol(a, b *Protocol) bool {
	return a.MinReaderVersion == b.MinReaderVersion && a.MinWriterVersion == b.MinWriterVersion &&
		sameFeatures(a.ReaderFeatures, b.ReaderFeatures) && sameFeatures(a.WriterFeatures, b.WriterFeatures)
}

// sameFeatures compares sets.
func sameFeatures(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func sameMetadata(a, b *Metadata) bool {
	return a.ID == b.ID && sameJSON(a.SchemaString, b.SchemaString) && slices.Equal(a.PartitionColumns, b.PartitionColumns) &&
		maps.Equal(a.Configuration, b.Configuration)
}

// sameAdd compares what readers go by. A checkpoint of another writer may leave
// the statistics out, and always says that no data change.
func sameAdd(a, b *Add) bool {
	return a.Size == b.Size && maps.Equal(a.PartitionValues, b.PartitionValues) && maps.Equal(a.Tags, b.Tags) &&
		(b.Stats == "" || sameJSON(a.Stats, b.Stats))
}

// sameJSON compares two texts, as JSON where they are not equal.
func sameJSON(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := decodeNumbers(a)
	y, errY := decodeNumbers(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func decodeNumbers(text string) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}
