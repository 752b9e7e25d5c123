package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
)

// mustAsk refuses to go on where there is no terminal to ask on. what is what
// --yes would do without a question.
func (a *app) mustAsk(what string) error {
	if !isTerminal(a.stdin) {
		return usagef("there is no terminal to ask on; --yes %s without a question", what)
	}
	return nil
}

// confirm asks a question on the terminal. Any answer but yes is an error with
// the text refused.
func (a *app) confirm(ctx context.Context, question, refused string) error {
	fmt.Fprintf(a.stderr, "%s Type yes: ", question)
	answer, err := a.readLine(ctx)
	if err != nil {
		return err
	}
	if answer != "yes" {
		return usagef("%s", refused)
	}
	return nil
}

// readLine reads a line from standard input, until ctx ends.
func (a *app) readLine(ctx context.Context) (string, error) {
	type line struct {
		text string
		err  error
	}
	read := make(chan line, 1)
	go func() { // a read from a terminal cannot be cut; it ends with the process
		text, err := bufio.NewReader(a.stdin).ReadString('\n')
		if err == io.EOF {
			err = nil
		}
		read <- line{strings.TrimSpace(text), err}
	}()
	select {
	case l := <-read:
		return l.text, l.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
