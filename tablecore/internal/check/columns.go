package check

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/internal/predicate"
)

// column compares the values of one column of a file with what its pages, row
// groups and the log say of them.
type column struct {
	field arrow.Field
	file  *datafile.File

	pages             []datafile.Zone // of the row group, at least one, that cover it
	at                int             // the page that the next row is in
	page, group, all  extremes
	wrong             string // the first contradiction
	groups            int    // row groups begun
	groupZone         datafile.Zone
	groupZoneIsStated bool
}

// begin turns to the next row group.
func (c *column) begin(ctx context.Context, g datafile.RowGroup) error {
	rows := datafile.RowRange{Start: g.FirstRow, End: g.FirstRow + g.Rows}
	pages, err := c.file.PageZones(ctx, c.groups, c.field.Name, c.field.Type)
	if err != nil {
		return err
	}
	if !covers(pages, rows) {
		pages = []datafile.Zone{{Rows: rows, Nulls: -1}}
	}
	c.groupZone, c.groupZoneIsStated = c.file.GroupZone(c.groups, c.field.Name, c.field.Type)
	c.pages, c.at, c.page, c.group = pages, 0, extremes{}, extremes{}
	c.groups++
	return nil
}

// covers says whether pages follow each other through rows.
func covers(pages []datafile.Zone, rows datafile.RowRange) bool {
	at := rows.Start
	for _, p := range pages {
		if p.Rows.Start != at || p.Rows.End <= at {
			return false
		}
		at = p.Rows.End
	}
	return at == rows.End
}

// add takes the next rows of the row group.
func (c *column) add(first int64, values arrow.Array) {
	for from, end := first, first+int64(values.Len()); from < end; {
		zone := c.pages[c.at]
		to := min(end, zone.Rows.End)
		c.page.merge(extremesOf(values, int(from-first), int(to-first)))
		if to == zone.Rows.End {
			c.settle(zone, c.page, "a page")
			c.group.merge(c.page)
			c.page = extremes{}
			c.at++
		}
		from = to
	}
}

// end ends the row group.
func (c *column) end() {
	if c.groupZoneIsStated {
		c.settle(c.groupZone, c.group, "a row group")
	}
	c.all.merge(c.group)
}

func (c *column) settle(zone datafile.Zone, actual extremes, what string) {
	if c.wrong != "" {
		return
	}
	if why := contradicts(predicate.Bounds{Nulls: zone.Nulls, Min: zone.Min, Max: zone.Max}, actual); why != "" {
		c.wrong = fmt.Sprintf("the statistics of %s from row %d on: %s", what, zone.Rows.Start, why)
	}
}

// cutText is from how many characters on a bound of a text in the log may be cut.
const cutText = 32

// loose says whether a bound in the log is no value of the file, though it holds.
func loose(bound, actual any) bool {
	if text, ok := bound.([]byte); ok && utf8.RuneCount(text) >= cutText {
		return false
	}
	n, ok := compare(bound, actual)
	return ok && n != 0
}
