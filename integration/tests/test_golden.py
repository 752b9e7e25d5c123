"""Delta tables that Spark wrote, over Flight: the rows that others read, or an error that says why not."""

import json
import pathlib
import shutil

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import service
from canonical import lines
from client import Client
from tables import refused

GOLDEN = service.ROOT / "integration/testdata/delta"

# A few of each kind; tablecore's tests read them all.
PLAIN = [
    "125-iterator-bug",
    "basic-with-inserts-deletes-checkpoint",
    "corrupted-last-checkpoint-kernel",
    "data-reader-array-complex-objects",
    "data-reader-map",
    "data-reader-nested-struct",
    "data-reader-primitives",
    "data-skipping-basic-stats-all-types-checkpoint",
    "decimal-various-scale-precision",
    "multi-part-checkpoint",
    "only-checkpoint-files",
    "parquet-all-types",
    "parquet-all-types-legacy-format",
    "time-travel-schema-changes-b",
]
REFUSED = [
    "basic-decimal-table",
    "data-reader-partition-values",
    "deltalog-invalid-protocol-version",
    "deltalog-state-reconstruction-without-protocol",
    "dv-with-columnmapping",
    "log-replay-special-characters-b",
    "no-delta-log-folder",
    "parquet-decimal-dictionaries-v1",
    "spark-variant-checkpoint",
    "table-with-columnmapping-mode-id",
    "type-widening",
    "v2-checkpoint-parquet",
    "versions-not-contiguous",
]


@pytest.fixture(scope="module")
def golden(tmp_path_factory, built):
    """A server over copies of all golden tables."""
    warehouse = tmp_path_factory.mktemp("golden") / "warehouse"
    for table in GOLDEN.iterdir():
        if table.is_dir():
            shutil.copytree(table, warehouse / "default" / table.name)
    with service.Service(warehouse) as running, Client(running.uri) as client:
        client.warehouse = warehouse / "default"
        yield client


def expected(table: str) -> dict:
    return json.loads((GOLDEN / f"{table}.json").read_text())


@pytest.mark.parametrize("table", PLAIN)
def test_plain(golden, table):
    want = expected(table)
    got = golden.read(table)
    assert [[f.name, str(f.type), f.nullable] for f in got.schema] == want["columns"]
    described = golden.act("describe_table", table=table)
    assert [[c["name"], c["type"], c["nullable"]] for c in described["columns"]] == want["columns"]
    assert described["rows"] == got.num_rows == want["count"]
    assert described["format_version"] == "0.1.0"
    assert [json.loads(line) for line in lines(got)] == want["rows"]
    files = golden.get({"op": "files", "table": table})
    assert pc.sum(files["rows"]).as_py() == want["count"]
    assert files["index_min"].null_count == files.num_rows
    assert golden.get({"op": "explain", "table": table})["kept"].to_pylist() == [True] * files.num_rows
    assert golden.read(table, limit=3).num_rows == min(3, want["count"])
    for endpoint in golden.info(table=table, max_endpoints=3).endpoints:
        assert golden.get(endpoint.ticket).schema == got.schema
    history = golden.get({"op": "history", "table": table})
    for version, held in want["versions"].items():
        assert golden.read(table, version=int(version)).num_rows == held["count"]
    newest = history["committed_at"][0].as_py()
    assert golden.read(table, as_of=newest.isoformat()).num_rows == want["count"]


@pytest.mark.parametrize("table", REFUSED)
def test_refused(golden, table):
    want = expected(table)["refused"]
    key = {"UNSUPPORTED": "feature", "FILE_MISSING": "path", "CORRUPT": "path"}.get(want["token"])
    with refused(want["token"], **({key: want["names"]} if key else {})):
        golden.read(table)


def test_all_are_listed(golden):
    """One that cannot be opened keeps nobody from seeing the others."""
    listed = {t["table"].removeprefix("default."): t for t in golden.act("list_tables")["tables"]}
    logs = {p.parent.name for p in GOLDEN.glob("*/_delta_log")}
    assert listed.keys() == logs
    for table in PLAIN:
        assert listed[table]["format_version"] == "0.1.0"
    assert listed["versions-not-contiguous"]["version"] is None


def test_only_read(golden):
    upgrade = "flight-admin upgrade default.snapshot-data0 --index-column COLUMN"
    calls = [
        lambda: golden.append("snapshot-data0", pa.table({"col1": [1]})),
        lambda: golden.get({"op": "latest", "table": "snapshot-data0"}),
        lambda: golden.get({"op": "coverage", "table": "snapshot-data0", "kind": "missing"}),
        lambda: golden.get({"op": "entities", "table": "snapshot-data0"}),
        lambda: golden.act("add_columns", table="snapshot-data0", columns=[{"name": "q", "type": "int8"}]),
        lambda: golden.act("set_properties", table="snapshot-data0", properties={"a": "b"}),
        lambda: golden.act("checkpoint", table="snapshot-data0"),
        lambda: golden.act("drop_table", table="snapshot-data0"),
        lambda: golden.act("rollback", table="snapshot-data0", version=0, expected_version=7),
    ]
    for call in calls:
        with refused("FORMAT_UNWRITABLE", table_format="0.1.0", supported_format="0.3.0") as caught:
            call()
        assert upgrade in str(caught.value)
        assert "other Delta readers may still read it" in str(caught.value)
    for field, value in {"entities": [], "start": 0, "end": 1}.items():
        with refused("INVALID", field=field):
            golden.read("snapshot-data0", **{field: value})


def linked(golden, name: str, target: pathlib.Path) -> str:
    """A copy of a table with a link in the place of a data file. Returns the file's path."""
    table = shutil.copytree(GOLDEN / "snapshot-data0", golden.warehouse / name)
    file = next(table.glob("part-00000-*.parquet"))
    target = target if target.is_absolute() else table / target
    file.rename(target)
    file.symlink_to(target.name if target.parent == table else target)
    return file.name


def test_links(golden, tmp_path):
    linked(golden, "link-inside", pathlib.Path("elsewhere.parquet"))
    assert golden.read("link-inside").num_rows == 10
    path = linked(golden, "link-outside", tmp_path / "outside.parquet")
    with refused("UNSUPPORTED", path=path):
        golden.read("link-outside")
