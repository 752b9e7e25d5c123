package deltalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// EncodeCommit returns the bytes of a commit file: commitInfo first, then
// protocol, metaData, domainMetadata, txn, remove and add. Equal commits give
// equal bytes. With a commitInfo they carry a checksum. It refuses what
// ParseCommit would refuse or change: text that is not valid UTF-8, an action
// that names no file, lines over the limit, and a commit without any action.
func EncodeCommit(c *Commit) ([]byte, error) {
	w := &jsonWriter{}
	if c.Info != nil {
		w.action("commitInfo", func(w *jsonWriter) {
			c.Info.encode(w)
			w.text(checksumKey, string(checksumZeros))
		})
	}
	if c.Protocol != nil {
		w.action("protocol", c.Protocol.encode)
	}
	if c.Metadata != nil {
		w.action("metaData", c.Metadata.encode)
	}
	for _, a := range c.Domains {
		w.action("domainMetadata", a.encode)
	}
	for _, a := range c.Txns {
		w.action("txn", a.encode)
	}
	for _, a := range c.Removes {
		w.fail(a.check())
		w.action("remove", a.encode)
	}
	for _, a := range c.Adds {
		w.fail(a.check())
		w.action("add", a.encode)
	}
	if len(w.out) > MaxCommitBytes {
		w.fail(fmt.Errorf("longer than %d bytes", MaxCommitBytes))
	}
	if len(w.out) == 0 {
		w.fail(errNoAction)
	}
	if w.err != nil {
		return nil, fmt.Errorf("encoding a commit: %w", w.err)
	}
	seal(w.out)
	return w.out, nil
}

func (i *CommitInfo) encode(w *jsonWriter) {
	w.optional("timestamp", i.Timestamp)
	w.optional("inCommitTimestamp", i.InCommitTimestamp)
	w.textIf("operation", i.Operation)
	w.textsIf("operationParameters", i.OperationParameters)
	w.textsIf("operationMetrics", i.OperationMetrics)
	w.textIf("engineInfo", i.EngineInfo)
	known := map[string]bool{
		"timestamp": i.Timestamp != nil, "inCommitTimestamp": i.InCommitTimestamp != nil,
		"operation": i.Operation != "", "engineInfo": i.EngineInfo != "",
		"operationParameters": i.OperationParameters != nil, "operationMetrics": i.OperationMetrics != nil,
		checksumKey: true, // that of this file is written behind the others
	}
	for _, name := range slices.Sorted(maps.Keys(i.Extra)) {
		if known[name] {
			continue // the member of that name is written already
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, i.Extra[name]); err != nil {
			w.fail(fmt.Errorf("commitInfo %s: %w", name, err))
			return
		}
		if !utf8.Valid(compact.Bytes()) {
			w.fail(fmt.Errorf("commitInfo %s: not valid UTF-8", name))
		}
		w.key(name)
		w.out = append(w.out, compact.Bytes()...)
	}
}

func (p *Protocol) encode(w *jsonWriter) {
	w.integer("minReaderVersion", int64(p.MinReaderVersion))
	w.integer("minWriterVersion", int64(p.MinWriterVersion))
	if p.ReaderFeatures != nil {
		w.list("readerFeatures", p.ReaderFeatures)
	}
	if p.WriterFeatures != nil {
		w.list("writerFeatures", p.WriterFeatures)
	}
}

func (m *Metadata) encode(w *jsonWriter) {
	w.text("id", m.ID)
	w.textIf("name", m.Name)
	w.textIf("description", m.Description)
	w.key("format")
	w.out = append(w.out, '{')
	w.text("provider", m.provider())
	w.texts("options", nil)
	w.out = append(w.out, '}')
	w.text("schemaString", m.SchemaString)
	w.list("partitionColumns", m.PartitionColumns)
	w.texts("configuration", m.Configuration)
	w.optional("createdTime", m.CreatedTime)
}

func (m *Metadata) provider() string {
	if m.Provider == "" {
		return "parquet"
	}
	return m.Provider
}

func (a *DomainMetadata) encode(w *jsonWriter) {
	w.text("domain", a.Domain)
	w.text("configuration", a.Configuration)
	w.boolean("removed", a.Removed)
}

func (a *Txn) encode(w *jsonWriter) {
	w.text("appId", a.AppID)
	w.integer("version", a.Version)
	w.optional("lastUpdated", a.LastUpdated)
}

func (a *Remove) encode(w *jsonWriter) {
	w.text("path", a.Path)
	if a.DeletionTimestamp != 0 {
		w.integer("deletionTimestamp", a.DeletionTimestamp)
	}
	w.boolean("dataChange", a.DataChange)
	if a.ExtendedFileMetadata {
		w.boolean("extendedFileMetadata", true)
	}
	if a.ExtendedFileMetadata || len(a.PartitionValues) > 0 {
		w.partitionValues(a.PartitionValues)
	}
	w.optional("size", a.Size)
	a.DeletionVector.encode(w)
}

func (a *Add) encode(w *jsonWriter) {
	w.text("path", a.Path)
	w.partitionValues(a.PartitionValues)
	w.integer("size", a.Size)
	w.integer("modificationTime", a.ModificationTime)
	w.boolean("dataChange", a.DataChange)
	w.textIf("stats", a.Stats)
	w.textsIf("tags", a.Tags)
	a.DeletionVector.encode(w)
}

func (d *DeletionVector) encode(w *jsonWriter) {
	if d == nil {
		return
	}
	w.key("deletionVector")
	w.out = append(w.out, '{')
	w.text("storageType", d.StorageType)
	w.text("pathOrInlineDv", d.PathOrInline)
	w.optional("offset", d.Offset)
	w.integer("sizeInBytes", d.SizeInBytes)
	w.integer("cardinality", d.Cardinality)
	w.out = append(w.out, '}')
}

// jsonWriter writes one JSON object a line.
type jsonWriter struct {
	out []byte
	err error
}

func (w *jsonWriter) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// action writes a line {"name":{…}}.
func (w *jsonWriter) action(name string, members func(*jsonWriter)) {
	start := len(w.out)
	w.out = append(w.out, '{')
	w.key(name)
	w.out = append(w.out, '{')
	members(w)
	w.out = append(w.out, '}', '}')
	if len(w.out)-start > MaxLineBytes {
		w.fail(fmt.Errorf("%s: longer than %d bytes", name, MaxLineBytes))
	}
	w.out = append(w.out, '\n')
}

// key writes a member's name, after a comma unless it is the object's first.
func (w *jsonWriter) key(name string) {
	if last := w.out[len(w.out)-1]; last != '{' {
		w.out = append(w.out, ',')
	}
	w.quote(name)
	w.out = append(w.out, ':')
}

func (w *jsonWriter) text(name, value string) {
	w.key(name)
	w.quote(value)
}

func (w *jsonWriter) textIf(name, value string) {
	if value != "" {
		w.text(name, value)
	}
}

func (w *jsonWriter) integer(name string, value int64) {
	w.key(name)
	w.out = strconv.AppendInt(w.out, value, 10)
}

func (w *jsonWriter) optional(name string, value *int64) {
	if value != nil {
		w.integer(name, *value)
	}
}

func (w *jsonWriter) boolean(name string, value bool) {
	w.key(name)
	w.out = strconv.AppendBool(w.out, value)
}

func (w *jsonWriter) list(name string, values []string) {
	w.key(name)
	w.out = append(w.out, '[')
	for i, v := range values {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.quote(v)
	}
	w.out = append(w.out, ']')
}

// texts writes a map in the order of its keys.
func (w *jsonWriter) texts(name string, values map[string]string) {
	w.key(name)
	w.out = append(w.out, '{')
	for _, k := range slices.Sorted(maps.Keys(values)) {
		w.text(k, values[k])
	}
	w.out = append(w.out, '}')
}

func (w *jsonWriter) textsIf(name string, values map[string]string) {
	if len(values) > 0 {
		w.texts(name, values)
	}
}

// partitionValues writes "" as null, the protocol's first choice for it.
func (w *jsonWriter) partitionValues(values map[string]string) {
	w.key("partitionValues")
	w.out = append(w.out, '{')
	for _, k := range slices.Sorted(maps.Keys(values)) {
		w.key(k)
		if v := values[k]; v != "" {
			w.quote(v)
		} else {
			w.out = append(w.out, "null"...)
		}
	}
	w.out = append(w.out, '}')
}

// errNoAction says that a commit would be an empty file, which is damage.
var errNoAction = errors.New("it has no action")

var errText = errors.New("text is not valid UTF-8")

// quote writes a string, escaping only what JSON demands.
func (w *jsonWriter) quote(s string) {
	if !utf8.ValidString(s) {
		w.fail(fmt.Errorf("%w: %s", errText, quoted(s)))
		return
	}
	const hex = "0123456789abcdef"
	w.out = append(w.out, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			w.out = append(w.out, '\\', c)
		case c == '\n':
			w.out = append(w.out, '\\', 'n')
		case c < 0x20:
			w.out = append(w.out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			w.out = append(w.out, c)
		}
	}
	w.out = append(w.out, '"')
}
