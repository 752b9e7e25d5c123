package tabledef

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/tableerr"
)

// The keys under which IPC writes an extension type into the metadata of a
// field of its storage type.
const (
	extensionKey     = "ARROW:extension:name"
	extensionDataKey = "ARROW:extension:metadata"
)

// WithoutExtensions returns the schema as IPC writes it: a field of an
// extension type has the storage type, and the extension's name and text in
// its metadata. So all extensions are alike, whether this program knows them or
// not, and a schema is the same before and after it was stored. Types must not
// be TooDeep.
func WithoutExtensions(schema *arrow.Schema) *arrow.Schema {
	fields := make([]arrow.Field, schema.NumFields())
	for i, f := range schema.Fields() {
		fields[i] = mapFields(f, writeExtension)
	}
	md := schema.Metadata()
	return arrow.NewSchema(fields, &md)
}

func writeExtension(f arrow.Field) arrow.Field {
	for {
		e, ok := f.Type.(arrow.ExtensionType)
		if !ok {
			return f
		}
		f.Type = e.StorageType()
		md := dropKeys(f.Metadata, isExtensionKey)
		f.Metadata = arrow.NewMetadata(append(md.Keys(), extensionKey, extensionDataKey), append(md.Values(), e.ExtensionName(), e.Serialize()))
	}
}

func isExtensionKey(key string) bool { return key == extensionKey || key == extensionDataKey }

// RestoreExtensions is the inverse of WithoutExtensions for one field, as far
// as the extensions are registered with Arrow and would be written the same way
// again; others stay storage types with their metadata.
func RestoreExtensions(f arrow.Field) arrow.Field {
	if children := Children(f.Type); len(children) > 0 {
		restored := make([]arrow.Field, len(children))
		for i, child := range children {
			restored[i] = RestoreExtensions(child)
		}
		f.Type = WithChildren(f.Type, restored)
	}
	name, ok := f.Metadata.GetValue(extensionKey)
	if !ok {
		return f
	}
	known := arrow.GetExtensionType(name)
	if known == nil {
		return f
	}
	data, hasData := f.Metadata.GetValue(extensionDataKey)
	e, err := known.Deserialize(f.Type, data)
	if err != nil || !hasData || e.ExtensionName() != name || e.Serialize() != data || !arrow.TypeEqual(e.StorageType(), f.Type) {
		return f
	}
	f.Type, f.Metadata = e, dropKeys(f.Metadata, isExtensionKey)
	return f
}

// DropExtensions removes what makes readers see extension types in a field, at
// any depth.
func DropExtensions(f arrow.Field) arrow.Field {
	return mapFields(f, func(f arrow.Field) arrow.Field {
		f = writeExtension(f)
		f.Metadata = dropKeys(f.Metadata, isExtensionKey)
		return f
	})
}

// checkExtensions refuses a column whose metadata names an extension, at any
// depth, that could not be read back: one that is registered with Arrow and
// does not take the storage type, or the text, that stands there.
func checkExtensions(f arrow.Field) error {
	var names []string
	mapFields(f, func(f arrow.Field) arrow.Field {
		if name, ok := f.Metadata.GetValue(extensionKey); ok {
			names = append(names, name)
		}
		return f
	})
	if names == nil {
		return nil
	}
	encoded, err := EncodeSchemaIPC(arrow.NewSchema([]arrow.Field{f}, nil))
	if err == nil {
		_, err = DecodeSchemaIPC(encoded)
	}
	if err != nil {
		return tableerr.InvalidType(f.Name, "extension<"+strings.Join(names, ", ")+">", "Arrow does not take it: "+err.Error())
	}
	return nil
}
