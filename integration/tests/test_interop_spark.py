"""Spark opens a table's directory: it reads what a scan reads, and refuses to write."""

import pytest

import engines


@pytest.fixture(scope="module")
def spark():
    engine = engines.Spark()
    yield engine
    engine.stop()


@pytest.mark.parametrize("table", ["weather", "kinds"])
def test_reads_the_same(stored, spark, table):
    stored.assert_reads_the_same(spark, table)


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
