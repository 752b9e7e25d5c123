package flightclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/flight"
)

// Progress is how far a long action has come. Total is nil when unknown.
type Progress struct {
	Step  string `json:"step"`
	Done  int64  `json:"done"`
	Total *int64 `json:"total"`
	Unit  string `json:"unit"`
}

// Action runs an action and returns its result object. Before it ends, tell is
// called with each message of progress, unless it is nil. Messages of other
// kinds are passed over.
func (c *Client) Action(ctx context.Context, name string, body []byte, tell func(Progress)) (json.RawMessage, error) {
	return c.Watch(ctx, name, body, tell, func(string, json.RawMessage) error { return nil })
}

// Watch is Action, and gives messages of other kinds to pass, whose error ends
// the call.
func (c *Client) Watch(ctx context.Context, name string, body []byte, tell func(Progress), pass func(kind string, message json.RawMessage) error) (json.RawMessage, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.flight.DoAction(ctx, &flight.Action{Type: name, Body: body})
	if err != nil {
		return nil, failed(err, nil)
	}
	var result json.RawMessage
	for {
		message, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, failed(err, stream.Trailer())
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(message.GetBody(), &members); err != nil {
			return nil, notUnderstood(name, err)
		}
		for kind, content := range members {
			switch kind {
			case "result":
				result = content
			case "progress":
				err = tellProgress(name, content, tell)
			default:
				err = pass(kind, content)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if result == nil {
		return nil, errors.Join(fmt.Errorf("action %s", name), errStreamEnded)
	}
	return result, nil
}

func tellProgress(name string, content json.RawMessage, tell func(Progress)) error {
	var p Progress
	if err := json.Unmarshal(content, &p); err != nil {
		return notUnderstood(name, err)
	}
	if tell != nil {
		tell(p)
	}
	return nil
}

func notUnderstood(name string, err error) error {
	return fmt.Errorf("the service's answer to %s is not understood: %w", name, err)
}
