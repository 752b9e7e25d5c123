package main

import (
	"encoding/json"
	"sync"

	"github.com/rs/zerolog"

	"contrail/cmd/internal/flightclient"
)

// incidentLog keeps what an embedded service would write into its log about an
// INTERNAL error, since its caller has no other log to look into.
type incidentLog struct {
	mu     sync.Mutex
	causes map[string]string // by incident
}

func (l *incidentLog) logger() zerolog.Logger { return zerolog.New(l).Level(zerolog.ErrorLevel) }

// Write implements io.Writer; it is given one entry at a time.
func (l *incidentLog) Write(entry []byte) (int, error) {
	var e struct{ Incident, Error string }
	if json.Unmarshal(entry, &e) == nil && e.Incident != "" {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.causes == nil {
			l.causes = map[string]string{}
		}
		l.causes[e.Incident] = e.Error
	}
	return len(entry), nil
}

// addIncident puts the cause of an INTERNAL error of an embedded service into
// it.
func (a *app) addIncident(f *failure) {
	a.incidents.mu.Lock()
	defer a.incidents.mu.Unlock()
	if cause, ok := a.incidents.causes[incidentOf(f.fields)]; ok {
		f.text = oneLine(cause)
		f.line = f.token + ": " + f.text
		f.hint = ""
	}
}

func incidentOf(fields []flightclient.Field) string {
	for _, field := range fields {
		var id string
		if field.Key == "incident" && json.Unmarshal(field.Value, &id) == nil {
			return id
		}
	}
	return ""
}
