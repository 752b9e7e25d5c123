package descriptors

import (
	"bytes"
	"fmt"
)

// Reference returns the reference of all requests in Markdown, made from the
// tables that drive decoding. docs/requests.md is this text.
func Reference() []byte {
	var b bytes.Buffer
	b.WriteString("# Requests\n\n" +
		"Made from the field tables of package `descriptors` (`go test ./descriptors -run Reference -update`); do not edit.\n\n" +
		"Every request is one JSON object. Unknown and repeated keys, values of another kind and trailing bytes are\n" +
		"INVALID, naming the key's path. `null` means left out. An `int64` is a number or decimal text. A `value` is\n" +
		"what the column's type takes: a number, or text such as a time.\n")
	section(&b, "append (DoPut)", "Appends the stream's rows as one commit.", describe(appendFields))
	section(&b, "update_rows (DoPut)", "Gives the stored rows that the stream names by their keys the stream's values, as one commit.", describe(updateRowsFields))
	section(&b, "stage (DoPut)", "Checks, sorts and writes the stream's rows like append and commits nothing; answers with a token for commit_staged and abort_staged.", describe(stageFields))
	section(&b, "end marker (metadata of the last message of a put with `\"end\":\"marker\"`)", "Ends the stream.", describe(markerFields))
	section(&b, "scan (GetFlightInfo, GetSchema, ticket of DoGet)", "Reads rows by column, entity and index range.", describe(scanFields))
	section(&b, "explain (GetFlightInfo, GetSchema, ticket of DoGet)", "One row a live file, by path: what a scan with these fields does with it, and why.", describe(explainFields))
	section(&b, "history (GetFlightInfo, GetSchema, ticket of DoGet)", "The versions of a table, newest first.", describe(historyFields))
	section(&b, "files (GetFlightInfo, GetSchema, ticket of DoGet)", "The data files of a version, by path.", describe(filesFields))
	section(&b, "entities (GetFlightInfo, GetSchema, ticket of DoGet)", "The entities of a version, with the intervals that hold a row.", describe(entitiesFields))
	section(&b, "tables (GetFlightInfo, GetSchema, ticket of DoGet)", "All tables, by name.", describe(tablesFields))
	section(&b, "latest (GetFlightInfo, GetSchema, ticket of DoGet)", "The newest row of each entity, by entity.", describe(latestFields))
	section(&b, "coverage (GetFlightInfo, GetSchema, ticket of DoGet)", "Which intervals have rows, by entity and start.", describe(coverageFields))
	for _, a := range Actions() {
		section(&b, a.Name+" (DoAction)", a.Text, a.Fields)
	}
	return b.Bytes()
}

func section(b *bytes.Buffer, title, text string, fields []Field) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", title, text)
	if len(fields) == 0 {
		b.WriteString("\nIt has no field; the body is empty or `{}`.\n")
		return
	}
	b.WriteString("\n| field | type | required | meaning |\n| --- | --- | --- | --- |\n")
	for _, f := range fields {
		required := ""
		if f.Required {
			required = "yes"
		}
		fmt.Fprintf(b, "| `%s` | `%s` | %s | %s |\n", f.Name, f.Type, required, f.Text)
	}
}
