"""Optimize over Flight: the same rows for every reader, in fewer files, beside writers that go on."""

import json
import threading

import pyarrow as pa
import pyarrow.flight as fl
import pytest

import engines
from tables import create_sites, refused, sites, untouched

ENGINES = [engines.Deltalake, engines.DuckDB, engines.Polars]


def rows(table) -> list[tuple]:
    return sorted(zip(table["site"].to_pylist(), table["ts"].to_pylist(), table["value"].to_pylist()))


def small_files(client, name, files=6, **more):
    """Files that overlap in time, each with an hour of its own for two sites."""
    create_sites(client, name, **more)
    for n in range(files):
        client.append(name, sites([("a", n, float(n)), ("b", 2 * files - n, float(n))]))


def files_of(client, name) -> list[dict]:
    return client.get({"op": "files", "table": name}).to_pylist()


def test_merges_and_keeps_the_rows(client, name):
    small_files(client, name)
    before = client.read(name)
    size = sum(f["bytes"] for f in files_of(client, name))
    dry = client.act("optimize", table=name, dry_run=True)
    assert (dry["committed_version"], dry["files_in"], dry["rows"], dry["entities"], dry["dry_run"]) == (
        6,
        6,
        12,
        2,
        True,
    )
    report = client.act("optimize", table=name, expected_version=6)
    assert report == {
        "starting_version": 6,
        "committed_version": 7,
        "files_in": 6,
        "files_out": 1,
        "bytes_in": size,
        "bytes_out": files_of(client, name)[0]["bytes"],
        "rows": 12,
        "entities": 2,
        "no_op": False,
        "dry_run": False,
    }
    assert client.read(name).equals(before)
    assert client.read(name, version=6).equals(before)
    assert [(f["rows"], f["sorted"], f["layout"]) for f in files_of(client, name)] == [(12, True, "mixed")]
    history = client.get({"op": "history", "table": name}).slice(0, 1).to_pylist()[0]
    assert (history["operation"], history["rows_added"], history["rows_removed"]) == ("optimize", 12, 12)
    assert json.loads(history["report"]) == report
    again = client.act("optimize", table=name)
    assert (again["no_op"], again["committed_version"], again["files_in"]) == (True, 7, 0)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_other_engines_read_the_same(server, client, name, engine):
    small_files(client, name)
    before = rows(engine().read(server.path(name)))
    for body in ({}, {"layout": "entity"}, {"target_file_bytes": 1}):
        assert not client.act("optimize", table=name, **body)["no_op"]
        assert rows(engine().read(server.path(name))) == before == rows(client.read(name))


def test_layouts(client, name):
    small_files(client, name)
    client.act("optimize", table=name, layout="entity")
    assert [(f["layout"], f["rows"]) for f in files_of(client, name)] == [("single", 6), ("single", 6)]
    client.act("optimize", table=name, target_file_bytes=1)
    assert all(f["rows"] == 1 for f in files_of(client, name))
    assert client.read(name, entities=[{"site": "b"}]).num_rows == 6


def test_progress(client, name):
    small_files(client, name)
    body = json.dumps({"table": name}).encode()
    messages = [json.loads(m.body.to_pybytes()) for m in client.flight.do_action(fl.Action("optimize", body))]
    assert messages[0] == {"progress": {"step": "rewrite_files", "done": 6, "total": 6, "unit": "files"}}
    assert "result" in messages[-1]


def test_refusals(server, client, name):
    small_files(client, name, 2)
    with untouched(server):
        with refused("VERSION_CONFLICT", table=f"default.{name}", expected=1, found=2):
            client.act("optimize", table=name, expected_version=1)
        with refused("INVALID", field="layout", value="tall"):
            client.act("optimize", table=name, layout="tall")
        with refused("INVALID", field="target_file_bytes"):
            client.act("optimize", table=name, target_file_bytes=0)
        with refused("INVALID", field="max_files", value=1):
            client.act("optimize", table=name, layout="entity", max_files=1)
        with refused("TABLE_NOT_FOUND"):
            client.act("optimize", table="nobody")


def test_beside_appends(server, client, name):
    """Rows that are appended while files are rewritten again and again are all there, once."""
    create_sites(client, name, properties={"contrail.maintenance": "off"})
    per_writer = 15

    def write(site):
        with client.__class__(server.uri) as own:
            for n in range(per_writer):
                own.append(name, sites([(site, n, float(n))]))

    writers = [threading.Thread(target=write, args=(site,)) for site in "abc"]
    for w in writers:
        w.start()
    while any(w.is_alive() for w in writers):
        client.act("optimize", table=name)
    for w in writers:
        w.join()
    client.act("optimize", table=name)
    got = client.read(name)
    assert got["site"].to_pylist() == [site for site in "abc" for _ in range(per_writer)]
    assert got["value"].to_pylist() == [float(n) for _ in "abc" for n in range(per_writer)]
    assert len(files_of(client, name)) == 1


def test_latest_and_coverage_stay(client, name):
    small_files(client, name)
    ask = [{"op": "latest", "table": name}, {"op": "coverage", "table": name, "kind": "covered"}]
    before: list[pa.Table] = [client.get(a) for a in ask]
    client.act("optimize", table=name)
    assert [client.get(a).equals(b) for a, b in zip(ask, before)] == [True, True]
