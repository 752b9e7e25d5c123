"""The write: every task stages its rows, and the driver commits them all as one append.

What a failed, repeated or speculative task has staged is never named in the commit. It expires, and vacuum removes it.
"""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from contrail_spark._flight import Client, act_surely, token_of
from contrail_spark._options import Options
from contrail_spark._types import arrow_schema, as_declared, declared_schema

# The names under which Spark tells the tasks of a micro-batch which query they belong to.
QUERY = "sql.streaming.queryId"


@dataclass
class Staged(WriterCommitMessage):
    """What a task has staged: the service's token, None where the task had no row."""

    token: str | None
    query: str | None = None


class _Staging:
    """Sends the rows of one task."""

    def __init__(self, options: Options, schema: StructType):
        settings = options.written()
        self.connection = options.connection
        self.table = options.table
        self.expected = {name: settings.pop(name) for name in ("expected_version",) if name in settings}
        self.command = {"op": "stage", "table": self.table, "end": "marker"} | settings
        with Client(self.connection) as client:
            declared = client.schema({"op": "scan", "table": self.table, "profile": "exact"})
        self.schema = declared_schema(arrow_schema(schema), declared)

    def stage(self, batches: Iterator[pa.RecordBatch]) -> str | None:
        """Send the batches; the service has the rows when this returns, and nobody sees them yet."""
        first = next(batches, None)
        if first is None:
            return None
        with Client(self.connection) as client:
            writer, reader = client.put(self.command, self.schema)
            try:
                rows = 0
                for batch in itertools.chain([first], batches):
                    if batch.num_rows:
                        writer.write_batch(as_declared(batch, self.schema))
                        rows += batch.num_rows
                # Without this the service takes the stream for broken off, and keeps nothing.
                writer.write_metadata(json.dumps({"commit": True, "rows": rows}).encode())
                writer.done_writing()
                receipt = reader.read()  # None if the service refused; closing then raises its error
            except BaseException as error:
                _close(writer, error)
                raise
            writer.close()
        return json.loads(receipt.to_pybytes())["staged"]

    def commit(self, tokens: list[str], request_id: str) -> None:
        """Publish what the tasks staged. It may be asked again: a known request id gives the first report."""
        act_surely(
            self.connection, "commit_staged", table=self.table, request_id=request_id, staged=tokens, **self.expected
        )

    def abort(self, tokens: list[str]) -> None:
        """Take back what tasks staged. The service keeps what a commit has published, whatever became of its answer."""
        if tokens:
            act_surely(self.connection, "abort_staged", table=self.table, staged=tokens)


class Writer(DataSourceArrowWriter):
    """A batch write: all rows as one version, or none."""

    def __init__(self, options: Options, schema: StructType):
        self.staging = _Staging(options, schema)
        self.request_id = options.text("request_id") or f"spark-{uuid.uuid4()}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        return Staged(self.staging.stage(iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        tokens = _tokens(messages)
        if tokens:  # no rows, no version
            self.staging.commit(tokens, self.request_id)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self.staging.abort(_tokens(messages))


class StreamWriter(DataSourceStreamArrowWriter):
    """A streaming write: each micro-batch is one append, under a request id that a repeated batch has again."""

    def __init__(self, options: Options, schema: StructType):
        self.staging = _Staging(options, schema)
        self.request_id = options.text("request_id")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        context = TaskContext.get()
        return Staged(self.staging.stage(iterator), context.getLocalProperty(QUERY) if context else None)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        tokens = _tokens(messages)
        if not tokens:
            return
        self.staging.commit(tokens, f"{self.request_id or _query(messages)}/{batchId}")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self.staging.abort(_tokens(messages))


def _close(writer: fl.FlightStreamWriter, error: BaseException) -> None:
    """End a stream that broke off. If the service ended it, what it says comes to light here, and says more."""
    try:
        writer.close()
    except fl.FlightError as told:
        if isinstance(error, (fl.FlightError, pa.ArrowException)) and token_of(told) != "STREAM_INCOMPLETE":
            raise told from error


def _tokens(messages: list[Any]) -> list[str]:
    return [m.token for m in messages if isinstance(m, Staged) and m.token is not None]


def _query(messages: list[Any]) -> str:
    queries = {m.query for m in messages if isinstance(m, Staged)}
    if len(queries) != 1 or queries == {None}:
        raise RuntimeError("Spark does not tell the query's id; give the option request_id a name for this stream")
    return queries.pop()
