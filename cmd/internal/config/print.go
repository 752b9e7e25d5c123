package config

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"
)

// Setting is one effective value, secrets masked.
type Setting struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Source string `json:"source"`
}

// Settings lists the effective values in the order of the documented file.
func (l *Loaded) Settings() []Setting {
	list := make([]Setting, len(keys))
	for i := range keys {
		k := &keys[i]
		list[i] = Setting{k.name, maskValue(k.kind.show(&l.Config)), l.source(k)}
	}
	return list
}

// WriteText prints the effective values as a table for people.
func (l *Loaded) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tVALUE\tSOURCE")
	for _, s := range l.Settings() {
		fmt.Fprintf(t, "%s\t%s\t%s\n", s.Key, shown(s.Value), s.Source)
	}
	return t.Flush()
}

// WriteJSON prints the effective values as a JSON list of Setting.
func (l *Loaded) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(l.Settings())
}

// credentials matches the password of a URL's user.
var credentials = regexp.MustCompile(`(://[^/?#\s@:]*):[^/?#\s@]*@`)

// mask hides passwords in a text. Everything else that is secret lies in files
// of its own, which keys only name.
func mask(s string) string { return credentials.ReplaceAllString(s, "$1:***@") }

func maskValue(v any) any {
	switch v := v.(type) {
	case string:
		return mask(v)
	case []string:
		masked := make([]string, len(v))
		for i, s := range v {
			masked[i] = mask(s)
		}
		return masked
	}
	return v
}

// shown writes a value on one line, as in tables and errors.
func shown(v any) string {
	const limit = 256
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	s := ""
	if err := e.Encode(v); err != nil { // YAML's maps with keys that are no text
		s = fmt.Sprint(v)
	} else {
		s = strings.TrimSuffix(b.String(), "\n")
	}
	s = mask(s)
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}
