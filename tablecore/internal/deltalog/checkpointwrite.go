package deltalog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/objstore"
)

// checkpointSchema is the layout of classic checkpoints (PROTOCOL.md,
// "Checkpoint Schema"). Members that only refused features need are left out.
var checkpointSchema = func() *arrow.Schema {
	texts := arrow.MapOf(arrow.BinaryTypes.String, arrow.BinaryTypes.String)
	list := arrow.ListOfField(nullableField("element", arrow.BinaryTypes.String))
	text, long, integer, boolean := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int32, arrow.FixedWidthTypes.Boolean
	action := func(name string, members ...arrow.Field) arrow.Field {
		return nullableField(name, arrow.StructOf(members...))
	}
	return arrow.NewSchema([]arrow.Field{
		action("txn", nullableField("appId", text), nullableField("version", long), nullableField("lastUpdated", long)),
		action("add",
			nullableField("path", text), nullableField("partitionValues", texts), nullableField("size", long),
			nullableField("modificationTime", long), nullableField("dataChange", boolean), nullableField("tags", texts),
			nullableField("stats", text)),
		action("remove",
			nullableField("path", text), nullableField("deletionTimestamp", long), nullableField("dataChange", boolean),
			nullableField("extendedFileMetadata", boolean), nullableField("partitionValues", texts), nullableField("size", long)),
		action("metaData",
			nullableField("id", text), nullableField("name", text), nullableField("description", text),
			nullableField("format", arrow.StructOf(nullableField("provider", text), nullableField("options", texts))),
			nullableField("schemaString", text), nullableField("partitionColumns", list),
			nullableField("configuration", texts), nullableField("createdTime", long)),
		action("protocol",
			nullableField("minReaderVersion", integer), nullableField("minWriterVersion", integer),
			nullableField("readerFeatures", list), nullableField("writerFeatures", list)),
		action("domainMetadata", nullableField("domain", text), nullableField("configuration", text), nullableField("removed", boolean)),
	}, nil)
}()

func nullableField(name string, typ arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: typ, Nullable: true}
}

// checkpointBatchRows is how many actions are encoded at a time.
const checkpointBatchRows = 16 << 10

// WriteCheckpoint writes the checkpoint of s and then points _last_checkpoint
// to it, unless that names a newer one. A checkpoint that is there already
// stands. The result belongs into State.WithCheckpoint. Nothing is written when
// the table is not writable (*tableerr.Unsupported) or s does not stand any
// more (ErrReplaced). What s may forget is left out with Expire beforehand.
func (l *Log) WriteCheckpoint(ctx context.Context, s *State) (CheckpointRef, error) {
	if err := s.CheckWritable(); err != nil {
		return CheckpointRef{}, err
	}
	data, err := l.encodeCheckpoint(ctx, s)
	if err != nil {
		return CheckpointRef{}, fmt.Errorf("encoding the checkpoint of version %d: %w", s.version, err)
	}
	switch stands, err := l.Stands(ctx, s); {
	case err != nil:
		return CheckpointRef{}, err
	case !stands:
		return CheckpointRef{}, ErrReplaced
	}
	key := CheckpointKey(s.version)
	ref := CheckpointRef{Version: s.version, Bytes: int64(len(data)), logBytes: s.logBytes}
	err = l.store.PutIfAbsent(ctx, key, data)
	if errors.Is(err, objstore.ErrExist) {
		var info objstore.Info
		info, err = l.store.Head(ctx, key)
		ref.Bytes = info.Size
	}
	if err != nil {
		return CheckpointRef{}, fmt.Errorf("writing the checkpoint of version %d: %w", s.version, err)
	}
	return ref, l.writeHint(ctx, s, ref)
}

// writeHint replaces _last_checkpoint. An existing one is kept if it names a
// newer checkpoint that exists: one that leads nowhere would cost every reader
// a full listing for ever.
func (l *Log) writeHint(ctx context.Context, s *State, ref CheckpointRef) error {
	if version, ok := l.readHint(ctx); ok && version > ref.Version {
		if _, err := l.store.Head(ctx, CheckpointKey(version)); err == nil {
			return nil
		}
	}
	w := &jsonWriter{out: []byte{'{'}}
	w.integer("version", ref.Version)
	w.integer("size", int64(s.numActions()))
	w.integer("sizeInBytes", ref.Bytes)
	w.integer("numOfAddFiles", int64(s.NumFiles()))
	if err := l.store.Put(ctx, hintKey, append(w.out, '}')); err != nil {
		return fmt.Errorf("writing %s: %w", hintKey, err)
	}
	return nil
}

// numActions is the number of rows of a checkpoint of s.
func (s *State) numActions() int {
	return 2 + s.txns.Len() + s.domains.Len() + s.removes.Len() + s.files.Len()
}

// encodeCheckpoint returns the checkpoint's bytes, read back once to be sure
// that they hold what they should: the log behind it may be cleaned up.
func (l *Log) encodeCheckpoint(ctx context.Context, s *State) ([]byte, error) {
	var out bytes.Buffer
	w, err := datafile.NewWriter(&out, checkpointSchema, datafile.WriteOptions{Compression: datafile.Snappy, Mem: l.opts.Allocator})
	if err != nil {
		return nil, err
	}
	b := newCheckpointBuilder(l, w)
	defer b.release()
	if err := b.state(s); err != nil {
		return nil, err
	}
	written, err := w.Close()
	if err != nil {
		return nil, err
	}
	back, err := l.decodeCheckpoint(ctx, bytes.NewReader(out.Bytes()), CheckpointKey(s.version))
	if err != nil {
		return nil, fmt.Errorf("reading back: %w", err)
	}
	if written.Rows != int64(s.numActions()) || len(back.Adds) != s.NumFiles() || len(back.Removes) != s.NumRemoves() ||
		len(back.Txns) != s.NumTxns() || len(back.Domains) != s.domains.Len() || back.Protocol == nil || back.Metadata == nil {
		return nil, errors.New("reading back gave other actions than were written")
	}
	return out.Bytes(), nil
}

// checkpointBuilder collects actions as rows and writes them batch by batch.
type checkpointBuilder struct {
	writer  *datafile.Writer
	builder *array.RecordBuilder
	rows    int
}

func newCheckpointBuilder(l *Log, w *datafile.Writer) *checkpointBuilder {
	return &checkpointBuilder{writer: w, builder: array.NewRecordBuilder(l.opts.Allocator, checkpointSchema)}
}

func (b *checkpointBuilder) release() { b.builder.Release() }

// state writes all actions in an order that equal states share.
func (b *checkpointBuilder) state(s *State) error {
	err := b.row("protocol", func(r *rowBuilder) { r.protocol(s.protocol) })
	if err == nil {
		err = b.row("metaData", func(r *rowBuilder) { r.metadata(s.metadata) })
	}
	for _, d := range s.Domains() {
		if err == nil {
			err = b.row("domainMetadata", func(r *rowBuilder) { r.domain(d) })
		}
	}
	txns := maps.Collect(s.txns.All())
	for _, app := range slices.Sorted(maps.Keys(txns)) {
		if err == nil {
			err = b.row("txn", func(r *rowBuilder) { r.txn(txns[app]) })
		}
	}
	removes := slices.SortedFunc(s.Removes(), func(a, b *Remove) int { return cmp.Compare(a.key(), b.key()) })
	for _, a := range removes {
		if err == nil {
			err = b.row("remove", func(r *rowBuilder) { r.remove(a) })
		}
	}
	for _, a := range s.Files() {
		if err == nil {
			err = b.row("add", func(r *rowBuilder) { r.add(a) })
		}
	}
	if err != nil {
		return err
	}
	return b.flush()
}

// row appends one action.
func (b *checkpointBuilder) row(action string, fill func(*rowBuilder)) error {
	for i, field := range checkpointSchema.Fields() {
		column := b.builder.Field(i).(*array.StructBuilder)
		if field.Name != action {
			column.AppendNull()
			continue
		}
		column.Append(true)
		fill(&rowBuilder{column: column})
	}
	if b.rows++; b.rows < checkpointBatchRows {
		return nil
	}
	return b.flush()
}

func (b *checkpointBuilder) flush() error {
	if b.rows == 0 {
		return nil
	}
	b.rows = 0
	batch := b.builder.NewRecordBatch()
	defer batch.Release()
	return b.writer.Write(batch)
}
