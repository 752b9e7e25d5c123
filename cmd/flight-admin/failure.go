package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"

	"contrail/cmd/internal/flightclient"
	"contrail/cmd/internal/rowfile"
	"contrail/descriptors"
	"contrail/tablecore/tableerr"
)

// failure is an error as a person or a script sees it.
type failure struct {
	token  string
	text   string
	line   string // the whole line
	fields []flightclient.Field
	hint   string
}

// usageError is a command line that cannot be meant, or input that cannot be
// used; both are INVALID.
type usageError struct {
	msg   string
	hint  string
	cause error
}

func (e *usageError) Error() string { return e.msg }

// Unwrap returns the cause.
func (e *usageError) Unwrap() error { return e.cause }

// usagef reports something wrong with what the user gave.
func usagef(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &usageError{msg: err.Error(), cause: errors.Unwrap(err)}
}

// ran marks the errors of a command that ran; all others are cobra's, about
// the command line.
type ran struct{ error }

// Unwrap returns the command's own error.
func (r ran) Unwrap() error { return r.error }

const helpHint = "flight-admin --help, or --help behind a command, tells what can be said"

// failureOf tells what an error is. Errors of calls have their token; the rest
// is told apart here.
func failureOf(err error) failure {
	var call *flightclient.Error
	var usage *usageError
	var input *rowfile.Error
	var lost *lostError
	var found *foundError
	switch {
	case flightclient.Unclear(err):
		return ours(tokenAnswerLost, "all rows were sent and the answer was lost: they may be stored or not",
			"run the same command again: with its request id the rows are stored once")
	case errors.As(err, &lost):
		return ours(tokenAnswerLost, err.Error(), "look at the list of tables, or the table's history, before you repeat it")
	case errors.As(err, &found):
		return ours(tokenFindings, found.Error(), "--repair mends derived data; rows come back from a copy of the files, or by a rollback to a version that does not have them")
	case errors.Is(err, context.Canceled):
		return ours(tokenInterrupted, "interrupted; nothing was changed", "")
	case errors.As(err, &call):
		return failureOfCall(call)
	case errors.As(err, &usage):
		return ours("INVALID", err.Error(), usage.hint)
	case errors.Is(err, errNoWarehouse):
		return ours(tokenNoWarehouse, err.Error(), "flight-admin create makes the directory with its first table")
	case errors.Is(err, syscall.ENOSPC): // of a file of ours; the service tells its own
		return ours(string(tableerr.TokenStorageFull), err.Error(), "make room on the disk, then repeat it")
	case errors.As(err, &input), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return ours("INVALID", err.Error(), "")
	case !errors.As(err, new(ran)):
		return ours("INVALID", err.Error(), helpHint)
	}
	return ours(tokenInternal, err.Error(), "")
}

// ours is a failure that no service has told.
func ours(token, text, hint string) failure {
	text = oneLine(text)
	return failure{token: token, text: text, line: token + ": " + text, hint: hint}
}

func failureOfCall(e *flightclient.Error) failure {
	if e.Token != "" {
		info, _ := descriptors.ErrorInfoOf(e.Token)
		return failure{token: e.Token, text: e.Text, line: oneLine(e.Message), fields: e.Fields, hint: info.Remedy}
	}
	switch e.Code {
	case codes.Canceled:
		return ours(tokenInterrupted, "interrupted; nothing was changed", "")
	case codes.Unauthenticated:
		return ours(tokenUnauthenticated, e.Text, "give a token with --token-file or CONTRAIL_TOKEN")
	case codes.PermissionDenied:
		return ours(tokenDenied, e.Text, "ask for a token whose role allows this")
	case codes.Unavailable, codes.DeadlineExceeded:
		return ours(tokenUnreachable, e.Text, "start a service (flightsrv), say where it is (--server), or work on a directory (--warehouse)")
	}
	return ours(tokenInternal, e.Code.String()+": "+e.Text, "")
}

// oneLine makes one line of a text, without what a terminal would obey.
func oneLine(text string) string { return printable(strings.Join(strings.Fields(text), " ")) }

// finish reports an error, if any, and returns the exit status.
func (a *app) finish(err error) int {
	if err == nil {
		return exitOK
	}
	f := failureOf(err)
	a.addIncident(&f)
	code := exitOf(f.token)
	if a.json {
		fmt.Fprintf(a.stderr, "{\"error\":%s}\n", f.json())
		return code
	}
	fmt.Fprintln(a.stderr, "flight-admin:", f.line)
	if f.hint != "" {
		fmt.Fprintln(a.stderr, "  what to do:", f.hint)
	}
	return code
}

// json returns the failure as an object, fields as the service gave them.
func (f failure) json() json.RawMessage {
	var b bytes.Buffer
	put := func(key string, value any) {
		raw, err := json.Marshal(value)
		if err != nil {
			raw = []byte(`"?"`)
		}
		fmt.Fprintf(&b, ",%q:%s", key, raw)
	}
	put("text", f.text)
	for _, field := range f.fields {
		put(field.Key, field.Value)
	}
	if f.hint != "" {
		put("hint", f.hint)
	}
	put("exit_status", exitOf(f.token))
	return fmt.Appendf(nil, "{\"token\":%q%s}", f.token, b.Bytes())
}
