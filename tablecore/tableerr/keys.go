package tableerr

import (
	"fmt"
	"strings"
)

// KeyViolation is what an update's key errors say: which keys of the source do
// not name exactly one stored row each.
type KeyViolation struct {
	About
	// RowsSeen is the number of rows of the whole source.
	RowsSeen int64
	// Violations is the number of distinct keys that are wrong in this way.
	Violations int64
	// ExampleKey is the smallest of them by (entity, index).
	ExampleKey Values
}

func (v *KeyViolation) keyFields(t Token) []Field {
	return v.fields(Field{"reason", strings.ToLower(string(t))}, Field{"rows_seen", v.RowsSeen},
		Field{"violations", v.Violations}, Field{"example_key", entity(v.ExampleKey)})
}

// count writes how many keys do what, in one form or the other.
func (v *KeyViolation) count(one, many string) string {
	if v.Violations == 1 {
		return "1 key " + one
	}
	return fmt.Sprintf("%d keys %s", v.Violations, many)
}

// DuplicateSourceKey reports an update whose source has a key more than once.
type DuplicateSourceKey struct{ KeyViolation }

func (e *DuplicateSourceKey) Error() string { return e.Text() }

// Token implements Error.
func (e *DuplicateSourceKey) Token() Token { return TokenDuplicateSourceKey }

// Text implements Error.
func (e *DuplicateSourceKey) Text() string {
	return e.count("stands", "stand") + " more than once in the source"
}

// Fields implements Error.
func (e *DuplicateSourceKey) Fields() []Field { return e.keyFields(e.Token()) }

// UnmatchedSourceKey reports an update whose source has a key that no stored
// row has.
type UnmatchedSourceKey struct{ KeyViolation }

func (e *UnmatchedSourceKey) Error() string { return e.Text() }

// Token implements Error.
func (e *UnmatchedSourceKey) Token() Token { return TokenUnmatchedSourceKey }

// Text implements Error.
func (e *UnmatchedSourceKey) Text() string {
	return e.count("is", "are") + " in no row of " + e.object()
}

// Fields implements Error.
func (e *UnmatchedSourceKey) Fields() []Field { return e.keyFields(e.Token()) }

// AmbiguousTargetKey reports an update whose source has a key that several
// stored rows have.
type AmbiguousTargetKey struct{ KeyViolation }

func (e *AmbiguousTargetKey) Error() string { return e.Text() }

// Token implements Error.
func (e *AmbiguousTargetKey) Token() Token { return TokenAmbiguousTargetKey }

// Text implements Error.
func (e *AmbiguousTargetKey) Text() string {
	return e.count("is", "are") + " in several rows of " + e.object()
}

// Fields implements Error.
func (e *AmbiguousTargetKey) Fields() []Field { return e.keyFields(e.Token()) }
