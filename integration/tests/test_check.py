"""check: a sound table has no finding, damage has one, and flight-admin tells by its exit status."""

import json
import os
import subprocess

import pyarrow.flight as fl

import service
from client import Client
from tables import create_sites, files, refused, sites


def check(client: Client, table: str, **more) -> tuple[list[dict], dict]:
    """The findings and the report."""
    body = json.dumps({"table": table} | more).encode()
    messages = [json.loads(m.body.to_pybytes()) for m in client.flight.do_action(fl.Action("check", body))]
    assert all(len(m) == 1 for m in messages)
    assert [m for m in messages[:-1] if "progress" in m]
    return [f for m in messages for f in m.get("findings", ())], messages[-1]["result"]


def admin(server, *arguments) -> subprocess.CompletedProcess:
    environment = os.environ | {"CONTRAIL_SERVER": server.uri}
    return subprocess.run([service.ADMIN, *arguments], env=environment, capture_output=True, text=True, timeout=600)


def test_a_sound_table_and_a_damaged_one(fresh):
    with Client(fresh.uri) as client:
        create_sites(client, "sound", [("a", hour, 1.5) for hour in range(48)])
        create_sites(client, "lost", [("a", hour, 1.5) for hour in range(48)])
        client.append("lost", sites([("b", hour, 2.5) for hour in range(48)]))
        assert check(client, "sound") == (
            [],
            {"version": 1, "ok": True, "files_checked": 1, "errors": 0, "warnings": 0, "repaired": 0},
        )
        lost = next(path for path in files(fresh.path("lost")) if path.startswith("data/"))
        (fresh.path("lost") / lost).unlink()
        found, report = check(client, "lost")
        want = {"severity": "error", "kind": "missing_file", "path": lost}
        assert found == [want | {"text": "data file of version 2 is missing"}]
        assert report == {"version": 2, "ok": False, "files_checked": 2, "errors": 1, "warnings": 0, "repaired": 0}
        with refused("TABLE_NOT_FOUND", table="default.none"):
            check(client, "none")
        with refused("INVALID", field="repair"):
            check(client, "sound", repair=1)
    done = admin(fresh, "check", "sound")
    assert (done.returncode, done.stdout) == (0, "default.sound: version 1, 1 file checked, nothing found\n")
    done = admin(fresh, "check", "--all")
    assert done.returncode == 11
    assert f"error missing_file {lost}: data file of version 2 is missing\n" in done.stdout
    assert "CHECK_FAILED: 1 error found in 1 table" in done.stderr
    done = admin(fresh, "check", "--all", "--json")
    tables = {t["table"]: t for t in json.loads(done.stdout)["tables"]}
    assert done.returncode == 11 and tables["default.sound"]["ok"] and tables["default.sound"]["findings"] == []
    assert tables["default.lost"]["findings"] == found and tables["default.lost"]["errors"] == 1
    assert json.loads(done.stderr)["error"]["exit_status"] == 11
    done = admin(fresh, "check")
    assert done.returncode == 2 and "say which tables" in done.stderr


def test_derived_data_are_repaired(fresh):
    with Client(fresh.uri) as client:
        create_sites(client, "many", [(f"station-{n:05}-of-a-network-of-many", 0, 1.0) for n in range(4000)])
        client.act("checkpoint", table="many")
    fresh.stop()
    [beside] = (fresh.path("many") / "_contrail/files").iterdir()
    whole = beside.read_bytes()
    beside.write_bytes(whole[:1000])
    log = fresh.path("many") / "_delta_log"
    [checkpoint] = log.glob("*.checkpoint.parquet")
    checkpoint.write_bytes(b"PAR1 no checkpoint PAR1")
    fresh.start()
    with Client(fresh.uri) as client:
        found, report = check(client, "many")
        assert [(f["severity"], f["kind"]) for f in found] == [("warning", "bad_log"), ("warning", "bad_coverage")]
        assert report["ok"] and report["warnings"] == 2
        found, report = check(client, "many", repair=True)
        assert all(f["repaired"] for f in found) and report["repaired"] == 2 and report["warnings"] == 0
        assert check(client, "many")[0] == []
    assert beside.read_bytes() == whole


def test_check_while_others_write(fresh):
    with Client(fresh.uri) as client, Client(fresh.uri) as writer:
        create_sites(client, "busy")
        for round in range(12):
            writer.append("busy", sites([("a", round * 100 + hour, 1.0) for hour in range(100)]))
            found, report = check(client, "busy")
            assert found == [] and report["version"] == round + 1
