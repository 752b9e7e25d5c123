"""A table that another writer has made goes through Contrail's hands: adopted, undone, adopted again, given back."""

import deltalake
import pyarrow as pa

from tables import sites

ROWS = [("b", 3, 1.0), ("a", 1, None), ("a", 0, 2.5), ("b", 0, float("nan")), ("a", 30, 4.0)]
KEYS = {"index_column": "ts", "index_granularity": "1h", "entity_columns": ["site"]}


def plain(server, name: str, rows=ROWS) -> str:
    """A table made by deltalake, in two commits of unsorted rows. Returns its path."""
    path = str(server.path(name))
    for part in (rows[:3], rows[3:]):
        if part:
            deltalake.write_deltalake(path, sites(part), mode="append")
    return path


def values(table: pa.Table) -> list[str]:
    return sorted(str(row) for row in zip(*(table[c].to_pylist() for c in ("site", "ts", "value"))))


def stages(client, server, name: str):
    """Yield the name of each stage once the table is there; its rows are ROWS in all of them."""
    plain(server, name)
    yield "plain"
    client.act("upgrade", table=name, compact=False, **KEYS)
    yield "adopted"
    done = client.act("upgrade", table=name)
    assert [s["step"] for s in done["steps"]][0] == "rewrite_files"
    yield "rewritten"
    before, after = done["rollback_to"], done["committed_version"]
    client.act("rollback", table=name, version=before, expected_version=after)
    yield "undone"
    client.act("rollback", table=name, version=after, expected_version=after + 1)
    yield "redone"
