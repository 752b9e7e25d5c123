"""Generated market ticks: the data of the benchmark and of the tests that need a large append."""

import numpy as np
import pyarrow as pa

SYMBOLS = 1_000
START = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z, in microseconds
SCHEMA = pa.schema(
    [
        pa.field("ts", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("symbol", pa.string(), nullable=False),
        ("price", pa.float64()),
        ("size", pa.int32()),
        ("flag", pa.bool_()),
        ("venue", pa.string()),
    ]
)


def make(rows: int, shuffled: bool = False) -> pa.Table:
    """`rows` (a multiple of SYMBOLS) ticks: one per symbol and second, in time order or in no order.

    Symbols come in random order inside a second, prices walk in steps of a cent, one venue in twenty is null. The seed
    is fixed: equal arguments give equal rows.
    """
    seconds = rows // SYMBOLS
    chance = np.random.default_rng(7)
    symbol = chance.permuted(np.tile(np.arange(SYMBOLS, dtype=np.int32), (seconds, 1)), axis=1)
    ts = np.arange(seconds, dtype=np.int64)[:, None] * 1_000_000 + np.arange(SYMBOLS) * 1_000
    ts = START + ts + chance.integers(0, 1_000, (seconds, SYMBOLS))
    walk = 100 + np.cumsum(chance.normal(0, 0.02, (seconds, SYMBOLS)), axis=0)
    price = np.round(np.take_along_axis(walk, symbol, axis=1), 2).ravel()
    venues = pa.array(["XNYS", "XNAS", "ARCX", "BATS", "EDGX", "IEXG", "XLON", "XETR"])
    names = pa.array([f"S{number:04}" for number in range(SYMBOLS)])
    venue = chance.integers(0, len(venues), rows).astype(np.int32)
    table = pa.table(
        {
            "ts": pa.array(ts.ravel(), SCHEMA.field("ts").type),
            "symbol": names.take(pa.array(symbol.ravel())),
            "price": price,
            "size": (chance.integers(1, 100, rows) * 100).astype(np.int32),
            "flag": chance.random(rows) < 0.1,
            "venue": venues.take(pa.array(venue, mask=chance.random(rows) < 0.05)),
        },
        schema=SCHEMA,
    )
    return table.take(pa.array(np.random.default_rng(9).permutation(rows))) if shuffled else table
