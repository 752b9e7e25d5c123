"""Every type of the table format through pyarrow's client: exact scans give it back, compat scans give plain types, and
deltalake, DuckDB and Polars read the values of its Delta type from the table's directory."""

import base64
import typing

import pyarrow as pa
import pytest

import engines
from alltypes import CASES, DEFINITION, US, UTC, assert_engine_reads, comparable, plain, table
from client import Client
from tables import columns, refused


@pytest.fixture(scope="module")
def tables(server) -> typing.Any:
    """The table twice: created with its schema, and with the schema of its first append."""
    with Client(server.uri) as client:
        ipc = base64.b64encode(table().schema.serialize().to_pybytes()).decode()
        client.act("create_table", table="declared", schema_ipc=ipc, **DEFINITION)
        client.act("create_table", table="adopted", index_type="timestamp", **DEFINITION)
        for name in ("declared", "adopted"):
            client.append(name, table().slice(2))
            client.append(name, table().slice(0, 2))
    return server


@pytest.mark.parametrize("name", ["declared", "adopted"])
def test_exact_gives_every_type_back(tables, name):
    with Client(tables.uri) as client:
        got = client.read(name, profile="exact")
    assert got.schema.equals(table().schema, check_metadata=True), got.schema
    for column in got.column_names:
        assert plain(got[column]) == plain(table()[column]), column


def test_compat_gives_plain_types(tables):
    with Client(tables.uri) as client:
        got = client.read("declared")
    for name, case in CASES.items():
        want = case.compat or case.type
        assert got.schema.field(name).type.equals(want), name
        assert b"ARROW:extension:name" not in (got.schema.field(name).metadata or {})
        assert [comparable(v) for v in plain(got[name])] == [comparable(v) for v in plain(table()[name])], name


@pytest.mark.parametrize("engine", [engines.Deltalake, engines.DuckDB, engines.Polars], ids=lambda e: e.__name__)
@pytest.mark.parametrize("name", ["declared", "adopted"])
def test_engines_read_the_values(tables, engine, name):
    assert_engine_reads(engine().read(tables.path(name)))


REFUSED = {
    "null": pa.null(),
    "interval": pa.month_day_nano_interval(),
    "union": pa.dense_union([pa.field("a", pa.int8())]),
    "run_end_encoded": pa.run_end_encoded(pa.int32(), pa.string()),
    "list_view": pa.list_view(pa.int8()),
    "struct without children": pa.struct([]),
    "negative scale": pa.decimal128(5, -2),
    "list of null": pa.list_(pa.null()),
    "equal names": pa.struct([("a", pa.int8()), ("A", pa.int8())]),
    "blank name": pa.struct([(" ", pa.int8())]),
    "unknown zone": pa.list_(pa.timestamp("us", tz="Mars/Olympus")),
}


# Values of types that pa.nulls does not make.
ODD = {
    "interval": pa.array([pa.MonthDayNano([1, 2, 3])]),
    "union": pa.UnionArray.from_dense(
        pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1], pa.int8())], ["a"]
    ),
    "run_end_encoded": pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array(["x"])),
    "list_view": pa.array([[1]], pa.list_view(pa.int8())),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_types_name_the_column(client, name, kind):
    schema = pa.schema([*columns_of_keys(), pa.field("v", REFUSED[kind])])
    ipc = base64.b64encode(schema.serialize().to_pybytes()).decode()
    with refused("INVALID") as caught:
        client.act("create_table", table=name, schema_ipc=ipc, **DEFINITION)
    assert "v" in str(caught.value)
    client.act("create_table", table=name, index_type="timestamp", **DEFINITION)
    values = ODD.get(kind) or pa.nulls(1, REFUSED[kind])
    keys = [pa.array([US.replace(tzinfo=UTC)], schema.field(0).type), pa.array(["a"])]
    with refused("INVALID") as caught:
        client.append(name, pa.table([*keys, values], schema=schema))
    assert 'column="v' in str(caught.value)


def columns_of_keys() -> list[pa.Field]:
    return [table().schema.field(0), table().schema.field(1)]


def test_refused_values_name_column_row_and_path(client, name):
    schema = pa.schema(
        [
            *columns_of_keys(),
            pa.field("day", pa.date64()),
            pa.field("p", pa.list_(pa.struct([pa.field("x", pa.int8(), nullable=False), ("t", pa.string())]))),
        ]
    )
    ipc = base64.b64encode(schema.serialize().to_pybytes()).decode()
    client.act("create_table", table=name, schema_ipc=ipc, **DEFINITION)

    def rows(days, points):
        n = len(days)
        loose = pa.list_(pa.struct([("x", pa.int8()), ("t", pa.string())]))
        return pa.table(
            {
                "ts": pa.array([US.replace(second=s, tzinfo=UTC) for s in range(n)], schema.field("ts").type),
                "entity": ["a"] * n,
                "day": _dates(days),
                "p": points if isinstance(points, pa.Array) else pa.array(points, loose),
            }
        )

    with refused("INVALID", column="day", row=1):
        client.append(name, rows([0, 1], [None, None]))
    with refused("SCHEMA_MISMATCH", column="p.item.x", row=2):
        client.append(name, rows([0, 0, 0], [[{"x": 1}], None, [{"x": 1}, {"x": None}]]))
    bad = pa.StructArray.from_arrays(
        [pa.array([1, 2], pa.int8()), pa.array([b"ok", b"\xff"]).view(pa.string())], ["x", "t"]
    )
    with refused("INVALID", column="p.item.t", row=1):
        client.append(name, rows([0, 0], pa.ListArray.from_arrays([0, 1, 2], bad)))
    assert client.append(name, rows([0], [[{"x": 1, "t": "é"}]]))["rows"] == 1


def _dates(millis: list[int]) -> pa.Array:
    """date64 values that need not be whole days."""
    return pa.array(millis, pa.int64()).view(pa.date64())


def test_key_columns_widen(client, name):
    schema = pa.schema([("k", pa.uint64()), ("e", pa.int64()), ("v", pa.float64())])
    client.act(
        "create_table", table=name, index_column="k", index_granularity=1, entity_columns=["e"], columns=columns(schema)
    )
    client.append(
        name,
        pa.table(
            {
                "k": pa.array([1, 2], pa.uint8()),
                "e": pa.array([-1, 5], pa.int16()),
                "v": pa.array([0.5, None], pa.float16()),
            }
        ),
    )
    dictionary = pa.array([7], pa.uint64()).dictionary_encode()
    client.append(name, pa.table({"k": dictionary, "e": pa.array([5], pa.int32()), "v": pa.array([1.5], pa.float32())}))
    got = client.read(name, profile="exact").sort_by("k")
    assert got.schema.types == schema.types
    assert got.to_pydict() == {"k": [1, 2, 7], "e": [-1, 5, 5], "v": [0.5, None, 1.5]}
