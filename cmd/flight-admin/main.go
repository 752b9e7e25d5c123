// Command flight-admin works with Contrail's tables from a command line: it
// creates, fills, reads, lists and drops them.
//
// It speaks the protocol of package descriptors and nothing else. With --server
// it talks to a running service; with --warehouse it serves the directory to
// itself (package serving) and talks to that, so every command has one way of
// working and gives the same output and the same errors in both.
//
// One file holds one verb. exit.go says which exit status an error leads to.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], surroundings{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Getenv}))
}

// surroundings are what a run takes from its process.
type surroundings struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        func(name string) string
}

// run executes one command line and returns its exit status.
func run(ctx context.Context, args []string, around surroundings) int {
	a := &app{surroundings: around}
	root := newRootCommand(a)
	root.SetArgs(args)
	return a.finish(root.ExecuteContext(ctx))
}
