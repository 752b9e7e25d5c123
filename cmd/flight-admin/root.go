package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// verbs makes the commands, in the order in which help lists them.
var verbs = []func(*app) *cobra.Command{
	newCreateCommand,
	newAppendCommand,
	newUpdateCommand,
	newScanCommand,
	newLatestCommand,
	newGapsCommand,
	newTablesCommand,
	newDescribeCommand,
	newHistoryCommand,
	newFilesCommand,
	newEntitiesCommand,
	newAddColumnsCommand,
	newConfigCommand,
	newCheckpointCommand,
	newOptimizeCommand,
	newUpgradeCommand,
	newRollbackCommand,
	newVacuumCommand,
	newCheckCommand,
	newDropCommand,
	newServerInfoCommand,
	newVersionCommand,
}

const longHelp = `flight-admin works with Contrail's tables: a running service (--server), or a
directory of tables without any service (--warehouse). Every command does the same
in both.

A server is HOST:PORT or a URL, grpc://HOST:PORT or grpc+tls://HOST:PORT. Without
--server and --warehouse the variables CONTRAIL_SERVER and CONTRAIL_WAREHOUSE hold,
and without those 127.0.0.1:8815.

A token goes out as a bearer token: over TLS, or in plain text to this machine only.

With --json a command prints one JSON document with the protocol's field names, and
an error is the object {"error":{"token",…,"exit_status"}} on standard error.
Progress is shown on a terminal, on standard error.`

// app is one run of the program.
type app struct {
	surroundings
	connection
	json       bool
	noProgress bool
}

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "flight-admin",
		Short:         "Create, fill, read and look after time-series tables",
		Long:          longHelp + "\n\n" + exitHelp(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	flags := root.PersistentFlags()
	a.addConnectionFlags(flags)
	flags.BoolVar(&a.json, "json", false, "print one JSON document; errors as JSON on standard error")
	flags.BoolVar(&a.noProgress, "no-progress", false, "show no progress on a terminal either")
	for _, verb := range verbs {
		root.AddCommand(verb(a))
	}
	return root
}

// exitHelp lists the exit statuses.
func exitHelp() string {
	var b strings.Builder
	b.WriteString("Exit status:\n")
	for _, s := range exitStatuses {
		fmt.Fprintf(&b, "  %3d  %s\n", s.code, s.meaning)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// connected makes a command's function of one that needs a connection.
func (a *app) connected(do func(ctx context.Context, s *session, args []string) error) func(*cobra.Command, []string) error {
	return a.connectedWith(connectOptions{}, do)
}

func (a *app) connectedWith(o connectOptions, do func(ctx context.Context, s *session, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		ctx := cmd.Context()
		s, err := a.connect(ctx, o)
		if err != nil {
			return ran{err}
		}
		defer func() {
			if closeErr := s.close(); err == nil && closeErr != nil {
				err = ran{closeErr}
			}
		}()
		if err := do(ctx, s, args); err != nil {
			if ctx.Err() != nil {
				err = interrupted(ctx, err)
			}
			return ran{err}
		}
		return nil
	}
}
