package descriptors

import "time"

// Read is what GetFlightInfo, GetSchema and DoGet are asked for. Exactly one of
// its fields is set.
type Read struct {
	Scan     *Scan // also for an explain
	Listing  *Listing
	Latest   *Latest
	Coverage *Coverage
}

// Listing is a table about a table, or about all of them.
type Listing struct {
	Op      string // OpHistory, OpFiles, OpEntities or OpTables
	Table   string // "" for OpTables
	TableID string // "" when left out
	// Version and AsOf are for OpFiles and OpEntities, and not both set.
	Version *int64
	AsOf    *time.Time
}

var (
	tablesFields  = []fieldOf[Listing]{opField[Listing](OpTables)}
	historyFields = []fieldOf[Listing]{
		opField[Listing](OpHistory),
		tableField(func(l *Listing) *string { return &l.Table }),
		tableIDField(func(l *Listing) *string { return &l.TableID }),
	}
	filesFields    = versionedFields(OpFiles)
	entitiesFields = versionedFields(OpEntities)
)

func versionedFields(op string) []fieldOf[Listing] {
	return []fieldOf[Listing]{
		opField[Listing](op),
		tableField(func(l *Listing) *string { return &l.Table }),
		versionField("list", func(l *Listing) **int64 { return &l.Version }),
		asOfField(func(l *Listing) **time.Time { return &l.AsOf }),
		tableIDField(func(l *Listing) *string { return &l.TableID }),
	}
}

// versionField and asOfField say which version is meant. use is what is done
// with it.
func versionField[T any](use string, target func(*T) **int64) fieldOf[T] {
	return fieldOf[T]{Field{"version", "int64", false, "The version to " + use + "; left out: the newest."}, optionalInto(0, target)}
}

func asOfField[T any](target func(*T) **time.Time) fieldOf[T] {
	return fieldOf[T]{Field{"as_of", "string", false, "A time with its zone in RFC 3339, in place of `version`: the newest version committed at or before it."}, momentInto(target)}
}

// oneVersion refuses a version that is named twice.
func oneVersion(version *int64, asOf *time.Time) *fault {
	if version != nil && asOf != nil {
		return faultf("does not go together with version").inKey("as_of")
	}
	return nil
}

func momentInto[T any](target func(*T) **time.Time) func(*T, value) *fault {
	return func(into *T, v value) *fault {
		moment, f := v.moment()
		if f == nil {
			*target(into) = &moment
		}
		return f
	}
}

// moment reads a time in RFC 3339.
func (v value) moment() (time.Time, *fault) {
	text, f := v.text()
	if f != nil {
		return time.Time{}, f
	}
	moment, err := time.Parse(time.RFC3339Nano, text)
	moment = moment.UTC()
	if err != nil || moment.Year() < 0 || moment.Year() > 9999 {
		f = faultf("is %q where a time such as \"2013-01-01T06:00:00Z\" is due", cutRunes(text, maxPathKeyBytes))
		f.cause = err
		return time.Time{}, f
	}
	return moment, nil
}

func (w *objectWriter) moment(name string, at *time.Time) {
	if at != nil {
		w.text(name, at.UTC().Format(time.RFC3339Nano))
	}
}

// ParseCommand reads the CMD descriptor of a GetFlightInfo or GetSchema. A
// scan's split has no place in it.
func ParseCommand(command []byte) (*Read, error) { return parseRead("command", command, false) }

// ParseTicket reads the ticket of a DoGet, whether the server made it or a
// client wrote it by hand.
func ParseTicket(ticket []byte) (*Read, error) { return parseRead("ticket", ticket, true) }

func parseRead(root string, body []byte, ticket bool) (*Read, error) {
	v, op, err := parseOp(root, body)
	if err != nil {
		return nil, err
	}
	listing := func(fields []fieldOf[Listing]) (*Read, error) {
		l, err := parseFields(root, v, fields, func(l *Listing) *fault { return oneVersion(l.Version, l.AsOf) })
		if err != nil {
			return nil, err
		}
		l.Op = op
		return &Read{Listing: l}, nil
	}
	switch op {
	case OpScan:
		return parseScan(root, v, scanFields, ticket, false)
	case OpExplain:
		return parseScan(root, v, explainFields, ticket, true)
	case OpHistory:
		return listing(historyFields)
	case OpFiles:
		return listing(filesFields)
	case OpEntities:
		return listing(entitiesFields)
	case OpTables:
		return listing(tablesFields)
	case OpLatest:
		l, err := parseFields(root, v, latestFields, func(l *Latest) *fault { return oneVersion(l.Version, l.AsOf) })
		if err != nil {
			return nil, err
		}
		return &Read{Latest: l}, nil
	case OpCoverage:
		c, err := parseFields(root, v, coverageFields, checkCoverage)
		if err != nil {
			return nil, err
		}
		return &Read{Coverage: c}, nil
	}
	return nil, stampTable(misplaced(op).inKey("op").invalid(root), v)
}

func parseScan(root string, v value, fields []fieldOf[Scan], ticket, explain bool) (*Read, error) {
	s, err := parseFields(root, v, fields, func(s *Scan) *fault {
		s.Explain = explain
		return checkScan(s, ticket)
	})
	if err != nil {
		return nil, err
	}
	return &Read{Scan: s}, nil
}

// Encode returns the listing as one JSON object without blanks, its fields in
// a fixed order. ParseTicket reads it as l.
func (l *Listing) Encode() ([]byte, error) {
	var w objectWriter
	w.text("op", l.Op)
	w.filledText("table", l.Table)
	w.filledText("table_id", l.TableID)
	w.optional("version", l.Version)
	w.moment("as_of", l.AsOf)
	return w.finish()
}
