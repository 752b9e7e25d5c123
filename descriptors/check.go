package descriptors

// Check is the body of check.
type Check struct {
	Table   string
	TableID string // "" when left out
	Repair  bool
}

var checkFields = []fieldOf[Check]{
	tableField(func(c *Check) *string { return &c.Table }),
	{Field{"repair", "bool", false, "Write derived data anew where they are missing or wrong; never a row."},
		boolInto(func(c *Check) *bool { return &c.Repair })},
	tableIDField(func(c *Check) *string { return &c.TableID }),
}

// ParseCheck reads the body of check.
func ParseCheck(body []byte) (*Check, error) { return parseBody(body, checkFields, nil) }
