"""Refused requests: each gives its token and fields, changes no table and no file, and leaves the server alive."""

import base64
import json

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from client import Client
from tables import SITES, columns, create_sites, refused, sites, untouched

ROWS = [("a", 0, 0.5), ("a", 1, None), ("b", 0, 1.5)]
MIB = 1 << 20


@pytest.fixture(scope="module")
def table(server) -> str:
    """A table of three rows at version 1. No test changes it."""
    with Client(server.uri) as client:
        create_sites(client, "sites", ROWS)
    return "sites"


NEW = sites([("a", 7, 1.0), ("c", 0, 2.0), ("b", 7, 3.0)])


def with_column(name: str, values: pa.Array, table: pa.Table = NEW) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, values)


APPENDS = {
    "wrong type": (
        with_column("value", pa.array(["1", "2", "3"])),
        "SCHEMA_MISMATCH",
        {"column": "value", "expected": "double", "found": "string"},
    ),
    "narrowing": (
        with_column("ts", NEW["ts"].cast(pa.timestamp("ns", tz="UTC"))),
        "SCHEMA_MISMATCH",
        {"column": "ts", "expected": "timestamp[us, tz=UTC]", "found": "timestamp[ns, tz=UTC]"},
    ),
    "missing": (NEW.drop_columns("value"), "SCHEMA_MISMATCH", {"column": "value", "expected": "double", "found": None}),
    "missing key": (NEW.drop_columns("site"), "SCHEMA_MISMATCH", {"column": "site", "found": None}),
    "extra": (
        NEW.append_column("more", pa.array([1, 2, 3])),
        "SCHEMA_MISMATCH",
        {"column": "more", "expected": None, "found": "int64"},
    ),
    "equal up to case": (NEW.rename_columns(["site", "ts", "Value"]), "SCHEMA_MISMATCH", {"column": "value"}),
    "repeated": (NEW.append_column("value", pa.array([1.0, 2.0, 3.0])), "SCHEMA_MISMATCH", {"column": "value"}),
    "null entity": (sites([("a", 7, 1.0), (None, 8, 1.0), (None, 9, 1.0)]), "NULL_KEY", {"column": "site", "row": 1}),
    "null index": (sites([("a", 7, 1.0), ("b", 8, 1.0), ("b", None, 1.0)]), "NULL_KEY", {"column": "ts", "row": 2}),
    "duplicate": (
        sites([("b", 7, 1.0), ("a", 7, 1.0), ("b", 8, 2.0), ("b", 7.5, 3.0)]),
        "DUPLICATE_INTERVAL",
        {"entity": {"site": "b"}, "interval": "[2026-01-01T07:00:00Z, 2026-01-01T08:00:00Z)", "rows": [0, 3]},
    ),
    "overlap": (
        sites([("c", 7, 1.0), ("b", 0.25, 1.0), ("a", 1, 2.0)]),
        "INTERVAL_OVERLAP",
        {
            "conflict_count": 2,
            "entity": {"site": "a"},
            "interval": "[2026-01-01T01:00:00Z, 2026-01-01T02:00:00Z)",
            "version": 1,
        },
    ),
    "duplicate before overlap": (
        sites([("a", 0, 1.0), ("c", 7, 1.0), ("c", 7, 1.0)]),
        "DUPLICATE_INTERVAL",
        {"entity": {"site": "c"}, "rows": [1, 2]},
    ),
    "invalid UTF-8": (
        with_column(
            "site",
            pa.Array.from_buffers(
                pa.string(), 3, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0"), pa.py_buffer(b"a\xffc")]
            ),
        ),
        "INVALID",
        {"column": "site", "row": 1},
    ),
}


@pytest.mark.parametrize("case", APPENDS)
@pytest.mark.parametrize("batches", [None, 1])
def test_refused_rows(server, client, table, case, batches):
    rows, token, told = APPENDS[case]
    with untouched(server), refused(token, table="default.sites", **told):
        client.append(table, rows, max_chunksize=batches)


def test_null_in_a_payload_column_that_may_hold_none(server, client, name):
    schema = pa.schema([*SITES][:2] + [pa.field("value", pa.float64(), nullable=False)])
    client.act(
        "create_table",
        table=name,
        index_column="ts",
        entity_columns=["site"],
        columns=columns(schema),
        uniqueness="none",
    )
    with untouched(server), refused("SCHEMA_MISMATCH", column="value", row=1):
        client.append(name, sites(ROWS))


COMMANDS = {
    "not JSON": b"append, please",
    "empty": b"",
    "cut short": b'{"op":"append","table":"sites"',
    "trailing bytes": b'{"op":"append","table":"sites"}x',
    "a second object": b'{"op":"append","table":"sites"}{}',
    "an array": b'["append","sites"]',
    "not UTF-8": b'{"op":"append","table":"si\xfftes"}',
    "a NUL behind": b'{"op":"append","table":"sites"}\0',
    "unknown key": b'{"op":"append","table":"sites","tabel":1}',
    "repeated key": b'{"op":"append","table":"sites","table":"sites"}',
    "key in another case": b'{"op":"append","Table":"sites"}',
    "no op": b'{"table":"sites"}',
    "no table": b'{"op":"append"}',
    "unknown op": b'{"op":"apend","table":"sites"}',
    "an op of another call": b'{"op":"scan","table":"sites"}',
    "table as number": b'{"op":"append","table":7}',
    "rows as text": b'{"op":"append","table":"sites","rows":"many"}',
    "rows as boolean": b'{"op":"append","table":"sites","rows":true}',
    "rows below zero": b'{"op":"append","table":"sites","rows":-1}',
    "rows with a fraction": b'{"op":"append","table":"sites","rows":1.5}',
    "rows beyond int64": b'{"op":"append","table":"sites","rows":9223372036854775808}',
    "two ends": b'{"op":"append","table":"sites","rows":3,"end":"marker"}',
    "unknown end": b'{"op":"append","table":"sites","end":"soon"}',
    "unknown compression": b'{"op":"append","table":"sites","compression":"rar"}',
    "empty row groups": b'{"op":"append","table":"sites","max_rows_per_row_group":0}',
    "expected_version below zero": b'{"op":"append","table":"sites","expected_version":-1}',
    "expected_version as boolean": b'{"op":"append","table":"sites","expected_version":false}',
    "request_id with a line end": b'{"op":"append","table":"sites","request_id":"a\\n"}',
    "request_id too long": json.dumps({"op": "append", "table": "sites", "request_id": "x" * 129}).encode(),
    "nested deeply": b'{"op":"append","table":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


@pytest.mark.parametrize("case", COMMANDS)
def test_malformed_append(server, client, table, case):
    with untouched(server), refused("INVALID"):
        client.put(COMMANDS[case], NEW)


TICKETS = {
    "not JSON": (b"all of it", None),
    "empty": (b"", None),
    "trailing bytes": (b'{"op":"scan","table":"sites"} 1', None),
    "unknown key": (b'{"op":"scan","table":"sites","were":1}', "were"),
    "repeated key": (b'{"op":"scan","table":"sites","version":1,"version":1}', "version"),
    "an op of another call": (b'{"op":"append","table":"sites"}', "op"),
    "zero columns": (b'{"op":"scan","table":"sites","columns":[]}', "columns"),
    "unknown column": (b'{"op":"scan","table":"sites","columns":["site","Value"]}', "columns[1]"),
    "repeated column": (b'{"op":"scan","table":"sites","columns":["site","ts","site"]}', "columns[2]"),
    "column as number": (b'{"op":"scan","table":"sites","columns":[1]}', "columns[0]"),
    "reversed range": (
        b'{"op":"scan","table":"sites","start":"2026-01-02T00:00:00Z","end":"2026-01-01T00:00:00Z"}',
        "start",
    ),
    "empty range": (
        b'{"op":"scan","table":"sites","start":"2026-01-01T00:00:00Z","end":"2026-01-01T01:00:00+01:00"}',
        "start",
    ),
    "naive time": (b'{"op":"scan","table":"sites","start":"2026-01-01T00:00:00"}', "start"),
    "no time": (b'{"op":"scan","table":"sites","end":"tomorrow"}', "end"),
    "time as fraction": (b'{"op":"scan","table":"sites","end":1.5}', "end"),
    "not a day": (b'{"op":"scan","table":"sites","end":"2026-02-30T00:00:00Z"}', "end"),
    "unknown entity column": (
        b'{"op":"scan","table":"sites","entities":[{"site":"a"},{"value":1}]}',
        "entities[1].value",
    ),
    "mistyped entity": (b'{"op":"scan","table":"sites","entities":[{"site":5}]}', "entities[0].site"),
    "null entity": (b'{"op":"scan","table":"sites","entities":[{"site":null}]}', "entities[0].site"),
    "entities as object": (b'{"op":"scan","table":"sites","entities":{"site":"a"}}', "entities"),
    "no batch rows": (b'{"op":"scan","table":"sites","batch_rows":0}', "batch_rows"),
    "unknown profile": (b'{"op":"scan","table":"sites","profile":"fancy"}', "profile"),
    "version below zero": (b'{"op":"scan","table":"sites","version":-1}', "version"),
    "version as boolean": (b'{"op":"scan","table":"sites","version":true}', "version"),
    "split beyond its count": (b'{"op":"scan","table":"sites","version":1,"split":{"index":2,"count":2}}', None),
    "split without a version": (b'{"op":"scan","table":"sites","split":{"index":0,"count":2}}', None),
}


@pytest.mark.parametrize("case", TICKETS)
def test_malformed_scan(server, client, table, case):
    ticket, field = TICKETS[case]
    told = {} if field is None else {"field": field}
    with untouched(server):
        with refused("INVALID", **told):
            client.get(ticket)
        with refused("INVALID", **told):
            client.flight.get_flight_info(fl.FlightDescriptor.for_command(ticket))


def test_versions_and_tables_that_are_not_there(server, client, table):
    with untouched(server):
        with refused("VERSION_NOT_FOUND", table="default.sites", version=2, current=1):
            client.read(table, version=2)
        with refused("VERSION_NOT_FOUND", version=2**63 - 1):
            client.act("describe_table", table=table, version=2**63 - 1)
        with refused("TABLE_NOT_FOUND", table="default.sites"):
            client.read(table, table_id="00000000-0000-0000-0000-000000000000")
        for call in (
            lambda: client.read("nobody"),
            lambda: client.info(table="nobody"),
            lambda: client.append("nobody", NEW),
            lambda: client.put(fl.FlightDescriptor.for_path("default", "nobody"), NEW),
            lambda: client.act("describe_table", table="nobody"),
            lambda: client.act("drop_table", table="nobody"),
        ):
            with refused("TABLE_NOT_FOUND", table="default.nobody"):
                call()


NAMES = {
    "parent": "..",
    "this": ".",
    "path": "a/b",
    "backslash": "a\\b",
    "empty": "",
    "1 MiB": "x" * MIB,
    "129 bytes": "x" * 129,
    "leading underscore": "_trash",
    "leading dash": "-rf",
    "three parts": "a.b.c",
    "empty part": "default.",
    "NUL": "a\0b",
    "blank": "a b",
    "not ASCII": "größe",
    "percent": "%2e%2e",
}


@pytest.mark.parametrize("case", NAMES)
def test_table_names_that_are_none(server, client, table, case):
    bad = NAMES[case]
    definition = {"index_column": "ts", "index_granularity": "1h", "columns": columns(SITES)}
    with untouched(server):
        for call in (
            lambda: client.act("create_table", table=bad, **definition),
            lambda: client.append(bad, NEW),
            lambda: client.put(fl.FlightDescriptor.for_path(bad), NEW),
            lambda: client.put(fl.FlightDescriptor.for_path("default", bad), NEW),
            lambda: client.read(bad),
            lambda: client.info(table=bad),
            lambda: client.flight.get_flight_info(fl.FlightDescriptor.for_path(bad)),
            lambda: client.act("describe_table", table=bad),
            lambda: client.act("drop_table", table=bad),
        ):
            with refused("INVALID") as caught:
                call()
            # Clients refuse more than 8 KiB of trailers, so no message may grow with the request.
            assert len(str(caught.value)) < 4096


def test_a_name_equal_up_to_case_is_refused(server, client, table):
    with untouched(server):
        for twin in ("default.Sites", "default.SITES", "Default.sites", "Default.other"):
            with refused("TABLE_EXISTS", table=twin) as caught:
                create_sites(client, twin)
            assert "default.sites exists already" in str(caught.value)
        with refused("TABLE_NOT_FOUND", table="default.Sites"):
            client.read("Sites")


DEFINITIONS = {
    "unknown key": ({"granularity": "1h"}, "granularity"),
    "no index column": ({"index_column": None}, "index_column"),
    "index column that is not there": ({"index_column": "time"}, None),
    "index column of a wrong type": ({"index_column": "value"}, None),
    "entity column that is not there": ({"entity_columns": ["plant"]}, None),
    "entity column of a wrong type": ({"entity_columns": ["value"]}, None),
    "entity column twice": ({"entity_columns": ["site", "site"]}, None),
    "index as entity": ({"entity_columns": ["ts"]}, None),
    "no granularity": ({"index_granularity": None}, None),
    "granularity without a unit": ({"index_granularity": "5"}, "index_granularity"),
    "granularity of no tick": ({"index_granularity": "1500ns"}, "index_granularity"),
    "granularity of zero": ({"index_granularity": "0h"}, "index_granularity"),
    "unknown zone": ({"timezone": "America/Atlantis"}, "timezone"),
    "unknown uniqueness": ({"uniqueness": "sometimes"}, "uniqueness"),
    "a reserved property": ({"properties": {"contrail.index-column": "x"}}, None),
    "unknown type": ({"columns": [{"name": "ts", "type": "moment"}]}, "columns[0].type"),
    "columns equal up to case": ({"columns": columns(SITES) + [{"name": "SITE", "type": "string"}]}, None),
    "blank column name": ({"columns": columns(SITES) + [{"name": " ", "type": "string"}]}, None),
    "no columns": ({"columns": []}, None),
}


@pytest.mark.parametrize("case", DEFINITIONS)
def test_malformed_create(server, client, table, name, case):
    change, field = DEFINITIONS[case]
    definition = {
        "index_column": "ts",
        "index_granularity": "1h",
        "entity_columns": ["site"],
        "columns": columns(SITES),
    }
    with untouched(server), refused("INVALID", **({} if field is None else {"field": field})):
        client.act("create_table", table=name, **(definition | change))


REFUSED = {"month_day_nano_interval": pa.array([pa.MonthDayNano([1, 2, 3])] * 3), "null": pa.nulls(3)}


@pytest.mark.parametrize("type_", REFUSED)
def test_types_that_are_not_stored_are_refused_by_name(server, client, name, type_):
    rows = pa.table({"ts": NEW["ts"], "x": REFUSED[type_]})
    definition = {"index_column": "ts", "index_granularity": "1h", "uniqueness": "none"}
    ipc = base64.b64encode(rows.schema.serialize().to_pybytes()).decode()
    with untouched(server), refused("INVALID", column="x", type=type_):
        client.act("create_table", table=name, schema_ipc=ipc, **definition)
    client.act("create_table", table=name, index_type="timestamp", **definition)
    with untouched(server), refused("INVALID", column="x", type=type_, table=f"default.{name}"):
        client.append(name, rows)


ACTIONS = {
    "unknown action": ("create_tabel", b"{}"),
    "not JSON": ("list_tables", b"all"),
    "trailing bytes": ("server_info", b"{}{}"),
    "unknown key": ("list_tables", b'{"name":"default"}'),
    "repeated key": ("describe_table", b'{"table":"sites","table":"sites"}'),
    "no body": ("describe_table", b""),
    "drop with a fraction": ("drop_table", b'{"table":"sites","expected_version":0.5}'),
}


@pytest.mark.parametrize("case", ACTIONS)
def test_malformed_action(server, client, table, case):
    with untouched(server), refused("INVALID"):
        client.act_raw(*ACTIONS[case])


def test_drop_with_a_stale_version(server, client, table):
    with untouched(server), refused("VERSION_CONFLICT", expected=0, found=1):
        client.act("drop_table", table=table, expected_version=0)
