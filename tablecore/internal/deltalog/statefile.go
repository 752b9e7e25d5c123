package deltalog

import (
	"cmp"
	"errors"
	"iter"
	"slices"

	"contrail/tablecore/internal/pmap"
)

// EncodeState returns what DecodeState makes s of again: all that a checkpoint
// of s would hold, column by column, and which checkpoint s knows of. Equal
// states give equal bytes. It fails for a state with deletion vectors, which
// this software does not read.
//
// The bytes are, in columnWriter's notation:
//
//	protocol     minReaderVersion, minWriterVersion int; readerFeatures, writerFeatures list
//	metaData     id, name, description, provider, schemaString text; partitionColumns list;
//	             configuration mapping; createdTime optional
//	checkpoint   version, bytes, bytes of the commits behind it: int
//	domains      number; domain texts; configuration texts
//	txns         number; appId texts; version ints; lastUpdated optional each
//	removes      number; path texts; deletionTimestamp ints; extendedFileMetadata bool each;
//	             partitionValues maps; size optional each
//	files        number; path texts; size ints; modificationTime ints; partitionValues maps;
//	             tags maps; stats texts
//
// Domains stand in the order of their names, txns of their applications,
// removes of their files, files in log order.
func EncodeState(s *State) ([]byte, error) {
	w := &columnWriter{}
	w.protocol(s.protocol)
	w.metadata(s.metadata)
	w.int(s.checkpoint.Version)
	w.int(s.checkpoint.Bytes)
	w.int(max(0, s.logBytes-s.checkpoint.logBytes))
	w.domains(s.Domains())
	w.txns(sortedValues(s.txns, func(t *Txn) string { return t.AppID }))
	removes, files := sortedValues(s.removes, (*Remove).key), s.Files()
	if slices.ContainsFunc(removes, func(r *Remove) bool { return r.DeletionVector != nil }) || s.withDV > 0 {
		return nil, errors.New("the table has deletion vectors")
	}
	w.removes(removes)
	w.files(files)
	return w.out, nil
}

// sortedValues returns the values of a map in the order of their keys.
func sortedValues[V any](m pmap.Map[V], key func(V) string) []V {
	values := make([]V, 0, m.Len())
	for _, v := range m.All() {
		values = append(values, v)
	}
	slices.SortFunc(values, func(a, b V) int { return cmp.Compare(key(a), key(b)) })
	return values
}

// each yields one member of each value.
func each[A, V any](values []A, member func(A) V) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range values {
			if !yield(member(v)) {
				return
			}
		}
	}
}

func (w *columnWriter) protocol(p *Protocol) {
	w.int(int64(p.MinReaderVersion))
	w.int(int64(p.MinWriterVersion))
	w.list(p.ReaderFeatures)
	w.list(p.WriterFeatures)
}

func (w *columnWriter) metadata(m *Metadata) {
	for _, text := range []string{m.ID, m.Name, m.Description, m.Provider, m.SchemaString} {
		w.text(text)
	}
	w.list(m.PartitionColumns)
	w.mapping(m.Configuration)
	w.optional(m.CreatedTime)
}

func (w *columnWriter) domains(domains []*DomainMetadata) {
	w.uint(uint64(len(domains)))
	w.texts(each(domains, func(d *DomainMetadata) string { return d.Domain }))
	w.texts(each(domains, func(d *DomainMetadata) string { return d.Configuration }))
}

func (w *columnWriter) txns(txns []*Txn) {
	w.uint(uint64(len(txns)))
	w.texts(each(txns, func(t *Txn) string { return t.AppID }))
	w.ints(each(txns, func(t *Txn) int64 { return t.Version }))
	for _, t := range txns {
		w.optional(t.LastUpdated)
	}
}

func (w *columnWriter) removes(removes []*Remove) {
	w.uint(uint64(len(removes)))
	w.texts(each(removes, func(r *Remove) string { return r.Path }))
	w.ints(each(removes, func(r *Remove) int64 { return r.DeletionTimestamp }))
	for _, r := range removes {
		w.bool(r.ExtendedFileMetadata)
	}
	w.maps(each(removes, func(r *Remove) map[string]string { return r.PartitionValues }))
	for _, r := range removes {
		w.optional(r.Size)
	}
}

func (w *columnWriter) files(files []*Add) {
	w.uint(uint64(len(files)))
	w.texts(each(files, func(a *Add) string { return a.Path }))
	w.ints(each(files, func(a *Add) int64 { return a.Size }))
	w.ints(each(files, func(a *Add) int64 { return a.ModificationTime }))
	w.maps(each(files, func(a *Add) map[string]string { return a.PartitionValues }))
	w.maps(each(files, func(a *Add) map[string]string { return a.Tags }))
	w.texts(each(files, func(a *Add) string { return a.Stats }))
}

var errState = errors.New("no state that EncodeState could have written")

// DecodeState reads the state of a version. It stands on no commit yet: see
// Log.Resume. Damage that shows is an error; damage that does not must have been
// found before, by a checksum. The state shares data's memory.
func DecodeState(version int64, data string) (*State, error) {
	r := &columnReader{rest: data}
	s := NewState()
	s.version = version
	s.protocol, s.metadata = r.protocol(), r.metadata()
	s.checkpoint = CheckpointRef{Version: r.int(), Bytes: r.int()}
	s.logBytes = r.int()
	c := &Commit{Domains: r.domains(), Txns: r.txns(), Removes: r.removes(), Adds: r.files()}
	if r.bad || r.rest != "" || version < 0 || version > maxVersion || s.logBytes < 0 || s.checkpoint.Bytes < 0 ||
		s.checkpoint.Version < -1 || s.checkpoint.Version > version || s.metadata.ID == "" {
		return nil, errState
	}
	for _, a := range c.Removes {
		if err := a.check(); err != nil {
			return nil, err
		}
	}
	for _, a := range c.Adds {
		if err := a.check(); err != nil {
			return nil, err
		}
	}
	s.marks = marksOf(s.metadata.SchemaString)
	s.merge(c)
	return s, nil
}

func (r *columnReader) protocol() *Protocol {
	reader, writer := r.int(), r.int()
	if reader != int64(int32(reader)) || writer != int64(int32(writer)) || reader < 0 || writer < 0 {
		r.fail()
	}
	return &Protocol{MinReaderVersion: int32(reader), MinWriterVersion: int32(writer), ReaderFeatures: r.list(), WriterFeatures: r.list()}
}

func (r *columnReader) metadata() *Metadata {
	return &Metadata{ID: r.text(), Name: r.text(), Description: r.text(), Provider: r.text(), SchemaString: r.text(),
		PartitionColumns: r.list(), Configuration: r.mapping(), CreatedTime: r.optional()}
}

func (r *columnReader) domains() []*DomainMetadata {
	n := r.count()
	names, configurations := r.texts(n), r.texts(n)
	domains := make([]*DomainMetadata, n)
	for i := range domains {
		domains[i] = &DomainMetadata{Domain: names[i], Configuration: configurations[i]}
	}
	return domains
}

func (r *columnReader) txns() []*Txn {
	n := r.count()
	apps, versions := r.texts(n), r.ints(n)
	txns := make([]*Txn, n)
	for i := range txns {
		txns[i] = &Txn{AppID: apps[i], Version: versions[i], LastUpdated: r.optional()}
	}
	return txns
}

func (r *columnReader) removes() []*Remove {
	n := r.count()
	paths, deleted := r.texts(n), r.ints(n)
	removes := make([]*Remove, n)
	for i := range removes {
		removes[i] = &Remove{Path: paths[i], DeletionTimestamp: deleted[i], ExtendedFileMetadata: r.bool()}
	}
	values := r.maps(n)
	for i, a := range removes {
		a.PartitionValues, a.Size = values[i], r.optional()
		a.settle()
	}
	return removes
}

func (r *columnReader) files() []*Add {
	n := r.count()
	paths, sizes, modified := r.texts(n), r.ints(n), r.ints(n)
	values, tags, stats := r.maps(n), r.maps(n), r.texts(n)
	files, all := make([]*Add, n), make([]Add, n)
	for i := range files {
		all[i] = Add{Path: paths[i], PartitionValues: values[i], Size: sizes[i], ModificationTime: modified[i], Stats: stats[i], Tags: tags[i]}
		files[i] = &all[i]
		files[i].settle()
	}
	return files
}
