package deltalog

import (
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"
)

// rowBuilder appends the members of one action, in the order that
// checkpointSchema gives them.
type rowBuilder struct {
	column *array.StructBuilder
	next   int
}

func (r *rowBuilder) protocol(p *Protocol) {
	r.int32(p.MinReaderVersion)
	r.int32(p.MinWriterVersion)
	r.list(p.ReaderFeatures)
	r.list(p.WriterFeatures)
}

func (r *rowBuilder) metadata(m *Metadata) {
	r.text(m.ID)
	r.optionalText(m.Name)
	r.optionalText(m.Description)
	format := r.member().(*array.StructBuilder)
	format.Append(true)
	below := &rowBuilder{column: format}
	below.text(m.provider())
	below.texts(nil)
	r.text(m.SchemaString)
	r.list(append([]string{}, m.PartitionColumns...))
	r.texts(m.Configuration)
	r.optional(m.CreatedTime)
}

func (r *rowBuilder) domain(d *DomainMetadata) {
	r.text(d.Domain)
	r.text(d.Configuration)
	r.boolean(d.Removed)
}

func (r *rowBuilder) txn(t *Txn) {
	r.text(t.AppID)
	r.int64(t.Version)
	r.optional(t.LastUpdated)
}

// remove and add say that no data changes: a checkpoint repeats what commits
// said.
func (r *rowBuilder) remove(a *Remove) {
	r.text(a.Path)
	if a.DeletionTimestamp != 0 {
		r.int64(a.DeletionTimestamp)
	} else {
		r.absent()
	}
	r.boolean(false)
	r.boolean(a.ExtendedFileMetadata)
	if a.ExtendedFileMetadata || len(a.PartitionValues) > 0 {
		r.partitionValues(a.PartitionValues)
	} else {
		r.absent()
	}
	r.optional(a.Size)
}

func (r *rowBuilder) add(a *Add) {
	r.text(a.Path)
	r.partitionValues(a.PartitionValues)
	r.int64(a.Size)
	r.int64(a.ModificationTime)
	r.boolean(false)
	if len(a.Tags) > 0 {
		r.texts(a.Tags)
	} else {
		r.absent()
	}
	r.optionalText(a.Stats)
}

// member returns the builder of the next member.
func (r *rowBuilder) member() array.Builder {
	r.next++
	return r.column.FieldBuilder(r.next - 1)
}

func (r *rowBuilder) text(v string) { r.member().(*array.StringBuilder).Append(v) }

func (r *rowBuilder) optionalText(v string) {
	b := r.member().(*array.StringBuilder)
	if v == "" {
		b.AppendNull()
	} else {
		b.Append(v)
	}
}

func (r *rowBuilder) int32(v int32) { r.member().(*array.Int32Builder).Append(v) }

func (r *rowBuilder) int64(v int64) { r.member().(*array.Int64Builder).Append(v) }

func (r *rowBuilder) optional(v *int64) {
	b := r.member().(*array.Int64Builder)
	if v == nil {
		b.AppendNull()
	} else {
		b.Append(*v)
	}
}

func (r *rowBuilder) boolean(v bool) { r.member().(*array.BooleanBuilder).Append(v) }

// list appends a list, nil as null.
func (r *rowBuilder) list(values []string) {
	b := r.member().(*array.ListBuilder)
	if values == nil {
		b.AppendNull()
		return
	}
	b.Append(true)
	for _, v := range values {
		b.ValueBuilder().(*array.StringBuilder).Append(v)
	}
}

// texts appends a map in the order of its keys.
func (r *rowBuilder) texts(values map[string]string) {
	r.entries(values, func(b *array.StringBuilder, v string) { b.Append(v) })
}

// partitionValues is texts with "" as null.
func (r *rowBuilder) partitionValues(values map[string]string) {
	r.entries(values, func(b *array.StringBuilder, v string) {
		if v == "" {
			b.AppendNull()
		} else {
			b.Append(v)
		}
	})
}

func (r *rowBuilder) entries(values map[string]string, appendValue func(*array.StringBuilder, string)) {
	b := r.member().(*array.MapBuilder)
	b.Append(true)
	for _, k := range slices.Sorted(maps.Keys(values)) {
		b.KeyBuilder().(*array.StringBuilder).Append(k)
		appendValue(b.ItemBuilder().(*array.StringBuilder), values[k])
	}
}

// absent appends a null member.
func (r *rowBuilder) absent() { r.member().AppendNull() }
