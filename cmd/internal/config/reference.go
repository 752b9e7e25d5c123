package config

import (
	"bytes"
	"fmt"
	"strings"
)

// Reference returns the reference of all keys in Markdown, made from the list
// that drives reading them. cmd/flightsrv/docs/configuration.md is this text.
func Reference() []byte {
	var b bytes.Buffer
	b.WriteString("# Configuration of flightsrv\n\n" +
		"Made from the list of keys (`go test ./cmd/internal/config -run Reference -update`); do not edit.\n\n" +
		"Settings come from the defaults, a YAML file (`--config`), environment variables and flags; later ones win. A key with\n" +
		"dots lies in sections of the file: `limits.queue_wait` is `queue_wait` below `limits`. Unknown keys, and values that\n" +
		"cannot be acted on, stop the start. `flightsrv config` prints what holds and where it comes from.\n\n" +
		"Sizes take units (`64MiB`, `1GB`), durations need one (`10s`). Lists stand between commas in variables.\n\n" +
		"| key | default | variable | flag | meaning |\n| --- | --- | --- | --- | --- |\n")
	defaults := Defaults()
	for i := range keys {
		k := &keys[i]
		flag := "–"
		if k.flag != "" {
			flag = "`--" + k.flag + "`"
		}
		text := strings.ReplaceAll(k.text, "|", "\\|")
		if k.later {
			text += "; not supported yet, so only the default is accepted"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | `%s` | %s | %s |\n", k.name, shown(k.kind.show(&defaults)), k.env(), flag, text)
	}
	fmt.Fprintf(&b, "\nThe variables `%s` are flight-admin's and mean nothing here.\n", strings.Join(clientVariables, "`, `"))
	return b.Bytes()
}
