"""Small files are merged and old rows dropped behind the answers, and every reader sees the same."""

import time

import pyarrow.flight as fl

import engines
import service
from client import Client
from tables import create_sites, refused, sites

ENGINES = [engines.Deltalake, engines.DuckDB, engines.Polars]
APPENDS = 40


def rows(table) -> list[tuple]:
    return sorted(zip(table["site"].to_pylist(), table["ts"].to_pylist(), table["value"].to_pylist()))


def operations(client, name) -> list[str]:
    return client.get({"op": "history", "table": name})["operation"].to_pylist()


def wait_for(client, name, operation) -> None:
    """Nobody is told when maintenance is done."""
    patience = time.monotonic() + 600
    while operation not in operations(client, name):
        assert time.monotonic() < patience, operations(client, name)
        time.sleep(0.05)


def test_small_files_are_merged(server, client, name):
    create_sites(client, name)
    versions = [client.append(name, sites([("a", n, float(n))]))["committed_version"] for n in range(APPENDS)]
    assert versions == sorted(set(versions))
    wait_for(client, name, "optimize")
    assert client.act("describe_table", table=name)["files"] < APPENDS
    want = rows(client.read(name))
    assert len(want) == APPENDS
    for engine in ENGINES:
        assert rows(engine().read(server.path(name))) == want
    assert rows(client.read(name, version=versions[9])) == want[:10]


def test_old_rows_are_dropped(server, client, name):
    create_sites(client, name, properties={"contrail.maintenance": "off"})
    for n in range(APPENDS):
        client.append(name, sites([("a", 10 * n, float(n))]))
    # Now that all rows are there, whatever pauses there were between them, old ones are dropped in one commit.
    client.act("set_properties", table=name, properties={"contrail.maintenance": None, "contrail.retention": "100h"})
    wait_for(client, name, "retention")
    left = rows(client.read(name))
    assert 10 < len(left) < APPENDS and left[-1][2] == APPENDS - 1
    assert rows(client.get({"op": "latest", "table": name})) == left[-1:]
    covered = client.get({"op": "coverage", "table": name, "kind": "covered"})
    assert covered.num_rows == len(left)
    for engine in ENGINES:
        assert rows(engine().read(server.path(name))) == left


def test_off_for_a_table_or_a_server(client, name, tmp_path):
    create_sites(client, name, properties={"contrail.maintenance": "off", "contrail.retention": "1h"})
    with service.Service(tmp_path / "warehouse", maintenance=False) as other, Client(other.uri) as second:
        create_sites(second, name)
        for one in (client, second):
            for n in range(APPENDS):
                one.append(name, sites([("a", 10 * n, float(n))]))
            assert set(operations(one, name)) == {"append", "create_table"}


def test_a_retention_of_integers_is_refused(client, name):
    column = [{"name": "n", "type": "int64", "nullable": False}]
    made = {"table": name, "index_column": "n", "index_granularity": "1", "columns": column}
    with refused("INVALID", field="properties.contrail.retention"):
        client.act("create_table", **made, properties={"contrail.retention": "1d"})
    client.act("create_table", **made)
    with refused("INVALID", field="properties.contrail.retention"):
        client.act("set_properties", table=name, properties={"contrail.retention": "1d"})


def test_a_client_that_expects_versions_reads_them_anew(client, name):
    create_sites(client, name)
    for n in range(APPENDS):
        while True:
            version = client.act("describe_table", table=name)["version"]
            try:
                client.append(name, sites([("a", n, float(n))]), expected_version=version)
                break
            except fl.FlightError as error:
                assert "VERSION_CONFLICT" in str(error)
    wait_for(client, name, "optimize")
    assert len(rows(client.read(name))) == APPENDS
