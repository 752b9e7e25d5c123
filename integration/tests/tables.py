"""Small things that several test modules need: table definitions, refusals, pictures of a folder."""

import contextlib
import hashlib
import pathlib
import time

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest

from client import Client, fields

UTC = pa.timestamp("us", tz="UTC")
HOUR = 3_600_000_000


def columns(schema: pa.Schema) -> list[dict]:
    """A schema as create_table takes it."""
    return [{"name": f.name, "type": str(f.type), "nullable": f.nullable} for f in schema]


def create_weather(client: Client, name: str, schema: pa.Schema, **more) -> dict:
    definition = {"index_column": "time_hour", "index_granularity": "1h", "entity_columns": ["origin"]}
    return client.act("create_table", table=name, columns=columns(schema), **(definition | more))


SITES = pa.schema(
    [pa.field("site", pa.string(), nullable=False), pa.field("ts", UTC, nullable=False), ("value", pa.float64())]
)


def sites(rows, schema: pa.Schema = SITES) -> pa.Table:
    """Rows (site, hour, value) of the small table; hours count from 2026-01-01."""
    start = 1_767_225_600_000_000
    return pa.table(
        {
            "site": pa.array([r[0] for r in rows], pa.string()),
            "ts": pa.array([None if r[1] is None else start + int(r[1] * HOUR) for r in rows], UTC),
            "value": pa.array([r[2] for r in rows], pa.float64()),
        },
        schema=pa.schema([schema.field(i).with_nullable(True) for i in range(3)]),
    )


def create_sites(client: Client, name: str, rows=(), **more) -> dict:
    """The small table (site, ts, value) at 1h, holding `rows` if there are any. Returns its description."""
    definition = {"index_column": "ts", "index_granularity": "1h", "entity_columns": ["site"]}
    made = client.act("create_table", table=name, columns=columns(SITES), **(definition | more))
    if rows:
        client.append(name, sites(rows))
    return made


@contextlib.contextmanager
def refused(token: str, **expected):
    """The block must be refused with this token, told in message and extra_info alike, and with these fields."""
    with pytest.raises(fl.FlightError) as caught:
        yield caught
    told = fields(caught.value)
    assert told["token"] == token, told
    assert told | expected == told
    assert str(caught.value).startswith(token + " "), str(caught.value)[:200]
    assert told["text"] and f": {told['text']}" in str(caught.value)


def files(folder: pathlib.Path) -> dict[str, str]:
    """Every regular file below a folder with a hash of its content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError):  # a server may be tidying up meanwhile
            if path.is_file():
                found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def eventually(condition, patience: float = 120, otherwise=lambda: ""):
    """Wait until condition() is true: for what a server does by itself, on a slow machine, too.

    What otherwise() returns says why it is not.
    """
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"did not come true in {patience} s: {otherwise()}"
        time.sleep(0.02)


def expire(client: Client, name: str, version: int) -> None:
    """Let a version go that is not the newest, on a server and in a table that keep versions for a second."""

    def gone() -> bool:
        client.act("vacuum", table=name, apply=True, expire=True)
        history = client.get({"op": "history", "table": name}).to_pylist()
        return any(h["version"] == version and h["expired"] for h in history)

    eventually(gone)


@contextlib.contextmanager
def untouched(server):
    """The block changes neither a table nor a file, and leaves the server answering."""
    with Client(server.uri) as observer:
        tables, before = observer.act("list_tables"), files(server.warehouse)
        yield
        eventually(
            lambda: files(server.warehouse) == before,
            otherwise=lambda: sorted(files(server.warehouse).items() ^ before.items()),
        )
        assert server.alive
        assert observer.act("list_tables") == tables


def bits(column: pa.ChunkedArray) -> list:
    """Values by their bits: NaN equals itself, -0.0 differs from 0.0, times are exact beyond what Python's can hold."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_floating(array.type):
        raw = array.fill_null(0).to_numpy(zero_copy_only=False)
        values = raw.view({2: np.uint16, 4: np.uint32, 8: np.uint64}[raw.dtype.itemsize]).tolist()
        return [v if ok else None for v, ok in zip(values, array.is_valid().to_pylist())]
    if pa.types.is_temporal(array.type) and not pa.types.is_date(array.type):
        array = array.cast(pa.int32() if pa.types.is_time32(array.type) else pa.int64())
    return array.to_pylist()


def assert_same(got: pa.Table, want: pa.Table) -> None:
    """Equal names, order, rows and values to the bit; types and nullability are compared elsewhere."""
    assert got.column_names == want.column_names
    assert got.num_rows == want.num_rows
    for column in want.column_names:
        assert bits(got[column]) == bits(want[column]), column
