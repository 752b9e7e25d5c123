"""What a scan does not read, counted by the server itself."""

import pytest

import ticks
from client import Client
from tables import columns, create_sites, sites

ROWS = 10_000_000


def test_one_entity_and_hour_of_a_thousand_files_opens_one(client, name):
    create_sites(client, name, properties={"contrail.maintenance": "off"})
    for day in range(1000):
        client.append(name, sites([(s, 24 * day + h, day + h / 100) for s in ("a", "b", "c") for h in range(24)]))
    got = client.read(name, entities=[{"site": "b"}], start="2027-05-05T13:00:00Z", end="2027-05-05T14:00:00Z")
    stats = client.stats()
    assert got.num_rows == stats["rows"] == 1
    assert (stats["files"], stats["files_skipped"]) == (1, 999)
    assert (stats["row_groups"], stats["version"]) == (1, 1000)


@pytest.fixture(scope="module")
def ten_million(server):
    """One append of 10 M ticks: (table name, report, ticks)."""
    rows = ticks.make(ROWS)
    with Client(server.uri) as client:
        client.act(
            "create_table",
            table="ticks",
            index_column="ts",
            index_granularity="1s",
            entity_columns=["symbol"],
            columns=columns(rows.schema),
        )
        report = client.append("ticks", rows, max_chunksize=65_536)
    return "ticks", report, rows


def test_one_percent_of_the_time_of_one_big_append_opens_two_files_at_most(client, ten_million):
    table, report, rows = ten_million
    assert report["rows"] == ROWS and len(report["data_files"]) >= 4
    start, end = rows["ts"][ROWS // 2].as_py(), rows["ts"][ROWS // 2 + ROWS // 100].as_py()
    got = client.read(table, start=start.isoformat(), end=end.isoformat())
    stats = client.stats()
    assert got.num_rows == stats["rows"] == ROWS // 100
    assert stats["files"] <= 2 and stats["files"] + stats["files_skipped"] == len(report["data_files"])
    assert got["ts"].combine_chunks().sort().equals(rows["ts"].slice(ROWS // 2, ROWS // 100).combine_chunks())


def test_one_entity_of_one_big_append_reads_few_rows(client, ten_million):
    table, report, _ = ten_million
    got = client.read(table, entities=[{"symbol": "S0500"}])
    stats = client.stats()
    assert got.num_rows == stats["rows"] == ROWS // ticks.SYMBOLS
    assert got["ts"].combine_chunks().equals(got["ts"].combine_chunks().sort())
    groups = sum(f["row_groups"] for f in report["data_files"])
    assert stats["row_groups"] <= 2 * len(report["data_files"]) < groups
    assert stats["row_groups"] + stats["row_groups_skipped"] == groups
