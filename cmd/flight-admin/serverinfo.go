package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"contrail/descriptors"
)

func newServerInfoCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "server-info",
		Short: "Tell the service's versions and limits",
		Example: `  flight-admin server-info
  flight-admin server-info --json`,
		Args: cobra.NoArgs,
		RunE: a.connected(func(ctx context.Context, s *session, _ []string) error {
			return a.answer(ctx, s, descriptors.ActionServerInfo, struct{}{}, decoded(func(i descriptors.ServerInfo) error {
				served := cmp.Or(i.Served, &descriptors.Served{}) // older servers do not count
				return a.printPairs("name", i.Name, "version", i.Version, "protocol_version", int64(i.ProtocolVersion), "format_version", i.FormatVersion,
					"max_receive_message_bytes", i.MaxReceiveMessageBytes, "max_send_message_bytes", i.MaxSendMessageBytes, "default_profile", i.DefaultProfile,
					"scans", served.Scans, "rows_served", served.Rows, "bytes_served", served.Bytes, "files_read", served.Files, "files_skipped", served.FilesSkipped)
			}))
		}),
	}
}
