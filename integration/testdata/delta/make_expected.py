"""Freeze what the tables in this folder hold, as the Python packages deltalake and duckdb read them.

    integration/.venv/bin/python integration/testdata/delta/make_expected.py [folder with the golden tables]

With a folder, its tables are copied here first. Beside every table `<name>` it writes `<name>.json`; README.md says
what stands in it. Nothing here runs Contrail: the expectations are other people's, but for `refused` and `note`, which
are decided below.
"""

import hashlib
import json
import pathlib
import shutil
import sys

import deltalake

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

import engines  # noqa: E402  the folder above has just been put on the path
from canonical import lines  # noqa: E402

# Tables with more rows than this are frozen as their number and a digest.
MOST_ROWS = 1000

# What Contrail does not read, and the error that says so: token, and the feature or path that it names.
PARTITIONED = ("UNSUPPORTED", "partitionColumns")
MAPPED = ("UNSUPPORTED", "columnMapping")
VECTORS = ("UNSUPPORTED", "deletionVectors")
SIDECARS = ("UNSUPPORTED", "v2Checkpoint")
WIDENED = ("UNSUPPORTED", "typeWidening-preview")
NO_TABLE = ("TABLE_NOT_FOUND", None)
NO_SCHEMA = ("CORRUPT", "_delta_log")
REFUSED = {
    "basic-decimal-table": PARTITIONED,
    "basic-decimal-table-legacy": PARTITIONED,
    "canonicalized-paths-normal-a": NO_SCHEMA,
    "canonicalized-paths-normal-b": NO_SCHEMA,
    "canonicalized-paths-special-a": NO_SCHEMA,
    "canonicalized-paths-special-b": NO_SCHEMA,
    "checkpoint": ("FILE_MISSING", "15"),
    "commit-info-containing-arbitrary-operationParams-types": PARTITIONED,
    "corrupted-last-checkpoint": NO_SCHEMA,
    "data-reader-date-types-America": NO_TABLE,
    "data-reader-date-types-Asia": NO_TABLE,
    "data-reader-date-types-Etc": NO_TABLE,
    "data-reader-escaped-chars": PARTITIONED,
    "data-reader-partition-values": PARTITIONED,
    "data-reader-timestamp_ntz": PARTITIONED,
    "data-reader-timestamp_ntz-id-mode": MAPPED,
    "data-reader-timestamp_ntz-name-mode": MAPPED,
    "data-skipping-basic-stats-all-types-columnmapping-id": MAPPED,
    "data-skipping-basic-stats-all-types-columnmapping-name": MAPPED,
    "delete-re-add-same-file-different-transactions": ("FILE_MISSING", "foo"),
    "deltalog-commit-info": NO_SCHEMA,
    "deltalog-invalid-protocol-version": ("UNSUPPORTED", "minReaderVersion 99"),
    "deltalog-state-reconstruction-from-checkpoint-missing-metadata": NO_SCHEMA,
    "deltalog-state-reconstruction-from-checkpoint-missing-protocol": NO_SCHEMA,
    "deltalog-state-reconstruction-without-metadata": ("CORRUPT", "_delta_log/00000000000000000000.json"),
    "deltalog-state-reconstruction-without-protocol": ("CORRUPT", "_delta_log/00000000000000000000.json"),
    "dv-partitioned-with-checkpoint": VECTORS,
    "dv-with-columnmapping": VECTORS,
    "kernel-timestamp-INT96": PARTITIONED,
    "kernel-timestamp-PST": PARTITIONED,
    "kernel-timestamp-TIMESTAMP_MICROS": PARTITIONED,
    "kernel-timestamp-TIMESTAMP_MILLIS": PARTITIONED,
    "kernel-timestamp-partition-col-ISO8601": PARTITIONED,
    "log-replay-dv-key-cases": VECTORS,
    "log-replay-special-characters-b": ("FILE_MISSING", "special p@#h"),
    "log-store-listFrom": NO_TABLE,
    "log-store-read": NO_TABLE,
    "no-delta-log-folder": NO_TABLE,
    "parquet-decimal-dictionaries-v1": (
        "FILE_MISSING",
        "part-00000-92f97f0b-304f-4587-9d25-088cb386fa64-c000.snappy.parquet",
    ),
    "spark-variant-checkpoint": ("UNSUPPORTED", "variantType-preview"),
    "table-with-columnmapping-mode-id": MAPPED,
    "table-with-columnmapping-mode-name": MAPPED,
    "table-with-icebegCompatV2Enabled": MAPPED,
    "time-travel-partition-changes-a": PARTITIONED,
    "time-travel-partition-changes-b": PARTITIONED,
    "type-widening": WIDENED,
    "type-widening-nested": WIDENED,
    "update-deleted-directory": NO_SCHEMA,
    "v2-checkpoint-json": SIDECARS,
    "v2-checkpoint-parquet": SIDECARS,
    "versions-not-contiguous": ("CORRUPT", "_delta_log/00000000000000000001.json"),
}

# Where the two packages differ, or refuse what the protocol allows: whom the expectation follows, and why.
BY_NAME = (
    "deltalake looks for the logical names of mapped columns in the data files and gives nulls. PROTOCOL.md, Column "
    "Mapping: readers must resolve columns by the physical names or the ids in the schema. DuckDB does."
)
WITHOUT_SCHEMA = (
    "The metadata has no schemaString, which PROTOCOL.md, Change Metadata, demands. Both packages refuse the table."
)
BAD_CHECKPOINT = "The checkpoint lacks an action that it must hold, so it is not used; the commits are all there. "
UNKNOWN_FEATURE = "deltalake does not know a reader feature that the table lists, so it must refuse. DuckDB reads."
NOTES = {
    "basic-decimal-table": "deltalake does not read negative decimals among partition values.",
    "basic-decimal-table-legacy": "deltalake does not read negative decimals among partition values.",
    "basic-with-vacuum-protocol-check-feature": UNKNOWN_FEATURE,
    "data-skipping-basic-stats-all-types-columnmapping-id": BY_NAME,
    "data-skipping-basic-stats-all-types-columnmapping-name": BY_NAME,
    "deltalog-state-reconstruction-from-checkpoint-missing-metadata": BAD_CHECKPOINT + WITHOUT_SCHEMA,
    "deltalog-state-reconstruction-from-checkpoint-missing-protocol": BAD_CHECKPOINT + WITHOUT_SCHEMA,
    "parquet-all-types-legacy-format": "The lists lie in files as two levels (LogicalTypes.md, Backward-compatibility "
    "rules). DuckDB stops with an internal error; deltalake reads.",
    "spark-variant-checkpoint": "deltalake gives variants as structs of binaries. DuckDB refuses the table.",
    "table-with-columnmapping-mode-id": BY_NAME,
    "table-with-columnmapping-mode-name": BY_NAME,
    "table-with-icebegCompatV2Enabled": BY_NAME,
}


def main() -> None:
    if len(sys.argv) > 1:
        copy(pathlib.Path(sys.argv[1]))
    for table in tables():
        name = table.relative_to(HERE).as_posix()
        expected = expect(name, table)
        path = HERE / f"{name}.json"
        path.write_text(render(expected) + "\n")
        print(f"{name}: {expected['readers']} {expected.get('count', '')}")


def copy(source: pathlib.Path) -> None:
    for table in sorted(p for p in source.iterdir() if p.is_dir()):
        shutil.rmtree(HERE / table.name, ignore_errors=True)
        shutil.copytree(table, HERE / table.name)


def tables() -> list[pathlib.Path]:
    """The golden tables, and those that lie inside of one: three zones have a slash in their name."""
    outer = [p for p in HERE.iterdir() if p.is_dir()]
    inner = [p.parent for p in HERE.glob("*/*/_delta_log")]
    return sorted(outer + inner)


def expect(name: str, table: pathlib.Path) -> dict:
    read = {"deltalake": attempt(engines.Deltalake, table), "duckdb": attempt(engines.DuckDB, table)}
    expected = {"readers": {package: got if isinstance(got, str) else "reads" for package, got in read.items()}}
    note = NOTES.get(name, WITHOUT_SCHEMA if REFUSED.get(name) == NO_SCHEMA else None)
    if note:
        expected["note"] = note
    if name in REFUSED:
        token, what = REFUSED[name]
        expected["refused"] = {"token": token, "names": what}
    found = {package: lines(got) for package, got in read.items() if not isinstance(got, str)}
    if len(set(map(tuple, found.values()))) == 2 and note is None:
        raise SystemExit(f"{name}: the two packages disagree, and no note says who is right")
    if not found:
        return expected
    package = "deltalake" if "deltalake" in found and note != BY_NAME else "duckdb"
    expected["columns"] = columns(table, read[package].schema)
    expected |= frozen(found[package])
    if package == "deltalake":
        expected["versions"] = versions(table)
    return expected


def attempt(engine, table: pathlib.Path):
    """All rows of a table, or the name of the error."""
    try:
        return engine().read(str(table))  # a failure may ruin the engine, so each table gets a new one
    except Exception as error:
        return type(error).__name__


def versions(table: pathlib.Path) -> dict:
    """What each version holds, for those that can still be read."""
    found = {}
    for version in range(deltalake.DeltaTable(table).version() + 1):
        try:
            rows = deltalake.DeltaTable(table, version=version).to_pyarrow_table()
        except Exception as error:
            found[version] = type(error).__name__
            continue
        found[version] = frozen(lines(rows), most=0)
    return found


def columns(table: pathlib.Path, schema) -> list:
    """Name, type as pyarrow prints it, and nullability, which only the log tells."""
    log = json.loads(deltalake.DeltaTable(table).schema().to_json())
    nullable = {f["name"]: f["nullable"] for f in log["fields"]}
    return [[f.name, str(f.type), nullable[f.name]] for f in schema]


def frozen(found: list[str], most: int = MOST_ROWS) -> dict:
    if len(found) <= most:
        return {"count": len(found), "rows": found}
    return {"count": len(found), "sha256": hashlib.sha256("\n".join(found).encode()).hexdigest()}


def render(expected: dict) -> str:
    """JSON with a row, a column and a version to a line, so that a difference shows as one."""
    listed = []
    for key, value in expected.items():
        match key, value:
            case "rows", [_, *_]:
                text = "[\n  " + ",\n  ".join(value) + "\n ]"
            case "columns", [_, *_]:
                text = "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"
            case "versions", _:
                text = "{\n  " + ",\n  ".join(f'"{v}": {json.dumps(held)}' for v, held in value.items()) + "\n }"
            case _:
                text = json.dumps(value)
        listed.append(f' "{key}": {text}')
    return "{\n" + ",\n".join(listed) + "\n}"


if __name__ == "__main__":
    main()
