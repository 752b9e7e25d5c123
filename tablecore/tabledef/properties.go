package tabledef

import (
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"contrail/tablecore/tableerr"
)

// Limits of a table's properties.
const (
	maxPropertyKey   = 255  // bytes
	maxPropertyValue = 4096 // bytes
	maxProperties    = 1000 // that clients have set
)

// PropertyChange is what a client wants of a table's properties: a value for
// each key, nil where it is to be removed.
type PropertyChange map[string]*string

// CheckProperties validates what a client sets: keys below "contrail." and
// "delta." must be registered and settable and their values of the right kind,
// and files must stay for at least leastRetention; any other key is the user's
// own. Errors are *tableerr.Invalid and name the property.
func CheckProperties(set PropertyChange, leastRetention time.Duration) error {
	keys := make([]string, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	slices.Sort(keys) // the same request gives the same error
	for _, k := range keys {
		if err := checkPropertyKey(k); err != nil {
			return err
		}
		if v := set[k]; v != nil {
			if err := checkPropertyValue(k, *v, leastRetention); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPropertyKey refuses keys that a client may neither set nor remove.
func checkPropertyKey(key string) error {
	field := "properties." + key
	switch p := registered[key]; {
	case key == "":
		return tableerr.InvalidField("properties", "the key of a property is empty")
	case len(key) > maxPropertyKey:
		return tableerr.InvalidField("properties", "property %.40q… has a key of %d bytes, more than %d", key, len(key), maxPropertyKey)
	case !utf8.ValidString(key), strings.ContainsFunc(key, unicode.IsControl), strings.TrimSpace(key) != key:
		return tableerr.InvalidField(field, "the key %q holds a control character, blanks at an end or bytes that are not UTF-8", key)
	case !reservedKey(key):
		return nil
	case p == nil:
		return tableerr.InvalidField(field, "property %s is not known", key)
	case p.Level == CreateOnly:
		return tableerr.InvalidField(field, "property %s is %s: it has its value from create_table and keeps it", key, p.Level)
	case p.Level != Settable:
		return tableerr.InvalidField(field, "property %s is %s and cannot be set by hand", key, p.Level)
	default:
		return nil
	}
}

func checkPropertyValue(key, value string, leastRetention time.Duration) error {
	refuse := func(format string, args ...any) error {
		return tableerr.InvalidField("properties."+key, format, args...).WithValue(value)
	}
	p := registered[key]
	switch {
	case len(value) > maxPropertyValue:
		return refuse("property %s has a value of %d bytes, more than %d", key, len(value), maxPropertyValue)
	case !utf8.ValidString(value):
		return refuse("the value of property %s is not UTF-8", key)
	case p == nil:
		return nil
	case !p.Kind.accepts(value):
		return refuse("property %s takes %s, not %q", key, p.Kind, value)
	case key == KeyRetainSnapshot && durationOf(value) < leastRetention:
		return refuse("property %s is %s, less than the %s that a ticket is good for", key, value, leastRetention)
	default:
		return nil
	}
}

// reservedKey says whether a key is Contrail's or Delta's and not a user's.
func reservedKey(key string) bool {
	lower := strings.ToLower(key)
	return strings.HasPrefix(lower, "contrail.") || strings.HasPrefix(lower, "delta.")
}

// WithProperties returns a copy of d with changed properties, which must have
// passed CheckProperties. It refuses more properties than a table may have, and a
// retention where the index has no time.
func (d *Definition) WithProperties(change PropertyChange) (*Definition, error) {
	c := *d
	c.Properties = make(map[string]string, len(d.Properties)+len(change))
	for k, v := range d.Properties {
		c.Properties[k] = v
	}
	for k, v := range change {
		if v == nil {
			delete(c.Properties, k)
		} else {
			c.Properties[k] = *v
		}
	}
	if v := change[KeyRetention]; v != nil && (d.IndexType == IndexInt64 || d.IndexType == IndexUint64) {
		return nil, tableerr.InvalidField("properties."+KeyRetention, "property %s needs an index column of timestamps", KeyRetention).WithValue(*v)
	}
	if len(c.Properties) > maxProperties {
		return nil, tableerr.InvalidField("properties", "the table would have %d properties, more than %d", len(c.Properties), maxProperties)
	}
	return &c, nil
}

// SnapshotRetention is how long files that a commit has replaced stay.
func (d *Definition) SnapshotRetention() time.Duration {
	if text, ok := d.Properties[KeyRetainSnapshot]; ok && KindDuration.accepts(text) {
		return durationOf(text)
	}
	return durationOf(registered[KeyRetainSnapshot].Default)
}

// Maintained says whether maintenance may rewrite files and drop rows by itself.
func (d *Definition) Maintained() bool { return d.Properties[KeyMaintenance] != "off" }

// RetentionTicks is how many units of a timestamp index's column an index value
// may lie behind the newest one before its row is dropped, rounded up; 0 means
// that none is, and nothing lies MaxUint64 behind.
func (d *Definition) RetentionTicks() uint64 {
	text, ok := d.Properties[KeyRetention]
	if !ok || !KindDuration.accepts(text) {
		return 0
	}
	g, _ := parseTimeGranularity(text)
	// Nanoseconds in 128 bits: a time of centuries cut to what a Duration holds
	// would drop rows that are to be kept.
	hi, lo := bits.Mul64(g.N, g.Nanos())
	tick := uint64(d.IndexUnit().Multiplier())
	if hi >= tick {
		return math.MaxUint64
	}
	ticks, rest := bits.Div64(hi, lo, tick)
	if rest > 0 {
		ticks++
	}
	return ticks
}

// DefaultTargetFileBytes is the size that rewritten data files aim at where the
// table does not say.
const DefaultTargetFileBytes = 128 << 20

// TargetFileBytes is the size that rewritten data files aim at.
func (d *Definition) TargetFileBytes() int64 {
	if text, ok := d.Properties[KeyTargetBytes]; ok && KindBytes.accepts(text) {
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	}
	return DefaultTargetFileBytes
}

// ParseDuration reads a duration such as "7d", the longest there is for one that
// is longer. ok is false for anything else.
func ParseDuration(text string) (d time.Duration, ok bool) {
	if !KindDuration.accepts(text) {
		return 0, false
	}
	return durationOf(text), true
}

// durationOf returns the length of a text that KindDuration accepts, the longest
// there is where it is longer.
func durationOf(text string) time.Duration {
	g, _ := parseTimeGranularity(text)
	hi, lo := bits.Mul64(g.N, g.Nanos())
	if hi > 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(lo)
}
