"""A table from pandas, read back as pandas and as Polars.

Run: python pandas_polars.py grpc://127.0.0.1:8815
"""

import json
import sys

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.flight as fl


def main(uri: str) -> None:
    client = fl.connect(uri)
    create = {
        "table": "example.temperature",
        "index_column": "at",
        "index_type": "timestamp",
        "index_granularity": "1h",
        "entity_columns": ["station"],
    }
    list(client.do_action(fl.Action("create_table", json.dumps(create).encode())))

    frame = pd.DataFrame(
        {
            "station": ["north", "north", "south"],
            "at": pd.to_datetime(["2026-01-01T00:00Z", "2026-01-01T01:00Z", "2026-01-01T00:00Z"]),
            "celsius": [3.5, 3.25, None],
        }
    )
    rows = pa.Table.from_pandas(frame, preserve_index=False)
    command = {"op": "append", "table": "example.temperature", "rows": rows.num_rows}
    writer, reader = client.do_put(fl.FlightDescriptor.for_command(json.dumps(command)), rows.schema)
    with writer:
        writer.write_table(rows)
        writer.done_writing()
        print(json.loads(reader.read().to_pybytes())["committed_version"])

    ticket = fl.Ticket(json.dumps({"op": "scan", "table": "example.temperature"}))
    again = client.do_get(ticket).read_all()
    pd.testing.assert_frame_equal(again.to_pandas(), frame, check_dtype=False)
    print(pl.from_arrow(again).group_by("station", maintain_order=True).agg(pl.col("celsius").max()))


if __name__ == "__main__":
    main(sys.argv[1])
