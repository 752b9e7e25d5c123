package scan

import (
	"context"
	"errors"
	"slices"
	"strings"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/derived"
	"contrail/tablecore/internal/snapshot"
)

// Explained says whether a scan reads a file, and why not.
type Explained struct {
	Path          string
	Kept          bool
	Reason        string // one of the Reason constants
	RowGroups     int
	RowGroupsKept int
}

// Explain yields what the plan does with each live file, by path, in batches of
// bounded size. It reads footers, entity directories and page indices, no rows.
func (p *Plan) Explain(ctx context.Context, yield func(Explained) error) error {
	files := slices.Clone(p.snap.Files)
	slices.SortFunc(files, func(a, b *snapshot.File) int { return strings.Compare(a.Path, b.Path) })
	j := p.judge()
	for _, f := range files {
		e, err := p.explain(ctx, j, f)
		if err == nil {
			err = yield(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) explain(ctx context.Context, j *judge, f *snapshot.File) (e Explained, err error) {
	groups, err := p.data.RowGroups(ctx, p.snap, f)
	if err != nil {
		return e, err
	}
	e = Explained{Path: f.Path, Reason: j.reason(f), RowGroups: len(groups)}
	if e.Kept = e.Reason == ReasonKept; !e.Kept || rowsOf(groups) == 0 {
		return e, nil
	}
	runs, err := p.fileRuns(ctx, f)
	if err != nil {
		return e, err
	}
	if len(runs) == 0 {
		e.Kept = false
		e.Reason, err = p.missed(ctx, f)
		return e, err
	}
	ranges, err := p.explainRows(ctx, f, runs)
	if err != nil {
		return e, err
	}
	e.RowGroupsKept = groupsOf(groups, ranges)
	if e.Kept = e.RowGroupsKept > 0; !e.Kept {
		e.Reason = ReasonFilter
	}
	return e, nil
}

// missed says why no run of a file is wanted.
func (p *Plan) missed(ctx context.Context, f *snapshot.File) (string, error) {
	index, err := p.data.Index(ctx, p.snap, f)
	if err != nil {
		return "", err
	}
	directory := index.Directory
	if v := p.viewIfAny(f); v != nil {
		directory = v.directory
	}
	if slices.ContainsFunc(directory, func(r derived.Run) bool { return p.query.entities.Match(r.Key) }) {
		return ReasonRange, nil
	}
	return ReasonEntity, nil
}

// explainRows returns the rows of runs that the file's statistics leave.
func (p *Plan) explainRows(ctx context.Context, f *snapshot.File, runs []derived.Run) (ranges []datafile.RowRange, err error) {
	if v := p.viewIfAny(f); v != nil { // it is read as a whole
		return []datafile.RowRange{{End: int64(len(v.order))}}, nil
	}
	for _, run := range runs {
		ranges = append(ranges, datafile.RowRange{Start: run.Start, End: run.End})
	}
	if p.query.filter == nil || p.query.unpruned {
		return coalesce(ranges), nil
	}
	file, err := p.data.Open(ctx, p.snap, f)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	live, err := p.live(ctx, file.File)
	return coalesce(intersect(ranges, live)), err
}
