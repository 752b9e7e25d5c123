"""Between Spark's types and the declared ones: what a write casts, and what it refuses. Needs PySpark, and no Java."""

import datetime
import decimal
import math

import pyarrow as pa
import pytest
from contrail_spark._types import TypeRefused, as_declared

NOON = datetime.datetime(2026, 1, 1, 12)
MIDNIGHT = datetime.datetime(2026, 1, 1)


def written(values, given: pa.DataType, kind: pa.DataType) -> list:
    """What comes of a column that Spark writes to a column of a declared type."""
    batch = pa.record_batch([pa.array(values, given)], names=["x"])
    (column,) = as_declared(batch, pa.schema([("x", kind)])).columns
    assert column.type == kind
    return column.to_pylist()


@pytest.mark.parametrize(
    ["given", "kind", "values", "wanted"],
    [
        (pa.float64(), pa.float32(), [0.5, None, math.inf, -0.0], None),
        (pa.float32(), pa.float16(), [0.5, None], None),
        (pa.int32(), pa.bool_(), [0, 1, None], None),
        (pa.int64(), pa.float64(), [2**53, None], None),
        (pa.decimal128(9, 2), pa.float64(), [decimal.Decimal("0.10")], [0.1]),
        (pa.decimal128(20, 0), pa.uint64(), [decimal.Decimal(2**64 - 1), None], None),
        (pa.timestamp("us"), pa.date32(), [MIDNIGHT, None], [MIDNIGHT.date(), None]),
        (pa.timestamp("us"), pa.timestamp("s"), [NOON, None], None),
        (pa.list_(pa.float64()), pa.large_list(pa.float32()), [[0.5, None], None, []], None),
        (pa.struct([("a", pa.int32())]), pa.struct([("a", pa.uint8())]), [{"a": 1}, None], None),
        (pa.binary(), pa.binary(2), [b"ab", None], None),
        (pa.string(), pa.dictionary(pa.int32(), pa.string()), ["a", None, "a"], None),
        (pa.string(), pa.decimal256(40, 2), ["1", "1.5", None], [decimal.Decimal(1), decimal.Decimal("1.5"), None]),
    ],
    ids=str,
)
def test_values_that_fit(given, kind, values, wanted):
    assert written(values, given, kind) == (wanted or values)


@pytest.mark.parametrize(
    ["given", "kind"],
    [(pa.float64(), pa.float32()), (pa.list_(pa.float64()), pa.large_list(pa.float64()))],
    ids=str,
)
def test_nan_fits(given, kind):
    nan = math.nan if given == pa.float64() else [math.nan]
    assert repr(written([nan], given, kind)) == repr([nan])


@pytest.mark.parametrize(
    ["given", "kind", "value"],
    [
        (pa.float64(), pa.float32(), 1e300),
        (pa.float64(), pa.float32(), 0.1),
        (pa.float32(), pa.float16(), 1e30),
        (pa.float64(), pa.int32(), 1.5),
        (pa.float64(), pa.bool_(), 0.5),
        (pa.int32(), pa.bool_(), 2),
        (pa.int64(), pa.float64(), 2**53 + 1),
        (pa.int32(), pa.uint8(), 300),
        (pa.decimal128(38, 20), pa.float64(), decimal.Decimal("0.12345678901234567891")),
        (pa.timestamp("us"), pa.date32(), NOON),
        (pa.timestamp("us"), pa.time64("us"), NOON),
        (pa.timestamp("us"), pa.timestamp("s"), NOON.replace(microsecond=1)),
        (pa.list_(pa.float64()), pa.list_(pa.float32()), [0.1]),
        (pa.struct([("a", pa.int32())]), pa.struct([("b", pa.int32())]), {"a": 1}),
        (pa.binary(), pa.binary(2), b"abc"),
        (pa.string(), pa.float64(), "x"),
    ],
    ids=str,
)
def test_values_that_do_not_fit(given, kind, value):
    with pytest.raises(TypeRefused, match="^column 'x' of type .* is not "):
        written([None, value], given, kind)
