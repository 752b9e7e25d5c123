"""A table of the service as a lazy frame of Polars, and its rows as a frame of pandas.

Run: python polars_dataset.py grpc://127.0.0.1:8815
"""

import datetime
import json
import pathlib
import sys

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as fl

sys.path.append(str(pathlib.Path(__file__).parents[1] / "python"))  # or copy contrail_dataset.py beside this file
from contrail_dataset import ContrailDataset


def lay(client: fl.FlightClient) -> None:
    create = {
        "table": "example.power",
        "index_column": "at",
        "index_type": "timestamp",
        "index_granularity": "1h",
        "entity_columns": ["site"],
    }
    list(client.do_action(fl.Action("create_table", json.dumps(create).encode())))
    hours = [1_767_225_600_000_000 + 3_600_000_000 * hour for hour in range(48)]
    rows = pa.table(
        {
            "site": ["east"] * 48 + ["west"] * 48,
            "at": pa.array([*hours, *hours], pa.timestamp("us", tz="UTC")),
            "kw": [float(hour % 24) for hour in range(96)],
        }
    )
    command = {"op": "append", "table": "example.power", "rows": rows.num_rows}
    writer, reader = client.do_put(fl.FlightDescriptor.for_command(json.dumps(command)), rows.schema)
    with writer:
        writer.write_table(rows)
        writer.done_writing()
        reader.read()


def main(uri: str) -> None:
    lay(fl.connect(uri))

    power = ContrailDataset(uri, "example.power")
    noon = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
    lazy = pl.scan_pyarrow_dataset(power).filter((pl.col("site") == "east") & (pl.col("at") >= noon))
    print(lazy.select(pl.col("kw").max(), pl.len()).collect())

    frame = power.to_table(columns=["at", "kw"], filter=pc.field("kw") > 20).to_pandas()
    print(frame.groupby(frame["at"].dt.date)["kw"].sum())
    west = power.filter(pc.field("site") == "west")
    assert west.count_rows() == 48 and west.head(3).num_rows == 3


if __name__ == "__main__":
    main(sys.argv[1])
