"""A table of many types with values at their ends, small row groups and several files, for the tests of the Dataset."""

import contextlib
import datetime
import decimal
import math
import random

import numpy as np
import pyarrow as pa

import ticks
from client import Client
from tables import columns

START = 1_767_225_600_000_000  # 2026-01-01
CENT = pa.decimal128(12, 2)
SCHEMA = pa.schema(
    [
        pa.field("ts", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("site", pa.string(), nullable=False),
        pa.field("unit", pa.int32(), nullable=False),
        ("n", pa.int64()),
        ("i8", pa.int8()),
        ("i64", pa.int64()),
        ("u8", pa.uint8()),
        ("u64", pa.uint64()),
        ("f32", pa.float32()),
        ("f64", pa.float64()),
        ("text", pa.string()),
        ("raw", pa.binary()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("sec", pa.timestamp("s")),
        ("nano", pa.timestamp("ns")),
        ("zone", pa.timestamp("ns", tz="America/New_York")),
        ("clock", pa.time64("us")),
        ("span", pa.duration("ms")),
        ("price", CENT),
        ("list", pa.list_(pa.int32())),
        ("point", pa.struct([("x", pa.float64())])),
    ]
)
NUMBERS = [math.nan, math.inf, -math.inf, -0.0, 0.0, 0.1, 1.5, -2.5, 7.0]
VALUES = {
    "i8": [-128, -1, 0, 7, 127],
    "i64": [-(2**63), -(2**53) - 1, -1, 0, 7, 2**53 + 1, 2**63 - 1],
    "u8": [0, 7, 255],
    "u64": [0, 7, 2**53 + 1, 2**63 - 1],
    "f32": [float(np.float32(v)) for v in NUMBERS],
    "f64": [*NUMBERS, 1e308, 5e-324, 2.0**53],
    "text": ["", "a", "ab", "A", "é", "z" * 70, "\U0010ffff", "it's"],
    "raw": [b"", b"\x00", b"a", b"\xff" * 70],
    "flag": [True, False],
    "day": [datetime.date(1969, 12, 31), datetime.date(2026, 1, 1), datetime.date(9999, 12, 31)],
    "sec": [-1, 0, 1_767_225_600],
    "nano": [-1, 0, 1, 1_767_225_600_000_000_001],
    "zone": [-1, 0, 1_767_225_600_000_000_000],
    "clock": [0, 1, 86_399_999_999],
    "span": [-1, 0, 5_000],
    "price": [decimal.Decimal(v) for v in ("-0.01", "0.00", "12.50", "99.99")],
    "list": [[], [1, None], [2]],
    "point": [{"x": 1.0}, {"x": None}],
}
SITES = ["a", "b", "c"]


def rich_rows(size: int = 600) -> pa.Table:
    chance = random.Random(5)
    ordered = {
        "ts": [START + 1_000_000 * n + chance.randrange(1_000_000) for n in range(size)],
        "site": [chance.choice(SITES) for _ in range(size)],
        "unit": [chance.randrange(3) for _ in range(size)],
        "n": list(range(size)),
    }
    others = {k: [None if chance.random() < 0.15 else chance.choice(v) for _ in range(size)] for k, v in VALUES.items()}
    both = ordered | others
    return pa.table([pa.array(both[f.name], f.type) for f in SCHEMA], schema=SCHEMA)


ROWS = rich_rows()


def lay(client: Client, name: str) -> None:
    """All rows in six appends with small row groups."""
    definition = {"index_column": "ts", "index_granularity": "1s", "entity_columns": ["site", "unit"]}
    client.act("create_table", table=name, columns=columns(SCHEMA), **definition)
    for part in range(6):
        client.append(name, ROWS.slice(part * 100, 100), max_rows_per_row_group=16)


def lay_ticks(client: Client, name: str) -> None:
    """Half a million ticks in two appends: more than the buffers of a connection hold."""
    definition = {"index_column": "ts", "index_granularity": "1s", "entity_columns": ["symbol"]}
    client.act("create_table", table=name, columns=columns(ticks.SCHEMA), **definition)
    rows = ticks.make(500_000)
    for part in range(2):
        client.append(name, rows.slice(part * 250_000, 250_000), max_chunksize=65_536)


@contextlib.contextmanager
def served(client):
    """What the service has sent in the block, by its own counters."""
    before, counted = client.act("server_info")["served"], {}
    yield counted
    counted |= {key: value - before[key] for key, value in client.act("server_info")["served"].items()}
