"""Rollback over Flight: an earlier version's rows come back as a new version, for every engine, and go again."""

import pytest

import engines
from tables import create_sites, refused, sites, untouched

ENGINES = [engines.Deltalake, engines.DuckDB, engines.Polars]


def rows(table) -> list[tuple]:
    return sorted(zip(table["site"].to_pylist(), table["value"].to_pylist()))


def three_hours(client, name):
    create_sites(client, name)
    for hour in range(3):
        client.append(name, sites([("a", hour, float(hour))]), request_id=f"hour-{hour}")


def test_back_and_forth(client, name):
    three_hours(client, name)
    report = client.act("rollback", table=name, version=1, expected_version=3)
    assert report == {
        "starting_version": 3,
        "committed_version": 4,
        "target_version": 1,
        "files_added": 0,
        "files_removed": 2,
        "rows": 1,
        "format_version": "0.3.0",
        "no_op": False,
        "dry_run": False,
        "undone": [
            {"version": 3, "operation": "append", "request_id": "hour-2", "rows_added": 1},
            {"version": 2, "operation": "append", "request_id": "hour-1", "rows_added": 1},
        ],
    }
    assert rows(client.read(name)) == [("a", 0.0)]
    assert rows(client.read(name, version=3)) == [("a", 0.0), ("a", 1.0), ("a", 2.0)]
    history = client.get({"op": "history", "table": name}).to_pylist()
    assert [h["operation"] for h in history[:2]] == ["rollback", "append"]
    redo = client.act("rollback", table=name, version=3, expected_version=4)
    assert [u["operation"] for u in redo["undone"]] == ["rollback"]
    assert rows(client.read(name)) == [("a", 0.0), ("a", 1.0), ("a", 2.0)]


def test_request_ids_follow(client, name):
    three_hours(client, name)
    client.act("rollback", table=name, version=1, expected_version=3)
    again = client.append(name, sites([("a", 1, 1.0)]), request_id="hour-1")
    assert (again["replayed"], again["committed_version"]) == (False, 5)
    assert client.append(name, sites([("a", 0, 0.0)]), request_id="hour-0")["replayed"]
    client.act("rollback", table=name, version=3, expected_version=5)
    again = client.append(name, sites([("a", 1, 1.0)]), request_id="hour-1")
    assert (again["replayed"], again["committed_version"]) == (True, 2)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_other_engines_read_the_same(server, client, name, engine):
    three_hours(client, name)
    for version in (1, 3, 0, 2):
        current = client.act("describe_table", table=name)["version"]
        client.act("rollback", table=name, version=version, expected_version=current)
        assert rows(engine().read(server.path(name))) == rows(client.read(name))


def test_refusals(server, client, name):
    three_hours(client, name)
    with untouched(server):
        with refused("VERSION_CONFLICT", table=f"default.{name}", expected=2, found=3):
            client.act("rollback", table=name, version=1, expected_version=2)
        with refused("VERSION_NOT_FOUND", version=9, current=3):
            client.act("rollback", table=name, version=9, expected_version=3)
        with refused("INVALID", field="expected_version"):
            client.act("rollback", table=name, version=1)
        with refused("INVALID", field="release"):
            client.act("rollback", table=name, version=1, expected_version=3, release=True)
        with refused("TABLE_NOT_FOUND"):
            client.act("rollback", table="nobody", version=1, expected_version=3)
        dry = client.act("rollback", table=name, version=1, expected_version=3, dry_run=True)
        assert (dry["committed_version"], dry["dry_run"], len(dry["undone"])) == (3, True, 2)
        same = client.act("rollback", table=name, version=3, expected_version=3)
        assert (same["committed_version"], same["no_op"]) == (3, True)


def test_a_lost_file_refuses(server, client, name):
    create_sites(client, name)
    path = client.append(name, sites([("a", 0, 0.0)]))["data_files"][0]["path"]
    client.act("rollback", table=name, version=0, expected_version=1)
    (server.path(name) / path).unlink()
    with untouched(server), refused("FILE_MISSING", path=path, version=1):
        client.act("rollback", table=name, version=1, expected_version=2)
