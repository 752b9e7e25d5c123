package tabledef

import (
	"bytes"
	"fmt"
)

// Reference returns the documentation of all properties in Markdown, as it
// stands in docs/properties.md of tablecore.
func Reference() []byte {
	var b bytes.Buffer
	b.WriteString(`# Properties of a table

Generated from ` + "`tabledef.Registry`" + ` (` + "`go test ./tablecore/tabledef -update`" + `). They stand in the configuration of the table's
metadata, where every Delta reader sees them. ` + "`describe_table`" + ` shows those that were set by hand.

- **settable**: by ` + "`create_table`" + ` and ` + "`set_properties`" + `; ` + "`null`" + ` removes one, and then its default holds.
- **create only**: ` + "`create_table`" + ` has a field for it, and it stays.
- **managed**: Contrail alone writes it.

Every other key below ` + "`contrail.` and `delta.`" + ` is refused, in any case. All other keys are yours: up to ` + fmt.Sprint(maxProperties) + ` of them, keys of 1 to ` + fmt.Sprint(maxPropertyKey) + `
bytes without control characters and without blanks at the ends, values of up to ` + fmt.Sprint(maxPropertyValue) + ` bytes, both UTF-8. Setting what is set
already commits nothing.

A duration is a number and one of the units ` + "`ns us ms s m h d w`" + `. ` + "`" + KeyRetainSnapshot + "`" + ` is at least as long as the
server's tickets are good for.

| key | value | default | level | since | meaning |
| --- | --- | --- | --- | --- | --- |
`)
	for _, p := range Registry {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", p.Key, p.Kind, code(p.Default), p.Level, p.Since, p.Text)
	}
	return b.Bytes()
}

// code marks a text that is not empty as one to be typed.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
