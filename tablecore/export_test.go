package tablecore

// Unpruned returns the options of the same scan with every row looked at.
func (o ScanOptions) Unpruned() ScanOptions {
	o.unpruned = true
	return o
}
