package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// kind reads and shows the values of a key. read gets what a source holds:
// text from environment and flags, what YAML makes of it from a file.
type kind interface {
	read(into *Config, v any) error
	// show returns the value as it is printed: text, a number, a boolean or a
	// list of texts.
	show(from *Config) any
}

// textKind is a text that check, if any, accepts.
type textKind struct {
	at    func(*Config) *string
	check func(string) error
}

func (k textKind) read(into *Config, v any) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("text is due, not %s", kindOf(v))
	}
	if k.check != nil {
		if err := k.check(s); err != nil {
			return err
		}
	}
	*k.at(into) = s
	return nil
}

func (k textKind) show(from *Config) any { return *k.at(from) }

// boolKind is true or false.
type boolKind struct{ at func(*Config) *bool }

func (k boolKind) read(into *Config, v any) error {
	switch v {
	case true, "true":
		*k.at(into) = true
	case false, "false":
		*k.at(into) = false
	default:
		return errors.New("true or false is due")
	}
	return nil
}

func (k boolKind) show(from *Config) any { return *k.at(from) }

// countKind is a whole number from least to most.
type countKind struct {
	at          func(*Config) *int
	least, most int
}

func (k countKind) read(into *Config, v any) error {
	n, ok := v.(int)
	if s, isText := v.(string); isText {
		var err error
		n, err = strconv.Atoi(s)
		ok = err == nil
	}
	if !ok || n < k.least || n > k.most {
		return fmt.Errorf("a whole number from %d to %d is due", k.least, k.most)
	}
	*k.at(into) = n
	return nil
}

func (k countKind) show(from *Config) any { return *k.at(from) }

// sizeKind is a number of bytes from least to most.
type sizeKind struct {
	at          func(*Config) *int64
	least, most int64
}

func (k sizeKind) read(into *Config, v any) error {
	n, ok := parseSize(v)
	if !ok || n < k.least || n > k.most {
		return fmt.Errorf("a size from %d to %d bytes is due, such as 67108864 or 64MiB", k.least, k.most)
	}
	*k.at(into) = n
	return nil
}

func (k sizeKind) show(from *Config) any { return *k.at(from) }

// sizeUnits are the units of sizes, longer spellings first.
var sizeUnits = []struct {
	name string
	size int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

func parseSize(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case string:
		for _, unit := range sizeUnits {
			digits, found := strings.CutSuffix(v, unit.name)
			if !found {
				continue
			}
			n, err := strconv.ParseInt(strings.TrimRight(digits, " "), 10, 64)
			if err != nil || n < 0 || n > math.MaxInt64/unit.size {
				return 0, false
			}
			return n * unit.size, true
		}
	}
	return 0, false
}

// durationKind is a duration of at least least and, where most is not 0, at most
// most.
type durationKind struct {
	at          func(*Config) *time.Duration
	least, most time.Duration
}

func (k durationKind) read(into *Config, v any) error {
	s, ok := v.(string)
	if !ok {
		return errors.New("a duration with its unit is due, such as 30s")
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("a duration with its unit is due, such as 30s: %w", err)
	}
	if d < k.least {
		return fmt.Errorf("a duration of at least %s is due", k.least)
	}
	if k.most > 0 && d > k.most {
		return fmt.Errorf("a duration of at most %s is due", k.most)
	}
	*k.at(into) = d
	return nil
}

func (k durationKind) show(from *Config) any { return k.at(from).String() }

// listKind is a list of texts; in environment variables they stand between
// commas.
type listKind struct {
	at    func(*Config) *[]string
	check func(string) error
}

func (k listKind) read(into *Config, v any) error {
	list := []string{}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return fmt.Errorf("a list of texts is due, it holds %s", kindOf(e))
			}
			list = append(list, s)
		}
	case string:
		if v != "" {
			list = strings.Split(v, ",")
		}
	default:
		return fmt.Errorf("a list of texts is due, not %s", kindOf(v))
	}
	for _, s := range list {
		if err := k.check(s); err != nil {
			return err
		}
	}
	*k.at(into) = list
	return nil
}

func (k listKind) show(from *Config) any { return *k.at(from) }

// kindOf names what YAML made of a value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case string:
		return "text"
	case bool:
		return "a boolean"
	case []any:
		return "a list"
	case map[string]any:
		return "a section"
	case time.Time:
		return "a time"
	}
	return "a number"
}
