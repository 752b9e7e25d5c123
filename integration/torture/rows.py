"""What a request id stands for: the rows of each append follow from its id, so nobody has to write them down.

A digest of rows is the sum of a hash of each, modulo 2^64: an oracle can keep it up to date commit by commit, and a
reader computes it in one go.
"""

import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ROWS = 20  # of an append that adds
SHARED_SITES, SHARED_SECONDS = 3, 60  # where appends that replace meet
START = 1_767_225_600  # 2026-01-01, in seconds
SECOND = 1_000_000
MASK = 2**64 - 1

SCHEMA = pa.schema(
    [
        pa.field("site", pa.string(), nullable=False),
        pa.field("ts", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("value", pa.int64()),
        pa.field("label", pa.string()),
    ]
)


def table(rows: dict, columns=("site", "ts", "value", "label")) -> pa.Table:
    """Rows {(site, second): value} as a table; a label is its value's text."""
    seconds = np.array([second for _, second in rows], dtype=np.int64)
    values = list(rows.values())
    full = pa.table(
        {
            "site": pa.array([site for site, _ in rows], pa.string()),
            "ts": pa.array((seconds + START) * SECOND, pa.int64()).cast(SCHEMA.field("ts").type),
            "value": pa.array(values, pa.int64()),
            "label": pa.array([str(value) for value in values], pa.string()),
        }
    )
    return full.select(columns)


def number(request_id: str) -> int:
    """A number of an id's own: ids are <kind><writer>-<count>."""
    writer, count = request_id[1:].split("-")
    return int(writer) * 10**12 + int(count) * 1000


def added(request_id: str) -> dict:
    """The rows of an append to the table that refuses filled intervals: no other append has any of them."""
    writer, count = request_id[1:].split("-")
    return {(f"s{writer}", int(count) * ROWS + i): number(request_id) + i for i in range(ROWS)}


def replacing(request_id: str) -> dict:
    """The rows of an append to the table that replaces: other appends have some of them, too."""
    chance = random.Random(request_id)
    keys = [(f"s{chance.randrange(SHARED_SITES)}", chance.randrange(SHARED_SECONDS)) for _ in range(ROWS // 2)]
    return {key: number(request_id) + i for i, key in enumerate(dict.fromkeys(keys))}


def updated(request_id: str, keys) -> dict:
    """The new values of an update."""
    return {tuple(key): number(request_id) + i for i, key in enumerate(keys)}


def hash_of(site: str, second: int, value: int) -> int:
    h = (value * 0x9E3779B97F4A7C15 + second * 0xC2B2AE3D27D4EB4F + int(site[1:]) * 0x165667B19E3779F9) & MASK
    return ((h ^ (h >> 29)) * 0xBF58476D1CE4E5B9) & MASK


def digest(rows: pa.Table) -> list[int]:
    """How many rows there are and what they come to. A label that is not its value's text spoils it."""
    seconds = rows["ts"].cast(pa.int64()).to_numpy().astype(np.int64) // SECOND - START
    values = rows["value"].to_numpy().astype(np.int64)
    sites = pc.utf8_slice_codeunits(rows["site"], 1).cast(pa.int64()).to_numpy()
    h = values.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    h += seconds.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    h += sites.astype(np.uint64) * np.uint64(0x165667B19E3779F9)
    h = (h ^ (h >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    total = int(h.sum(dtype=np.uint64)) if len(h) else 0
    if not pc.all(pc.equal(rows["value"].cast(pa.string()), rows["label"].cast(pa.string())), min_count=0).as_py():
        total = -1
    return [rows.num_rows, total]


def as_dict(rows: pa.Table) -> dict:
    """A table's rows as {(site, second): value}; ValueError where a key comes twice."""
    seconds = rows["ts"].cast(pa.int64()).to_numpy() // SECOND - START
    keys = list(zip(rows["site"].to_pylist(), seconds.tolist()))
    found = dict(zip(keys, rows["value"].to_pylist()))
    if len(found) != len(keys):
        raise ValueError(f"{len(keys) - len(found)} keys are there twice")
    return found
