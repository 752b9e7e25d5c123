"""SQL over a table of the service: DuckDB asks for columns and rows, and no other cross the wire.

Run: python duckdb_dataset.py grpc://127.0.0.1:8815 ./warehouse
"""

import json
import pathlib
import sys

import duckdb
import pyarrow as pa
import pyarrow.flight as fl

sys.path.append(str(pathlib.Path(__file__).parents[1] / "python"))  # or copy contrail_dataset.py beside this file
from contrail_dataset import ContrailDataset, files


def lay(client: fl.FlightClient) -> None:
    """The table, and a first day of trades."""
    create = {
        "table": "example.trades",
        "index_column": "ts",
        "index_type": "timestamp",
        "index_granularity": "1s",
        "entity_columns": ["symbol"],
    }
    list(client.do_action(fl.Action("create_table", json.dumps(create).encode())))
    append(client, range(1_000))


def append(client: fl.FlightClient, seconds: range) -> None:
    """One trade of each symbol a second."""
    ts = [1_767_225_600_000_000 + 1_000_000 * second for second in seconds for _ in "ab"]
    rows = pa.table(
        {
            "ts": pa.array(ts, pa.timestamp("us", tz="UTC")),
            "symbol": ["AAA", "BBB"] * len(seconds),
            "price": [float(second % 100 + side) for second in seconds for side in (0, 100)],
        }
    )
    command = {"op": "append", "table": "example.trades", "rows": rows.num_rows}
    writer, reader = client.do_put(fl.FlightDescriptor.for_command(json.dumps(command)), rows.schema)
    with writer:
        writer.write_table(rows)
        writer.done_writing()
        reader.read()


def main(uri: str, warehouse: str) -> None:
    client = fl.connect(uri)
    lay(client)

    trades = ContrailDataset(uri, "example.trades")
    db = duckdb.connect()
    db.execute("set TimeZone = 'UTC'")
    minute = "ts >= '2026-01-01 00:01:00' and ts < '2026-01-01 00:02:00'"
    print(db.sql(f"select symbol, max(price), count(*) from trades where {minute} group by symbol order by symbol"))

    # A join reads the table twice, and sees one version, whatever is appended meanwhile.
    pair = "select count(*) from trades a join trades b using (ts) where a.symbol = 'AAA' and b.symbol = 'BBB'"
    assert db.sql(pair).fetchall() == [(1_000,)]
    append(client, range(1_000, 1_100))
    assert db.sql(pair).fetchall() == [(1_000,)]
    trades = trades.at()
    assert db.sql(pair).fetchall() == [(1_100,)]

    # A big read may bypass the service: these are the files of that version.
    direct = db.read_parquet(trades.files(warehouse), union_by_name=True)
    assert direct.count("*").fetchall() == [(trades.count_rows(),)]
    assert files(uri, "example.trades", warehouse) == trades.files(warehouse)


if __name__ == "__main__":
    main(*sys.argv[1:3])
