"""The newest row of each entity, queried with DuckDB.

Run: python latest_duckdb.py grpc://127.0.0.1:8815
"""

import json
import sys

import duckdb
import pyarrow as pa
import pyarrow.flight as fl

# gRPC aligns no buffer, of which Arrow's compute functions would warn.
ALIGNED = fl.FlightCallOptions(read_options=pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.DataTypeSpecific))


def main(uri: str) -> None:
    client = fl.connect(uri)
    create = {
        "table": "example.quotes",
        "index_column": "at",
        "index_type": "timestamp",
        "index_granularity": "1s",
        "entity_columns": ["symbol"],
    }
    list(client.do_action(fl.Action("create_table", json.dumps(create).encode())))
    rows = pa.table(
        {
            "symbol": ["AAA", "AAA", "BBB", "CCC"],
            "at": pa.array([1_000_000, 2_000_000, 1_000_000, 5_000_000], pa.timestamp("us", tz="UTC")),
            "price": [10.0, 10.5, 99.0, 7.25],
        }
    )
    command = {"op": "append", "table": "example.quotes", "rows": rows.num_rows}
    writer, reader = client.do_put(fl.FlightDescriptor.for_command(json.dumps(command)), rows.schema)
    with writer:
        writer.write_table(rows)
        writer.done_writing()
        reader.read()

    db = duckdb.connect()
    newest = client.do_get(fl.Ticket(json.dumps({"op": "latest", "table": "example.quotes"})), ALIGNED).read_all()
    db.register("newest", newest)
    print(db.sql("select symbol, price from newest order by price desc limit 2"))
    earlier = {"op": "latest", "table": "example.quotes", "at": "1970-01-01T00:00:01Z"}
    db.register("earlier", client.do_get(fl.Ticket(json.dumps(earlier)), ALIGNED).read_all())
    changed = db.sql("select n.symbol, n.price - e.price from newest n join earlier e using (symbol)")
    assert sorted(changed.fetchall()) == [("AAA", 0.5), ("BBB", 0.0)]


if __name__ == "__main__":
    main(sys.argv[1])
