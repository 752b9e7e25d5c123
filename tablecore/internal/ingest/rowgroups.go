package ingest

// cutRowGroups cuts a file of sorted rows into row groups of at most maxRows
// rows and returns their ends. A group ends on an entity's boundary where
// entities are large, so that reading one of them reads few groups: at the last
// boundary before it is full, unless it would stay nearly empty.
func cutRowGroups(runs []run, maxRows int) []int {
	var ends []int
	start := 0
	for _, r := range runs {
		if r.start > start && r.end-start > maxRows && r.start-start >= maxRows/8 {
			ends = append(ends, r.start)
			start = r.start
		}
		for r.end-start > maxRows {
			start += maxRows
			ends = append(ends, start)
		}
	}
	if n := len(runs); n > 0 && runs[n-1].end > start {
		ends = append(ends, runs[n-1].end)
	}
	return ends
}

// runsBetween returns the runs that meet the file positions [start, end),
// looking from runs[from] on, and the index of the last of them.
func runsBetween(runs []run, from, start, end int) ([]run, int) {
	for runs[from].end <= start {
		from++
	}
	last := from
	for last+1 < len(runs) && runs[last+1].start < end {
		last++
	}
	return runs[from : last+1], last
}
