package tabledef

// Keys of the tags that Contrail gives each data file in the log (add.tags).
// Other readers ignore them.
const (
	// TagIndexMin and TagIndexMax are the smallest and the largest raw index
	// value of the file, as decimal text in the index column's unit.
	TagIndexMin = "contrail.index-min"
	TagIndexMax = "contrail.index-max"
	// TagSorted is "true" for a file sorted by (entity, index).
	TagSorted = "contrail.sorted"
	// TagLayout is LayoutSingle for a file of one entity, else LayoutMixed.
	TagLayout = "contrail.layout"
	// TagEntity is the identity in a file of one entity: a JSON object of
	// column name to value.
	TagEntity = "contrail.entity"
	// TagNaN is a JSON list of the columns that hold a NaN.
	TagNaN = "contrail.nan"
	// TagWriter is the software that wrote the file.
	TagWriter = "contrail.writer"
	// TagVersion is the version that added the file, as decimal text.
	TagVersion = "contrail.version"
	// TagOrder is the version that the file's rows are as new as, as decimal
	// text, where that is not the one that added it: that of the file that an
	// update has written anew, or of the newest of those that optimize has made
	// one of. Rows with equal index values are in the order of these versions.
	TagOrder = "contrail.order"
	// TagTarget is the size in bytes that optimize aimed at when it cut the file,
	// so that it is not found too small or too large for the same target again; 0
	// for a small file of one entity that was asked for.
	TagTarget = "contrail.target"
)

// The values of TagLayout.
const (
	LayoutSingle = "single"
	LayoutMixed  = "mixed"
)
