// Package logging makes the daemon's logger. It and the daemon are the only
// importers of zerolog: the table core and the Flight service tell what happens
// through functions.
package logging

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"
)

// timeFormat is how entries tell their time, which is in UTC.
const timeFormat = "2006-01-02T15:04:05.000Z"

// New returns a logger that writes entries of at least level (trace, debug,
// info, warn or error) to w: one line for people in format console, in colours
// if w is a terminal, and one JSON object a line in format json. The logger is
// safe for concurrent use if w is; it writes an entry by one call.
func New(w io.Writer, level, format string) (zerolog.Logger, error) {
	least, err := zerolog.ParseLevel(level)
	if err != nil || level == "" {
		return zerolog.Nop(), fmt.Errorf("log level %q is none of trace, debug, info, warn, error", level)
	}
	switch format {
	case "json":
	case "console":
		w = zerolog.ConsoleWriter{Out: w, NoColor: !isTerminal(w), FormatTimestamp: func(v any) string { return fmt.Sprint(v) }}
	default:
		return zerolog.Nop(), fmt.Errorf("log format %q is neither console nor json", format)
	}
	return zerolog.New(w).Level(least).Hook(stamp{}), nil
}

// stamp puts the time into an entry, in our format whatever zerolog's global
// variables say.
type stamp struct{}

// Run implements zerolog.Hook.
func (stamp) Run(e *zerolog.Event, _ zerolog.Level, _ string) {
	e.Str(zerolog.TimestampFieldName, time.Now().UTC().Format(timeFormat))
}

// isTerminal tells whether w is a character device.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
