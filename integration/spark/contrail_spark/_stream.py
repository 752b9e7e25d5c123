"""The streaming read: an offset is a version, and a batch holds the rows that were appended between two of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from contrail_spark._flight import Client
from contrail_spark._options import Options
from contrail_spark._read import Endpoint, batches, check, endpoints
from contrail_spark._types import arrow_schema, as_spark, spark_schema

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:  # PySpark 4.1 asks for the newest offset and knows no limits

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands in for what PySpark 4.1 lacks."""

    ReadAllAvailable = ReadMaxRows = ReadLimit = None  # type: ignore[assignment,misc]

# The offset before the first batch of a stream that begins with the table as it is: there are no versions below 0.
WHOLE = -1

Offset = dict[str, Any]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream of appended rows. Spark keeps its offsets, so nothing is kept here but a bound for one run."""

    def __init__(self, options: Options, schema: StructType):
        self.connection = options.connection
        self.request = options.streamed() | {"columns": schema.fieldNames()}
        self.changes = options.text("changes")
        self.starting = options.starting()
        self.max_rows = options.positive("maxrowsperbatch")
        self.max_versions = options.positive("maxversionsperbatch")
        if ReadLimit is None and (self.max_rows or self.max_versions):
            raise ValueError(
                "maxRowsPerBatch and maxVersionsPerBatch need PySpark 4.2, which asks how far a batch may go"
            )
        self.schema = arrow_schema(schema)
        self.until: Offset | None = None
        with Client(self.connection) as client:
            check(spark_schema(client.schema(self.request)), schema)

    def initialOffset(self) -> Offset:
        newest = self._newest()
        if self.starting is None:
            return newest | {"version": WHOLE}
        if self.starting == "latest":
            return newest
        return newest | {"version": max(self.starting - 1, 0)}  # behind an offset nothing is read again; 0 has no rows

    def latestOffset(self, start: Offset | None = None, limit: ReadLimit | None = None) -> Offset:
        newest = self.until or self._newest()
        if start is None or start["version"] == WHOLE or newest["table_id"] != start["table_id"]:
            return newest
        if newest["version"] <= start["version"]:
            return start
        versions = newest["version"] - start["version"]
        if self.max_versions is not None:
            versions = min(versions, self.max_versions)
        if ReadMaxRows is not None and isinstance(limit, ReadMaxRows):
            versions = min(versions, self._versions_of(limit.max_rows, start["version"]))
        return newest | {"version": start["version"] + versions}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self.max_rows is None else ReadMaxRows(self.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:
        self.until = self._newest()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        if start["table_id"] != end["table_id"]:
            raise ValueError(
                f"the table {self.request['table']} was dropped and made again; start the stream with a new checkpoint"
            )
        request = self.request | {"table_id": end["table_id"], "version": end["version"]}
        if start["version"] != WHOLE:
            request["since_version"] = start["version"]
            if self.changes is not None:
                request["changes"] = self.changes
        with Client(self.connection) as client:
            return endpoints(client, request, self.connection)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Endpoint)
        return (as_spark(batch, self.schema) for batch in batches(partition, self.connection))

    def _newest(self) -> Offset:
        with Client(self.connection) as client:
            found = json.loads(client.info({"op": "scan", "table": self.request["table"], "limit": 0}).app_metadata)
        return {"table_id": found["table_id"], "version": found["version"]}

    def _versions_of(self, rows: int, start: int) -> int:
        """How many versions after start have at most so many rows, but at least one."""
        with Client(self.connection) as client:
            [only] = client.info({"op": "history", "table": self.request["table"]}).endpoints
            added = {
                version: count
                for batch in client.batches(only.ticket.ticket)
                for version, count in zip(batch["version"].to_pylist(), batch["rows_added"].to_pylist(), strict=True)
            }
        versions = 0
        while start + versions + 1 in added:
            rows -= added[start + versions + 1]
            if rows < 0:
                break
            versions += 1
        return max(versions, 1)
