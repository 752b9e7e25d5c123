package tablecore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"contrail/tablecore"
	"contrail/tablecore/objstore/memstore"
	"contrail/tablecore/tabledef"
	"contrail/tablecore/tableerr"
	"contrail/tablecore/tabletest"
)

// A wrong price is corrected by its key. Whoever corrects a version that is no
// longer the newest is told so, and decides anew.
func ExampleTable_UpdateRows() {
	ctx := context.Background()
	warehouse, err := tablecore.Open(ctx, tablecore.Options{Store: memstore.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer warehouse.Close()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "symbol", Type: arrow.BinaryTypes.String},
		{Name: "second", Type: arrow.PrimitiveTypes.Int64},
		{Name: "price", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	}, nil)
	rows := func(text string) tablecore.RowReader {
		batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(text))
		if err != nil {
			log.Fatal(err)
		}
		return tabletest.NewReader(schema, batch)
	}

	name := tabledef.Name{Namespace: "default", Table: "prices"}
	if _, err := warehouse.CreateTable(ctx, tablecore.CreateOptions{Name: name, IndexColumn: "second", IndexType: "int64", IndexGranularity: "1",
		EntityColumns: []string{"symbol"}, Schema: schema}); err != nil {
		log.Fatal(err)
	}
	table, err := warehouse.Table(ctx, name)
	if err != nil {
		log.Fatal(err)
	}
	appended, err := table.Append(ctx, rows(`[{"symbol":"ACME","second":1,"price":10},{"symbol":"ACME","second":2,"price":99}]`), tablecore.AppendOptions{})
	if err != nil {
		log.Fatal(err)
	}

	correct := tablecore.UpdateOptions{Columns: []string{"price"}, ExpectedVersion: appended.CommittedVersion}
	report, err := table.UpdateRows(ctx, rows(`[{"symbol":"ACME","second":2,"price":11}]`), correct)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.RowsUpdated, "row in", report.SegmentsRewritten, "file, version", report.CommittedVersion)

	_, err = table.UpdateRows(ctx, rows(`[{"symbol":"ACME","second":2,"price":12}]`), correct)
	var conflict *tableerr.VersionConflict
	if errors.As(err, &conflict) {
		fmt.Println("expected version", conflict.Expected, "but found", conflict.Found)
	}
	// Output:
	// 1 row in 1 file, version 2
	// expected version 1 but found 2
}
