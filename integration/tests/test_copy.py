"""A table's directory may be copied: into another warehouse, or beside itself under another name."""

import shutil

import deltalake

import service
from client import Client
from tables import create_sites, files, refused, sites


def test_a_copied_table_opens_and_works(fresh, tmp_path):
    with Client(fresh.uri) as client:
        create_sites(client, "sites", [("a", hour, 1.0) for hour in range(100)])
        client.append("sites", sites([("b", hour, 2.0) for hour in range(100)]), request_id="first")
        client.act("checkpoint", table="sites")
        first = client.read("sites")
        original = client.act("describe_table", table="sites")
    elsewhere = service.Service(tmp_path / "elsewhere")
    shutil.copytree(fresh.path("sites"), elsewhere.path("copied"))
    shutil.copytree(fresh.path("sites"), fresh.path("beside"))
    with elsewhere, Client(elsewhere.uri) as client:
        copied = client.act("describe_table", table="copied")
        assert copied["table_id"] == original["table_id"] and copied["version"] == 2
        assert client.read("copied").equals(first)
        assert client.read("copied", version=1).num_rows == 100
        assert client.act("check", table="copied")["ok"]
        # The copy has the original's memory of request ids and goes its own way from here.
        repeated = client.append("copied", sites([("b", hour, 2.0) for hour in range(100)]), request_id="first")
        assert repeated["replayed"] and repeated["committed_version"] == 2
        with refused("INTERVAL_OVERLAP", table="default.copied"):
            client.append("copied", sites([("a", 5, 9.0)]))
        assert client.append("copied", sites([("c", 1, 3.0)]))["committed_version"] == 3
        client.act("rollback", table="copied", version=1, expected_version=3)
        assert client.read("copied").num_rows == 100
        assert client.act("check", table="copied")["ok"]
        assert deltalake.DeltaTable(elsewhere.path("copied")).version() == 4
    with Client(fresh.uri) as client:
        before = files(fresh.path("sites"))
        assert client.append("beside", sites([("c", 1, 3.0)]))["committed_version"] == 3
        client.act("drop_table", table="beside")
        assert client.read("sites").equals(first)
        assert client.act("check", table="sites")["ok"]
        assert files(fresh.path("sites")) == before
        # What was pinned by the table's id means any of its copies.
        assert client.read("sites", table_id=original["table_id"]).num_rows == 200
