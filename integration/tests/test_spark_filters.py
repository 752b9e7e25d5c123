"""Which of Spark's filters go to the service, and as what; no session is needed to tell."""

import datetime
import decimal

import pyarrow as pa
import pytest
from contrail_spark._filters import translate
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

UTC = datetime.UTC
INDIA = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
COLUMNS = {
    "n": pa.int64(),
    "tiny": pa.uint8(),
    "huge": pa.uint64(),
    "x": pa.float64(),
    "half": pa.float16(),
    "price": pa.decimal128(12, 2),
    "wide": pa.decimal256(76, 3),
    "text": pa.string(),
    "word": pa.dictionary(pa.int8(), pa.large_string()),
    "raw": pa.binary(),
    "fixed": pa.binary(2),
    "ok": pa.bool_(),
    "day": pa.date64(),
    "at": pa.timestamp("ns", tz="America/New_York"),
    "local": pa.timestamp("s"),
    "time": pa.time32("s"),
    "took": pa.duration("ms"),
    "id": pa.uuid(),
    "list": pa.list_(pa.int64()),
    "point": pa.struct([("a", pa.int64())]),
    "a.b": pa.int64(),
}
D = decimal.Decimal
MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize(
    "given, wanted",
    [
        (EqualTo(("n",), 1), [["n", "=", 1]]),
        (Not(EqualTo(("n",), 1)), [["n", "!=", 1]]),
        (EqualNullSafe(("n",), 1), [["n", "=", 1]]),
        (EqualNullSafe(("n",), None), [["n", "is null"]]),
        (Not(EqualNullSafe(("n",), None)), [["n", "is not null"]]),
        (GreaterThan(("n",), -5), [["n", ">", -5]]),
        (Not(GreaterThan(("n",), -5)), [["n", "<=", -5]]),
        (GreaterThanOrEqual(("tiny",), 300), [["tiny", ">=", 300]]),
        (Not(GreaterThanOrEqual(("tiny",), 3)), [["tiny", "<", 3]]),
        (LessThan(("huge",), D("18446744073709551615")), [["huge", "<", 18446744073709551615]]),
        (Not(LessThan(("x",), 0.1)), [["x", ">=", 0.1]]),
        (LessThanOrEqual(("half",), 1.5), [["half", "<=", 1.5]]),
        (Not(LessThanOrEqual(("x",), 1e300)), [["x", ">", 1e300]]),
        (In(("text",), ("a", None, "é")), [["text", "in", ["a", "é"]]]),
        (In(("text",), (None,)), [["text", "in", []]]),
        (Not(In(("text",), ("a", "b"))), [["text", "!=", "a"], ["text", "!=", "b"]]),
        (EqualTo(("word",), "a"), [["word", "=", "a"]]),
        (EqualTo(("price",), D("1.5")), [["price", "=", "1.50"]]),
        (EqualTo(("price",), D("1E+3")), [["price", "=", "1000.00"]]),
        (EqualTo(("raw",), b"\0\xff"), [["raw", "=", "AP8="]]),
        (EqualTo(("ok",), True), [["ok", "=", True]]),
        (Not(EqualTo(("ok",), True)), [["ok", "!=", True]]),
        (LessThan(("day",), datetime.date(1, 2, 3)), [["day", "<", "0001-02-03"]]),
        (EqualTo(("at",), MOMENT.replace(tzinfo=INDIA)), [["at", "=", "2026-01-01T21:34:05.000006Z"]]),
        (EqualTo(("local",), MOMENT), [["local", "=", "2026-01-02T03:04:05.000006"]]),
        (EqualTo(("time",), 7), [["time", "=", 7]]),
        (EqualTo(("took",), -7), [["took", "=", -7]]),
        (EqualTo(("a.b",), 7), [["a.b", "=", 7]]),
        (IsNull(("id",)), [["id", "is null"]]),
        (Not(IsNull(("wide",))), [["wide", "is not null"]]),
        (Not(IsNotNull(("fixed",))), [["fixed", "is null"]]),
    ],
    ids=str,
)
def test_goes_to_the_service(given, wanted):
    assert translate(given, COLUMNS) == wanted


@pytest.mark.parametrize(
    "given",
    [
        EqualTo(("n",), None),
        Not(In(("n",), (1, None))),
        In(("n",), tuple(range(1001))),
        Not(EqualNullSafe(("n",), 1)),
        StringStartsWith(("text",), "a"),
        Not(StringStartsWith(("text",), "a")),
        Not(Not(EqualTo(("n",), 1))),
        EqualTo(("x",), float("nan")),
        EqualTo(("x",), 0.0),
        LessThan(("x",), -0.0),
        LessThan(("x",), float("inf")),
        In(("x",), (1.0, 0.0)),
        EqualTo(("n",), 1.0),
        EqualTo(("x",), 1),
        EqualTo(("n",), True),
        EqualTo(("ok",), 1),
        EqualTo(("price",), D("1.505")),
        EqualTo(("price",), 1),
        EqualTo(("huge",), D("1.5")),
        EqualTo(("n",), D("1")),
        EqualTo(("wide",), "1.000"),
        EqualTo(("wide",), D("1.000")),
        EqualTo(("fixed",), b"ab"),
        EqualTo(("id",), b"0" * 16),
        EqualTo(("text",), b"a"),
        EqualTo(("at",), MOMENT),
        EqualTo(("local",), MOMENT.replace(tzinfo=UTC)),
        EqualTo(("day",), MOMENT),
        EqualTo(("at",), datetime.date(2026, 1, 2)),
        IsNull(("list",)),
        EqualTo(("point", "a"), 1),
        IsNotNull(("point",)),
        EqualTo(("none",), 1),
    ],
    ids=str,
)
def test_stays_with_spark(given):
    assert translate(given, COLUMNS) is None
