"""Upgrade over Flight: tables of other writers become Contrail's, and are theirs again after a release."""

import json

import deltalake
import pyarrow as pa
import pyarrow.flight as fl
import pytest

import engines
from tables import create_sites, files, refused, sites
from upgrades import KEYS, ROWS, plain, stages, values


@pytest.mark.parametrize("engine", [engines.Deltalake, engines.DuckDB, engines.Polars], ids=lambda e: e.__name__)
def test_every_engine_reads_the_same_all_the_way(server, client, name, engine):
    reader, expected = engine(), values(sites(ROWS))
    for stage in stages(client, server, name):
        assert values(reader.read(server.path(name))) == expected, stage
        assert values(client.read(name, order="unordered")) == expected, stage
        read = client.read(name)  # in order, whether or not the files are
        assert values(read) == expected, stage
        if stage in ("adopted", "rewritten", "redone"):
            keys = list(zip(read["site"].to_pylist(), read["ts"].to_pylist()))
            assert keys == sorted(keys), stage


def test_adopted_table_is_one_of_ours(server, client, name):
    plain(server, name)
    before = files(server.path(name))
    dry = client.act("upgrade", table=name, dry_run=True, **KEYS)
    assert files(server.path(name)) == before
    report = client.act("upgrade", table=name, keep_snapshots="30d", **KEYS)
    assert [s["step"] for s in report["steps"]] == [s["step"] for s in dry["steps"]]
    assert [(s["step"], s["commits"], s["version"]) for s in report["steps"]] == [
        ("hold_snapshots", True, 2),
        ("record_format", True, 2),
        ("rewrite_files", True, 3),
        ("build_derived_data", False, None),
        ("write_head", False, None),
    ]
    assert (
        report
        | {
            "starting_version": 1,
            "committed_version": 3,
            "from_format": "0.1.0",
            "to_format": "0.3.0",
            "rollback_to": 1,
            "no_op": False,
            "dry_run": False,
        }
        == report
    )
    again = client.act("upgrade", table=name, **KEYS)
    assert again["no_op"] and again["steps"] == [] and again["rollback_to"] == 1
    described = client.act("describe_table", table=name)
    assert described["entity_columns"] == ["site"] and described["entities"] == 2 and described["files"] == 1
    assert [c["nullable"] for c in described["columns"]] == [False, False, True]
    history = client.get({"op": "history", "table": name})
    for what in ("rows", "files", "bytes"):  # files that were only described anew are not there twice
        added, removed = (sum(history[f"{what}_{how}"].to_pylist()) for how in ("added", "removed"))
        assert added - removed == described[what]

    got = client.read(name, entities=[{"site": "a"}], start="2026-01-01T01:00:00Z")
    assert got["value"].to_pylist() == [None, 4.0]
    latest = client.get({"op": "latest", "table": name})
    assert latest["value"].to_pylist() == [4.0, 1.0]
    summary = client.get({"op": "coverage", "table": name, "kind": "summary"})
    assert summary["covered_intervals"].to_pylist() == [3, 2]
    with refused("INTERVAL_OVERLAP", entity={"site": "b"}):
        client.append(name, sites([("b", 3, 9.0)]))
    client.append(name, sites([("b", 4, 9.0)]))
    client.put(
        {"op": "update_rows", "table": name, "columns": ["value"], "expected_version": 4}, sites([("a", 0, 7.0)])
    )
    assert client.read(name)["value"].to_pylist()[0] == 7.0
    with pytest.raises(Exception, match="contrail-timeseries"):
        deltalake.write_deltalake(server.path(name), sites([("c", 0, 1.0)]), mode="append")


def test_released_table_is_its_writers_again(server, client, name):
    path = plain(server, name)
    client.act("upgrade", table=name, **KEYS)
    client.append(name, sites([("b", 4, 9.0)]), request_id="mine")
    client.act("rollback", table=name, version=1, expected_version=4, release=True)
    assert values(client.read(name)) == values(sites(ROWS))
    deltalake.write_deltalake(path, sites([("c", 0, 1.0)]), mode="append")
    deltalake.DeltaTable(path).optimize.compact()
    theirs = [*ROWS, ("c", 0, 1.0)]
    assert values(client.read(name)) == values(sites(theirs))

    report = client.act("upgrade", table=name, index_column="ts", index_granularity="30m", entity_columns=["site"])
    assert report["rollback_to"] == 7
    again = client.append(name, sites([("b", 4, 9.0)]), request_id="mine")
    assert not again["replayed"]
    assert values(client.read(name)) == values(sites([*theirs, ("b", 4, 9.0)]))
    history = client.get({"op": "history", "table": name})["operation"].to_pylist()
    assert history[::-1][:8] == ["WRITE", "WRITE", "upgrade", "upgrade", "append", "rollback", "WRITE", "OPTIMIZE"]
    assert set(history[1 : len(history) - 8]) == {"upgrade"} and history[0] == "append"


def test_rows_that_do_not_fit(server, client, name):
    plain(server, name, [("a", 0, 1.0), ("b", 0.5, 1.0), ("b", 0.75, 2.0), ("b", 0, 3.0)])
    before = files(server.path(name))
    hour = "[2026-01-01T00:00:00Z, 2026-01-01T01:00:00Z)"
    with refused("UNIQUENESS_VIOLATED", violations=2, entity={"site": "b"}, interval=hour):
        client.act("upgrade", table=name, **KEYS)
    with refused("INVALID", column="value", type="double"):
        client.act("upgrade", table=name, **KEYS | {"entity_columns": ["value"]})
    with refused("INVALID", field="index_column"):
        client.act("upgrade", table=name)
    with refused("INVALID", field="keep_snapshots_until"):
        client.act("upgrade", table=name, keep_snapshots="7d", keep_snapshots_until="2026-12-07T00:00:00Z", **KEYS)
    with refused("INVALID", field="keep_snapshots_until", value="2020-01-01T00:00:00Z"):
        client.act("upgrade", table=name, keep_snapshots_until="2020-01-01T00:00:00Z", **KEYS)
    with refused("VERSION_CONFLICT", expected=0, found=1):
        client.act("upgrade", table=name, expected_version=0, **KEYS)
    with refused("FORMAT_UNWRITABLE"):
        client.append(name, sites([("c", 0, 1.0)]))
    assert files(server.path(name)) == before
    client.act("upgrade", table=name, **KEYS | {"index_granularity": "15m"})
    deltalake.write_deltalake(server.path(name + "-null"), sites([("a", 0, 1.0), (None, 1, 1.0)]))
    with refused("NULL_KEY", column="site", row=1):
        client.act("upgrade", table=name + "-null", **KEYS)


def test_progress_and_no_op(server, client, name):
    create_sites(client, name)
    for hour in range(3):
        client.append(name, sites([("a", hour, 1.0)]))
    messages = client.flight.do_action(fl.Action("upgrade", json.dumps({"table": name}).encode()))
    told = [json.loads(m.body.to_pybytes()) for m in messages]
    assert all(p["progress"]["unit"] == "files" for p in told[:-1]) and len(told) > 1
    assert [s["step"] for s in told[-1]["result"]["steps"]][0] == "hold_snapshots"
    assert client.act("upgrade", table=name)["no_op"]
    assert client.read(name)["value"].to_pylist() == [1.0] * 3


def test_features_that_are_active_are_named(server, client, name):
    path = plain(server, name)
    deltalake.DeltaTable(path).alter.add_constraint({"positive": "value IS NULL OR value > -1000"})
    with refused("UNSUPPORTED", feature="checkConstraints"):
        client.act("upgrade", table=name, **KEYS)
    assert isinstance(client.read(name), pa.Table)
