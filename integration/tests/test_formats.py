"""Formats that this software has never written are judged before anything else, on every path."""

import base64
import json
import os
import shutil
import subprocess

import deltalake
import pyarrow as pa
import pyarrow.flight as fl
import pytest

import service
from client import Client
from tables import create_sites, files, refused, sites

SCHEMA = base64.b64encode(pa.schema([("more", pa.int8())]).serialize().to_pybytes()).decode()

# Everything that is asked here is wrong or stale besides, where it can be.
ACTIONS = {
    "abort_staged": {"staged": ["none"]},
    "add_columns": {"schema_ipc": SCHEMA, "expected_version": 77},
    "check": {},
    "checkpoint": {"expected_version": 77},
    "commit_staged": {"staged": ["none"], "request_id": "r"},
    "describe_table": {"version": 77},
    "drop_table": {"expected_version": 77},
    "optimize": {"layout": "entity", "expected_version": 77},
    "rollback": {"version": 99, "expected_version": 77},
    "set_properties": {"properties": {"contrail.x": "y"}, "expected_version": 77},
    "upgrade": {"index_column": "none", "expected_version": 77},
    "vacuum": {"apply": True, "expire": True, "expected_version": 77},
}
OF_NO_TABLE = {"create_table", "list_tables", "server_info", "CloseSession", "CancelFlightInfo", "RenewFlightEndpoint"}
READS = {
    "coverage": {"kind": "summary"},
    "entities": {},
    "explain": {},
    "files": {},
    "history": {},
    "latest": {},
    "scan": {"version": 0},
}
PUTS = {
    "append": {"expected_version": 77, "request_id": "r"},
    "stage": {},
    "update_rows": {"columns": ["none"], "expected_version": 77},
}
COMMANDS = [
    "add-columns TABLE --column more:int8",
    "append TABLE rows.csv",
    "check TABLE --repair",
    "checkpoint TABLE",
    "config get TABLE team",
    "config list TABLE",
    "config set TABLE team=ops",
    "describe TABLE",
    "drop TABLE --yes",
    "entities TABLE",
    "files TABLE",
    "gaps TABLE",
    "history TABLE",
    "latest TABLE",
    "optimize TABLE",
    "rollback TABLE 0 --yes",
    "scan TABLE",
    "update TABLE rows.csv --expected-version current",
    "upgrade TABLE --dry-run",
    "vacuum TABLE",
]


def doctor(server, name: str, version: int, value) -> None:
    """Let another writer state a format, in a commit of its own."""
    log = server.path(name) / "_delta_log"
    actions = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
    [metadata] = [a["metaData"] for a in actions if "metaData" in a]
    metadata["configuration"]["contrail.format-version"] = value
    (log / f"{version:020}.json").write_text(json.dumps({"metaData": metadata}) + "\n")


def calls(client: Client, name: str):
    """Every way to the table, by name."""
    for action, body in ACTIONS.items():
        yield action, lambda action=action, body=body: client.act(action, table=name, **body)
    for op, request in READS.items():
        request = {"op": op, "table": name} | request
        command = fl.FlightDescriptor.for_command(json.dumps(request))
        yield op, lambda request=request: client.get(request)
        yield f"info of {op}", lambda command=command: client.flight.get_flight_info(command)
    for op, settings in PUTS.items():
        yield (
            op,
            lambda op=op, settings=settings: client.put({"op": op, "table": name} | settings, sites([("z", 0, 1)])),
        )


def test_the_lists_above_are_whole(client):
    listed = {a.type for a in client.flight.list_actions()}
    assert set(ACTIONS) | OF_NO_TABLE == listed


@pytest.mark.parametrize("value", ["0.4.0", "1.0.0", "1.1.0", "abc", 4])
def test_a_format_that_cannot_be_read(server, client, name, value):
    create_sites(client, name, [("a", 0, 1.0)])
    info = client.info(table=name)
    doctor(server, name, 2, value)
    cold = name + "-cold"  # which the server has never had open
    shutil.copytree(server.path(name), server.path(cold))
    before = [files(server.path(table)) for table in (name, cold)]
    for table in (name, cold):
        told = {"table": f"default.{table}", "table_format": str(value), "supported_format": "0.3.0"}
        for what, call in calls(client, table):
            with refused("FORMAT_UNREADABLE", **told):
                call()
                pytest.fail(f"{what} was accepted")
    with refused("FORMAT_UNREADABLE", table=f"default.{name}"):
        client.get(info.endpoints[0].ticket)
    listed = {t["table"]: t["version"] for t in client.act("list_tables")["tables"]}
    assert listed[f"default.{name}"] is None and listed[f"default.{cold}"] is None
    assert [files(server.path(table)) for table in (name, cold)] == before
    assert deltalake.DeltaTable(server.path(name)).to_pyarrow_table().num_rows == 1


def test_formats_that_mean_this_one(server, client, name):
    for n, (value, means) in enumerate({"0.3.9": "0.3.9", 3: "0.3.0", "3": "0.3.0", "2": "0.2.0"}.items()):
        table = f"{name}-{n}"
        create_sites(client, table, [("a", 0, 1.0)])
        doctor(server, table, 2, value)
        client.append(table, sites([("a", 1, 2.0)]))
        client.act("add_columns", table=table, schema_ipc=SCHEMA)
        assert client.read(table)["value"].to_pylist() == [1.0, 2.0]
        assert client.act("describe_table", table=table)["format_version"] == means
        assert client.act("upgrade", table=table)["to_format"] == max(means, "0.3.0")
        assert client.read(table)["value"].to_pylist() == [1.0, 2.0]


def test_the_command_line_on_a_directory(tmp_path, server, client, name):
    create_sites(client, name, [("a", 0, 1.0)])
    doctor(server, name, 2, "0.4.0")
    shutil.copytree(server.path(name), tmp_path / "default" / name)
    (tmp_path / "rows.csv").write_text("site,ts,value\nz,2026-01-01T00:00:00Z,1\n")
    before = files(tmp_path)
    environment = os.environ | {"CONTRAIL_WAREHOUSE": str(tmp_path)}
    for command in COMMANDS:
        arguments = [name if word == "TABLE" else word for word in command.split()]
        done = subprocess.run(
            [service.ADMIN, *arguments], env=environment, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 6, (command, done.stdout, done.stderr)
        assert "FORMAT_UNREADABLE" in done.stderr and "0.4.0" in done.stderr and "0.3.0" in done.stderr, command
    assert files(tmp_path) == before
