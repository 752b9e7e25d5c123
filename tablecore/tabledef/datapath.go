package tabledef

import "regexp"

// dataFile is the form of the names that newfile gives.
var dataFile = regexp.MustCompile(`^data/[0-9a-f]{2}/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.parquet$`)

// IsDataFile says whether a path in a table's directory is one that Contrail
// gives to data files: data/<2 hex>/<uuid>.parquet.
func IsDataFile(path string) bool { return dataFile.MatchString(path) }
