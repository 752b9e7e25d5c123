"""set_properties and checkpoint over the wire."""

import json

import deltalake

import service
from client import Client
from tables import create_sites, refused, sites, untouched


def test_properties_are_set_changed_and_removed(client, name):
    create_sites(client, name, properties={"old": "1"})
    change = {"contrail.retention": "30d", "team": "ops", "old": None}
    report = client.act("set_properties", table=name, properties=change, expected_version=0)
    now = {"contrail.retention": "30d", "team": "ops"}
    assert report == {"starting_version": 0, "committed_version": 1, "properties": now}
    assert client.act("describe_table", table=name)["properties"] == now
    assert client.act("describe_table", table=name, version=0)["properties"] == {"old": "1"}
    same = client.act("set_properties", table=name, properties={"team": "ops", "never": None})
    assert same == {"starting_version": 1, "committed_version": 1, "properties": now}
    history = client.get({"op": "history", "table": name}).to_pylist()
    assert [h["operation"] for h in history] == ["set_properties", "create_table"]
    assert json.loads(history[0]["report"]) == report


def test_other_engines_see_properties(server, client, name):
    create_sites(client, name, [("a", 0, 1.0)])
    client.act("set_properties", table=name, properties={"contrail.snapshot-retention": "36h", "team": "ops"})
    seen = deltalake.DeltaTable(server.path(name)).metadata().configuration
    assert seen["team"] == "ops" and seen["contrail.snapshot-retention"] == "36h"
    assert seen["delta.deletedFileRetentionDuration"] == "interval 36 hours"


REFUSED = {
    "contrail.retention": ["soon", "30", ""],
    "contrail.maintenance": ["true"],
    "contrail.target-file-bytes": ["1 GB", "0"],
    "contrail.snapshot-retention": ["59m", "nonsense"],
    "delta.appendOnly": ["yes"],
    "contrail.uniqueness": ["none", None],
    "contrail.index-column": ["site", None],
    "contrail.format-version": ["0.3.0", None],
    "contrail.columns-added": ["true"],
    "contrail.keep-snapshots-until": ["2030-01-01T00:00:00Z"],
    "delta.logRetentionDuration": ["interval 1 day", None],
    "delta.columnMapping.mode": ["name"],
    "contrail.no-such-thing": ["1", None],
    "Contrail.Retention": ["30d"],
    " team": ["ops"],
    "team\n": ["ops"],
}


def test_what_cannot_be_set(server, client, name):
    create_sites(client, name, properties={"team": "ops"})
    with untouched(server):
        for key, value in [(key, value) for key, values in REFUSED.items() for value in values]:
            with refused("INVALID", table=f"default.{name}", field=f"properties.{key}") as caught:
                client.act("set_properties", table=name, properties={"team": "x", key: value}, expected_version=7)
            assert key.strip() in str(caught.value)


def test_bad_requests(server, client, name):
    create_sites(client, name)
    with untouched(server):
        for body, field in [
            ({}, "properties"),
            ({"properties": ["team"]}, "properties"),
            ({"properties": {"team": 5}}, "properties.team"),
            ({"properties": {"": "x"}}, "properties"),
            ({"properties": {"k" * 256: "x"}}, "properties"),
            ({"properties": {"team": "x" * 4097}}, "properties.team"),
            ({"properties": {}, "dry_run": True}, "dry_run"),
        ]:
            with refused("INVALID", field=field):
                client.act("set_properties", table=name, **body)
        with refused("INVALID"):
            client.act_raw("set_properties", b'{"table":"%s","properties":{"a":"1","a":"2"}}' % name.encode())
        with refused("VERSION_CONFLICT", expected=7, found=0):
            client.act("set_properties", table=name, properties={"team": "ops"}, expected_version=7)
        with refused("TABLE_NOT_FOUND"):
            client.act("set_properties", table=name, properties={"team": "ops"}, table_id="another")


def test_retention_is_no_shorter_than_tickets_are_good_for(tmp_path, built):
    with service.Service(tmp_path / "warehouse", ticket_lifetime="2h") as server, Client(server.uri) as client:
        with refused("INVALID", field="properties.contrail.snapshot-retention"):
            create_sites(client, "t", properties={"contrail.snapshot-retention": "119m"})
        create_sites(client, "t", properties={"contrail.snapshot-retention": "120m"})
        with refused("INVALID", value="119m"):
            client.act("set_properties", table="t", properties={"contrail.snapshot-retention": "119m"})


def test_checkpoint(server, client, name):
    create_sites(client, name, [("a", 0, 1.0)])
    client.append(name, sites([("a", 1, 2.0)]))
    made = client.act("checkpoint", table=name)
    path = server.path(name) / made["path"]
    assert made == {"version": 2, "path": f"_delta_log/{2:020}.checkpoint.parquet", "bytes": path.stat().st_size}
    assert json.loads((server.path(name) / "_delta_log/_last_checkpoint").read_text())["version"] == 2
    assert client.act("checkpoint", table=name, expected_version=2) == made  # the one that is there
    assert client.act("describe_table", table=name)["version"] == 2
    (server.path(name) / f"_delta_log/{0:020}.json").unlink()  # what the checkpoint makes unnecessary
    assert deltalake.DeltaTable(server.path(name)).to_pyarrow_table().num_rows == 2
    for body, token in [
        ({"expected_version": 1}, "VERSION_CONFLICT"),
        ({"table_id": "x"}, "TABLE_NOT_FOUND"),
        ({"force": True}, "INVALID"),
    ]:
        with refused(token):
            client.act("checkpoint", table=name, **body)


def test_listed_actions(client):
    actions = {a.type: json.loads(a.description) for a in client.flight.list_actions()}
    for action in ("add_columns", "set_properties", "checkpoint"):
        assert {"name": "table", "type": "string", "required": True} in actions[action]["fields"]
