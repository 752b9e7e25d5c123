package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"contrail/descriptors"
	"contrail/tablecore/tabledef"
)

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Tell the versions of this program",
		Long:  "Tell the versions of this program, and of the table format and the protocol that it speaks. server-info tells the service's.",
		Example: `  flight-admin version
  flight-admin version --json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			document := struct {
				Version         string `json:"version"`
				FormatVersion   string `json:"format_version"`
				ProtocolVersion int    `json:"protocol_version"`
				Go              string `json:"go"`
			}{tabledef.SoftwareVersion, tabledef.CurrentFormat.String(), descriptors.ProtocolVersion, runtime.Version()}
			err := a.report(document, func() error {
				return a.printf("contrail %s, table format %s, protocol %d, %s %s/%s\n", document.Version, document.FormatVersion,
					document.ProtocolVersion, document.Go, runtime.GOOS, runtime.GOARCH)
			})
			if err != nil {
				return ran{err}
			}
			return nil
		},
	}
}
