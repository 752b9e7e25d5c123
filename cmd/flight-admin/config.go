package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"contrail/descriptors"
	"contrail/tablecore/tabledef"
)

func newConfigCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Read, set and explain the properties of a table",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigListCommand(a), newConfigGetCommand(a), newConfigSetCommand(a), newConfigExplainCommand(a))
	return cmd
}

// tableProperties is the document of config list.
type tableProperties struct {
	Table      string            `json:"table"`
	Version    int64             `json:"version"`
	Properties map[string]string `json:"properties"`
}

func newConfigListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list TABLE",
		Short: "List the properties that are set",
		Example: `  flight-admin config list weather
  flight-admin config list weather --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTable(false),
		RunE: a.connected(func(ctx context.Context, s *session, args []string) error {
			d, err := a.describe(ctx, s, args[0], at{version: -1})
			if err != nil {
				return err
			}
			return a.report(tableProperties{d.Table, d.Version, d.Properties}, func() error { return a.printProperties(d.Properties) })
		}),
	}
}

func (a *app) printProperties(set map[string]string) error {
	t := newTextTable(a.stdout, []string{"property", "value"}, make([]bool, 2))
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if err := t.add([]string{key, set[key]}); err != nil {
			return err
		}
	}
	return t.Close()
}

// propertyValue is the document of config get; Value is null where nothing
// holds, and Set tells whether the table says it or the default.
type propertyValue struct {
	Table string  `json:"table"`
	Key   string  `json:"key"`
	Value *string `json:"value"`
	Set   bool    `json:"set"`
}

func newConfigGetCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "get TABLE KEY",
		Short: "Print the value of a property, or its default",
		Example: `  flight-admin config get weather contrail.snapshot-retention
  flight-admin config get weather contrail.maintenance --json`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeProperty,
		RunE: a.connected(func(ctx context.Context, s *session, args []string) error {
			d, err := a.describe(ctx, s, args[0], at{version: -1})
			if err != nil {
				return err
			}
			v := propertyValue{Table: d.Table, Key: args[1]}
			if value, ok := d.Properties[args[1]]; ok {
				v.Value, v.Set = &value, true
			} else if known, ok := tabledef.PropertyOf(args[1]); ok {
				v.Value = &known.Default
			} else {
				return usagef("%s is not set on %s, and is no property that Contrail knows", args[1], d.Table)
			}
			return a.report(v, func() error { return a.printf("%s\n", *v.Value) })
		}),
	}
}

// setPropertiesRequest is the body of set_properties; null removes a key.
type setPropertiesRequest struct {
	Table           string             `json:"table"`
	Properties      map[string]*string `json:"properties"`
	ExpectedVersion *int64             `json:"expected_version,omitempty"`
}

// setPropertiesReport is what set_properties answers.
type setPropertiesReport struct {
	StartingVersion  int64             `json:"starting_version"`
	CommittedVersion int64             `json:"committed_version"`
	Properties       map[string]string `json:"properties"`
}

func newConfigSetCommand(a *app) *cobra.Command {
	var unset []string
	var expected int64
	cmd := &cobra.Command{
		Use:   "set TABLE [KEY=VALUE]…",
		Short: "Set properties, or take them away with --unset",
		Example: `  flight-admin config set weather contrail.snapshot-retention=14d team=ops
  flight-admin config set weather --unset team --json`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeProperty,
	}
	cmd.Flags().StringSliceVar(&unset, "unset", nil, "properties to take away, between commas")
	cmd.Flags().Int64Var(&expected, "expected-version", 0, "the only version of the table that the change may follow")
	cmd.RunE = a.connected(func(ctx context.Context, s *session, args []string) error {
		request := setPropertiesRequest{Table: args[0], ExpectedVersion: optionalNumber(cmd, "expected-version", expected)}
		var err error
		if request.Properties, err = parseProperties(args[1:], unset); err != nil {
			return err
		}
		return a.apply(ctx, s, descriptors.ActionSetProperties, request, decoded(func(r setPropertiesReport) error { return a.printSet(args[0], r) }))
	})
	return cmd
}

func (a *app) printSet(table string, r setPropertiesReport) error {
	if r.CommittedVersion == r.StartingVersion {
		return a.printf("%s: set already; it stays at version %d\n", fullName(table), r.CommittedVersion)
	}
	return a.printf("%s: set as version %d\n", fullName(table), r.CommittedVersion)
}

// parseProperties reads KEY=VALUE and the keys to take away.
func parseProperties(texts, unset []string) (map[string]*string, error) {
	set := map[string]*string{}
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, usagef("%q is not KEY=VALUE", text)
		}
		set[key] = &value
	}
	for _, key := range unset {
		if _, both := set[key]; both {
			return nil, usagef("%s is set and taken away at once", key)
		}
		set[key] = nil
	}
	if len(set) == 0 {
		return nil, usagef("there is nothing to set: give KEY=VALUE or --unset KEY")
	}
	return set, nil
}

// propertyInfo is a property in the document of config explain.
type propertyInfo struct {
	Key     string `json:"key"`
	Kind    string `json:"kind"`
	Default string `json:"default"`
	Level   string `json:"level"`
	Since   string `json:"since"`
	Text    string `json:"text"`
}

func newConfigExplainCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [KEY]",
		Short: "Tell what the properties mean that Contrail knows",
		Long:  "Tell what the properties mean that Contrail knows. Keys that do not begin with contrail. or delta. are yours.",
		Example: `  flight-admin config explain
  flight-admin config explain contrail.retention --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := a.explainProperties(args); err != nil {
				return ran{err}
			}
			return nil
		},
	}
}

func (a *app) explainProperties(keys []string) error {
	known := tabledef.Registry
	if len(keys) == 1 {
		p, ok := tabledef.PropertyOf(keys[0])
		if !ok {
			return usagef("%s is no property that Contrail knows; config explain lists them", keys[0])
		}
		known = []tabledef.Property{p}
	}
	list := make([]propertyInfo, len(known))
	for i, p := range known {
		list[i] = propertyInfo{p.Key, string(p.Kind), p.Default, string(p.Level), p.Since, p.Text}
	}
	document := struct {
		Properties []propertyInfo `json:"properties"`
	}{list}
	return a.report(document, func() error {
		t := newTextTable(a.stdout, []string{"property", "default", "level", "meaning"}, make([]bool, 4))
		for _, p := range list {
			if err := t.add([]string{p.Key, p.Default, p.Level, p.Text}); err != nil {
				return err
			}
		}
		return t.Close()
	})
}

// completeProperty completes a table and then the keys that can be set.
func (a *app) completeProperty(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeTable(false)(cmd, args, word)
	}
	var keys []string
	for _, p := range tabledef.Registry {
		if cmd.Name() != "set" {
			keys = append(keys, p.Key)
		} else if p.Level == tabledef.Settable {
			keys = append(keys, p.Key+"=")
		}
	}
	return keys, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
