"""update_rows over the wire: whole rows by key, every refusal, other engines afterwards, and kill -9 in the middle."""

import random
import threading

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as fl
import pytest

import engines
import service
from client import Client, fields
from tables import assert_same, create_sites, create_weather, files, refused, sites

ENGINES = [engines.Deltalake, engines.DuckDB, engines.Polars]


def update(client: Client, name: str, data: pa.Table, version: int, **settings) -> dict:
    command = {"op": "update_rows", "table": name, "columns": ["value"], "expected_version": version}
    return client.put(command | settings, data, 3)


@pytest.fixture
def filled(client, name):
    """Two files of the small table; the version is 2."""
    create_sites(client, name, [("a", 1, 1.0), ("a", 2, 2.0), ("b", 1, 3.0)])
    client.append(name, sites([("a", 7, 4.0), ("b", 8, None)]))
    return name


def test_rows_get_the_streams_values(client, filled):
    report = update(client, filled, sites([("b", 8, 80.0), ("b", 1, None)]), 2, rows=2)
    assert list(report) == [
        "starting_version",
        "committed_version",
        "rows_updated",
        "segments_rewritten",
        "source_file_bytes",
        "replacement_file_bytes",
        "no_op",
    ]
    assert (report["starting_version"], report["committed_version"], report["rows_updated"]) == (2, 3, 2)
    assert (report["segments_rewritten"], report["no_op"]) == (2, False)
    assert_same(
        client.read(filled), sites([("a", 1, 1.0), ("a", 2, 2.0), ("a", 7, 4.0), ("b", 1, None), ("b", 8, 80.0)])
    )
    assert client.read(filled, version=2)["value"].null_count == 1
    newest = client.get({"op": "history", "table": filled}).slice(0, 1).to_pylist()[0]
    assert (newest["operation"], newest["rows_added"], newest["rows_removed"]) == ("update_rows", 5, 5)


def test_only_files_with_addressed_rows_are_rewritten(client, server, filled):
    before = files(server.path(filled) / "data")
    report = update(client, filled, sites([("a", 7, 4.5)]), 2)
    after = files(server.path(filled) / "data")
    assert report["segments_rewritten"] == 1
    assert before.items() <= after.items() and len(after) == len(before) + 1


def test_unchosen_values_keep_their_bits(client, name):
    """NaN payloads and -0.0 in a column that is not chosen, beside a new nested value."""
    odd = pa.array([0x7FF8_0000_0000_0001, 0x8000_0000_0000_0000, 0xFFF0_0000_0000_0000], pa.uint64()).view(
        pa.float64()
    )
    nested = pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())]))
    rows = sites([("a", 1, None), ("a", 2, None), ("b", 1, None)]).set_column(2, "value", odd)
    rows = rows.append_column("deep", pa.array([[{"x": 1, "y": "one"}], None, []], nested))
    definition = {"index_column": "ts", "index_granularity": "1h", "entity_columns": ["site"]}
    columns = [{"name": f.name, "type": str(f.type), "nullable": True} for f in rows.schema]
    client.act("create_table", table=name, columns=columns, **definition)
    client.append(name, rows)
    deep = pa.array([None, [{"x": None, "y": "two"}, None]], nested)
    fresh = sites([("a", 1, 0), ("b", 1, 0)]).drop(["value"]).append_column("deep", deep)
    update(client, name, fresh, 1, columns=["deep"])
    got = client.read(name)
    assert got["value"].combine_chunks().view(pa.uint64()).equals(odd.view(pa.uint64()))
    assert got["deep"].to_pylist() == [None, None, [{"x": None, "y": "two"}, None]]


def test_a_stream_without_rows_is_no_commit(client, filled):
    report = update(client, filled, sites([]), 2)
    assert (report["committed_version"], report["rows_updated"], report["no_op"]) == (2, 0, True)
    with refused("VERSION_CONFLICT", expected=1, found=2):
        update(client, filled, sites([]), 1)


def test_key_errors(client, filled):
    example = {"site": "a", "ts": "2026-01-01T01:30:00Z"}
    with refused("UNMATCHED_SOURCE_KEY", reason="unmatched_source_key", rows_seen=3, violations=2, example_key=example):
        update(client, filled, sites([("c", 1, 0.0), ("a", 1.5, 0.0), ("a", 1, 0.0)]), 2)
    example = {"site": "b", "ts": "2026-01-01T01:00:00Z"}
    with refused("DUPLICATE_SOURCE_KEY", reason="duplicate_source_key", rows_seen=3, violations=1, example_key=example):
        update(client, filled, sites([("b", 1, 0.0), ("zzz", 1, 0.0), ("b", 1, 0.0)]), 2)


def test_ambiguous_keys(client, name):
    create_sites(client, name, [("a", 1, 1.0), ("a", 1, 2.0), ("b", 1, 3.0)], uniqueness="none")
    example = {"site": "a", "ts": "2026-01-01T01:00:00Z"}
    with refused("AMBIGUOUS_TARGET_KEY", reason="ambiguous_target_key", rows_seen=2, violations=1, example_key=example):
        update(client, name, sites([("b", 1, 0.0), ("a", 1, 0.0)]), 1)
    assert update(client, name, sites([("b", 1, 0.0)]), 1)["rows_updated"] == 1


@pytest.mark.parametrize(
    ("settings", "token", "more"),
    [
        ({"columns": []}, "INVALID", {"field": "columns"}),
        ({"columns": ["value", "value"]}, "INVALID", {"field": "columns[1]"}),
        ({"columns": ["site"]}, "INVALID", {"field": "columns[0]"}),
        ({"columns": ["nope"]}, "INVALID", {"field": "columns[0]"}),
        ({"columns": "value"}, "INVALID", {"field": "columns"}),
        ({"expected_version": True}, "INVALID", {"field": "expected_version"}),
        ({"expected_version": -1}, "INVALID", {"field": "expected_version"}),
        ({"expected_version": 1}, "VERSION_CONFLICT", {"expected": 1, "found": 2}),
        ({"columns": ["_ingest_ts"]}, "SCHEMA_MISMATCH", {"column": "_ingest_ts"}),
        ({"compression": "zstd"}, "INVALID", {"field": "compression"}),
        ({"rows": 2}, "STREAM_INCOMPLETE", {"expected_rows": 2, "rows": 1}),
        ({"end": "marker"}, "STREAM_INCOMPLETE", {"expected_rows": None, "rows": 1}),
        ({"table": "nowhere"}, "TABLE_NOT_FOUND", {}),
    ],
)
def test_refusals(client, filled, settings, token, more):
    with refused(token, **more):
        update(client, filled, sites([("a", 1, 9.0)]), 2, **settings)
    assert client.act("describe_table", table=filled)["version"] == 2


def test_a_null_key_names_its_row(client, filled):
    with refused("NULL_KEY", column="site", row=1):
        update(client, filled, sites([("a", 1, 9.0), (None, 1, 9.0), ("a", None, 9.0)]), 2)


def test_repetition(client, filled):
    rows = sites([("a", 1, 10.0), ("b", 1, 30.0)])
    first = update(client, filled, rows, 2, request_id="fix-1")
    client.append(filled, sites([("c", 1, 1.0)]))
    assert update(client, filled, rows, 2, request_id="fix-1") == first
    assert update(client, filled, rows.select([2, 0, 1]), 77, request_id="fix-1") == first
    with refused("REQUEST_ID_REUSED", request_id="fix-1", version=3):
        update(client, filled, sites([("a", 1, 10.0)]), 2, request_id="fix-1")


def test_columns_added_later(client, filled):
    client.act("add_columns", table=filled, columns=[{"name": "quality", "type": "int8"}])
    rows = sites([("a", 2, 0), ("b", 8, 0)]).drop(["value"]).append_column("quality", pa.array([2, -8], pa.int8()))
    update(client, filled, rows, 3, columns=["quality"])
    assert client.read(filled)["quality"].to_pylist() == [None, 2, None, None, -8]
    assert client.read(filled, filter=[["quality", "<", 0]])["site"].to_pylist() == ["b"]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_engines_read_the_same_after_updates(client, server, name, months, weather, engine):
    create_weather(client, name, weather.schema)
    for month in months[:3]:
        client.append(name, month)
    chance = random.Random(7)
    rows = pa.concat_tables(months[:3])
    for version in range(3, 6):
        rows = rows.take(pa.array(chance.sample(range(rows.num_rows), rows.num_rows)))
        some = rows.slice(0, 500).select(["origin", "time_hour", "temp"])
        some = some.set_column(2, "temp", pc.add(pc.fill_null(some["temp"], 0.0), 100.0))
        client.put(
            {"op": "update_rows", "table": name, "columns": ["temp"], "expected_version": version, "rows": 500}, some
        )
    keys = [("origin", "ascending"), ("time_hour", "ascending")]
    want = client.read(name)
    got = engine().read(server.path(name)).select(want.column_names).sort_by(keys)
    assert_same(got.cast(want.schema), want)


def test_kill_minus_nine_during_updates(tmp_path, built):
    """An update that was acknowledged is there; one that was not is there whole or not at all."""
    server, chance = service.Service(tmp_path / "warehouse"), random.Random(4)
    hours = range(400)
    with server, Client(server.uri) as client:
        create_sites(client, "sites", [(site, hour, 0.0) for site in "ab" for hour in hours])
    version, value = 1, 0
    for _ in range(12):
        server.start()
        timer = threading.Timer(chance.uniform(0.005, 0.08), server.kill)
        with Client(server.uri) as client:
            rows = client.read("sites")
            found = set(rows["value"].to_pylist())
            assert rows.num_rows == 800 and len(found) == 1 and found <= {float(value), float(value + 1)}
            at = client.act("describe_table", table="sites")["version"]
            assert at == version + (found == {float(value + 1)})
            version, value = at, int(found.pop())
            timer.start()
            try:
                while True:
                    rows = sites([(site, hour, value + 1.0) for site in "ab" for hour in hours])
                    version = update(client, "sites", rows, version)["committed_version"]
                    value += 1
            except (fl.FlightError, pa.ArrowException) as error:
                assert not getattr(error, "extra_info", b""), fields(error)
        timer.join()
