package deltalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

func (a *Add) decode(r *jsonReader) error {
	err := r.object(func(key []byte) (err error) {
		switch string(key) {
		case "path":
			a.Path, err = r.str()
		case "partitionValues":
			a.PartitionValues, err = r.texts()
		case "size":
			a.Size, err = r.whole()
		case "modificationTime":
			a.ModificationTime, err = r.whole()
		case "dataChange":
			a.DataChange, err = r.boolean()
		case "stats":
			a.Stats, err = r.str()
		case "tags":
			a.Tags, err = r.texts()
		case "deletionVector":
			a.DeletionVector, err = r.deletionVector()
		default:
			return r.skip()
		}
		return member(key, err)
	})
	if err != nil {
		return err
	}
	return a.check()
}

// check holds for adds from commits and from checkpoints.
func (a *Add) check() error {
	switch {
	case a.Path == "":
		return errors.New("an add without a path")
	case a.Size < 0:
		return fmt.Errorf("size %d", a.Size)
	}
	return nil
}

func (a *Remove) decode(r *jsonReader) error {
	err := r.object(func(key []byte) (err error) {
		switch string(key) {
		case "path":
			a.Path, err = r.str()
		case "deletionTimestamp":
			a.DeletionTimestamp, err = r.whole()
		case "dataChange":
			a.DataChange, err = r.boolean()
		case "extendedFileMetadata":
			a.ExtendedFileMetadata, err = r.boolean()
		case "partitionValues":
			a.PartitionValues, err = r.texts()
		case "size":
			a.Size, err = r.integer()
		case "deletionVector":
			a.DeletionVector, err = r.deletionVector()
		default:
			return r.skip()
		}
		return member(key, err)
	})
	if err != nil {
		return err
	}
	return a.check()
}

func (a *Remove) check() error {
	if a.Path == "" {
		return errors.New("a remove without a path")
	}
	return nil
}

func (r *jsonReader) deletionVector() (*DeletionVector, error) {
	if r.null() {
		return nil, nil
	}
	d := &DeletionVector{}
	return d, r.object(func(key []byte) (err error) {
		switch string(key) {
		case "storageType":
			d.StorageType, err = r.str()
		case "pathOrInlineDv":
			d.PathOrInline, err = r.str()
		case "offset":
			d.Offset, err = r.integer()
		case "sizeInBytes":
			d.SizeInBytes, err = r.whole()
		case "cardinality":
			d.Cardinality, err = r.whole()
		default:
			return r.skip()
		}
		return member(key, err)
	})
}

func (a *Txn) decode(r *jsonReader) error {
	return r.object(func(key []byte) (err error) {
		switch string(key) {
		case "appId":
			a.AppID, err = r.str()
		case "version":
			a.Version, err = r.whole()
		case "lastUpdated":
			a.LastUpdated, err = r.integer()
		default:
			return r.skip()
		}
		return member(key, err)
	})
}

func (a *DomainMetadata) decode(r *jsonReader) error {
	return r.object(func(key []byte) (err error) {
		switch string(key) {
		case "domain":
			a.Domain, err = r.str()
		case "configuration":
			a.Configuration, err = r.str()
		case "removed":
			a.Removed, err = r.boolean()
		default:
			return r.skip()
		}
		return member(key, err)
	})
}

func (m *Metadata) decode(r *jsonReader) error {
	return r.object(func(key []byte) (err error) {
		switch string(key) {
		case "id":
			m.ID, err = r.str()
		case "name":
			m.Name, err = r.str()
		case "description":
			m.Description, err = r.str()
		case "format":
			err = r.object(func(key []byte) (err error) {
				if string(key) != "provider" {
					return r.skip()
				}
				m.Provider, err = r.str()
				return err
			})
		case "schemaString":
			m.SchemaString, err = r.str()
		case "partitionColumns":
			m.PartitionColumns, err = r.list()
		case "configuration":
			m.Configuration, err = r.texts()
		case "createdTime":
			m.CreatedTime, err = r.integer()
		default:
			return r.skip()
		}
		return member(key, err)
	})
}

func (p *Protocol) decode(r *jsonReader) error {
	return r.object(func(key []byte) (err error) {
		switch string(key) {
		case "minReaderVersion":
			p.MinReaderVersion, err = r.version()
		case "minWriterVersion":
			p.MinWriterVersion, err = r.version()
		case "readerFeatures":
			p.ReaderFeatures, err = r.list()
		case "writerFeatures":
			p.WriterFeatures, err = r.list()
		default:
			return r.skip()
		}
		return member(key, err)
	})
}

// decode is lenient: the protocol lets commitInfo hold anything.
func (i *CommitInfo) decode(r *jsonReader) error {
	return r.object(func(key []byte) error {
		name := string(key)
		start := *r
		var err error
		switch name {
		case "timestamp":
			i.Timestamp, err = r.integer()
		case "inCommitTimestamp":
			i.InCommitTimestamp, err = r.integer()
		case "operation":
			i.Operation, err = r.str()
		case "engineInfo":
			i.EngineInfo, err = r.str()
		case "operationParameters":
			i.OperationParameters, err = r.texts()
		case "operationMetrics":
			i.OperationMetrics, err = r.texts()
		default:
			return i.keep(name, r)
		}
		if err == nil {
			return nil
		}
		*r = start
		return i.keep(name, r)
	})
}

func (i *CommitInfo) keep(name string, r *jsonReader) error {
	raw, err := r.raw()
	if err != nil {
		return err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return err
	}
	if i.Extra == nil {
		i.Extra = map[string]json.RawMessage{}
	}
	i.Extra[name] = compact.Bytes()
	return nil
}

// texts reads an object into a map: strings as themselves, null as "", other
// values as their JSON text. An object without members is nil.
func (r *jsonReader) texts() (map[string]string, error) {
	var m map[string]string
	err := r.object(func(key []byte) error {
		k := string(key)
		var v string
		var err error
		switch r.peek() {
		case '"', 'n':
			v, err = r.str()
		default:
			var raw []byte
			raw, err = r.raw()
			v = string(raw)
		}
		if err != nil {
			return err
		}
		if m == nil {
			m = map[string]string{}
		}
		m[k] = v
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// list reads an array of strings; null is nil, an empty array is not.
func (r *jsonReader) list() ([]string, error) {
	if r.null() {
		return nil, nil
	}
	l := []string{}
	err := r.array(func() error {
		s, err := r.str()
		l = append(l, s)
		return err
	})
	return l, err
}

// maxProtocolVersion is the highest protocol version that can be named.
const maxProtocolVersion = math.MaxInt32

func (r *jsonReader) version() (int32, error) {
	v, err := r.whole()
	if err == nil && (v < 0 || v > maxProtocolVersion) {
		err = r.errorf("%d is no protocol version", v)
	}
	return int32(v), err
}

func member(key []byte, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", clip(key), err)
	}
	return nil
}
