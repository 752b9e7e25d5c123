package tableerr

import "fmt"

// MessageTooLarge reports a message, a row or a whole append over a size limit.
type MessageTooLarge struct {
	About
	LimitBytes int64
	Bytes      int64 // 0 when not known
	Msg        string
}

func (e *MessageTooLarge) Error() string { return e.Text() }

// Token implements Error.
func (e *MessageTooLarge) Token() Token { return TokenMessageTooLarge }

// Text implements Error.
func (e *MessageTooLarge) Text() string {
	if e.Msg != "" {
		return e.Msg
	}
	return fmt.Sprintf("a message is larger than %d bytes; send smaller batches or raise the limit", e.LimitBytes)
}

// Fields implements Error.
func (e *MessageTooLarge) Fields() []Field {
	own := []Field{{"limit_bytes", e.LimitBytes}}
	if e.Bytes > 0 {
		own = append(own, Field{"bytes", e.Bytes})
	}
	return e.fields(own...)
}

// TooManyStreams reports a connection with too many calls under way.
type TooManyStreams struct {
	About
	Limit int64
}

func (e *TooManyStreams) Error() string { return e.Text() }

// Token implements Error.
func (e *TooManyStreams) Token() Token { return TokenTooManyStreams }

// Text implements Error.
func (e *TooManyStreams) Text() string {
	return fmt.Sprintf("more than %d calls are under way; wait for some to end", e.Limit)
}

// Fields implements Error.
func (e *TooManyStreams) Fields() []Field { return e.fields(Field{"limit", e.Limit}) }

// QueueTimeout reports a request that waited too long for its turn.
type QueueTimeout struct {
	About
	WaitMS int64
}

func (e *QueueTimeout) Error() string { return e.Text() }

// Token implements Error.
func (e *QueueTimeout) Token() Token { return TokenQueueTimeout }

// Text implements Error.
func (e *QueueTimeout) Text() string {
	return fmt.Sprintf("the server is busy: no place was free for %d ms; repeat later", e.WaitMS)
}

// Fields implements Error.
func (e *QueueTimeout) Fields() []Field { return e.fields(Field{"wait_ms", e.WaitMS}) }

// Draining reports a server that takes no new work because it stops.
type Draining struct{ About }

func (e *Draining) Error() string { return e.Text() }

// Token implements Error.
func (e *Draining) Token() Token { return TokenDraining }

// Text implements Error.
func (e *Draining) Text() string { return "the server is stopping; repeat elsewhere or later" }

// Fields implements Error.
func (e *Draining) Fields() []Field { return e.fields() }

// TimedOut reports a client that was silent or too slow.
type TimedOut struct {
	About
	Wait    string // "first_message" or "stall"
	LimitMS int64
}

func (e *TimedOut) Error() string { return e.Text() }

// Token implements Error.
func (e *TimedOut) Token() Token { return TokenTimedOut }

// Text implements Error.
func (e *TimedOut) Text() string {
	return fmt.Sprintf("the client was silent for %d ms", e.LimitMS)
}

// Fields implements Error.
func (e *TimedOut) Fields() []Field {
	return e.fields(Field{"wait", e.Wait}, Field{"limit_ms", e.LimitMS})
}
