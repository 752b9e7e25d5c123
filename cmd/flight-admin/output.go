package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"contrail/cmd/internal/flightclient"
)

// printJSON writes a result object as the command's one document.
func (a *app) printJSON(result json.RawMessage) error {
	var b bytes.Buffer
	if err := json.Indent(&b, result, "", "  "); err != nil {
		return fmt.Errorf("the service's answer is no JSON: %w", err)
	}
	b.WriteByte('\n')
	_, err := a.stdout.Write(b.Bytes())
	return err
}

// printf writes a line for people.
func (a *app) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(a.stdout, format, args...)
	return err
}

// printDocument writes the command's one document.
func (a *app) printDocument(document any) error {
	raw, err := json.Marshal(document)
	if err != nil {
		return err
	}
	return a.printJSON(raw)
}

// report prints what the command itself has found out: as JSON, or as show does.
func (a *app) report(document any, show func() error) error {
	if a.json {
		return a.printDocument(document)
	}
	return show()
}

// answer runs an action that changes nothing, and prints its result: as JSON,
// or as show does.
func (a *app) answer(ctx context.Context, s *session, action string, body any, show func(json.RawMessage) error) error {
	result, err := a.act(ctx, s, action, body)
	if err != nil {
		return err
	}
	return a.print(result, show)
}

// apply is answer for an action that changes something.
func (a *app) apply(ctx context.Context, s *session, action string, body any, show func(json.RawMessage) error) error {
	result, err := a.change(ctx, s, action, body)
	if err != nil {
		return err
	}
	return a.print(result, show)
}

func (a *app) print(result json.RawMessage, show func(json.RawMessage) error) error {
	if a.json {
		return a.printJSON(result)
	}
	return show(result)
}

// act runs an action and shows its progress.
func (a *app) act(ctx context.Context, s *session, action string, body any) (json.RawMessage, error) {
	return a.watch(ctx, s, action, body, func(string, json.RawMessage) error { return nil })
}

// watch is act for an action that sends messages of its own before its result.
func (a *app) watch(ctx context.Context, s *session, action string, body any, pass func(kind string, message json.RawMessage) error) (json.RawMessage, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	progress := &steps{app: a}
	result, err := s.Watch(ctx, action, raw, progress.tell, pass)
	progress.finish(err != nil)
	return result, err
}

// change is act for an action that changes something: an answer that was lost
// on the way leaves open whether it happened.
func (a *app) change(ctx context.Context, s *session, action string, body any) (json.RawMessage, error) {
	result, err := a.act(ctx, s, action, body)
	var call *flightclient.Error
	if errors.As(err, &call) && call.Token == "" && lostAnswer(call) {
		return nil, &lostError{cause: err}
	}
	return result, err
}

// lostAnswer tells failures of the transport after a request may have gone out.
func lostAnswer(e *flightclient.Error) bool {
	switch e.Code {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Unknown, codes.Internal:
		return !strings.HasPrefix(e.Message, "connection error:")
	}
	return false
}

// lostError is a change of which it is not known whether it happened.
type lostError struct{ cause error }

func (e *lostError) Error() string { return "the answer was lost: it may have happened or not" }

// Unwrap returns what was wrong with the call.
func (e *lostError) Unwrap() error { return e.cause }

// decoded reads a result for show.
func decoded[T any](show func(T) error) func(json.RawMessage) error {
	return func(result json.RawMessage) error {
		var v T
		if err := json.Unmarshal(result, &v); err != nil {
			return fmt.Errorf("the service's answer is not understood: %w", err)
		}
		return show(v)
	}
}

// printPairs writes names and values, one pair a line. Values that are nil are
// left out.
func (a *app) printPairs(pairs ...any) error {
	t := newTextTable(a.stdout, []string{"", ""}, []bool{false, false})
	for i := 0; i < len(pairs); i += 2 {
		if text, ok := pairText(pairs[i+1]); ok {
			if err := t.add([]string{pairs[i].(string), text}); err != nil {
				return err
			}
		}
	}
	return t.Close()
}

func pairText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, v != ""
	case *string:
		if v == nil {
			return "", false
		}
		return *v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	case json.RawMessage:
		text := string(v)
		if unquoted := ""; json.Unmarshal(v, &unquoted) == nil {
			text = unquoted
		}
		return text, len(v) > 0 && text != "null" && text != ""
	}
	return fmt.Sprint(v), true
}

// plural is a count with its noun.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatInt(n, 10) + " " + noun + "s"
}
