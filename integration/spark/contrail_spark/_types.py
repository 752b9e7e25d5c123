"""Between Arrow's types and Spark's. A scan needs nothing of this to read: the service gives it what Spark takes."""

from __future__ import annotations

import inspect

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

# PySpark 4.1 always means UTC, and has no argument to say so.
_ZONE = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}


class TypeRefused(Exception):
    """A column that cannot be read into, or written from, the type it has."""


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of what the service gives."""
    return from_arrow_schema(pa.schema([_readable(field) for field in schema]), prefer_timestamp_ntz=True)


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema in which Spark takes batches of a Spark schema."""
    return to_arrow_schema(schema, **_ZONE)


def as_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch under exactly the schema that Spark asked for. Casts are safe: one that would lose a value fails."""
    columns = []
    for field in schema:
        column = batch.column(field.name)
        columns.append(column if column.type == field.type else _cast(column, field))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise TypeRefused(f"column {field.name!r} of type {column.type} is not {field.type}: {error}") from None


def _readable(field: pa.Field) -> pa.Field:
    """A field in a type that Spark has; listings and the newest rows are not asked for in Spark's own types."""
    kind = field.type
    replaced = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0),
        pa.float16(): pa.float32(),
        pa.time32("s"): pa.int32(),
        pa.time32("ms"): pa.int32(),
        pa.time64("us"): pa.int64(),
        pa.time64("ns"): pa.int64(),
    }
    if kind in replaced:
        kind = replaced[kind]
    elif pa.types.is_duration(kind):
        kind = pa.int64()
    elif pa.types.is_timestamp(kind):
        kind = pa.timestamp("us", tz="UTC" if kind.tz else None)
    elif pa.types.is_fixed_size_binary(kind):
        kind = pa.binary()
    elif pa.types.is_fixed_size_list(kind):
        kind = pa.list_(kind.value_field)
    elif pa.types.is_decimal256(kind):
        raise TypeRefused(f"column {field.name!r} is {kind}, for which Spark has no type; choose other columns")
    if pa.types.is_list(kind):
        kind = pa.list_(_readable(kind.value_field))
    elif pa.types.is_struct(kind):
        kind = pa.struct([_readable(child) for child in kind])
    elif pa.types.is_map(kind):
        kind = pa.map_(_readable(kind.key_field), _readable(kind.item_field))
    return field.with_type(kind)


def declared_schema(written: pa.Schema, table: pa.Schema) -> pa.Schema:
    """The schema of a stream to the service: the table's types for the columns that Spark writes.

    A column that the table does not have stays as it is; the service refuses it by its name. A table without a schema
    takes Spark's.
    """
    fields = []
    for field in written:
        at = table.get_field_index(field.name)
        kind = field.type if at < 0 else _plain(table.field(at).type)
        if pa.types.is_timestamp(field.type) and pa.types.is_timestamp(kind) and bool(field.type.tz) != bool(kind.tz):
            raise TypeRefused(
                f"column {field.name!r} is {kind} in the table and {field.type} in Spark: an instant is no local time;"
                " cast it, for only you know the zone"
            )
        if pa.types.is_timestamp(kind) and at < 0 and kind.tz:
            kind = pa.timestamp("us", tz="UTC")
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


def as_declared(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch of Spark's in the table's types. A value that does not fit its column fails, and no other is changed."""
    columns = []
    for field, column in zip(schema, batch.columns, strict=True):
        if column.type == field.type:
            columns.append(column)
        elif pa.types.is_dictionary(field.type):
            value = _exactly(column, field.with_type(field.type.value_type))
            columns.append(_cast(value.dictionary_encode(), field))
        else:
            columns.append(_exactly(column, field))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _exactly(column: pa.Array, field: pa.Field) -> pa.Array:
    """A column in another type. Arrow rounds floats, cuts times to days, and empties structs with other fields: so what
    was cast must come back when it is cast again, but for text, which says one value in several ways.
    """
    cast = _cast(column, field)
    if pa.types.is_string(column.type):
        return cast
    try:
        back = cast.cast(column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        back = None
    # NaN does not equal itself, but is written like itself.
    if back is None or not back.equals(column) and repr(back.to_pylist()) != repr(column.to_pylist()):
        raise TypeRefused(
            f"column {field.name!r} of type {column.type} is not {field.type}: a value would change; cast it in Spark"
        )
    return cast


def _plain(kind: pa.DataType) -> pa.DataType:
    """A type without extension types, whose storage the service takes in their place."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
