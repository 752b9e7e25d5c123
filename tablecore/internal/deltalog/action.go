package deltalog

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"
)

// Protocol says which Delta readers and writers may touch the table.
type Protocol struct {
	MinReaderVersion, MinWriterVersion int32
	// ReaderFeatures is meaningful at reader version 3, WriterFeatures at
	// writer version 7; nil means that the list is absent.
	ReaderFeatures, WriterFeatures []string
}

// Metadata is the table's identity, schema and properties.
type Metadata struct {
	ID                string
	Name, Description string
	// Provider is the files' format; "parquet" where it is left empty.
	Provider string
	// SchemaString is Delta's JSON schema. Very old tables have none.
	SchemaString     string
	PartitionColumns []string
	// Configuration holds the table properties.
	Configuration map[string]string
	// CreatedTime is in ms since the epoch, nil when unknown.
	CreatedTime *int64
}

// Add makes a data file part of the table.
type Add struct {
	// Path is the text of the log: a percent-encoded URI reference. See File.
	Path string
	// PartitionValues maps partition columns to values; null is "".
	PartitionValues map[string]string
	// Size is in bytes, ModificationTime in ms since the epoch.
	Size, ModificationTime int64
	DataChange             bool
	// Stats is the JSON text of the statistics, "" when there are none.
	Stats string
	Tags  map[string]string
	// DeletionVector is nil unless rows of the file are deleted.
	DeletionVector *DeletionVector

	// file and refused cache ResolvePath(Path); both are empty in an Add that
	// was not parsed.
	file    string
	refused bool
}

// Remove takes a data file out of the table. It stays in the state as a
// tombstone.
type Remove struct {
	Path string // as Add.Path
	// DeletionTimestamp is in ms since the epoch, 0 when unknown.
	DeletionTimestamp int64
	DataChange        bool
	// ExtendedFileMetadata says that PartitionValues and Size are meant.
	ExtendedFileMetadata bool
	PartitionValues      map[string]string
	Size                 *int64
	DeletionVector       *DeletionVector

	file    string
	refused bool
}

// DeletionVector names the set of deleted rows of a file. The package keeps it
// for telling logical files apart; tables that use one are refused.
type DeletionVector struct {
	StorageType, PathOrInline string
	Offset                    *int64
	SizeInBytes, Cardinality  int64
}

// Txn remembers how far an application has come.
type Txn struct {
	AppID   string
	Version int64
	// LastUpdated is in ms since the epoch, nil when unknown.
	LastUpdated *int64
}

// DomainMetadata is a named piece of configuration.
type DomainMetadata struct {
	Domain, Configuration string
	Removed               bool
}

// CommitInfo tells where a commit came from.
type CommitInfo struct {
	// Timestamp and InCommitTimestamp are in ms since the epoch, nil when
	// absent.
	Timestamp, InCommitTimestamp *int64
	Operation                    string
	// OperationParameters and OperationMetrics hold a string as itself and any
	// other value as its JSON text.
	OperationParameters, OperationMetrics map[string]string
	EngineInfo                            string
	// Extra holds all other members by name, as compact JSON, and those named
	// above whose value is of another kind.
	Extra map[string]json.RawMessage
}

// Commit is the content of one commit file. Its slices may be read by anyone
// and changed by nobody once it was parsed.
type Commit struct {
	// Version is the file's number.
	Version int64
	// Size is the file's length in bytes, Digest the SHA-256 of its bytes; both
	// are zero in a Commit that was not parsed.
	Size   int64
	Digest [sha256.Size]byte

	Info     *CommitInfo // nil when absent
	Protocol *Protocol   // nil when unchanged
	Metadata *Metadata   // nil when unchanged
	Txns     []*Txn
	Domains  []*DomainMetadata
	Removes  []*Remove
	Adds     []*Add
}

// Timestamp returns the time the commit says it was made, in ms since the
// epoch: the in-commit timestamp or, without one, commitInfo's own; nil when
// there is neither.
func (c *Commit) Timestamp() *int64 {
	switch {
	case c.Info == nil:
		return nil
	case c.Info.InCommitTimestamp != nil:
		return c.Info.InCommitTimestamp
	}
	return c.Info.Timestamp
}

// File returns the decoded path of the data file, relative to the table's
// directory, or *tableerr.Unsupported when the path leads elsewhere.
func (a *Add) File() (string, error) { return fileOf(a.Path, a.file, a.refused) }

// File is Add.File.
func (r *Remove) File() (string, error) { return fileOf(r.Path, r.file, r.refused) }

func fileOf(path, file string, refused bool) (string, error) {
	if file != "" && !refused {
		return file, nil
	}
	return ResolvePath(path)
}

// settle fills the cache of an Add that comes from outside.
func (a *Add) settle() { a.file, a.refused = logicalFile(a.Path) }

func (r *Remove) settle() { r.file, r.refused = logicalFile(r.Path) }

// key identifies a logical file: the decoded path together with the deletion
// vector. NUL occurs in no decoded path.
func (a *Add) key() string { return fileKey(a.file, a.DeletionVector) }

func (r *Remove) key() string { return fileKey(r.file, r.DeletionVector) }

func fileKey(file string, dv *DeletionVector) string {
	if dv == nil {
		return file
	}
	return file + "\x00" + dv.id()
}

// id is the protocol's unique id of a deletion vector.
func (d *DeletionVector) id() string {
	if d.Offset == nil {
		return d.StorageType + d.PathOrInline
	}
	return d.StorageType + d.PathOrInline + "@" + strconv.FormatInt(*d.Offset, 10)
}
