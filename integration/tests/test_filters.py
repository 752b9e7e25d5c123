"""Filters, order, limit, time travel and compression of scans, against pyarrow's own arithmetic."""

import base64
import datetime
import decimal
import json
import math
import time

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as fl
import pytest

from client import Client
from tables import UTC, assert_same, create_sites, refused, sites

SCHEMA = pa.schema(
    [
        ("site", pa.string()),
        ("n", pa.int64()),
        ("i", pa.int64()),
        ("u", pa.uint64()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("b", pa.binary()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("ms")),
        ("price", pa.decimal128(12, 2)),
    ]
)


def some_rows() -> pa.Table:
    rng = np.random.default_rng(4)
    size = 600

    def maybe(values):
        return [None if rng.random() < 0.15 else v for v in values]

    def pick(*values):
        return maybe(values[k] for k in rng.integers(0, len(values), size))

    return pa.table(
        {
            "site": pa.array(np.sort(rng.choice(["a", "b", "c"], size))),
            "n": pa.array(np.arange(size), pa.int64()),
            "i": pa.array(pick(-(2**63), 2**63 - 1, 2**53, 2**53 + 1, 0, 7, -7), pa.int64()),
            "u": pa.array(pick(0, 2**64 - 1, 2**53 + 1, 9), pa.uint64()),
            "f": pa.array(pick(math.nan, math.inf, -math.inf, -0.0, 0.0, 0.1, 2.5, 1e308), pa.float64()),
            "s": pa.array(pick("", "a", "ab", "z" * 50, "z" * 49 + "é", "\U0010ffff" * 40), pa.string()),
            "b": pa.array(pick(b"", b"\x00", b"\xff" * 40, b"ab"), pa.binary()),
            "flag": pa.array(pick(True, False), pa.bool_()),
            "day": pa.array(pick(datetime.date(1969, 12, 31), datetime.date(2013, 2, 28)), pa.date32()),
            "at": pa.array(pick(datetime.datetime(1960, 1, 1), datetime.datetime(2013, 1, 1, 6)), pa.timestamp("ms")),
            "price": pa.array(
                pick(decimal.Decimal("-0.01"), decimal.Decimal("12.50"), decimal.Decimal("99")),
                SCHEMA.field("price").type,
            ),
        },
        schema=SCHEMA,
    )


ROWS = some_rows()


@pytest.fixture(scope="module")
def table(server) -> str:
    """All rows in six appends with small row groups. No test changes it."""
    with Client(server.uri) as client:
        client.act(
            "create_table",
            table="filters",
            index_column="n",
            index_granularity=1,
            entity_columns=["site"],
            columns=[{"name": f.name, "type": str(f.type)} for f in SCHEMA],
        )
        for part in range(6):
            client.append("filters", ROWS.take(pa.array(range(part, ROWS.num_rows, 6))), max_rows_per_row_group=16)
    return "filters"


def nan_above(value):
    """Floats in the order of filters: NaN above everything and equal to itself, the zeros equal."""
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


COMPARE = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def expected(column, op, value, order=lambda v: v):
    """The numbers of the rows that a condition leaves, by plain Python."""
    found = []
    for n, stored in zip(ROWS["n"].to_pylist(), ROWS[column].to_pylist()):
        if op == "is null" or op == "is not null":
            keep = (stored is None) == (op == "is null")
        elif stored is None:
            keep = False
        elif op == "in":
            keep = any(order(stored) == order(v) for v in value)
        else:
            keep = COMPARE[op](order(stored), order(value))
        if keep:
            found.append(n)
    return found


def as_json(value):
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (datetime.date, decimal.Decimal)):
        return value.isoformat() if isinstance(value, datetime.date) else str(value)
    return value


VALUES = {
    "i": [0, 7, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, -(2**64), 7.5],
    "u": [0, 2**64 - 1, 2**64, -1, 2**53 + 1],
    "f": [0.0, -0.0, 0.1, 2, math.nan, math.inf, -math.inf, 2**53 + 1],
    "flag": [True, False],
    "day": [datetime.date(1970, 1, 1), datetime.date(2013, 2, 28)],
    "at": [datetime.datetime(2013, 1, 1, 6), datetime.datetime(1960, 1, 1, 0, 0, 0, 1)],
    "price": [decimal.Decimal("12.5"), decimal.Decimal("12.505"), 99, decimal.Decimal("-1e30")],
    "b": [b"", b"\xff", b"ab"],
}


@pytest.mark.parametrize("column", VALUES)
@pytest.mark.parametrize("op", COMPARE)
def test_comparisons(client, table, column, op):
    for value in VALUES[column]:
        want = expected(column, op, value, nan_above)
        got = client.read(table, columns=["n"], filter=[[column, op, as_json(value)]])["n"].to_pylist()
        assert sorted(got) == want, (column, op, value)


@pytest.mark.parametrize("op", COMPARE)
@pytest.mark.parametrize("value", ["", "a", "b", "z" * 50, "z" * 49, "\U0010ffff" * 39])
def test_texts_compare_by_bytes(client, table, op, value):
    want = expected("s", op, value, lambda v: v.encode())
    assert sorted(client.read(table, columns=["n"], filter=[["s", op, value]])["n"].to_pylist()) == want


@pytest.mark.parametrize("order", ["entity_index", "unordered"])
def test_nulls_lists_and_several_conditions(client, table, order):
    def read(*conditions):
        return sorted(client.read(table, columns=["n"], filter=list(conditions), order=order)["n"].to_pylist())

    assert read(["f", "is null"]) == expected("f", "is null", None)
    assert read(["f", "is not null"]) == expected("f", "is not null", None)
    assert read(["i", "in", [7, "9007199254740993", 5]]) == expected("i", "in", [7, 2**53 + 1, 5])
    assert read(["s", "in", []]) == []
    assert read(["f", "in", ["NaN", 0]]) == expected("f", "in", [math.nan, 0.0], nan_above)
    both = sorted(set(expected("u", ">", 0)) & set(expected("site", "=", "b")))
    assert read(["u", ">", 0], ["site", "==", "b"]) == both
    assert read() == list(range(ROWS.num_rows))


def test_a_filter_skips_files_and_row_groups(client, table):
    client.read(table, filter=[["n", "<", 10]])
    assert client.stats()["row_groups_skipped"] > 0
    client.read(table, filter=[["price", ">", 1000]])
    assert client.stats()["files"] == 0


@pytest.mark.parametrize(
    "condition, field",
    [
        (["i", "=", None], "filter[0][2]"),
        (["i", "=", "x"], "filter[0][2]"),
        (["s", "=", 5], "filter[0][2]"),
        (["flag", "=", 1], "filter[0][2]"),
        (["at", "=", "2013-01-01T00:00:00Z"], "filter[0][2]"),
        (["i", "in", [1, None]], "filter[0][2][1]"),
        (["i", "~", 1], "filter[0][1]"),
        (["nope", "=", 1], "filter[0][0]"),
        (["i", "is null", 1], "filter[0][2]"),
        (["i"], "filter[0]"),
        ("i = 1", "filter[0]"),
    ],
)
def test_bad_conditions_are_named(client, table, condition, field):
    with refused("INVALID", field=field):
        client.read(table, filter=[condition])


def test_order_limit_and_newest_first(client, table):
    whole = ROWS.sort_by([("site", "ascending"), ("n", "ascending")])
    assert_same(client.read(table), whole)
    assert_same(client.read(table, limit=50), whole.slice(0, 50))
    assert client.read(table, limit=0).num_rows == 0
    newest = ROWS.sort_by([("n", "descending")])
    assert_same(client.read(table, newest_first=True, limit=100), newest.slice(0, 100))
    assert_same(client.read(table, newest_first=True), newest)
    heap = client.read(table, order="unordered")
    assert_same(heap.sort_by([("n", "ascending")]), ROWS.sort_by([("n", "ascending")]))
    assert client.read(table, order="unordered", limit=7).num_rows == 7
    with refused("INVALID", field="newest_first"):
        client.read(table, order="unordered", newest_first=True)
    info = client.info(table=table, limit=5, max_endpoints=8)
    assert (len(info.endpoints), info.total_records) == (1, 5)


def test_batch_rows_is_an_upper_bound(client, table):
    assert max(b.num_rows for b in client.batches(table, batch_rows=37)) <= 37


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_compressed_bodies(client, table, codec):
    assert_same(client.read(table, compression=codec), client.read(table))


def test_as_of(client, name):
    create_sites(client, name)
    times = []
    for hour in range(3):
        client.append(name, sites([("a", hour, 1.0)]))
        times.append(client.act("describe_table", table=name)["committed_at"])
        time.sleep(0.005)
    for hour, moment in enumerate(times):
        assert client.read(name, as_of=moment).num_rows == hour + 1
        assert client.act("describe_table", table=name, as_of=moment)["version"] == hour + 1
    info = client.info(table=name, as_of=times[0])
    ticket = json.loads(info.endpoints[0].ticket.ticket)
    assert ticket["version"] == 1 and "as_of" not in ticket
    with refused("VERSION_NOT_FOUND"):
        client.read(name, as_of="1999-01-01T00:00:00Z")
    with refused("INVALID", field="as_of"):
        client.read(name, as_of="2999-01-01T00:00:00Z")
    with refused("INVALID"):
        client.read(name, as_of=times[0], version=1)


def test_listings(client, name):
    made = create_sites(client, name, [("a", 0, 1.0), ("a", 1, 2.0), ("b", 5, 3.0)])
    client.append(name, sites([("c", 100, 4.0)]))

    def listing(op, **more):
        request = {"op": op} | ({} if op == "tables" else {"table": name}) | more
        descriptor = fl.FlightDescriptor.for_command(json.dumps(request))
        info = client.flight.get_flight_info(descriptor)
        rows = client.get(info.endpoints[0].ticket)
        assert info.schema == client.flight.get_schema(descriptor).schema == rows.schema
        return rows

    history = listing("history")
    assert history["version"].to_pylist() == [2, 1, 0]
    assert history["operation"].to_pylist() == ["append", "append", "create_table"]
    assert history["rows_added"].to_pylist() == [1, 3, 0]
    assert json.loads(history["report"][0].as_py())["rows"] == 1
    assert history.schema.field("committed_at").type == UTC
    files = listing("files")
    assert sorted(files["rows"].to_pylist()) == [1, 3] and set(files["layout"].to_pylist()) == {"single", "mixed"}
    assert files["path"].to_pylist() == sorted(files["path"].to_pylist())
    assert listing("files", version=1)["rows"].to_pylist() == [3]
    entities = listing("entities").to_pylist()
    assert [(e["site"], e["intervals"]) for e in entities] == [("a", 2), ("b", 1), ("c", 1)]
    assert (entities[0]["end"] - entities[0]["start"]) == datetime.timedelta(hours=2)
    tables = {t["table"]: t for t in listing("tables").to_pylist()}
    assert tables[made["table"]]["rows"] == 4 and tables[made["table"]]["version"] == 2
    explained = listing("explain", entities=[{"site": "c"}])
    assert sorted(explained["reason"].to_pylist()) == ["entity", "kept"]
    assert pc.sum(explained["row_groups_kept"]).as_py() == 1
    explained = listing("explain", filter=[["value", ">", 3.5]])
    assert sorted(explained["reason"].to_pylist()) == ["filter", "kept"]


def test_an_endpoint_is_renewed_and_a_read_cancelled(client, name):
    create_sites(client, name, [("a", 0, 1.0)])
    info = client.info(table=name)
    endpoint = info.endpoints[0]
    body = renew_request(endpoint)
    (answer,) = client.flight.do_action(fl.Action("RenewFlightEndpoint", body))
    renewed = fl.FlightEndpoint.deserialize(answer.body.to_pybytes())
    assert renewed.ticket == endpoint.ticket and renewed.expiration_time.value >= endpoint.expiration_time.value
    (answer,) = client.flight.do_action(fl.Action("CancelFlightInfo", cancel_request(info)))
    assert answer.body.to_pybytes() == b"\x08\x01"  # status = CANCELLED


def field(number: int, body: bytes) -> bytes:
    """A protobuf field that holds a message."""
    length, size = b"", len(body)
    while size > 0x7F:
        length, size = length + bytes([size & 0x7F | 0x80]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + body


def renew_request(endpoint: fl.FlightEndpoint) -> bytes:
    return field(1, endpoint.serialize())


def cancel_request(info: fl.FlightInfo) -> bytes:
    return field(1, info.serialize())


def test_a_plain_delta_table_is_scanned(server, client, name):
    """A table that deltalake wrote: no index, no entities, but columns, filters, versions and listings."""
    folder = server.warehouse / "default" / name
    rows = pa.table(
        {"id": pa.array([3, 1, None, 2], pa.int64()), "v": [1.5, math.nan, 2.5, None], "s": ["a", None, "z", "y"]}
    )
    deltalake.write_deltalake(folder, rows)
    deltalake.write_deltalake(folder, rows.slice(0, 1), mode="append")
    assert client.read(name).num_rows == 5
    first = client.read(name, version=0).sort_by("id")
    assert str(first.to_pylist()) == str(rows.sort_by("id").to_pylist())  # as text, for NaN equals nothing in Python
    assert client.read(name, columns=["id"], filter=[["v", ">", 2]])["id"].to_pylist() in ([1, None], [None, 1])
    assert client.read(name, filter=[["s", "=", "y"]], limit=1)["id"].to_pylist() == [2]
    history = client.get({"op": "history", "table": name})
    assert history["operation"].to_pylist() == ["WRITE", "WRITE"]
    assert client.get({"op": "files", "table": name})["index_min"].null_count == 2
    for field, value in {"entities": [], "start": 1, "newest_first": True}.items():
        with refused("INVALID", field=field):
            client.read(name, **{field: value})
