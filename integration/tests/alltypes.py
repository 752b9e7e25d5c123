"""One table with every type that a column can have, and what each value must look like to a client and to an engine."""

import dataclasses
import datetime
import decimal
import uuid
from collections.abc import Iterable

import pyarrow as pa

D, DATE = decimal.Decimal, datetime.date
UTC = datetime.UTC
US = datetime.datetime(2026, 1, 2, 3, 4, 5, 6)
NS = 1_767_323_045_000_000_006
IDS = [uuid.UUID(int=n).bytes for n in (0, 1, 2**128 - 1)]


@dataclasses.dataclass
class Case:
    """A type, three values of it, what other engines find (None: the values), and its compat type (None: itself)."""

    type: pa.DataType
    values: list
    found: list | None = None
    compat: pa.DataType | None = None
    metadata: dict | None = None

    @property
    def expected(self) -> list:
        return [*(self.values if self.found is None else self.found), None]


def _field(name: str, kind: pa.DataType, **metadata) -> pa.Field:
    return pa.field(name, kind, metadata=metadata or None)


POINT = pa.struct([_field("x", pa.float64(), unit="m"), pa.field("a.b", pa.string(), nullable=False)])
PLAIN_POINT = pa.struct([_field("x", pa.float64()), pa.field("a.b", pa.string(), nullable=False)])
POINTS = [{"x": 1.5, "a.b": "é"}, {"x": None, "a.b": ""}, {"x": -0.5, "a.b": "z"}]
WIDE = "12345678901234567890123456789012345678901234567890.123"

CASES = {
    "date64": Case(pa.date64(), [DATE(1970, 1, 1), DATE(1, 1, 1), DATE(9999, 12, 31)], compat=pa.date32()),
    "time32_s": Case(pa.time32("s"), [0, 1, 86399]),
    "time32_ms": Case(pa.time32("ms"), [0, 1, 86399999]),
    "time64_us": Case(pa.time64("us"), [0, 1, 86399999999]),
    "time64_ns": Case(pa.time64("ns"), [0, 1, 86399999999999]),
    **{f"duration_{u}": Case(pa.duration(u), [0, -(2**63), 2**63 - 1]) for u in ("s", "ms", "us", "ns")},
    "decimal32": Case(pa.decimal32(9, 2), [D("0.00"), D("-9999999.99"), D("0.01")], compat=pa.decimal128(9, 2)),
    "decimal64": Case(pa.decimal64(18, 18), [D("0.1"), D("-0." + "9" * 18), D("0")], compat=pa.decimal128(18, 18)),
    "decimal128": Case(pa.decimal128(38, 10), [D("-" + "9" * 28 + ".9999999999"), D("1"), D("0.5")]),
    "decimal256": Case(pa.decimal256(38, 2), [D("9" * 36 + ".99"), D("-1"), D("0")], compat=pa.decimal128(38, 2)),
    "decimal256_wide": Case(pa.decimal256(76, 3), [D(WIDE), D("-" + WIDE), D("0.001")], [WIDE, "-" + WIDE, "0.001"]),
    "fixed_size_binary": Case(pa.binary(3), [b"abc", b"\0\0\0", b"\xff\xfe\xfd"]),
    "dictionary": Case(pa.dictionary(pa.int8(), pa.large_string()), ["a", "é", "a"], compat=pa.string()),
    "dictionary_of_numbers": Case(pa.dictionary(pa.int16(), pa.float64()), [1.5, -2.5, 1.5], compat=pa.float64()),
    "dictionary_of_decimals": Case(
        pa.dictionary(pa.int32(), pa.decimal128(5, 1)), [D("0.1"), D("9.9"), D("0.1")], compat=pa.decimal128(5, 1)
    ),
    "list": Case(pa.list_(pa.int32()), [[], [1, None, 3], [2]]),
    "list_not_null": Case(pa.list_(pa.field("element", pa.int64(), nullable=False)), [[], [1, 2], [3]]),
    "large_list": Case(pa.large_list(pa.large_string()), [["a", None], [], ["é"]], compat=pa.list_(pa.string())),
    "fixed_size_list": Case(pa.list_(pa.float32(), 2), [[1.5, None], [0.0, 2.0], [None, None]]),
    "lists_of_lists": Case(pa.list_(pa.list_(pa.uint64())), [[[2**64 - 1], [], None], [], [[0, 1]]]),
    "struct": Case(POINT, POINTS),
    "structs": Case(pa.list_(POINT), [POINTS, [], [None, POINTS[0]]]),
    "map": Case(pa.map_(pa.string(), pa.int32()), [[("a", 1), ("b", None)], [], [("", 2)]]),
    "map_of_structs": Case(pa.map_(pa.int32(), POINT), [[(1, POINTS[0])], [(2, None)], []]),
    "times_inside": Case(
        pa.struct(
            [
                _field("ns", pa.timestamp("ns")),
                _field("us", pa.timestamp("us", tz="UTC")),
                _field("d", pa.duration("s")),
            ]
        ),
        [
            {"ns": NS, "us": US.replace(tzinfo=UTC), "d": 1},
            {"ns": None, "us": None, "d": None},
            {"ns": -1, "us": None, "d": -1},
        ],
    ),
    "naive_inside": Case(pa.list_(pa.timestamp("ms")), [[US.replace(microsecond=7000)], [], [None]]),
    "views_inside": Case(pa.list_(pa.string_view()), [["x" * 20, ""], [None], []], compat=pa.list_(pa.string())),
    "dictionary_inside": Case(
        pa.list_(pa.dictionary(pa.int32(), pa.string())), [["a", "b", "a"], [None], []], compat=pa.list_(pa.string())
    ),
    "uuid": Case(pa.uuid(), IDS, compat=pa.binary(16)),
    "json": Case(pa.json_(), ['{"a": 1}', "null", "[]"], compat=pa.string()),
    "bool8": Case(pa.bool8(), [True, False, True], [1, 0, 1], compat=pa.int8()),
    "uuids": Case(pa.list_(pa.uuid()), [IDS, [], [None]], compat=pa.list_(pa.binary(16))),
    "unknown_extension": Case(
        pa.decimal128(12, 2),
        [D("1.00"), D("-2.50"), D("0")],
        metadata={"ARROW:extension:name": "app.money", "ARROW:extension:metadata": "EUR", "note": "kept"},
    ),
}


def _array(kind: pa.DataType, values: list) -> pa.Array:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(
            kind, _array(kind.storage_type, [None if v is None else _int8(v) for v in values])
        )
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    if pa.types.is_list(kind) and isinstance(kind.value_type, pa.BaseExtensionType):
        return pa.array(values, pa.list_(kind.value_type.storage_type)).cast(kind)
    if pa.types.is_list(kind) and pa.types.is_dictionary(kind.value_type):
        return pa.array(values, pa.list_(kind.value_type.value_type)).cast(kind)
    return pa.array(values, kind)


def _int8(value):
    return int(value) if isinstance(value, bool) else value


def table() -> pa.Table:
    """Four rows: three values, the last one null in every column."""
    fields = [
        pa.field("ts", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("entity", pa.string(), nullable=False),
    ]
    arrays = [
        pa.array([US.replace(second=s, tzinfo=UTC) for s in range(4)], fields[0].type),
        pa.array(["a", "a", "b", "b"]),
    ]
    for name, case in CASES.items():
        fields.append(pa.field(name, case.type, metadata=case.metadata))
        arrays.append(_array(case.type, [*case.values, None]))
    return pa.table(arrays, schema=pa.schema(fields))


DEFINITION = {"index_column": "ts", "index_granularity": "1s", "entity_columns": ["entity"]}


def assert_engine_reads(got: pa.Table, names: Iterable[str] = CASES) -> None:
    """What an engine has read holds the values of these columns as their Delta types give them."""
    got = got.sort_by("ts")
    for name in names:
        found, expected = plain(got[name]), CASES[name].expected
        assert [comparable(v) for v in found] == [comparable(v) for v in expected], (name, got[name].type)


def plain(column) -> list:
    """Python values, times and durations as their numbers, whatever the layout."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return [_scalar(v) for v in column]


def _scalar(value: pa.Scalar):
    kind = value.type
    if not value.is_valid:
        return None
    if isinstance(value, pa.ExtensionScalar):
        return _scalar(value.value)
    if pa.types.is_dictionary(kind):
        return _scalar(value.value) if isinstance(value.value, pa.Scalar) else value.as_py()
    if pa.types.is_map(kind):
        return [(_scalar(e["key"]), _scalar(e["value"])) for e in value.values]
    if pa.types.is_struct(kind):
        return {name: _scalar(value[name]) for name in (f.name for f in kind)}
    if pa.types.is_nested(kind):
        return [_scalar(v) for v in value.values]
    if pa.types.is_time(kind) or pa.types.is_duration(kind) or pa.types.is_timestamp(kind) and kind.unit == "ns":
        return value.value
    return value.as_py()


def comparable(value):
    """Equal for equal values: Polars gives maps as lists of structs, and every engine its own type of number."""
    if isinstance(value, dict) and set(value) == {"key", "value"}:
        return (comparable(value["key"]), comparable(value["value"]))
    if isinstance(value, dict):
        return {k: comparable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(comparable(v) for v in value)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    return value
