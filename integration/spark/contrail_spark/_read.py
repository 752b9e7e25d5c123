"""The batch read: one partition an endpoint, and the service's batches handed on as they come."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
from pyspark.sql.datasource import DataSourceReader, EqualTo, Filter, In, InputPartition
from pyspark.sql.types import StructType

from contrail_spark._filters import MAX_BYTES, MAX_VALUES, translate
from contrail_spark._flight import Client, locations
from contrail_spark._options import Connection, Options
from contrail_spark._types import TypeRefused, arrow_schema, as_spark, spark_schema

# A task costs Spark and its Python worker some tens of milliseconds, whatever it reads; about so many rows or so many
# values take a second.
ROWS_OF_A_PARTITION = 2_000_000
VALUES_OF_A_PARTITION = 16_000_000
MAX_PARTITIONS = 64  # so many scans a server runs at once
# How many rows pass a filter is not known beforehand: a part of the whole that is worth no more partitions than these.
MAX_UNCOUNTED = 8


@dataclass
class Endpoint(InputPartition):
    """A part of a read: a ticket, pinned to one version of the table, and where it can be redeemed."""

    ticket: bytes
    locations: list[str]


class Reader(DataSourceReader):
    """A read whose filters stay with Spark."""

    def __init__(self, options: Options, schema: StructType):
        self.connection = options.connection
        self.request = options.request()
        self.schema = arrow_schema(schema)
        if self.request["op"] in ("scan", "latest"):
            self.request["columns"] = schema.fieldNames()
        with Client(self.connection) as client:
            check(spark_schema(client.schema(self.request)), schema)

    def partitions(self) -> Sequence[Endpoint]:
        with Client(self.connection) as client:
            return endpoints(client, self.request, self.connection)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Endpoint)
        return (as_spark(batch, self.schema) for batch in batches(partition, self.connection))


class PushingReader(Reader):
    """A read that gives the service the filters which mean there what they mean in Spark."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take what can be taken into the request and return the rest."""
        exact = {k: self.request[k] for k in ("op", "table", "version", "as_of") if k in self.request}
        with Client(self.connection) as client:
            declared = client.schema(exact | {"columns": self.schema.names, "profile": "exact"})
            keys = client.act("describe_table", **{k: v for k, v in exact.items() if k != "op"})["entity_columns"]
        columns = {field.name: field.type for field in declared}
        wanted: dict[str, list[Any]] = {}
        kept = []
        room = MAX_BYTES
        for condition in filters:
            conditions = translate(condition, columns)
            size = len(json.dumps(conditions))
            if conditions is None or size > room:
                kept.append(condition)
                continue
            room -= size
            if self._names_entities(condition, keys, wanted):
                [(name, _, value)] = conditions
                wanted[name] = value if isinstance(value, list) else [value]
            else:
                self.request.setdefault("filter", [])
                self.request["filter"] = self.request["filter"] + conditions
        if wanted:
            self.request["entities"] = [dict(zip(wanted, values)) for values in itertools.product(*wanted.values())]
        return kept

    def _names_entities(self, condition: Filter, keys: list[str], wanted: dict[str, list[Any]]) -> bool:
        """Whether a filter says which entities are read: a list of these costs the service least."""
        if not isinstance(condition, (EqualTo, In)) or "entities" in self.request:
            return False
        name = condition.attribute[0]
        if name not in keys or name in wanted:
            return False
        count = len(condition.value) if isinstance(condition, In) else 1
        for values in wanted.values():
            count *= len(values)
        return count <= MAX_VALUES


def endpoints(client: Client, request: dict[str, Any], connection: Connection) -> list[Endpoint]:
    """The partitions of a read, all of one version: as many as the user says, else by the number of rows and values."""
    info = client.info(request)
    if request["op"] == "scan" and "max_endpoints" not in request:
        pinned = {name: value for name, value in request.items() if name != "as_of"}
        pinned["version"] = json.loads(info.app_metadata)["version"]
        count = _partitions(info.total_records, len(info.schema))
        if info.total_records < 0 and "entities" not in request:
            whole = {name: value for name, value in pinned.items() if name not in ("filter", "start", "end")}
            count = min(_partitions(client.info(whole).total_records, len(info.schema)), MAX_UNCOUNTED)
        if count > 1:
            info = client.info(pinned | {"max_endpoints": count})
    return [Endpoint(endpoint.ticket.ticket, locations(endpoint, connection)) for endpoint in info.endpoints]


def _partitions(rows: int, columns: int) -> int:
    """How many partitions so many rows are worth; one where nobody knows how many there are.

    A power of two, as the number of cores mostly is: of five tasks on two cores the last leaves one of them idle.
    """
    worth = max(1, rows / ROWS_OF_A_PARTITION, rows * columns / VALUES_OF_A_PARTITION)
    return min(2 ** round(math.log2(worth)), MAX_PARTITIONS)


def batches(partition: Endpoint, connection: Connection) -> Iterator[pa.RecordBatch]:
    """The batches of an endpoint from the first of its locations that answers."""
    for last, location in ((place is partition.locations[-1], place) for place in partition.locations):
        begun = False
        try:
            with Client(connection, location) as client:
                for batch in client.batches(partition.ticket):
                    begun = True
                    yield batch
                return
        except (fl.FlightUnavailableError, fl.FlightTimedOutError):
            if last or begun:  # rows already handed on must not come twice; Spark repeats the task
                raise


def check(given: StructType, asked: StructType) -> None:
    """Refuse a schema that the user gave where the table has other types."""
    for field in asked:
        if field.name not in given.fieldNames():
            raise TypeRefused(f"there is no column {field.name!r}, only {', '.join(given.fieldNames())}")
        found = given[field.name].dataType
        if found.simpleString() != field.dataType.simpleString():
            raise TypeRefused(
                f"column {field.name!r} is {found.simpleString()}, the schema asks for"
                f" {field.dataType.simpleString()}; read it as it is and cast it"
            )
