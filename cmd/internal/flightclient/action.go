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
		var m struct {
			Progress *Progress       `json:"progress"`
			Result   json.RawMessage `json:"result"`
		}
		if err := json.Unmarshal(message.GetBody(), &m); err != nil {
			return nil, fmt.Errorf("the service's answer to %s is not understood: %w", name, err)
		}
		if m.Progress != nil && tell != nil {
			tell(*m.Progress)
		}
		if m.Result != nil {
			result = m.Result
		}
	}
	if result == nil {
		return nil, errors.Join(fmt.Errorf("action %s", name), errStreamEnded)
	}
	return result, nil
}
