package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"contrail/descriptors"
)

const gapsLong = `Tell which intervals of each entity have no row, or have one. An interval is as wide as
the table's granularity.

Without --start and --end the range goes from the table's first row to its last one,
so that what lies before and behind all rows is no gap.

  missing      a line for each run of intervals without rows (default)
  covered      a line for each run of intervals with rows
  summary      a line for each entity, with counts and the longest gap
  last-window  the newest run of --n intervals that all have a row

--plot draws a bar for each entity: full blocks where every interval has a row, light
ones where some have, dots where none has.`

// gapKinds are the kinds of --kind as the protocol spells them.
var gapKinds = map[string]string{
	"missing": descriptors.CoverageMissing, "covered": descriptors.CoverageCovered,
	"summary": descriptors.CoverageSummary, "last-window": descriptors.CoverageLastWindow,
}

func newGapsCommand(a *app) *cobra.Command {
	var sel selectFlags
	var kind string
	var n int64
	var plot bool
	var out outputFlags
	cmd := &cobra.Command{
		Use:   "gaps TABLE",
		Short: "Tell which intervals have no row",
		Long:  gapsLong,
		Example: `  flight-admin gaps weather --entity origin=EWR
  flight-admin gaps weather --kind summary --start 2013-07-01T00:00:00Z --end 2013-08-01T00:00:00Z
  flight-admin gaps weather --kind last-window --n 24 --json
  flight-admin gaps weather --plot`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTable(false),
	}
	flags := cmd.Flags()
	sel.addEntities(flags)
	sel.addRange(flags)
	flags.StringVar(&kind, "kind", "missing", "missing, covered, summary or last-window")
	flags.Int64Var(&n, "n", 0, "intervals of --kind last-window")
	flags.BoolVar(&plot, "plot", false, "draw a bar for each entity")
	sel.at.add(flags)
	out.add(flags)
	cmd.RunE = a.connected(func(ctx context.Context, s *session, args []string) error {
		word, ok := gapKinds[strings.ReplaceAll(kind, "_", "-")]
		if !ok {
			return usagef("--kind is missing, covered, summary or last-window, not %q", kind)
		}
		if plot && (a.json || out.format != "" || out.path != "" || flags.Changed("kind")) {
			return usagef("--plot draws on standard output, and goes without --kind, --json, --format and --output")
		}
		r, err := a.coverageRequest(ctx, s, args[0], &sel)
		if err != nil {
			return err
		}
		if plot {
			return a.plotCoverage(ctx, s, r)
		}
		r.Kind, r.N = word, optionalNumber(cmd, "n", n)
		command, err := r.Encode()
		if err != nil {
			return err
		}
		return a.read(ctx, s, command, reading{table: args[0], name: word, out: out})
	})
	return cmd
}

// coverageRequest fills in the range and the version that were left out.
func (a *app) coverageRequest(ctx context.Context, s *session, table string, f *selectFlags) (descriptors.Coverage, error) {
	d, err := a.describe(ctx, s, table, f.at)
	if err != nil {
		return descriptors.Coverage{}, err
	}
	v, err := a.selection(ctx, s, table, f)
	if err != nil {
		return descriptors.Coverage{}, err
	}
	r := descriptors.Coverage{Table: table, Entities: v.entities, Start: v.start, End: v.end, Version: &d.Version}
	if r.Start == nil && isValue(d.IndexMin) {
		r.Start = d.IndexMin
	}
	if r.End == nil && isValue(d.IndexMax) {
		r.End = behind(d.IndexMax)
	}
	return r, nil
}

func isValue(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// behind is an index value just behind another one, also where the column ends
// with that: ranges do not include their end.
func behind(value json.RawMessage) json.RawMessage {
	if moment, zone, ok := indexTime(value); ok {
		return json.RawMessage(strconv.Quote(indexText(moment.Add(1)) + zone))
	}
	if n, ok := new(big.Int).SetString(string(value), 10); ok {
		return json.RawMessage(n.Add(n, big.NewInt(1)).String())
	}
	return nil
}

// afterYear is the layout of what stands behind the year of an index value.
const afterYear = "-01-02T15:04:05.999999999"

// indexTime reads an index value that is a time, with its zone: Z or none. Years
// that four digits cannot tell have a sign and at least six.
func indexTime(value json.RawMessage) (moment time.Time, zone string, ok bool) {
	var text string
	if json.Unmarshal(value, &text) != nil || len(text) < 4 {
		return moment, "", false
	}
	text, utc := strings.CutSuffix(text, "Z")
	if utc {
		zone = "Z"
	}
	digits := strings.IndexByte(text[1:], '-') + 1
	year, err := strconv.Atoi(text[:max(digits, 0)])
	if err != nil {
		return moment, "", false
	}
	rest, err := time.Parse("2006"+afterYear, "2000"+text[digits:]) // a leap year
	if err != nil {
		return moment, "", false
	}
	moment = time.Date(year, rest.Month(), rest.Day(), rest.Hour(), rest.Minute(), rest.Second(), rest.Nanosecond(), time.UTC)
	return moment, zone, true
}

// indexText is a time as indexTime reads it, without a zone.
func indexText(moment time.Time) string {
	year := fmt.Sprintf("%04d", moment.Year())
	if moment.Year() < 0 || moment.Year() > 9999 {
		year = fmt.Sprintf("%+07d", moment.Year())
	}
	return year + moment.Format(afterYear)
}
