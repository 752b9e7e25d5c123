package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"contrail/cmd/internal/config"
	"contrail/cmd/internal/logging"
	"contrail/descriptors"
	"contrail/tablecore/tabledef"
)

const longHelp = `flightsrv serves a warehouse of time-series tables over Arrow Flight.

Settings come from the defaults, a YAML file (--config), environment variables
and flags; later ones win. A variable is named CONTRAIL_ and the key in capitals,
with two underscores between levels. Unknown keys and values that cannot be acted
on stop the start; "flightsrv config" prints what holds and where it comes from.

SIGTERM and SIGINT drain: no new work is taken, running calls may finish within
drain_grace, then they are cut. A second signal cuts at once.

Exit status: 0 after a clean stop, 1 when the server could not start or go on,
2 for refused arguments or configuration, 3 when calls were cut.`

const examples = `  flightsrv
  flightsrv --listen 127.0.0.1:0 --warehouse /srv/tables --ready-file /run/flightsrv.address
  flightsrv --config contrail.yaml --log-format json
  CONTRAIL_LIMITS__STALL_TIMEOUT=10s flightsrv --admin-listen ""
  flightsrv config --config contrail.yaml --json`

func newRootCommand(around surroundings) *cobra.Command {
	var configFile, readyFile string
	root := &cobra.Command{
		Use:           "flightsrv",
		Short:         "Serve time-series tables over Arrow Flight",
		Long:          longHelp,
		Example:       examples,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded, err := load(cmd, configFile, around)
			if err != nil {
				return err
			}
			log, err := logging.New(around.stderr, loaded.Log.Level, loaded.Log.Format)
			if err != nil {
				return &statusError{exitRefused, err}
			}
			d := daemon{config: loaded.Config, log: log, readyFile: readyFile, signals: around.signals}
			return d.run(cmd.Context())
		},
	}
	root.SetOut(around.stdout)
	root.SetErr(around.stderr)
	root.CompletionOptions.DisableDefaultCmd = true
	addConfigFlags(root, &configFile)
	root.Flags().StringVar(&readyFile, "ready-file", "", "write the listen address into this file once calls are accepted")
	root.AddCommand(newConfigCommand(around), newVersionCommand(around))
	return root
}

func addConfigFlags(cmd *cobra.Command, configFile *string) {
	cmd.Flags().StringVar(configFile, "config", "", "YAML file with settings")
	config.AddFlags(cmd.Flags())
}

func load(cmd *cobra.Command, configFile string, around surroundings) (*config.Loaded, error) {
	loaded, err := config.Load(config.Sources{File: configFile, Environ: around.environ, Flags: cmd.Flags()})
	if err != nil {
		return nil, &statusError{exitRefused, err}
	}
	return loaded, nil
}

func newConfigCommand(around surroundings) *cobra.Command {
	var configFile string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Print the effective settings and where each comes from",
		Long:    "Print the effective settings and where each comes from. Passwords in addresses are masked.\nThe checks are those of the start: what stops the start stops this command with exit status 2.",
		Example: "  flightsrv config --config contrail.yaml\n  flightsrv config --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded, err := load(cmd, configFile, around)
			if err != nil {
				return err
			}
			write := loaded.WriteText
			if asJSON {
				write = loaded.WriteJSON
			}
			if err := write(around.stdout); err != nil {
				return &statusError{exitFailed, fmt.Errorf("print the settings: %w", err)}
			}
			return nil
		},
	}
	addConfigFlags(cmd, &configFile)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list of key, value and source")
	return cmd
}

func newVersionCommand(around surroundings) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the software, the table format and the protocol",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(around.stdout, "contrail %s, table format %s, protocol %d, %s %s/%s\n",
				tabledef.SoftwareVersion, tabledef.CurrentFormat, descriptors.ProtocolVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if err != nil {
				return &statusError{exitFailed, fmt.Errorf("print the version: %w", err)}
			}
			return nil
		},
	}
}
