// Package tabledef says what a table is: its name, index column, granularity,
// entity columns, uniqueness rule, column types, properties and format version,
// and how these are written into a Delta table's metadata.
//
// It is pure: no I/O, no clock. Everything that turns a client's text into a
// definition, or a log's metadata into one, refuses what it does not
// understand with an error of tableerr.
package tabledef

import (
	"strings"

	"contrail/tablecore/tableerr"
)

// DefaultNamespace is the namespace of a table named by one part.
const DefaultNamespace = "default"

// maxNamePart bounds each part of a table's name, in bytes.
const maxNamePart = 128

// Name is a table's full name. The zero value names nothing.
type Name struct {
	Namespace, Table string
}

// ParseName reads "table" or "namespace.table". It is the only place where a
// client's text becomes a name, and so a path.
func ParseName(text string) (Name, error) {
	return NameFromParts(strings.Split(text, "."))
}

// NameFromParts builds a name from ["table"] or ["namespace", "table"].
func NameFromParts(parts []string) (Name, error) {
	n := Name{Namespace: DefaultNamespace}
	switch len(parts) {
	case 1:
		n.Table = parts[0]
	case 2:
		n.Namespace, n.Table = parts[0], parts[1]
	default:
		return Name{}, tableerr.InvalidField("table", "a table's name has one or two parts, not %d", len(parts))
	}
	for _, part := range []string{n.Namespace, n.Table} {
		if err := CheckNamePart("table", part); err != nil {
			return Name{}, err
		}
	}
	return n, nil
}

// CheckNamePart refuses a name part other than [A-Za-z0-9][A-Za-z0-9_-]* of at
// most 128 bytes; field is what the error names.
func CheckNamePart(field, part string) error {
	if len(part) > maxNamePart {
		return tableerr.InvalidField(field, "a name part has at most %d bytes, this one has %d", maxNamePart, len(part))
	}
	for i := 0; i < len(part); i++ {
		c := part[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '_' && c != '-') {
			return tableerr.InvalidField(field, "name part %q does not match [A-Za-z0-9][A-Za-z0-9_-]*", part)
		}
	}
	if part == "" {
		return tableerr.InvalidField(field, "a name part is empty")
	}
	return nil
}

// String returns "namespace.table".
func (n Name) String() string { return n.Namespace + "." + n.Table }

// Dir returns the table's directory below the warehouse, "namespace/table".
func (n Name) Dir() string { return n.Namespace + "/" + n.Table }
