"""Incremental scans over Flight: what appends have added behind a version, read from the log."""

import deltalake
import pyarrow as pa
import pytest

from client import Client
from service import Service
from tables import create_sites, expire, refused, sites


def values(data: pa.Table) -> list[tuple]:
    return sorted(zip(data["site"].to_pylist(), data["value"].to_pylist()))


def three_hours(client, name, **more):
    create_sites(client, name, **more)
    for hour in range(3):
        client.append(name, sites([("a", hour, float(hour)), ("b", hour, float(hour))]))


def test_since(client, name):
    three_hours(client, name)
    assert values(client.read(name, since_version=1)) == [("a", 1.0), ("a", 2.0), ("b", 1.0), ("b", 2.0)]
    assert values(client.read(name, since_version=1, version=2)) == [("a", 1.0), ("b", 1.0)]
    for more in ({}, {"columns": ["value", "site"]}, {"profile": "exact"}, {"profile": "spark"}, {"version": 3}):
        nothing = client.read(name, since_version=3, **more)
        assert nothing.num_rows == 0 and nothing.schema == client.read(name, **more).schema
    assert client.info(table=name, since_version=3).total_records == 0
    picked = client.read(
        name,
        since_version=0,
        entities=[{"site": "a"}],
        filter=[["value", ">", 0]],
        columns=["value"],
        newest_first=True,
        limit=1,
    )
    assert picked.to_pylist() == [{"value": 2.0}]
    assert client.stats()["version"] == 3


def test_tickets_are_pinned(client, name):
    three_hours(client, name)
    info = client.info(table=name, since_version=0, max_endpoints=4)
    client.append(name, sites([("a", 9, 9.0)]))
    assert info.total_records == 6
    parts = [client.get(e.ticket) for e in info.endpoints]
    assert sum(p.num_rows for p in parts) == 6
    assert values(client.read(name, since_version=3)) == [("a", 9.0)]
    explained = client.get({"op": "explain", "table": name, "since_version": 3})
    assert explained.num_rows == 1


def test_a_stream_of_versions(client, name):
    """What a streaming reader does: each pass reads from where the last one ended."""
    create_sites(client, name)
    at, seen = 0, []
    for hour in range(6):
        client.append(name, sites([("a", hour, float(hour))]))
        if hour % 2:
            info = client.info(table=name, since_version=at)
            part = client.get(info.endpoints[0].ticket)
            at = client.stats()["version"]
            seen += part["value"].to_pylist()
    assert seen == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_other_commits(client, name):
    three_hours(client, name)
    client.act("set_properties", table=name, properties={"team": "ops"})
    client.act("add_columns", table=name, columns=[{"name": "quality", "type": "int8"}])
    client.act("checkpoint", table=name)
    assert client.read(name, since_version=2).num_rows == 2
    fix = sites([("a", 0, 7.0)])
    update = {"op": "update_rows", "table": name, "columns": ["value"], "expected_version": 5}
    client.put(update, fix)
    client.append(name, sites([("a", 5, 5.0)]).append_column("quality", pa.array([1], pa.int8())))
    with refused("NOT_APPEND_ONLY", table=f"default.{name}", version=6, operation="update_rows"):
        client.read(name, since_version=2)
    with refused("NOT_APPEND_ONLY", version=6):
        client.info(table=name, since_version=2)
    assert values(client.read(name, since_version=2, changes="ignore")) == [("a", 2.0), ("a", 5.0), ("b", 2.0)]
    assert values(client.read(name, since_version=6)) == [("a", 5.0)]
    client.act("rollback", table=name, version=3, expected_version=7)
    with refused("NOT_APPEND_ONLY", version=8, operation="rollback"):
        client.read(name, since_version=7)


def test_optimize_is_passed_over(client, name):
    """Files that it has replaced are read as they were appended."""
    three_hours(client, name)
    assert client.act("optimize", table=name)["committed_version"] == 4
    client.append(name, sites([("a", 9, 9.0)]))
    assert values(client.read(name, since_version=2)) == [("a", 2.0), ("a", 9.0), ("b", 2.0)]
    assert values(client.read(name, since_version=3)) == [("a", 9.0)]
    assert client.read(name, since_version=3, version=4).num_rows == 0


def test_an_expired_start(tmp_path, built):
    settings = {"ticket_lifetime": "1s", "maintenance": False}
    with Service(tmp_path / "warehouse", **settings) as brief, Client(brief.uri) as client:
        create_sites(client, "t", [("a", 0, 0.0)], properties={"contrail.snapshot-retention": "1s"})
        client.append("t", sites([("a", 1, 1.0)]))
        expire(client, "t", 1)
        newest = client.act("describe_table", table="t")["version"]
        for since in (0, 1):
            for more in ({}, {"changes": "ignore"}):
                with refused("VERSION_EXPIRED", version=since, current=newest):
                    client.read("t", since_version=since, **more)
        client.append("t", sites([("a", 2, 2.0)]))
        assert values(client.read("t", since_version=newest)) == [("a", 2.0)]


def test_overwriting_appends(client, name):
    create_sites(client, name, uniqueness="overwrite")
    client.append(name, sites([("a", 0, 0.0)]))
    client.append(name, sites([("a", 1, 1.0)]))
    assert values(client.read(name, since_version=0)) == [("a", 0.0), ("a", 1.0)]
    client.append(name, sites([("a", 1, 2.0)]))
    with refused("NOT_APPEND_ONLY", version=3, operation="append"):
        client.read(name, since_version=0)


def test_refusals(client, name):
    three_hours(client, name)
    with refused("VERSION_NOT_FOUND", version=4, current=3):
        client.read(name, since_version=4)
    with refused("INVALID", field="since_version"):
        client.read(name, since_version=3, version=2)
    for wrong in (-1, 1.5, True, "x"):
        with refused("INVALID", field="since_version"):
            client.read(name, since_version=wrong)
    with refused("INVALID", field="changes"):
        client.read(name, changes="ignore")
    with refused("INVALID", field="changes"):
        client.read(name, since_version=1, changes="all")


@pytest.mark.parametrize("since", [0, 1, 2])
def test_plain_delta_table(server, client, name, since):
    path = server.path(name)
    for part in range(3):
        deltalake.write_deltalake(str(path), pa.table({"x": [part]}), mode="append")
    got = client.read(name, since_version=since)["x"].to_pylist()
    assert sorted(got) == list(range(since + 1, 3))
    deltalake.DeltaTable(str(path)).delete("x = 1")
    with refused("NOT_APPEND_ONLY", version=3, operation="DELETE"):
        client.read(name, since_version=since)
    assert sorted(client.read(name, since_version=since, changes="ignore")["x"].to_pylist()) == list(
        range(since + 1, 3)
    )
