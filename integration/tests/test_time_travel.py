"""Every read at an earlier version: by its number, by a time, and what is told where it cannot be had."""

import service
from client import Client
from tables import create_sites, expire, refused, sites

READS = {
    "scan": {},
    "latest": {},
    "missing": {"op": "coverage", "kind": "missing", "start": "2026-01-01T00:00:00Z", "end": "2026-01-03T00:00:00Z"},
    "covered": {"op": "coverage", "kind": "covered"},
    "summary": {"op": "coverage", "kind": "summary"},
    "last_window": {"op": "coverage", "kind": "last_window", "n": 1},
    "files": {},
    "entities": {},
    "explain": {"filter": [["value", ">", 1]]},
}


def ask(client: Client, name: str, what: str, **at):
    if what == "describe_table":
        return client.act(what, table=name, **at)
    return client.get({"op": what, "table": name} | READS[what] | at).to_pylist()


def states(client: Client, name: str) -> list[dict]:
    """Make a table in one version after another. Returns what each read gave while a version was the newest."""
    create_sites(client, name, properties={"contrail.snapshot-retention": "1s"})
    seen = []
    for step in range(6):
        match step:
            case 1 | 2:
                client.append(name, sites([(site, step * 10, float(step)) for site in "ab"[:step]]))
            case 3:
                rows = sites([("a", 10, 7.0)])
                client.put({"op": "update_rows", "table": name, "columns": ["value"], "expected_version": 2}, rows)
            case 4:
                client.act("add_columns", table=name, columns=[{"name": "more", "type": "int8"}])
            case 5:
                client.act("rollback", table=name, version=1, expected_version=4)
        now = {what: ask(client, name, what) for what in [*READS, "describe_table"]}
        assert now["describe_table"]["version"] == step
        seen.append(now)
    return seen


def test_every_read_goes_back(tmp_path, built):
    with (
        service.Service(tmp_path / "warehouse", ticket_lifetime="1s", maintenance=False) as server,
        Client(server.uri) as client,
    ):
        seen = states(client, "t")
        for version, then in enumerate(seen):
            moment = then["describe_table"]["committed_at"]
            for what, answer in then.items():
                assert ask(client, "t", what, version=version) == answer, (version, what)
                assert ask(client, "t", what, as_of=moment) == answer, (version, what)
        assert len({str(then["scan"]) for then in seen}) == 5  # the rows of the rollback are those of version 1
        for what in seen[0]:
            with refused("VERSION_NOT_FOUND", version=6, current=5):
                ask(client, "t", what, version=6)
            with refused("VERSION_NOT_FOUND", version=None, current=5):
                ask(client, "t", what, as_of="1999-01-01T00:00:00Z")
        expire(client, "t", 2)
        for what in seen[0]:
            with refused("VERSION_EXPIRED", version=2):
                ask(client, "t", what, version=2)
            with refused("VERSION_EXPIRED"):
                ask(client, "t", what, as_of=seen[2]["describe_table"]["committed_at"])
            assert ask(client, "t", what) == seen[5][what] or what == "describe_table"
            with refused("INVALID", field="as_of"):
                ask(client, "t", what, version=5, as_of=seen[5]["describe_table"]["committed_at"])
