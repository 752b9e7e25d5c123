// Command flightsrv serves a warehouse of time-series tables over Arrow Flight.
//
// It gathers its configuration (package config), opens the warehouse on the
// local disk, starts the Flight service of package flightsrv and an admin
// listener on loopback, and stops them in order when it is told to. It holds no
// rule of tables and none of the protocol.
//
// Exit status: 0 after a stop in which every running call could finish, 1 when
// it could not start or go on, 2 for arguments or a configuration that it
// refuses, 3 when calls were cut at the end of the drain time or by a second
// signal.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit statuses.
const (
	exitClean   = 0
	exitFailed  = 1
	exitRefused = 2
	exitCut     = 3
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	end := leaveRoom()
	status := run(os.Args[1:], surroundings{environ: os.Environ(), stdout: os.Stdout, stderr: os.Stderr, signals: signals})
	end()
	os.Exit(status)
}

// surroundings are what a run takes from its process.
type surroundings struct {
	environ        []string
	stdout, stderr io.Writer
	signals        chan os.Signal // the first drains, the second cuts
}

// statusError is an error with the exit status it leads to.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }

func (e *statusError) Unwrap() error { return e.err }

// run executes one command line and returns its exit status.
func run(args []string, around surroundings) int {
	root := newRootCommand(around)
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return exitClean
	}
	fmt.Fprintln(around.stderr, "flightsrv:", err)
	var withStatus *statusError
	if errors.As(err, &withStatus) {
		return withStatus.status
	}
	fmt.Fprintln(around.stderr, "flightsrv --help tells what can be said")
	return exitRefused // only the command line's own errors carry no status
}
