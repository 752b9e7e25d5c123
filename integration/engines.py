"""The other engines that open a table's directory without the server: how each reads it, and how it would write it.

`read` returns the whole table as Arrow, in no particular order. `writes` names every way to change a table that the
engine offers and this file knows; each is a function that must fail on a table of Contrail's.
"""

import pathlib
from collections.abc import Callable

import deltalake
import duckdb
import duckdb_extension_delta
import polars
import pyarrow as pa

import spark_session

Writes = dict[str, Callable[[], object]]


class Deltalake:
    """The Python package of delta-rs: what pandas users read Delta tables with."""

    def read(self, path) -> pa.Table:
        return deltalake.DeltaTable(path).to_pyarrow_table()

    def writes(self, path) -> Writes:
        table = deltalake.DeltaTable(path)
        rows = table.to_pyarrow_table().slice(0, 1)
        return {
            "append": lambda: deltalake.write_deltalake(path, rows, mode="append"),
            "overwrite": lambda: deltalake.write_deltalake(path, rows, mode="overwrite"),
            "delete": lambda: deltalake.DeltaTable(path).delete(),
            "update": lambda: deltalake.DeltaTable(path).update(updates={rows.column_names[-1]: "null"}),
            "optimize": lambda: deltalake.DeltaTable(path).optimize.compact(),
            "restore": lambda: deltalake.DeltaTable(path).restore(0),
            "set properties": lambda: deltalake.DeltaTable(path).alter.set_table_properties(
                {"delta.appendOnly": "true"}
            ),
        }


class DuckDB:
    """DuckDB with its delta extension, loaded from the package's file: a plain LOAD would go to the network."""

    def __init__(self):
        folder = pathlib.Path(duckdb_extension_delta.__file__).parent / "extensions" / f"v{duckdb.__version__}"
        self.connection = duckdb.connect()
        self.connection.execute(f"LOAD '{folder / 'delta.duckdb_extension'}'")
        self.connection.execute("SET TimeZone = 'UTC'")

    def read(self, path) -> pa.Table:
        return self.connection.execute(f"SELECT * FROM delta_scan('{path}')").to_arrow_table()

    def writes(self, path) -> Writes:
        return {
            "append": lambda: self._attached(path, "INSERT INTO t SELECT * FROM t LIMIT 1"),
            "delete": lambda: self._attached(path, "DELETE FROM t"),
            "update": lambda: self._attached(path, "UPDATE t SET _ingest_ts = NULL"),
        }

    def _attached(self, path, statement: str) -> None:
        self.connection.execute(f"ATTACH '{path}' AS t (TYPE delta)")
        try:
            self.connection.execute(statement)
        finally:
            self.connection.execute("DETACH t")


class Polars:
    """Polars reads with its own Parquet reader and writes through deltalake."""

    def read(self, path) -> pa.Table:
        return polars.read_delta(str(path)).to_arrow()

    def writes(self, path) -> Writes:
        rows = polars.read_delta(str(path)).head(1)
        return {
            "append": lambda: rows.write_delta(str(path), mode="append"),
            "overwrite": lambda: rows.write_delta(str(path), mode="overwrite"),
        }


class Spark:
    """Spark with Delta's own jars, fetched by Maven, and with a package that its workers import from."""

    def __init__(self, package):
        self.session = spark_session.make(package)

    def read(self, path) -> pa.Table:
        return self.session.read.format("delta").load(str(path)).toArrow()

    def writes(self, path) -> Writes:
        table = f"delta.`{path}`"
        statements = {
            "append": f"INSERT INTO {table} SELECT * FROM {table} LIMIT 1",
            "overwrite": f"INSERT OVERWRITE {table} SELECT * FROM {table} LIMIT 1",
            "delete": f"DELETE FROM {table}",
            "update": f"UPDATE {table} SET _ingest_ts = NULL",
            "optimize": f"OPTIMIZE {table}",
            "vacuum": f"VACUUM {table} RETAIN 1000 HOURS",
            "set properties": f"ALTER TABLE {table} SET TBLPROPERTIES ('a.b' = 'c')",
        }
        return {name: lambda sql=sql: self.session.sql(sql).collect() for name, sql in statements.items()}

    def stop(self) -> None:
        self.session.stop()
