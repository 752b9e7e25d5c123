"""Staged appends over Flight: many clients write, one commits, and a job that runs twice adds nothing."""

import base64
import concurrent.futures
import datetime
import json

import pytest

from client import Client
from service import Service
from tables import SITES, create_sites, eventually, refused, sites, untouched


def stage(client: Client, table: str, rows, **settings) -> dict:
    data = sites(rows)
    return client.put({"op": "stage", "table": table, "rows": data.num_rows} | settings, data)


def commit(client: Client, table: str, request_id: str, *staged: str, **more) -> dict:
    return client.act("commit_staged", table=table, request_id=request_id, staged=list(staged), **more)


def values(client: Client, table: str) -> list[tuple]:
    data = client.read(table)
    return sorted(zip(data["site"].to_pylist(), data["value"].to_pylist()))


def files(server: Service, table: str) -> list[str]:
    return sorted(p.name for p in server.path(table).glob("data/*/*.parquet"))


def test_tasks_and_driver(server, client, name):
    create_sites(client, name)

    def task(i: int) -> dict:
        with Client(server.uri) as mine:
            return stage(mine, name, [(f"s{i}", hour, float(hour)) for hour in range(10)])

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        staged = list(pool.map(task, range(8)))
    first = staged[0]
    assert set(first) == {"staged", "table", "rows", "bytes", "data_files", "schema_id", "expires_at"}
    assert (first["table"], first["rows"], first["data_files"]) == (f"default.{name}", 10, 1)
    assert first["bytes"] > 0 and len(first["schema_id"]) == 16 and len(first["staged"]) < 4096
    left = datetime.datetime.fromisoformat(first["expires_at"]) - datetime.datetime.now(datetime.UTC)
    assert datetime.timedelta(hours=23) < left <= datetime.timedelta(hours=24)
    assert client.read(name).num_rows == 0
    report = commit(client, name, "job", *[s["staged"] for s in staged])
    assert (report["starting_version"], report["committed_version"], report["rows"]) == (0, 1, 80)
    assert (len(report["data_files"]), report["request_id"], report["replayed"]) == (8, "job", False)
    assert client.read(name).num_rows == client.read(name, since_version=0).num_rows == 80
    history = client.get({"op": "history", "table": name}).to_pylist()
    assert (history[0]["operation"], history[0]["request_id"], history[0]["rows_added"]) == ("append", "job", 80)

    again = stage(client, name, [("s0", 0, 9.0)])["staged"]
    assert commit(client, name, "job", again) == report | {"replayed": True}
    assert len(files(server, name)) == 8
    with refused("REQUEST_ID_REUSED", request_id="job"):
        client.append(name, sites([("x", 0, 0.0)]), request_id="job")


def test_nothing_in_part(server, client, name):
    create_sites(client, name, [("a", 0, 0.0)])
    good = stage(client, name, [("b", 0, 1.0)])["staged"]
    overlaps = stage(client, name, [("a", 0, 2.0)])["staged"]
    same = stage(client, name, [("b", 0, 3.0)])["staged"]
    other = f"{name}-other"
    create_sites(client, other)
    elsewhere = stage(client, other, [("b", 0, 1.0)])["staged"]
    with untouched(server):
        with refused("INTERVAL_OVERLAP", conflict_count=1, entity={"site": "a"}):
            commit(client, name, "job", good, overlaps)
        with refused("DUPLICATE_INTERVAL", entity={"site": "b"}, staged=[0, 1]):
            commit(client, name, "job", good, same)
        with refused("INVALID", field="staged[1]"):
            commit(client, name, "job", good, elsewhere)
        with refused("INVALID", field="staged[1]"):
            commit(client, name, "job", good, good)
        with refused("INVALID", field="staged[0]"):
            commit(client, name, "job", good[:-8] + "AAAAAAAA")
        with refused("VERSION_CONFLICT", expected=0, found=1):
            commit(client, name, "job", good, expected_version=0)
        with refused("INVALID", field="request_id"):
            client.act("commit_staged", table=name, staged=[good])
        with refused("INVALID", field="staged"):
            client.act("commit_staged", table=name, request_id="job", staged=[])
        with refused("INVALID", field="staged"):
            client.act("abort_staged", table=name)
        with refused("INVALID", field="expected_version"):
            client.put({"op": "stage", "table": name, "expected_version": 1}, sites([("c", 0, 0.0)]))
        with refused("STREAM_INCOMPLETE", expected_rows=5, rows=1):
            client.put({"op": "stage", "table": name, "rows": 5}, sites([("c", 0, 0.0)]))
        with refused("NULL_KEY", column="ts", row=0):
            stage(client, name, [("c", None, 0.0)])
    assert commit(client, name, "job", good)["rows"] == 1
    with refused("INVALID", field="staged[0]"):
        commit(client, name, "job-2", good)
    assert values(client, name) == [("a", 0.0), ("b", 1.0)]


def test_a_token_may_be_read_and_not_written(client, name):
    create_sites(client, name)
    token = stage(client, name, [("a", 0, 0.0)])["staged"]
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    told = json.loads(raw[:-32])
    assert told["rows"] == 1
    told["expires"] += 1_000_000
    forged = base64.urlsafe_b64encode(json.dumps(told, separators=(",", ":")).encode() + raw[-32:]).decode().rstrip("=")
    with refused("INVALID", field="staged[0]"):
        commit(client, name, "job", forged)


def test_a_token_of_elsewhere(server, client, name, tmp_path):
    """Of the same table in another warehouse, and of a table that has gone since."""
    create_sites(client, name)
    with Service(tmp_path / "warehouse") as there, Client(there.uri) as other:
        create_sites(other, name)
        foreign = stage(other, name, [("a", 0, 0.0)])["staged"]
    gone = stage(client, name, [("a", 0, 0.0)])["staged"]
    client.act("drop_table", table=name)
    create_sites(client, name)
    kept = stage(client, name, [("b", 0, 1.0)])["staged"]
    with untouched(server):
        for token in (foreign, gone, kept[:-8] + "AAAAAAAA"):
            with refused("INVALID", field="staged[1]"):
                commit(client, name, "job", kept, token)
            with refused("INVALID", field="staged[1]"):
                client.act("abort_staged", table=name, staged=[kept, token])
    assert commit(client, name, "job", kept)["rows"] == 1


def test_an_expired_token(tmp_path, built):
    with Service(tmp_path / "warehouse", staged_lifetime="1s") as brief, Client(brief.uri) as client:
        create_sites(client, "t")
        staged = stage(client, "t", [("a", 0, 0.0)])
        token, end = staged["staged"], datetime.datetime.fromisoformat(staged["expires_at"])
        eventually(lambda: datetime.datetime.now(datetime.UTC) > end)
        with untouched(brief), refused("INVALID", field="staged[0]") as caught:
            commit(client, "t", "job", token)
        assert "expired at" in str(caught.value) and "stage the rows again" in str(caught.value)
        assert client.act("abort_staged", table="t", staged=[token])["files_removed"] == 1
        assert files(brief, "t") == []


def test_vacuum_leaves_rows_that_wait(server, client, name):
    """tablecore's tests move the clock on, and see them swept when they have expired."""
    create_sites(client, name)
    waits = stage(client, name, [("a", 0, 0.0)])["staged"]
    just = datetime.datetime.now(datetime.UTC).isoformat()
    swept = client.act("vacuum", table=name, apply=True, force=True, older_than=just)
    assert swept["deleted"]["files"] == 0
    assert commit(client, name, "job", waits)["rows"] == 1
    assert values(client, name) == [("a", 0.0)]


def test_abort(server, client, name):
    create_sites(client, name, [("a", 0, 0.0)])
    kept = files(server, name)
    staged = [stage(client, name, [("a", hour, 0.0)]) for hour in (1, 2, 3)]
    tokens = [s["staged"] for s in staged]
    report = client.act("abort_staged", table=name, staged=tokens)
    assert report == {"table": f"default.{name}", "files_removed": 3, "bytes_removed": sum(s["bytes"] for s in staged)}
    assert files(server, name) == kept
    again = client.act("abort_staged", table=name, staged=tokens)
    assert (again["files_removed"], again["bytes_removed"]) == (0, 0)
    with refused("INVALID", field="staged[0]"):
        commit(client, name, "job", *tokens)
    # Committed rows are left alone.
    token = stage(client, name, [("a", 5, 5.0)])["staged"]
    commit(client, name, "job", token)
    assert client.act("abort_staged", table=name, staged=[token])["files_removed"] == 0
    assert values(client, name) == [("a", 0.0), ("a", 5.0)]


def test_no_rows(client, name):
    create_sites(client, name)
    empty = client.put({"op": "stage", "table": name, "rows": 0}, SITES.empty_table())
    assert (empty["rows"], empty["data_files"], empty["bytes"]) == (0, 0, 0)
    report = commit(client, name, "nothing", empty["staged"])
    assert (report["rows"], report["committed_version"], report["data_files"]) == (0, 0, [])
    token = stage(client, name, [("a", 0, 0.0)])["staged"]
    assert commit(client, name, "something", empty["staged"], token)["rows"] == 1


def test_a_schema_comes_with_the_commit(client, name):
    definition = {
        "index_column": "ts",
        "index_granularity": "1h",
        "entity_columns": ["site"],
        "index_type": "timestamp",
    }
    client.act("create_table", table=name, **definition)
    tokens = [stage(client, name, [(s, 0, 1.0)])["staged"] for s in "ab"]
    narrow = client.put({"op": "stage", "table": name}, sites([("c", 0, 0.0)]).drop_columns("value"))["staged"]
    with refused("SCHEMA_MISMATCH", column="value"):
        commit(client, name, "job", *tokens, narrow)
    assert client.act("describe_table", table=name)["columns"] is None
    assert commit(client, name, "job", *tokens)["rows"] == 2
    with refused("SCHEMA_MISMATCH", column="value"):
        commit(client, name, "late", narrow)


def test_added_columns_are_null(client, name):
    create_sites(client, name)
    token = stage(client, name, [("a", 0, 0.0)])["staged"]
    client.act("add_columns", table=name, columns=[{"name": "quality", "type": "int8"}])
    commit(client, name, "job", token)
    assert client.read(name)["quality"].to_pylist() == [None]


def test_rows_survive_the_server(tmp_path, name, built):
    """A token is good at any server of the warehouse, and the key of the warehouse is its user's alone."""
    with Service(tmp_path) as one, Client(one.uri) as client:
        create_sites(client, name)
        token = stage(client, name, [("a", 0, 0.0)])["staged"]
        one.kill()
    with Service(tmp_path) as two, Client(two.uri) as client:
        assert commit(client, name, "job", token)["rows"] == 1
        assert values(client, name) == [("a", 0.0)]
        key = two.path(name).parent.parent / "_contrail" / "staging.key"
        assert key.stat().st_mode & 0o777 == 0o600
        assert [t["table"] for t in client.act("list_tables")["tables"]] == [f"default.{name}"]


@pytest.mark.parametrize("field", ["rows", "end"])
def test_a_broken_stream_leaves_nothing(server, client, name, field):
    create_sites(client, name)
    # The first rows that wait in a warehouse make its key.
    client.act("abort_staged", table=name, staged=[stage(client, name, [("a", 0, 0.0)])["staged"]])
    with untouched(server):
        with refused("STREAM_INCOMPLETE"):
            client.put(
                {"op": "stage", "table": name, field: 9 if field == "rows" else "marker"}, sites([("c", 0, 0.0)])
            )
    assert files(server, name) == []
