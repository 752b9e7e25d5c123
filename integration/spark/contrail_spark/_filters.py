"""Spark's filters as conditions of a scan. What is not certain to mean the same stays with Spark.

Both sides order text and binary by bytes, sort NaN above every number, and let a null satisfy nothing but a test for
null. Beyond that Spark's own casts are taken into account: a literal arrives in the type in which Spark reads the
column, which may not be the declared one.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

Condition = list[Any]

COMPARISONS = {EqualTo: "=", GreaterThan: ">", GreaterThanOrEqual: ">=", LessThan: "<", LessThanOrEqual: "<="}
OPPOSITES = {"=": "!=", ">": "<=", ">=": "<", "<": ">=", "<=": ">"}
# A longer list costs the service more than it spares Spark.
MAX_VALUES = 1000
# Every partition's ticket repeats the filters, and the service takes no request of more than 4 MiB.
MAX_BYTES = 1 << 18


class _Unclear(Exception):
    """A literal whose meaning at the service could differ."""


def translate(condition: Filter, columns: Mapping[str, pa.DataType]) -> list[Condition] | None:
    """The conditions that together mean the filter, None where there are none. `columns` are the declared types."""
    try:
        if isinstance(condition, Not):
            return _negated(condition.child, columns)
        return _plain(condition, columns)
    except _Unclear:
        return None


def _plain(condition: Filter, columns: Mapping[str, pa.DataType]) -> list[Condition]:
    name, kind = _column(condition, columns)
    match condition:
        case IsNull():
            return [[name, "is null"]]
        case IsNotNull():
            return [[name, "is not null"]]
        case EqualNullSafe(_, None):
            return [[name, "is null"]]
        case EqualNullSafe(_, value):
            return [[name, "=", _literal(value, kind)]]
        case In(_, values):
            return [[name, "in", _list(values, kind)]]
        case _:
            return [[name, _operator(condition), _literal(condition.value, kind)]]


def _negated(condition: Filter, columns: Mapping[str, pa.DataType]) -> list[Condition]:
    name, kind = _column(condition, columns)
    match condition:
        case IsNull() | EqualNullSafe(_, None):
            return [[name, "is not null"]]
        case IsNotNull():
            return [[name, "is null"]]
        case In(_, values) if None not in values:
            return [[name, "!=", value] for value in _list(values, kind)]
        case In() | EqualNullSafe():  # the one is never true, the other is true of nulls
            raise _Unclear
        case _:
            return [[name, OPPOSITES[_operator(condition)], _literal(condition.value, kind)]]


def _operator(condition: Filter) -> str:
    if type(condition) not in COMPARISONS:
        raise _Unclear
    return COMPARISONS[type(condition)]


def _column(condition: Filter, columns: Mapping[str, pa.DataType]) -> tuple[str, pa.DataType]:
    """The column that a filter is about, and its type without dictionary and extension."""
    path = getattr(condition, "attribute", ())
    if len(path) != 1 or path[0] not in columns:
        raise _Unclear
    kind = columns[path[0]]
    while isinstance(kind, (pa.BaseExtensionType, pa.DictionaryType)):
        kind = kind.value_type if isinstance(kind, pa.DictionaryType) else kind.storage_type
    if pa.types.is_nested(kind):
        raise _Unclear
    return path[0], kind


def _list(values: tuple[Any, ...], kind: pa.DataType) -> list[Any]:
    """The values of an IN but for null, which makes no row match."""
    if len(values) > MAX_VALUES:
        raise _Unclear
    return [_literal(value, kind) for value in values if value is not None]


def _literal(value: Any, kind: pa.DataType) -> Any:
    """A value as the service takes it for a column of this type."""
    types = pa.types
    match value:
        case bool():
            if types.is_boolean(kind):
                return value
        case int():
            if types.is_integer(kind) or types.is_time(kind) or types.is_duration(kind):
                return value
        case decimal.Decimal():
            return _decimal(value, kind)
        case float():
            # The two zeros and NaN are where engines and their versions differ.
            if types.is_floating(kind) and value != 0 and math.isfinite(value):
                return value
        case str():
            if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
                return value
        case bytes() | bytearray():
            if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
                return base64.b64encode(value).decode()
        case datetime.datetime():
            return _moment(value, kind)
        case datetime.date():
            if types.is_date(kind):
                return value.isoformat()
    raise _Unclear


def _decimal(value: decimal.Decimal, kind: pa.DataType) -> Any:
    """A decimal of the column's own scale; one that the column cannot hold would have to be rounded."""
    if pa.types.is_uint64(kind) and value == value.to_integral_value():
        return int(value)
    if not pa.types.is_decimal(kind) or kind.precision > 38:
        raise _Unclear
    with decimal.localcontext(decimal.Context(prec=80)):
        scaled = value.quantize(decimal.Decimal(1).scaleb(-kind.scale))
    if scaled != value:
        raise _Unclear
    return format(scaled, "f")


def _moment(value: datetime.datetime, kind: pa.DataType) -> str:
    """An instant for a column of instants, a local time for one of local times: never one for the other."""
    if not pa.types.is_timestamp(kind) or bool(kind.tz) != (value.tzinfo is not None):
        raise _Unclear
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(datetime.UTC).replace(tzinfo=None).isoformat() + "Z"
