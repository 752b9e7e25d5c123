"""deltalake, DuckDB and Polars open a table's directory: they read what a scan reads, and each refuses to write."""

import datetime
import shutil

import deltalake
import pyarrow.compute as pc
import pytest

import engines
from client import Client
from interop import kinds
from tables import assert_same

WRITES = {
    engines.Deltalake: {"append", "overwrite", "delete", "update", "optimize", "restore", "set properties"},
    engines.DuckDB: {"append", "delete", "update"},
    engines.Polars: {"append", "overwrite"},
}


def test_every_accepted_type_comes_back_exactly(stored):
    with Client(stored.server.uri) as client:
        got = client.read("kinds", profile="exact")
        compat = client.read("kinds")
    assert got.schema == kinds().schema
    assert_same(got, kinds())
    plain = {
        "large_string": "string",
        "string_view": "string",
        "dictionary": "string",
        "large_binary": "binary",
        "binary_view": "binary",
        "large_list": "list<item: string>",
        "decimal32": "decimal128(9, 2)",
        "decimal64": "decimal128(18, 2)",
        "decimal256": "decimal128(30, 2)",
        "date64": "date32[day]",
    }
    assert {f.name: str(f.type) for f in compat.schema} == {f.name: plain.get(f.name, str(f.type)) for f in got.schema}
    assert_same(compat, kinds())


@pytest.mark.parametrize("table", ["weather", "kinds", "grown", "replaced", "corrected", "optimized"])
@pytest.mark.parametrize("engine", WRITES, ids=lambda e: e.__name__)
def test_reads_the_same(stored, engine, table):
    stored.assert_reads_the_same(engine(), table)


@pytest.mark.parametrize("engine", WRITES, ids=lambda e: e.__name__)
def test_refuses_to_write(stored, engine):
    stored.assert_refuses_writes(engine(), "weather", WRITES[engine])


def test_a_directory_moved_away_is_still_a_table(stored, tmp_path):
    moved = shutil.copytree(stored.server.path("weather"), tmp_path / "moved")
    got = engines.Deltalake().read(moved).sort_by([("origin", "ascending"), ("time_hour", "ascending")])
    assert_same(got, stored.scan("weather"))


def test_deltalake_travels_in_time(stored, months):
    for version in (0, 1, 12):
        table = deltalake.DeltaTable(stored.server.path("weather"), version=version)
        assert table.to_pyarrow_table().num_rows == sum(m.num_rows for m in months[:version])


def test_engines_prune_with_the_statistics_and_lose_nothing(stored, weather):
    path = stored.server.path("weather")
    duck = (
        engines.DuckDB()
        .connection.execute(
            f"SELECT count(*), count(temp), min(temp), max(temp) FROM delta_scan('{path}')"
            " WHERE origin = 'LGA' AND time_hour >= '2013-06-30 22:00:00+00' AND time_hour < '2013-07-02 01:00:00+00'"
        )
        .fetchall()
    )
    utc = datetime.UTC
    time = pc.field("time_hour")
    want = weather.filter(
        (pc.field("origin") == "LGA")
        & (time >= datetime.datetime(2013, 6, 30, 22, tzinfo=utc))
        & (time < datetime.datetime(2013, 7, 2, 1, tzinfo=utc))
    )
    temp = want["temp"]
    assert duck == [(want.num_rows, len(temp) - temp.null_count, pc.min(temp).as_py(), pc.max(temp).as_py())]
