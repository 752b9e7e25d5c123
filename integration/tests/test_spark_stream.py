"""Spark streams from and into tables: rows that were appended come once, and go in once."""

import json
import pathlib

import pyarrow as pa
import pytest
from contrail_spark import ContrailDataSource, _stream
from contrail_spark._options import Options
from contrail_spark._stream import StreamReader
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import DoubleType, StringType, StructField, StructType, TimestampType

import spark_session
from client import Client
from service import Service
from tables import SITES, assert_same, create_sites, expire, refused, sites

SCHEMA = StructType(
    [StructField("site", StringType()), StructField("ts", TimestampType()), StructField("value", DoubleType())]
)
COMMITS = [
    [("a", 0, 0.0), ("b", 0, 0.5)],
    [("a", 1, 1.0)],
    [("a", 2, 2.0), ("b", 2, 2.5), ("c", 2, 2.75)],
    [("c", 3, 3.0)],
]


@pytest.fixture
def source(client, name):
    """A table with four appends, versions 1 to 4."""
    create_sites(client, name)
    for rows in COMMITS:
        client.append(name, sites(rows))
    return name


@pytest.fixture
def reader(server, source):
    """What the driver makes for a stream."""

    def make(**options) -> StreamReader:
        return StreamReader(Options({"location": server.uri, "table": source} | options), SCHEMA)

    return make


def rows(reader: StreamReader, start, end) -> list[tuple]:
    """What a batch holds, as (site, value)."""
    found = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    table = pa.Table.from_batches(found, reader.schema)
    return sorted(zip(table["site"].to_pylist(), table["value"].to_pylist(), strict=True))


def committed(*versions: int) -> list[tuple]:
    return sorted((site, value) for version in versions for site, _, value in COMMITS[version - 1])


def at(offset, version: int) -> dict:
    return offset | {"version": version}


def test_a_stream_begins_with_the_table_or_where_it_is_told(reader):
    whole = reader()
    start = whole.initialOffset()
    end = whole.latestOffset(start, ReadAllAvailable())
    assert (start["version"], end["version"]) == (-1, 4)
    assert rows(whole, start, end) == committed(1, 2, 3, 4)
    later = reader(startingVersion="3")
    assert rows(later, later.initialOffset(), end) == committed(3, 4)
    assert reader(startingVersion="0").initialOffset()["version"] == 0
    future = reader(startingVersion="9")
    assert future.latestOffset(future.initialOffset(), ReadAllAvailable()) == future.initialOffset()
    latest = reader(startingVersion="latest")
    assert latest.initialOffset() == end == latest.latestOffset(end, ReadAllAvailable())
    assert rows(latest, at(end, 3), end) == committed(4)


def test_admission(reader):
    start = at(reader().initialOffset(), 0)

    def ends(stream, limit=None):
        found, offset = [], start
        while (following := stream.latestOffset(offset, limit or stream.getDefaultReadLimit())) != offset:
            offset = following
            found.append(offset["version"])
        return found

    assert ends(reader()) == [4]
    assert ends(reader(maxVersionsPerBatch="3")) == [3, 4]
    assert reader(maxRowsPerBatch="3").getDefaultReadLimit() == ReadMaxRows(3)
    assert ends(reader(maxRowsPerBatch="3")) == [2, 3, 4]
    assert ends(reader(maxRowsPerBatch="1")) == [1, 2, 3, 4]  # a version is never cut
    assert ends(reader(maxRowsPerBatch="100", maxVersionsPerBatch="2")) == [2, 4]
    assert ends(reader(maxRowsPerBatch="1"), ReadAllAvailable()) == [4]


def test_available_now_ends(client, source, reader):
    stream = reader()
    stream.prepareForTriggerAvailableNow()
    client.append(source, sites([("z", 9, 9.0)]))
    assert stream.latestOffset(stream.initialOffset(), ReadAllAvailable())["version"] == 4


def test_what_is_no_append(client, source, reader):
    client.act("add_columns", table=source, columns=[{"name": "more", "type": "double"}])
    update = {"op": "update_rows", "table": source, "columns": ["value"], "expected_version": 5, "rows": 1}
    client.put(update, sites([("a", 0, 10.0)]))
    client.append(source, sites([("z", 9, 9.0)]))
    start = reader().initialOffset()
    assert rows(reader(), at(start, 3), at(start, 5)) == committed(4)
    with refused("NOT_APPEND_ONLY", version=6):
        rows(reader(), at(start, 3), at(start, 7))
    assert rows(reader(changes="ignore"), at(start, 3), at(start, 7)) == sorted([*committed(4), ("z", 9.0)])


def test_a_version_that_has_expired(tmp_path, built):
    settings = {"ticket_lifetime": "1s", "maintenance": False}
    with Service(tmp_path / "warehouse", **settings) as brief, Client(brief.uri) as client:
        create_sites(client, "t", COMMITS[0], properties={"contrail.snapshot-retention": "1s"})
        client.append("t", sites(COMMITS[1]))
        stream = StreamReader(Options({"location": brief.uri, "table": "t"}), SCHEMA)
        start = at(stream.initialOffset(), 1)
        expire(client, "t", 1)
        with refused("VERSION_EXPIRED", version=1):
            stream.partitions(start, stream.latestOffset(start, ReadAllAvailable()))


def test_a_table_made_again_is_another_table(client, source, reader):
    start = reader().initialOffset()
    client.act("drop_table", table=source)
    create_sites(client, source, COMMITS[0])
    stream = reader()
    with pytest.raises(ValueError, match="was dropped and made again"):
        stream.partitions(at(start, 1), stream.latestOffset(at(start, 1), ReadAllAvailable()))


@pytest.mark.parametrize(
    "options, told",
    [
        ({"maxRowsPerBatch": "0"}, "which is below 1"),
        ({"startingVersion": "first"}, "the option startingVersion is 'first', which is no number"),
        ({"startingVersion": "-1"}, "the option startingVersion is -1, which is below 0"),
        ({"version": "1"}, "a streaming read has no option version"),
        ({"op": "latest"}, "a streaming read has no option op"),
    ],
)
def test_refusals(reader, options, told):
    with pytest.raises(ValueError, match=told):
        reader(**options)


def test_what_pyspark_4_1_cannot_do_is_refused(reader, monkeypatch):
    """It asks for no limits, so a batch would have as many rows as there are."""
    monkeypatch.setattr(_stream, "ReadLimit", None)
    for limit in ("maxRowsPerBatch", "maxVersionsPerBatch"):
        with pytest.raises(ValueError, match="need PySpark 4.2"):
            reader(**{limit: "3"})
    stream = reader(startingVersion="3")  # all else works: it asks for the newest offset
    assert rows(stream, stream.initialOffset(), stream.latestOffset()) == committed(3, 4)


def test_output_mode_complete_is_refused(server, name):
    source = ContrailDataSource({"location": server.uri, "table": name})
    with pytest.raises(ValueError, match='use outputMode\\("append"\\)'):
        source.streamWriter(SCHEMA, overwrite=True)


def test_only_a_source_that_did_not_begin_is_tried_again():
    def fail(*reasons):
        left = list(reasons)

        def run():
            if left:
                raise StreamingQueryException(left.pop(0))
            return "done"

        return spark_session.stream(run)

    slow = "[STREAM_FAILED] terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST"
    assert fail(slow, slow) == "done"
    for reasons in (["NOT_APPEND_ONLY"], [slow] * 10):
        with pytest.raises(StreamingQueryException, match=reasons[0].split()[-1]):
            fail(*reasons)


class Stream:
    """A query from one table into another, run until it has read what there is."""

    def __init__(self, session, location, checkpoint: pathlib.Path):
        self.session, self.location, self.checkpoint = session, location, checkpoint

    def run(self, source: str, target: str, into=(), **options) -> None:
        spark_session.stream(lambda: self._run(source, target, into, options))

    def _run(self, source, target, into, options) -> None:
        frame = (
            self.session.readStream.format("contrail").option("location", self.location).options(**options).load(source)
        )
        query = (
            frame.writeStream.format("contrail")
            .option("location", self.location)
            .option("table", target)
            .option("checkpointLocation", str(self.checkpoint))
            .options(**dict(into))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def lose_last_commit(self) -> None:
        """Spark dies after the table has the batch and before its checkpoint says so."""
        commits = [path for path in (self.checkpoint / "commits").iterdir() if path.name.isdigit()]
        newest = max(commits, key=lambda path: int(path.name))
        newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
        newest.unlink()


def test_exactly_once(spark, server, client, source, tmp_path):
    """A batch whose commit the checkpoint lost runs again under its request id and adds nothing."""
    target = source + "-copy"
    create_sites(client, target)
    stream = Stream(spark.session, server.uri, tmp_path / "checkpoint")
    stream.run(source, target, startingVersion="1", maxVersionsPerBatch="2")
    every = [row for commit in COMMITS for row in commit]
    assert_same(client.read(target), sites(sorted(every), SITES))
    history = client.get({"op": "history", "table": target}).to_pylist()
    query = json.loads((tmp_path / "checkpoint" / "metadata").read_text())["id"]
    assert [entry["request_id"] for entry in history[:2]] == [f"{query}/1", f"{query}/0"]

    stream.lose_last_commit()
    client.append(source, sites([("z", 9, 9.0)]))
    stream.run(source, target, startingVersion="1", maxVersionsPerBatch="2")
    assert_same(client.read(target), sites(sorted([*every, ("z", 9, 9.0)]), SITES))
    history = client.get({"op": "history", "table": target}).to_pylist()
    assert [entry["request_id"] for entry in history[:3]] == [f"{query}/2", f"{query}/1", f"{query}/0"]


def test_a_stream_over_an_update_stops(spark, server, client, source, tmp_path):
    update = {"op": "update_rows", "table": source, "columns": ["value"], "expected_version": 4, "rows": 1}
    client.put(update, sites([("a", 0, 10.0)]))
    target = source + "-copy"
    create_sites(client, target)
    stream = Stream(spark.session, server.uri, tmp_path / "checkpoint")
    with pytest.raises(Exception, match="NOT_APPEND_ONLY.*version=5"):
        stream.run(source, target, startingVersion="1")
    assert client.read(target).num_rows == 0
    stream.run(source, target, into={"request_id": "copy"}, startingVersion="1", changes="ignore")
    assert client.read(target).num_rows == 7
    assert client.get({"op": "history", "table": target}).to_pylist()[0]["request_id"] == "copy/0"
