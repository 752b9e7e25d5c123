package deltalog

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tableerr"
)

// checkpointFields are the actions and members that are read: those that are
// written, and what tells that a checkpoint cannot be read without features
// that this package lacks. Nothing else of a file is touched, such as the
// statistics in columns of their own.
var checkpointFields = func() []arrow.Field {
	fields := checkpointSchema.Fields()
	vector := nullableField("deletionVector", arrow.StructOf(
		nullableField("storageType", arrow.BinaryTypes.String), nullableField("pathOrInlineDv", arrow.BinaryTypes.String),
		nullableField("offset", arrow.PrimitiveTypes.Int64), nullableField("sizeInBytes", arrow.PrimitiveTypes.Int64),
		nullableField("cardinality", arrow.PrimitiveTypes.Int64)))
	for i, f := range fields {
		if f.Name == "add" || f.Name == "remove" {
			members := f.Type.(*arrow.StructType).Fields()
			fields[i] = nullableField(f.Name, arrow.StructOf(append(members, vector)...))
		}
	}
	return append(fields,
		nullableField("checkpointMetadata", arrow.StructOf(nullableField("version", arrow.PrimitiveTypes.Int64))),
		nullableField("sidecar", arrow.StructOf(nullableField("path", arrow.BinaryTypes.String))))
}()

// readCheckpoint makes the state of a version from the files of its checkpoint.
// Damage and missing actions are *tableerr.Corrupt.
func (l *Log) readCheckpoint(ctx context.Context, version int64, files []objstore.Info) (*State, error) {
	s := NewState()
	s.version = version
	s.anchor = checkpointAnchor(files[0])
	var bytes int64
	for _, info := range files {
		bytes = addSaturating(bytes, max(info.Size, 0))
		actions, err := l.readCheckpointFile(ctx, info.Key)
		if err != nil {
			return nil, err
		}
		s.merge(actions)
	}
	s.checkpoint = CheckpointRef{Version: version, Bytes: bytes}
	if s.protocol == nil || s.metadata == nil {
		missing := "protocol"
		if s.protocol != nil {
			missing = "metaData"
		}
		return nil, &tableerr.Corrupt{Path: files[0].Key, Msg: "the checkpoint holds no " + missing + " action"}
	}
	return s, nil
}

func (l *Log) readCheckpointFile(ctx context.Context, key string) (*Commit, error) {
	r, err := l.store.Open(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("opening a checkpoint: %w", err)
	}
	defer r.Close() // reading is over: nothing to learn from the error
	return l.decodeCheckpoint(ctx, r, key)
}

func (l *Log) decodeCheckpoint(ctx context.Context, r datafile.Source, key string) (*Commit, error) {
	footer, err := datafile.ParseFooter(ctx, r, key)
	if err != nil {
		return nil, err
	}
	rows, err := datafile.Open(r, footer, key, l.opts.Allocator).Read(ctx, datafile.ReadRequest{Fields: checkpointFields})
	if err != nil {
		return nil, err
	}
	defer rows.Release()
	actions := &Commit{}
	for {
		batch, err := rows.Next(ctx)
		if err == io.EOF {
			return actions, nil
		}
		if err != nil {
			return nil, err
		}
		if err := actions.readBatch(batch); err != nil {
			if tableerr.TokenOf(err) == "" {
				err = &tableerr.Corrupt{Path: key, Msg: err.Error(), Cause: err}
			}
			return nil, err
		}
	}
}

// readBatch appends the actions of a checkpoint's batch. A row is one action;
// its struct is not null, nor is the member that identifies it.
func (c *Commit) readBatch(batch arrow.RecordBatch) error {
	for i, field := range batch.Schema().Fields() {
		column := batch.Column(i).(*array.Struct) // as checkpointFields demands
		r := newStructReader(field.Name, column)
		var err error
		switch field.Name {
		case "add":
			err = c.readAdds(r)
		case "remove":
			err = c.readRemoves(r)
		case "txn":
			err = c.readTxns(r)
		case "domainMetadata":
			err = c.readDomains(r)
		case "metaData":
			err = c.readMetadata(r)
		case "protocol":
			err = c.readProtocol(r)
		default: // checkpointMetadata, sidecar
			if column.NullN() < column.Len() {
				err = unsupported(featureV2Checkpoint)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Commit) readAdds(r *structReader) error {
	path, values, size := r.text("path"), r.texts("partitionValues"), r.integer("size")
	modified, stats, tags, dv := r.integer("modificationTime"), r.text("stats"), r.texts("tags"), r.deletionVectors()
	dataChange := r.boolean("dataChange")
	return r.rows(path, func(i int) error {
		a := &Add{
			Path: path.at(i), PartitionValues: values.at(i), Size: size.at(i), ModificationTime: modified.at(i),
			DataChange: dataChange.at(i), Stats: stats.at(i), Tags: tags.at(i), DeletionVector: dv.at(i),
		}
		a.settle()
		c.Adds = append(c.Adds, a)
		return a.check()
	})
}

func (c *Commit) readRemoves(r *structReader) error {
	path, deleted, dataChange := r.text("path"), r.integer("deletionTimestamp"), r.boolean("dataChange")
	extended, values, size, dv := r.boolean("extendedFileMetadata"), r.texts("partitionValues"), r.integer("size"), r.deletionVectors()
	return r.rows(path, func(i int) error {
		a := &Remove{
			Path: path.at(i), DeletionTimestamp: deleted.at(i), DataChange: dataChange.at(i), ExtendedFileMetadata: extended.at(i),
			PartitionValues: values.at(i), Size: size.optional(i), DeletionVector: dv.at(i),
		}
		a.settle()
		c.Removes = append(c.Removes, a)
		return a.check()
	})
}

func (c *Commit) readTxns(r *structReader) error {
	app, version, updated := r.text("appId"), r.integer("version"), r.integer("lastUpdated")
	return r.rows(app, func(i int) error {
		c.Txns = append(c.Txns, &Txn{AppID: app.at(i), Version: version.at(i), LastUpdated: updated.optional(i)})
		return nil
	})
}

func (c *Commit) readDomains(r *structReader) error {
	domain, configuration, removed := r.text("domain"), r.text("configuration"), r.boolean("removed")
	return r.rows(domain, func(i int) error {
		c.Domains = append(c.Domains, &DomainMetadata{Domain: domain.at(i), Configuration: configuration.at(i), Removed: removed.at(i)})
		return nil
	})
}

func (c *Commit) readMetadata(r *structReader) error {
	id, name, description, schema := r.text("id"), r.text("name"), r.text("description"), r.text("schemaString")
	partition, configuration, created := r.list("partitionColumns"), r.texts("configuration"), r.integer("createdTime")
	provider := r.child("format").text("provider")
	return r.rows(id, func(i int) error {
		c.Metadata = &Metadata{
			ID: id.at(i), Name: name.at(i), Description: description.at(i), SchemaString: schema.at(i), Provider: provider.at(i),
			PartitionColumns: partition.at(i), Configuration: configuration.at(i), CreatedTime: created.optional(i),
		}
		return nil
	})
}

func (c *Commit) readProtocol(r *structReader) error {
	reader, writer := r.int32("minReaderVersion"), r.int32("minWriterVersion")
	readerFeatures, writerFeatures := r.list("readerFeatures"), r.list("writerFeatures")
	return r.rows(reader, func(i int) error {
		if reader.at(i) < 0 || writer.at(i) < 0 {
			return fmt.Errorf("protocol versions %d and %d", reader.at(i), writer.at(i))
		}
		c.Protocol = &Protocol{
			MinReaderVersion: int32(reader.at(i)), MinWriterVersion: int32(writer.at(i)),
			ReaderFeatures: readerFeatures.at(i), WriterFeatures: writerFeatures.at(i),
		}
		return nil
	})
}
