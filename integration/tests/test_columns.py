"""add_columns over the wire: what readers, writers and other engines see of columns that a table gains."""

import base64
import json
import threading

import polars
import pyarrow as pa
import pyarrow.flight as fl
import pytest

import engines
from client import Client, fields
from tables import SITES, assert_same, create_sites, refused, sites, untouched

ROWS = [("a", 0, 0.5), ("a", 1, None), ("b", 0, 1.5)]
MORE = pa.schema(
    [
        pa.field("quality", pa.int8(), metadata={"unit": "1"}),
        pa.field("a.b", pa.dictionary(pa.int32(), pa.string())),
        pa.field("seen", pa.timestamp("ms")),
        pa.field("tags", pa.list_(pa.struct([("k", pa.string()), ("v", pa.float64())]))),
    ]
)


def ipc(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def grown(rows) -> pa.Table:
    """Rows (site, hour, value, quality) with a value in each of the columns of MORE."""
    table = sites([r[:3] for r in rows])
    qualities = pa.array([r[3] for r in rows], pa.int8())
    texts = pa.array([None if r[3] is None else str(r[3]) for r in rows]).dictionary_encode()
    times = pa.array([r[3] for r in rows], pa.int64()).cast(pa.timestamp("ms"))
    tags = pa.array([[] if r[3] is None else [{"k": "x", "v": r[3] / 2}] for r in rows], MORE.field("tags").type)
    for field, values in zip(MORE, [qualities, texts, times, tags]):
        table = table.append_column(field, values)
    return table


def test_columns_are_added(client, name):
    create_sites(client, name, ROWS)
    before = client.flight.get_schema(fl.FlightDescriptor.for_path(name)).schema
    first = json.loads(client.info(table=name).app_metadata)
    report = client.act("add_columns", table=name, schema_ipc=ipc(MORE), expected_version=1)
    assert report == {"starting_version": 1, "committed_version": 2, "columns": MORE.names}
    described = client.act("describe_table", table=name)
    assert [c["name"] for c in described["columns"]] == SITES.names + MORE.names
    assert described["columns"][-4] == {"name": "quality", "type": "int8", "nullable": True}
    assert (described["version"], described["rows"], described["files"]) == (2, 3, 1)
    after = client.flight.get_schema(fl.FlightDescriptor.for_path(name)).schema
    assert before.names == SITES.names and after.names == SITES.names + MORE.names
    assert client.read(name, limit=0, profile="exact").schema.field("quality").metadata == {b"unit": b"1"}
    second = json.loads(client.info(table=name).app_metadata)
    assert first["schema_id"] != second["schema_id"] and first["table_id"] == second["table_id"]
    history = client.get({"op": "history", "table": name}).to_pylist()
    assert history[0]["operation"] == "add_columns" and json.loads(history[0]["report"]) == report


def test_old_rows_are_null_in_every_kind_of_scan(client, name):
    create_sites(client, name, ROWS)
    client.act("add_columns", table=name, schema_ipc=ipc(MORE))
    new = grown([("a", 2, 1.0, 7), ("b", 1, 2.0, None)])
    client.append(name, new)
    got = client.read(name, profile="exact")
    assert got.schema.field("a.b").type == MORE.field("a.b").type
    assert got["quality"].to_pylist() == [None, None, 7, None, None]
    assert got["a.b"].to_pylist() == [None, None, "7", None, None]
    assert got["tags"].to_pylist() == [None, None, [{"k": "x", "v": 3.5}], None, []]
    assert client.read(name)["seen"].null_count == 4
    for column in MORE.names:
        assert client.read(name, columns=[column]).num_rows == 5
        assert client.read(name, columns=[column], newest_first=True)[column].null_count == got[column].null_count
        assert client.read(name, columns=[column], order="unordered")[column].null_count == got[column].null_count
    assert client.read(name, filter=[["quality", "is null"]]).num_rows == 4
    assert client.read(name, filter=[["quality", "=", 7]]).num_rows == 1
    assert client.read(name, filter=[["quality", "!=", 8], ["value", ">", 0]]).num_rows == 1
    assert client.read(name, filter=[["seen", "<", "1970-01-01T00:00:01"]]).num_rows == 1
    explained = client.get({"op": "explain", "table": name, "filter": [["quality", "is not null"]]}).to_pylist()
    assert sorted((f["kept"], f["reason"]) for f in explained) == [(False, "filter"), (True, "kept")]
    assert client.read(name, version=1).column_names == SITES.names
    with refused("INVALID", table=f"default.{name}"):
        client.read(name, version=1, columns=["quality"])


def test_appends_may_leave_nullable_columns_out(client, name):
    create_sites(client, name, ROWS)
    bare = sites([("c", 0, 1.0)]).drop_columns("value")
    with refused("SCHEMA_MISMATCH", column="value"):
        client.append(name, bare)
    client.act("add_columns", table=name, columns=[{"name": "quality", "type": "int8"}])
    client.append(name, bare)
    client.append(name, sites([("c", 1, 1.0)]), request_id="again")
    assert client.append(name, sites([("c", 1, 1.0)]), request_id="again")["replayed"]
    with refused("SCHEMA_MISMATCH", column="site"):
        client.append(name, sites([("c", 2, 1.0)]).drop_columns("site"))
    got = client.read(name, entities=[{"site": "c"}])
    assert got["value"].to_pylist() == [None, 1.0] and got["quality"].to_pylist() == [None, None]


REFUSED = {
    "no column": ({"columns": []}, {"field": "columns"}),
    "neither": ({}, {"field": "columns"}),
    "both": ({"columns": [{"name": "c", "type": "int8"}], "schema_ipc": ipc(MORE)}, {"field": "schema_ipc"}),
    "unknown field": ({"columns": [{"name": "c", "type": "int8", "default": 0}]}, {"field": "columns[0].default"}),
    "unknown type": ({"columns": [{"name": "c", "type": "int128"}]}, {"field": "columns[0].type", "value": "int128"}),
    "not null": ({"columns": [{"name": "c", "type": "int8", "nullable": False}]}, {"column": "c"}),
    "twice": ({"columns": [{"name": "c", "type": "int8"}, {"name": "C", "type": "int8"}]}, {"column": "C"}),
    "there": ({"columns": [{"name": "VALUE", "type": "int8"}]}, {"column": "VALUE"}),
    "index column": ({"columns": [{"name": "ts", "type": "int8"}]}, {"column": "ts"}),
    "entity column": ({"columns": [{"name": "site", "type": "int8"}]}, {"column": "site"}),
    "insertion time": ({"columns": [{"name": "_ingest_ts", "type": "int8"}]}, {"column": "_ingest_ts"}),
    "blank": ({"columns": [{"name": " ", "type": "int8"}]}, {"column": " "}),
    "unsupported": (
        {"schema_ipc": ipc(pa.schema([("c", pa.month_day_nano_interval())]))},
        {"column": "c", "type": "month_day_nano_interval"},
    ),
    "schema metadata": ({"schema_ipc": ipc(MORE.with_metadata({"k": "v"}))}, {"field": "schema_ipc"}),
    "no schema": ({"schema_ipc": "AAAA"}, {"field": "schema_ipc"}),
    "version as text": (
        {"columns": [{"name": "c", "type": "int8"}], "expected_version": "x"},
        {"field": "expected_version"},
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_added(server, client, name, case):
    create_sites(client, name, ROWS)
    body, told = REFUSED[case]
    with untouched(server), refused("INVALID", table=f"default.{name}", **told):
        client.act("add_columns", **({"table": name, "expected_version": 0} | body))  # stale, but told last


def test_other_refusals(server, client, name):
    create_sites(client, name, ROWS)
    column = {"columns": [{"name": "c", "type": "int8"}]}
    with untouched(server):
        with refused("VERSION_CONFLICT", table=f"default.{name}", expected=0, found=1):
            client.act("add_columns", table=name, expected_version=0, **column)
        with refused("TABLE_NOT_FOUND"):
            client.act("add_columns", table=name, table_id="another", **column)
        with refused("TABLE_NOT_FOUND"):
            client.act("add_columns", table="nowhere", **column)
    bare = name[:90] + "-bare"
    client.act("create_table", table=bare, index_column="ts", index_type="timestamp", index_granularity="1h")
    with refused("INVALID", field="columns"):
        client.act("add_columns", table=bare, **column)


def test_racing_appends_and_columns(server, name):
    """Appends go on while columns are added one after the other: every row and every column is there."""
    with Client(server.uri) as client:
        create_sites(client, name)
        errors = []

        def appends(site: str):
            try:
                with Client(server.uri) as own:
                    for hour in range(10):
                        own.append(name, sites([(site, hour, 1.0)]))
            except Exception as e:  # told below
                errors.append(e)

        threads = [threading.Thread(target=appends, args=(site,)) for site in "abc"]
        for thread in threads:
            thread.start()
        for number in range(5):
            client.act("add_columns", table=name, columns=[{"name": f"c{number}", "type": "double"}])
        for thread in threads:
            thread.join()
        assert not errors
        got = client.read(name)
        assert got.num_rows == 30 and got.column_names == SITES.names + [f"c{n}" for n in range(5)]
        assert client.act("describe_table", table=name)["version"] == 35


def test_of_two_that_add_columns_both_win_or_are_told(server, name):
    """Columns that are added at once: each client has its own, or knows that somebody was faster."""
    with Client(server.uri) as client:
        create_sites(client, name, ROWS)
        outcomes = {}

        def add(column: str):
            with Client(server.uri) as own:
                try:
                    own.act("add_columns", table=name, columns=[{"name": column, "type": "double"}], expected_version=1)
                    outcomes[column] = "won"
                except fl.FlightError as e:
                    outcomes[column] = fields(e)["token"]

        threads = [threading.Thread(target=add, args=(f"c{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes.values()) == ["VERSION_CONFLICT"] * 3 + ["won"]
        winner = next(c for c, outcome in outcomes.items() if outcome == "won")
        assert client.read(name).column_names == [*SITES.names, winner]


@pytest.mark.parametrize("engine", [engines.Deltalake, engines.DuckDB, engines.Polars], ids=lambda e: e.__name__)
def test_engines_see_the_columns_at_once(server, client, name, engine):
    create_sites(client, name, ROWS)
    client.act("add_columns", table=name, schema_ipc=ipc(MORE))
    path = server.path(name)
    assert engine().read(path)["quality"].null_count == 3  # before any file has the column
    client.append(name, grown([("a", 2, 1.0, 7)]))
    got = engine().read(path).sort_by([("site", "ascending"), ("ts", "ascending")])
    want = client.read(name)
    assert_same(got.select(["value", "quality"]), want.select(["value", "quality"]))
    assert got["a.b"].to_pylist() == [None, None, "7", None]
    assert [None if t is None else t.isoformat() for t in got["seen"].to_pylist()] == [
        None,
        None,
        "1970-01-01T00:00:00.007000",
        None,
    ]


def test_polars_filters_on_an_added_column(server, client, name):
    create_sites(client, name, ROWS)
    client.act("add_columns", table=name, schema_ipc=ipc(pa.schema([MORE.field("quality")])))
    client.append(name, grown([("a", 2, 1.0, 7)]).select([*SITES.names, "quality"]))
    lazy = polars.scan_delta(str(server.path(name)))
    assert lazy.filter(polars.col("quality") == 7).collect().height == 1
    assert lazy.filter(polars.col("quality").is_null()).collect().height == 3
