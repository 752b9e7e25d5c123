"""Spark opens a table's directory: it reads what a scan reads, and refuses to write."""

import pytest

from alltypes import CASES, DEFINITION, assert_engine_reads, table
from client import Client
from tables import sites
from upgrades import ROWS, stages, values


@pytest.mark.parametrize("table", ["weather", "kinds", "grown", "replaced", "corrected", "optimized"])
def test_reads_the_same(stored, spark, table):
    stored.assert_reads_the_same(spark, table)


def test_reads_every_type(server, spark):
    with Client(server.uri) as client:
        client.act("create_table", table="alltypes", index_type="timestamp", **DEFINITION)
        client.append("alltypes", table())
    path = server.path("alltypes")
    # Spark's way to Arrow refuses a null struct with a child that is not null, but not its rows.
    strict = ["struct", "structs", "map_of_structs"]
    everything = spark.session.read.format("delta").load(str(path))
    assert_engine_reads(everything.drop(*strict).toArrow(), set(CASES) - set(strict))
    rows = [row.asDict(recursive=True) for row in everything.select("ts", *strict).sort("ts").collect()]
    for name in strict:
        expected = [dict(v) if name.startswith("map") and v is not None else v for v in CASES[name].expected]
        assert [row[name] for row in rows] == expected, name


def test_refuses_to_write(stored, spark):
    writes = {"append", "overwrite", "delete", "update", "optimize", "vacuum", "set properties"}
    stored.assert_refuses_writes(spark, "weather", writes)


def test_filters_see_every_row(stored, spark, weather):
    path = stored.server.path("weather")
    counted = spark.session.sql(
        f"SELECT count(*) FROM delta.`{path}` WHERE time_hour >= timestamp'2013-03-31T23:00:00Z'"
        " AND time_hour < timestamp'2013-04-01T02:00:00Z' AND origin IN ('EWR', 'JFK')"
    ).collect()
    assert counted[0][0] == 6


def test_reads_the_same_through_an_upgrade(server, spark):
    with Client(server.uri) as client:
        for stage in stages(client, server, "upgraded"):
            assert values(spark.read(server.path("upgraded"))) == values(sites(ROWS)), stage
