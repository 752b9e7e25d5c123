// Package descriptors is the wire contract that both ends of Contrail's Flight
// service share: the JSON of descriptors, tickets and action bodies, the end
// marker of a put, the results and metadata that are not reports of the table
// core, and the text and JSON form of errors.
//
// # Strictness
//
// A request is one JSON object. Everything that is not exactly understood is
// refused with a *tableerr.Invalid whose Field is the path of the offending key,
// such as "filter[0][1]" or "entities[2].origin": unknown keys, keys given twice
// at any depth, values of another kind, trailing bytes, invalid UTF-8, nesting
// beyond MaxDepth and bodies beyond MaxRequestBytes. JSON null means that a
// field was left out. Integers are JSON numbers without fraction and exponent,
// or decimal text, and are exact over the whole int64 range.
//
// Values of columns (entities, bounds) have a meaning only together with the
// column's type, so they stay raw JSON here; their syntax has been checked.
//
// What a field's text means inside the table core (a name's characters, a
// granularity, a type's spelling, a column that must exist) is the core's to
// check; this package checks kinds, ranges and how fields go together.
//
// All functions are pure and safe for concurrent use. Raw values in a parsed
// request alias the body they were parsed from, which must not be changed
// afterwards.
package descriptors
