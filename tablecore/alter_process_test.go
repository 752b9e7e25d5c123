package tablecore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"contrail/tablecore"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// growAndAppend adds a column of a process's own name, again after each time that
// another process was faster, sets a property of that name, and makes the appends
// of disjointAppends beside. It returns "ok", or what went wrong.
func growAndAppend(table *tablecore.Table, name string) string {
	appended := make(chan string)
	go func() { appended <- disjointAppends(table, name) }()
	untilOurs := func(change func() error) error {
		for {
			if err := change(); tableerr.TokenOf(err) != tableerr.TokenVersionConflict {
				return err
			}
		}
	}
	ctx := context.Background()
	err := untilOurs(func() error {
		_, err := table.AddColumns(ctx, tablecore.AddColumnsOptions{Schema: columnsOf(nullableOf(name, arrow.PrimitiveTypes.Int64))})
		return err
	})
	if err == nil {
		err = untilOurs(func() error {
			_, err := table.SetProperties(ctx, tablecore.SetPropertiesOptions{Properties: properties(name, "here")})
			return err
		})
	}
	answer := <-appended
	if err != nil {
		return err.Error()
	}
	return answer
}

// TestGrowingProcesses has four processes add a column and a property each while
// all of them append: every row, column and property is there.
func TestGrowingProcesses(t *testing.T) {
	dir, w := localWarehouse(t, weatherOptions())
	children := startChildren(t, "grow", dir)
	for i, c := range children {
		c.write(t, fmt.Sprint("P", i))
	}
	for _, c := range children {
		if answer := c.read(t); answer != "ok" {
			t.Error(answer)
		}
	}
	const appends = processes * writersEach * appendsEach
	table := openWeather(t, w)
	d, err := table.Describe(t.Context(), tablecore.At{})
	if err != nil || d.Version != appends+2*processes || len(d.Columns) != weather.NumFields()+processes || len(d.Properties) != processes {
		t.Errorf("described %+v, %v", d, err)
	}
	rows, _, err := tabletest.Scan(t.Context(), table, tablecore.ScanOptions{})
	if err != nil || len(rows) != appends {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}
