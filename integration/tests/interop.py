"""What the tests of all engines share: the tables they read, and what each column must look like to them."""

import base64
import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest

from client import Client
from tables import assert_same, create_weather, files

STRUCT = pa.struct([("a", pa.int32()), ("b", pa.string())])


def kinds() -> pa.Table:
    """Every accepted type with its extreme values, NaN, -0.0 and nulls; index `ts`, no two rows in one second."""
    utc, first = datetime.UTC, datetime.datetime(1970, 1, 1)
    early, late = datetime.datetime(1700, 1, 1, 0, 0, 1), datetime.datetime(2262, 1, 1, 23, 59, 59)
    times = [first, early, late, None]
    zoned = [None if t is None else t.replace(tzinfo=utc) for t in times]
    text, octets = ["", "größe\0", "x" * 5000, None], [b"", b"\0\xff", b"y" * 5000, None]
    nan = np.frombuffer(np.uint64(0x7FF8_0000_0000_0001).tobytes(), np.float64)[0]
    columns = {
        "ts": pa.array(
            [datetime.datetime(2026, 1, 1, 0, 0, s, s, utc) for s in range(4)], pa.timestamp("us", tz="UTC")
        ),
        "entity": pa.array(["a", "a", "b", "c"]),
        "bool": pa.array([True, False, True, None]),
        **{
            f"{sign}int{width}": pa.array([0, *_ends(sign, width), None], f"{sign}int{width}")
            for sign in ("", "u")
            for width in (8, 16, 32, 64)
        },
        "halffloat": pa.array(
            np.array([-0.0, np.nan, 65504.0, 0], np.float16), mask=np.array([False, False, False, True])
        ),
        "float": pa.array([-0.0, float("nan"), 3.4028234663852886e38, None], pa.float32()),
        "double": pa.array([-0.0, nan, float("-inf"), None], pa.float64()),
        "string": pa.array(text, pa.string()),
        "large_string": pa.array(text, pa.large_string()),
        "string_view": pa.array(text, pa.string_view()),
        "dictionary": pa.array(text).dictionary_encode(),
        "binary": pa.array(octets, pa.binary()),
        "large_binary": pa.array(octets, pa.large_binary()),
        "binary_view": pa.array(octets, pa.binary_view()),
        "date": pa.array([datetime.date(1970, 1, 1), datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]),
        **{f"timestamp_{unit}": pa.array(times, pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
        **{f"instant_{unit}": pa.array(zoned, pa.timestamp(unit, tz="UTC")) for unit in ("s", "ms", "us", "ns")},
        "instant_zone": pa.array(zoned, pa.timestamp("ms", tz="America/New_York")),
        "date64": pa.array([0, -86_400_000, 253_402_214_400_000, None], pa.date64()),
        **{f"time_{unit}": pa.array([0, 1, 86_399, None], pa.time32(unit)) for unit in ("s", "ms")},
        **{f"time_{unit}": pa.array([0, 1, 86_399_999_999, None], pa.time64(unit)) for unit in ("us", "ns")},
        **{f"duration_{unit}": pa.array([0, -(2**63), 2**63 - 1, None], pa.duration(unit)) for unit in ("s", "ns")},
        "decimal32": _decimals("0.00", "-9999999.99", "9999999.99", kind=pa.decimal32(9, 2)),
        "decimal64": _decimals("0.00", "-0.01", "9999999999999999.99", kind=pa.decimal64(18, 2)),
        "decimal128": _decimals("0", "-" + "9" * 34 + ".9999", "0.0001", kind=pa.decimal128(38, 4)),
        "decimal256": _decimals("0", "-" + "9" * 28 + ".99", "0.01", kind=pa.decimal256(30, 2)),
        "fixed": pa.array([b"\0\0", b"ab", b"\xff\xff", None], pa.binary(2)),
        "list": pa.array([[], [1, None], [3], None], pa.list_(pa.int32())),
        "large_list": pa.array([[], ["a", None], ["b"], None], pa.large_list(pa.string())),
        "fixed_list": pa.array([[1.0, 2.0], [None, -0.5], [3.0, 4.0], None], pa.list_(pa.float64(), 2)),
        "struct": pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "y"}, {"a": 2, "b": None}, None], STRUCT),
        "map": pa.array([[], [("k", 1)], [("k", None), ("l", 2)], None], pa.map_(pa.string(), pa.int32())),
        "nested": pa.array([[], [{"a": 1, "b": "x"}, None], [{"a": None, "b": None}], None], pa.list_(STRUCT)),
        "name with a blank": pa.array([1, 2, 3, None]),
        "name.with.dots": pa.array([1, 2, 3, None]),
    }
    fields = [pa.field(n, c.type, nullable=n not in ("ts", "entity")) for n, c in columns.items()]
    return pa.table(columns, schema=pa.schema(fields))


def _decimals(*texts: str, kind: pa.DataType) -> pa.Array:
    return pa.array([*map(decimal.Decimal, texts), None], kind)


def _ends(sign: str, width: int) -> tuple[int, int]:
    return (0, 2**width - 1) if sign else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)


def as_stored(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of an exact scan as the Delta types of the table format give it to another engine."""
    kind = column.type
    if kind == pa.uint64():
        values = [None if v is None else decimal.Decimal(v) for v in column.to_pylist()]
        return pa.chunked_array([pa.array(values, pa.decimal128(20, 0))])
    if pa.types.is_timestamp(kind):
        if kind.unit == "ns":
            return column.cast(pa.int64())
        return column.cast(pa.timestamp("us", tz="UTC" if kind.tz else None))
    if pa.types.is_decimal(kind):
        return column.cast(pa.decimal128(kind.precision, kind.scale))
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return column.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64())
    narrow = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.float16(): pa.float32(),
        pa.date64(): pa.date32(),
        pa.binary(2): pa.binary(),
        pa.dictionary(pa.int32(), pa.string()): pa.string(),
    }
    return as_plain(column.cast(narrow.get(kind, kind)))


def as_plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column with small layouts and one name for list items: engines choose their own."""
    return column.cast(_plain(column.type))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _plain(field.type)) for field in kind])
    plain = {
        pa.large_string(): pa.string(),
        pa.string_view(): pa.string(),
        pa.large_binary(): pa.binary(),
        pa.binary_view(): pa.binary(),
    }
    return plain.get(kind, kind)


def ipc(schema: pa.Schema, first: int = 0, end: int | None = None) -> str:
    """Fields of a schema as `schema_ipc` of an action takes them."""
    return base64.b64encode(pa.schema(list(schema)[first:end]).serialize().to_pybytes()).decode()


class Stored:
    """Tables that a server wrote and still serves, with what a scan of them gives in the types of the table format."""

    def __init__(self, server, weather: pa.Table, months: list[pa.Table]):
        self.server = server
        with Client(server.uri) as client:
            create_weather(client, "weather", weather.schema)
            for month in months:
                client.append("weather", month)
            client.act(
                "create_table",
                table="kinds",
                index_column="ts",
                index_granularity="1s",
                entity_columns=["entity"],
                schema_ipc=ipc(kinds().schema),
            )
            client.append("kinds", kinds())
            self._grow(client)
            self._replace(client)
            self._correct(client)
            self._optimize(client)
        self.keys = {"weather": ["origin", "time_hour"], "kinds": ["entity", "ts"], "grown": ["entity", "ts"]}
        self.keys["replaced"] = self.keys["corrected"] = self.keys["optimized"] = self.keys["kinds"]

    def _grow(self, client: Client) -> None:
        """A table that has gained most of the columns of `kinds`, those without zone too, when it had rows."""
        rows, first = kinds(), 6
        definition = {"index_column": "ts", "index_granularity": "1s", "entity_columns": ["entity"]}
        client.act("create_table", table="grown", schema_ipc=ipc(rows.schema, 0, first), **definition)
        client.append("grown", rows.select(range(first)).slice(0, 2))
        client.act("add_columns", table="grown", schema_ipc=ipc(rows.schema, first))
        client.append("grown", rows.slice(2))

    def _replace(self, client: Client) -> None:
        """A table that overwrites: of four rows in one file three were replaced, by rows with values of the others."""
        rows = kinds()
        definition = {"index_column": "ts", "index_granularity": "1s", "entity_columns": ["entity"]}
        client.act("create_table", table="replaced", uniqueness="overwrite", schema_ipc=ipc(rows.schema), **definition)
        client.append("replaced", rows)
        fresh = pa.concat_tables([rows.slice(i, 1) for i in (3, 2, 1)])
        for key in (0, 1):
            fresh = fresh.set_column(key, rows.schema.field(key), rows[key].slice(1))
        report = client.append("replaced", fresh)
        assert (report["rows"], report["rows_replaced"]) == (3, 3)

    def _correct(self, client: Client) -> None:
        """A table of two files; three of its four rows were corrected, in every other column, with values of others."""
        rows = kinds()
        definition = {"index_column": "ts", "index_granularity": "1s", "entity_columns": ["entity"]}
        client.act("create_table", table="corrected", schema_ipc=ipc(rows.schema), **definition)
        client.append("corrected", rows.slice(0, 3))
        client.append("corrected", rows.slice(3))
        chosen = rows.schema.names[2::2]
        fresh = pa.concat_tables([rows.slice(i, 1) for i in (3, 2, 1)])
        for key in (0, 1):
            fresh = fresh.set_column(key, rows.schema.field(key), rows[key].slice(1))
        command = {"op": "update_rows", "table": "corrected", "columns": chosen, "expected_version": 2, "rows": 3}
        assert client.put(command, fresh.select([*rows.schema.names[:2], *chosen]))["rows_updated"] == 3

    def _optimize(self, client: Client) -> None:
        """A table of four files, the first without most of the columns, which were made one, and its tail another."""
        rows, first = kinds(), 6
        definition = {"index_column": "ts", "index_granularity": "1s", "entity_columns": ["entity"]}
        client.act("create_table", table="optimized", schema_ipc=ipc(rows.schema, 0, first), **definition)
        client.append("optimized", rows.select(range(first)).slice(0, 1))
        client.act("add_columns", table="optimized", schema_ipc=ipc(rows.schema, first))
        for row in (2, 1):
            client.append("optimized", rows.slice(row, 1))
        report = client.act("optimize", table="optimized")
        assert (report["files_in"], report["files_out"], report["rows"], report["entities"]) == (3, 1, 3, 2)
        client.append("optimized", rows.slice(3))

    def scan(self, table: str) -> pa.Table:
        """All columns, the insertion time too, by (entity, index)."""
        with Client(self.server.uri) as client:
            names = client.read(table, end=0).column_names + ["_ingest_ts"]
            got = client.read(table, columns=names, profile="exact")
        return pa.table({n: as_stored(got[n]) for n in names})

    def assert_reads_the_same(self, engine, table: str) -> None:
        """The engine finds the scan's columns, types, rows and values in the table's directory."""
        want = self.scan(table)
        got = engine.read(self.server.path(table))
        got = pa.table({n: as_plain(got[n]) for n in got.column_names})
        assert {n: str(got[n].type) for n in got.column_names} == {n: str(want[n].type) for n in want.column_names}
        got = got.select(want.column_names).sort_by([(key, "ascending") for key in self.keys[table]])
        assert_same(got, want)

    def assert_refuses_writes(self, engine, table: str, names: set[str]) -> None:
        """Every write the engine offers fails, and neither the log nor a data file changes."""
        path = self.server.path(table)
        before = files(path)
        writes = engine.writes(path)
        assert set(writes) == names
        for name, write in writes.items():
            with pytest.raises(
                Exception, match=r"contrail-timeseries|Can only (update|delete from) base table"
            ) as caught:
                write()
            assert not isinstance(caught.value, AssertionError), name
            after = files(path)
            # Spark and DuckDB write a data file to the root before they learn that they may not commit it. No reader
            # looks at it, for the log does not name it; that and nothing else is lived with.
            strays = {n for n in after.keys() - before.keys() if "/" not in n and ".parquet" in n}
            assert {n: h for n, h in after.items() if n not in strays} == before, name
            for stray in strays:
                (path / stray).unlink()
