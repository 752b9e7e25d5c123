package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	yamlparser "github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// Sources are where a configuration comes from, besides the defaults.
type Sources struct {
	File    string         // path of the YAML file, "" for none
	Environ []string       // NAME=value, as os.Environ gives it
	Flags   *pflag.FlagSet // with the flags of AddFlags; nil for none
}

// Loaded is a configuration together with where each value came from.
type Loaded struct {
	Config
	sources map[string]string
}

// AddFlags defines the flags that stand for keys.
func AddFlags(flags *pflag.FlagSet) {
	defaults := Defaults()
	for i := range keys {
		if k := &keys[i]; k.flag != "" {
			flags.String(k.flag, k.kind.show(&defaults).(string), k.text)
		}
	}
}

// Load reads all sources.
func Load(from Sources) (*Loaded, error) {
	l := &Loaded{Config: Defaults(), sources: map[string]string{}}
	if from.File != "" {
		if err := l.loadFile(from.File); err != nil {
			return nil, err
		}
	}
	if err := l.loadEnvironment(from.Environ); err != nil {
		return nil, err
	}
	if from.Flags != nil {
		if err := l.loadFlags(from.Flags); err != nil {
			return nil, err
		}
	}
	if err := l.checkTogether(); err != nil {
		return nil, err
	}
	return l, nil
}

// checkTogether checks how values go together.
func (l *Loaded) checkTogether() error {
	if l.Limits.DecodeBytes() < l.Limits.MaxReceiveMessageBytes {
		k := lookup("limits.memory_bytes")
		return &Error{Key: k.name, Source: l.source(k), Value: shown(l.Limits.MemoryBytes),
			Msg: fmt.Sprintf("at least four times limits.max_receive_message_bytes (%d, %s) is due",
				l.Limits.MaxReceiveMessageBytes, l.source(lookup("limits.max_receive_message_bytes")))}
	}
	return nil
}

// source says where the effective value of a key comes from.
func (l *Loaded) source(k *key) string {
	if source := l.sources[k.name]; source != "" {
		return source
	}
	return "default"
}

func (l *Loaded) loadFile(path string) error {
	layer := koanf.New(".")
	if err := layer.Load(file.Provider(path), oneDocument{yamlparser.Parser()}); err != nil {
		return fmt.Errorf("configuration file %s: %w", path, err)
	}
	flat := map[string]any{}
	flatten(flat, "", layer.Raw())
	return l.apply(flat, func(*key) string { return "file " + path })
}

// flatten brings a section's keys to their dotted names. A key of the file that
// itself has a dot becomes unknown: it could stand beside the section it means.
func flatten(into map[string]any, prefix string, section map[string]any) {
	for name, v := range section {
		full := prefix + name
		sub, isMap := v.(map[string]any)
		switch {
		case strings.Contains(name, "."):
			into[fmt.Sprintf("%s%q", prefix, name)] = v
		case isMap && isSection(full):
			flatten(into, full+".", sub)
		case v == nil && isSection(full): // "tls:" with nothing below
		default:
			into[full] = v
		}
	}
}

// oneDocument refuses a second YAML document, which the parser would pass over.
type oneDocument struct{ *yamlparser.YAML }

func (p oneDocument) Unmarshal(raw []byte) (map[string]any, error) {
	out, err := p.YAML.Unmarshal(raw)
	if err != nil {
		return nil, err
	}
	var node yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(&node); errors.Is(err, io.EOF) {
		return out, nil
	}
	if err := d.Decode(&node); !errors.Is(err, io.EOF) {
		return nil, errors.New("holds more than one YAML document")
	}
	return out, nil
}

func (l *Loaded) loadEnvironment(environ []string) error {
	names := map[string]*key{}
	for i := range keys {
		names[keys[i].env()] = &keys[i]
	}
	unknown := map[string]string{}
	layer := koanf.New(".")
	err := layer.Load(env.Provider(".", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, v string) (string, any) {
			if k := names[name]; k != nil {
				return k.name, v
			}
			if !slices.Contains(clientVariables, name) {
				unknown[name] = v
			}
			return "", nil
		},
	}), nil)
	if err != nil {
		return fmt.Errorf("read the environment: %w", err)
	}
	if len(unknown) > 0 {
		name := slices.Min(slices.Collect(maps.Keys(unknown)))
		return &Error{Key: name, Source: "environment", Value: shown(unknown[name]),
			Msg: "unknown variable; names are CONTRAIL_ and the key in capitals, with two underscores between levels"}
	}
	return l.apply(layer.All(), func(k *key) string { return "environment " + k.env() })
}

func (l *Loaded) loadFlags(flags *pflag.FlagSet) error {
	layer := koanf.New(".")
	err := layer.Load(posflag.ProviderWithFlag(flags, ".", nil, func(f *pflag.Flag) (string, any) {
		if k := find(func(k *key) bool { return k.flag == f.Name }); k != nil {
			return k.name, f.Value.String()
		}
		return "", nil
	}), nil)
	if err != nil {
		return fmt.Errorf("read the flags: %w", err)
	}
	return l.apply(layer.All(), func(k *key) string { return "flag --" + k.flag })
}

// apply reads one source's values, in the order of their names so that the
// same mistake is always the one that is told.
func (l *Loaded) apply(values map[string]any, source func(*key) string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := values[name]
		k := lookup(name)
		if k == nil {
			return unknownKey(name, v, source(&key{}))
		}
		if err := l.set(k, v); err != nil {
			return &Error{Key: name, Source: source(k), Value: shown(v), Msg: err.Error(), Cause: err}
		}
		l.sources[name] = source(k)
	}
	return nil
}

func (l *Loaded) set(k *key, v any) error {
	if err := k.kind.read(&l.Config, v); err != nil {
		return err
	}
	defaults := Defaults()
	if k.later && !reflect.DeepEqual(k.kind.show(&l.Config), k.kind.show(&defaults)) {
		return errors.New("not supported by this version yet; leave it out")
	}
	return nil
}

func unknownKey(name string, v any, source string) error {
	msg := "unknown key"
	if isSection(name) {
		msg = "a section with keys of its own is due"
	}
	return &Error{Key: name, Source: source, Value: shown(v), Msg: msg}
}
