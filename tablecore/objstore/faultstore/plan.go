package faultstore

import (
	"errors"
	"fmt"
	"sync"

	"contrail/tablecore/objstore"
)

// ErrInjected is the cause of an injected error when the plan names no other.
var ErrInjected = errors.New("injected error")

// ErrStopped is what every operation returns once the store has stopped.
var ErrStopped = errors.New("the store was stopped")

// Kind says what happens at the operation that a plan picks.
type Kind int

// The kinds of fault. Of a put, a Commit and a Trash, "error" with the effect done, or not known, is an
// *objstore.UnknownOutcomeError; of any other operation it is a plain error.
const (
	// None lets the operation pass.
	None Kind = iota
	// Error makes the operation fail without effect.
	Error
	// ErrorAfterEffect lets the operation have its effect and then fail.
	ErrorAfterEffect
	// Unknown makes the operation fail without effect, saying that its outcome is unknown.
	Unknown
	// Stop stops the store before the operation: it and all later ones fail without effect, as if the process had died.
	Stop
	// StopAfterEffect stops the store when the operation has had its effect.
	StopAfterEffect
)

// Kinds returns all kinds but None, for tests that walk them.
func Kinds() []Kind { return []Kind{Error, ErrorAfterEffect, Unknown, Stop, StopAfterEffect} }

// String returns the kind's name.
func (k Kind) String() string {
	names := [...]string{"none", "error", "error after effect", "unknown", "stop", "stop after effect"}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("kind %d", int(k))
	}
	return names[k]
}

// stops reports whether the store is dead after a fault of this kind.
func (k Kind) stops() bool { return k == Stop || k == StopAfterEffect }

// takesEffect reports whether the operation is done nevertheless.
func (k Kind) takesEffect() bool { return k == None || k == ErrorAfterEffect || k == StopAfterEffect }

// Plan is one fault. The zero value is none.
type Plan struct {
	// At is the number of the operation that is hit, from 0, among those that Match picks.
	At int
	// Kind is what happens to it.
	Kind Kind
	// Err is the cause given in errors of the kinds Error, ErrorAfterEffect and Unknown; nil is ErrInjected.
	Err error
	// Match picks the operations that are counted; nil picks all. It must not call the store.
	Match func(op objstore.Op, key string) bool
	// Before, if not nil, is called before the operation at At, in the goroutine of its caller; it may use the wrapped
	// store to do what a rival would do at this moment.
	Before func(op objstore.Op, key string)
}

// cause returns the error that an injected one wraps.
func (p Plan) cause() error {
	if p.Err != nil {
		return p.Err
	}
	return ErrInjected
}

// state is what a store, its sub-stores, readers and writers share.
type state struct {
	mu      sync.Mutex
	plan    Plan
	ops     int
	trace   []string
	stopped bool
}

// step counts one operation and says what is to happen to it.
func (s *state) step(op objstore.Op, key string) (Plan, error) {
	_, plan, err := s.steps(op, []string{key})
	return plan, err
}

// steps counts one operation for each key. It returns the index of the one that is hit, with the plan, or len(keys) and
// a plan without a fault.
func (s *state) steps(op objstore.Op, keys []string) (int, Plan, error) {
	hit, plan, err := s.count(op, keys)
	if err == nil && hit < len(keys) && plan.Before != nil {
		plan.Before(op, keys[hit])
	}
	return hit, plan, err
}

func (s *state) count(op objstore.Op, keys []string) (int, Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return 0, Plan{}, ErrStopped
	}
	hit := len(keys)
	for i, key := range keys {
		if s.plan.Match != nil && !s.plan.Match(op, key) {
			continue
		}
		if s.ops == s.plan.At {
			hit = i
		}
		s.ops++
		s.trace = append(s.trace, fmt.Sprintf("%s %s", op, key))
	}
	if hit == len(keys) {
		return hit, Plan{}, nil
	}
	s.stopped = s.plan.Kind.stops()
	return hit, s.plan, nil
}

// failure returns the error of an operation that was hit. publishes says that it is one whose outcome can be unknown.
func (p Plan) failure(op objstore.Op, key string, publishes bool) error {
	switch {
	case p.Kind.stops():
		return ErrStopped
	case publishes && (p.Kind == ErrorAfterEffect || p.Kind == Unknown):
		return &objstore.UnknownOutcomeError{Key: key, Err: p.cause()}
	}
	return &objstore.OpError{Op: op, Key: key, Err: p.cause()}
}
