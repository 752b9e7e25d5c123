package tabledef

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"

	"contrail/tablecore/tableerr"
)

// SoftwareVersion is the version of this software. It is semantic and separate
// from the format's.
const SoftwareVersion = "0.1.0"

// FormatVersion is the version of what lies on disk, M.m.p.
type FormatVersion struct {
	Major, Minor, Patch uint32
}

// CurrentFormat is the format this software writes into new tables: 0.1.0 has
// rows and log only, 0.2.0 added the head, 0.3.0 the insertion-time column. It
// is a variable for tests that stand for other software; nothing else sets it.
var CurrentFormat = FormatVersion{0, 3, 0}

// absentFormat is what a table without the property has.
var absentFormat = FormatVersion{0, 1, 0}

var formatText = regexp.MustCompile(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$`)

// String returns "M.m.p".
func (v FormatVersion) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// Before says whether v is an older format than other.
func (v FormatVersion) Before(other FormatVersion) bool {
	return cmp.Or(cmp.Compare(v.Major, other.Major), cmp.Compare(v.Minor, other.Minor), cmp.Compare(v.Patch, other.Patch)) < 0
}

// parseFormat reads "M.m.p"; an integer N stands for 0.N.0. ok is false for
// anything else.
func parseFormat(text string) (v FormatVersion, ok bool) {
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return FormatVersion{0, uint32(n), 0}, true
	}
	m := formatText.FindStringSubmatch(text)
	if m == nil {
		return FormatVersion{}, false
	}
	for i, part := range []*uint32{&v.Major, &v.Minor, &v.Patch} {
		n, err := strconv.ParseUint(m[i+1], 10, 32)
		if err != nil {
			return FormatVersion{}, false
		}
		*part = uint32(n)
	}
	return v, true
}

// ReadableFormat returns the format version that a table's configuration says,
// 0.1.0 where it says none, or FORMAT_UNREADABLE when that is no version or one
// this software cannot read.
func ReadableFormat(configuration map[string]string) (FormatVersion, error) {
	text, given := configuration[KeyFormatVersion]
	if !given {
		return absentFormat, nil
	}
	v, ok := parseFormat(text)
	if !ok || !v.readableBy(CurrentFormat) {
		return FormatVersion{}, &tableerr.FormatUnreadable{TableFormat: text, SupportedFormat: CurrentFormat.String()}
	}
	return v, nil
}

// CheckWritable returns FORMAT_UNWRITABLE when this software reads v but must
// not write it.
func (v FormatVersion) CheckWritable() error {
	if !v.writableBy(CurrentFormat) {
		return &tableerr.FormatUnwritable{TableFormat: v.String(), SupportedFormat: CurrentFormat.String()}
	}
	return nil
}

// readableBy says whether software of a format reads v: older formats always;
// of newer ones those with another patch, and from 1.0 on those with another
// minor version.
func (v FormatVersion) readableBy(software FormatVersion) bool {
	if v.Major != software.Major {
		return v.Major < software.Major
	}
	return v.Major > 0 || v.Minor <= software.Minor
}

// writableBy says whether software of a format may write v: older formats
// always, of newer ones those with another patch.
func (v FormatVersion) writableBy(software FormatVersion) bool {
	if v.Major != software.Major {
		return v.Major < software.Major
	}
	return v.Minor <= software.Minor
}
