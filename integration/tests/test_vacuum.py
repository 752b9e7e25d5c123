"""Vacuum over Flight: what nobody needs goes, what anybody reads stays, and other engines read on."""

import datetime
import json
import os
import time

import pyarrow as pa
import pyarrow.flight as fl
import pytest

import engines
from tables import create_sites, refused, sites, untouched

ENGINES = [engines.Deltalake, engines.DuckDB, engines.Polars]
ORPHAN = "data/ab/abababab-abab-abab-abab-abababababab.parquet"
NONE = {"files": 0, "bytes": 0}


def vacuum(client, name, **more):
    """The artifacts by path, and the result."""
    action = fl.Action("vacuum", json.dumps({"table": name} | more).encode())
    messages = [json.loads(m.body.to_pybytes()) for m in client.flight.do_action(action)]
    artifacts = [a for m in messages for a in m.get("artifacts", ())]
    assert all(len(m.get("artifacts", ())) <= 1000 for m in messages)
    assert [a["path"] for a in artifacts] == sorted(a["path"] for a in artifacts)
    return {a["path"]: a for a in artifacts}, messages[-1]["result"]


def ago(**delta) -> str:
    return (datetime.datetime.now(datetime.UTC) - datetime.timedelta(**delta)).isoformat()


def place(server, name, path, content=b"12345", days=30):
    file = server.path(name) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    then = time.time() - days * 86_400
    os.utime(file, (then, then))
    return file


def fate(artifact) -> str:
    return " ".join(str(artifact[k]) for k in ("disposition", "reason", "version") if artifact[k] is not None)


def test_orphans_go_and_the_rest_stays(server, client, name):
    create_sites(client, name, [("a", 0, 1.0)])
    before = client.read(name)
    orphan, stray = place(server, name, ORPHAN), place(server, name, "duckdb-1.parquet")
    place(server, name, "_contrail/tmp/left-1")
    artifacts, result = vacuum(client, name)
    data = next(p for p in artifacts if p.startswith("data/") and p != ORPHAN)
    assert {path: fate(a) for path, a in artifacts.items()} == {
        ORPHAN: "removable invalid_or_unreadable_parquet",
        "_contrail/tmp/left-1": "removable unreferenced",
        data: "retained referenced_by_commit 1",
        "duckdb-1.parquet": "retained unrecognized_artifact",
    }
    assert artifacts[ORPHAN]["bytes"] == 5 and artifacts[ORPHAN]["modified"].endswith("Z")
    assert result["removable"] == {"files": 2, "bytes": 10} and result["deleted"] == NONE and result["apply"] is False
    assert result["considered"]["files"] == 4 and result["starting_version"] == result["committed_version"] == 1
    assert orphan.exists()
    artifacts, result = vacuum(client, name, apply=True)
    assert fate(artifacts[ORPHAN]) == "deleted invalid_or_unreadable_parquet"
    assert result["deleted"] == {"files": 2, "bytes": 10} and result["removable"] == NONE
    assert not orphan.exists() and stray.exists()
    assert client.read(name).equals(before)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_other_engines_read_on(server, client, name, engine):
    create_sites(client, name)
    for hour in range(3):
        client.append(name, sites([("a", hour, float(hour))]))
    client.act("rollback", table=name, version=1, expected_version=3)
    client.act("checkpoint", table=name)
    place(server, name, ORPHAN)
    vacuum(client, name, apply=True, expire=True, older_than=ago(hours=2))
    assert engine().read(server.path(name)).num_rows == client.read(name).num_rows == 1
    client.act("rollback", table=name, version=3, expected_version=4)
    assert engine().read(server.path(name)).num_rows == 3


def test_cut_off(server, client, name):
    create_sites(client, name)
    place(server, name, ORPHAN, days=0.5)
    assert vacuum(client, name)[1]["removable"] == NONE
    assert vacuum(client, name, older_than=ago(hours=11))[1]["removable"]["files"] == 1
    assert vacuum(client, name, older_than=ago(hours=13))[1]["removable"] == NONE
    with untouched(server):
        for bad in (ago(hours=-1), ago(minutes=59), "2026-01-01T00:00:00", "yesterday", 7):
            with refused("INVALID", field="older_than"):
                vacuum(client, name, older_than=bad, apply=True)
        with refused("INVALID", field="older_than"):
            vacuum(client, name, older_than=ago(hours=-1), force=True)
        with refused("VERSION_CONFLICT", expected=5, found=0):
            vacuum(client, name, expected_version=5, apply=True)
    assert vacuum(client, name, older_than=ago(seconds=1), force=True)[1]["removable"]["files"] == 1


def test_a_retention_below_the_tickets_is_refused(client, name):
    create_sites(client, name)
    with refused("INVALID", field="properties.contrail.snapshot-retention"):
        client.act("set_properties", table=name, properties={"contrail.snapshot-retention": "59m"})
    client.act("set_properties", table=name, properties={"contrail.snapshot-retention": "1h"})


def test_thousands_of_files_come_in_messages(server, client, name):
    create_sites(client, name)
    folder = server.path(name) / "data" / "ab"
    folder.mkdir(parents=True)
    then = time.time() - 30 * 86_400
    for i in range(2500):
        file = folder / f"{i:08x}-abab-abab-abab-abababababab.parquet"
        file.write_bytes(b"")
        os.utime(file, (then, then))
    artifacts, result = vacuum(client, name, apply=True)
    assert len(artifacts) == result["deleted"]["files"] == 2500
    assert list(folder.iterdir()) == []


def test_a_running_put_keeps_its_files(client, name):
    create_sites(client, name, [("a", 0, 1.0)])
    rows = sites([("a", 1, 2.0)])
    put = {"op": "append", "table": name, "rows": 1}
    writer, reader = client.flight.do_put(fl.FlightDescriptor.for_command(json.dumps(put)), rows.schema)
    writer.write_table(rows)
    vacuum(client, name, apply=True, expire=True, force=True, older_than=ago())
    writer.done_writing()
    assert json.loads(reader.read().to_pybytes())["rows"] == 1
    writer.close()
    assert isinstance(client.read(name), pa.Table) and client.read(name).num_rows == 2
