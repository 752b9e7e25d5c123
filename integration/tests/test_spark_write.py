"""Spark writes through the service: tasks stage, the driver commits once, and what fails leaves no row."""

import concurrent.futures
import os
import signal
import time

import pyarrow as pa
import pytest
from contrail_spark._options import Options
from contrail_spark._write import Staged, Writer
from pyspark import TaskContext
from pyspark.sql.types import DoubleType, StringType, StructField, StructType, TimestampType

from client import Client
from interop import ipc, kinds
from service import Service
from tables import SITES, assert_same, bits, create_sites, refused, sites

ROWS = [(site, hour, float(hour)) for site in ("a", "b", "c", "d") for hour in range(5)]
SCHEMA = StructType(
    [StructField("site", StringType()), StructField("ts", TimestampType()), StructField("value", DoubleType())]
)


@pytest.fixture
def save(server, name):
    """Appends a frame to the test's own table."""

    def write(frame, **options):
        frame.write.format("contrail").mode("append").option("location", server.uri).options(**options).save(name)

    return write


@pytest.fixture
def frame(spark):
    """The rows in four partitions, changed by a function that sees each batch of a task."""

    def make(rows=ROWS, change=None):
        whole = spark.session.createDataFrame(sites(rows), SCHEMA).repartition(4, "site", "ts")
        return whole if change is None else whole.mapInArrow(change, whole.schema)

    return make


def history(client, table) -> list[dict]:
    return client.get({"op": "history", "table": table}).to_pylist()


def test_a_job_is_one_append(client, name, save, frame):
    create_sites(client, name)
    save(frame(), request_id="job-1", compression="zstd", expected_version="0")
    assert_same(client.read(name), sites(ROWS, SITES))
    newest = history(client, name)[0]
    assert (newest["version"], newest["operation"], newest["request_id"]) == (1, "append", "job-1")
    # The job runs again, and another one takes its name: neither adds a row.
    save(frame(), request_id="job-1")
    save(frame([("z", 1, 1.0)]), request_id="job-1")
    assert len(history(client, name)) == 2 and client.read(name).num_rows == len(ROWS)


def test_types_come_back(spark, server, client, name, save):
    """What Spark reads it can write: each value goes back into the type that the table declares."""
    for table in (name, name + "-copy"):
        client.act(
            "create_table",
            table=table,
            index_column="ts",
            index_granularity="1s",
            entity_columns=["entity"],
            schema_ipc=ipc(kinds().schema),
        )
    client.append(name + "-copy", kinds())
    save(spark.session.read.format("contrail").option("location", server.uri).load(name + "-copy"))
    got, want = client.read(name, profile="exact"), kinds()
    assert got.schema == want.schema
    for column in want.column_names:
        assert bits(got[column]) == bits(want[column]), column


@pytest.mark.parametrize("how", ["fails", "dies"])
def test_a_task_that_is_repeated_adds_its_rows_once(client, name, save, frame, how):
    def stumble(batches):
        for batch in batches:
            yield batch
        if TaskContext.get().attemptNumber() == 0 and batch.num_rows:
            if how == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("the first attempt fails after its rows were sent")

    create_sites(client, name)
    save(frame(change=stumble))
    assert_same(client.read(name), sites(ROWS, SITES))
    assert [entry["version"] for entry in history(client, name)] == [1, 0]


def test_a_job_that_fails_leaves_nothing(server, client, name, save, frame):
    def fail(batches):
        for batch in batches:
            yield batch
            if "c" in batch["site"].to_pylist():
                raise RuntimeError("this task always fails")

    create_sites(client, name, [("d", 4, 0.0)])
    before = client.read(name)
    with pytest.raises(Exception, match="this task always fails"):
        save(frame(change=fail))
    with pytest.raises(Exception, match="INTERVAL_OVERLAP"):
        save(frame())
    with pytest.raises(Exception, match="DUPLICATE_INTERVAL"):
        save(frame([("x", 1, 1.0), ("x", 1, 2.0)]))
    with pytest.raises(Exception, match="VERSION_CONFLICT"):
        save(frame([("x", 1, 1.0)]), expected_version="0")
    assert client.read(name).equals(before) and len(history(client, name)) == 2
    save(frame([("x", 1, 1.0)]))
    assert client.read(name).num_rows == 2


def test_rows_that_do_not_fit(spark, server, client, name, save, frame):
    columns = [
        {"name": "ts", "type": "int64", "nullable": False},
        {"name": "tiny", "type": "uint8"},
        {"name": "at", "type": "timestamp[us]"},
    ]
    client.act("create_table", table=name, index_column="ts", index_granularity="1", columns=columns)

    def one(sql):
        return spark.session.sql(f"select 1L ts, {sql}")

    with pytest.raises(Exception, match="column 'tiny' of type int32 is not uint8"):
        save(one("300 tiny, timestamp_ntz'2026-01-01 00:00:00' at"))
    with pytest.raises(Exception, match="column 'at' is .* in the table and .*: an instant is no local time"):
        save(one("3 tiny, timestamp'2026-01-01 00:00:00' at"))
    with pytest.raises(Exception, match='SCHEMA_MISMATCH table=.* column="more"'):
        save(one("3 tiny, timestamp_ntz'2026-01-01 00:00:00' at, 1 more"))
    with pytest.raises(Exception, match='SCHEMA_MISMATCH table=.* column="at"'):
        save(one("3 tiny"))
    with pytest.raises(Exception, match="TABLE_NOT_FOUND"):
        frame().write.format("contrail").mode("append").option("location", server.uri).save("none")
    assert client.read(name).num_rows == 0


def test_overwrite_is_refused(client, name, frame, server):
    create_sites(client, name, [("d", 4, 0.0)])
    with pytest.raises(Exception, match=r'would delete a table.*use mode\(.*"append.*"\)'):
        frame().write.format("contrail").mode("overwrite").option("location", server.uri).save(name)
    assert client.read(name).num_rows == 1


def writer(server, table, **options) -> Writer:
    """What the driver makes for a job."""
    return Writer(Options({"location": server.uri, "table": table} | options), SCHEMA)


def stage(job: Writer, rows) -> Staged:
    """What a task does."""
    return job.write(iter(sites(rows).to_batches()))


def test_a_driver_that_is_killed(server, client, name):
    """Between staging and commit nothing is to be seen; the job that runs again is not in the way of what is left."""
    create_sites(client, name)
    stage(writer(server, name, request_id="job"), ROWS)
    assert client.read(name).num_rows == 0 and len(history(client, name)) == 1
    again = writer(server, name, request_id="job")
    again.commit([stage(again, ROWS[:9]), None, stage(again, ROWS[9:]), Staged(None)])
    assert_same(client.read(name), sites(ROWS, SITES))


def test_a_commit_whose_answer_was_lost(server, client, name):
    """Spark takes it for failed and aborts the job: what was committed stays, and running the job again is harmless."""
    create_sites(client, name)
    job = writer(server, name, request_id="job")
    messages = [stage(job, ROWS)]
    job.commit(messages)
    job.abort(messages)
    assert_same(client.read(name), sites(ROWS, SITES))
    job.commit(messages)
    assert_same(client.read(name), sites(ROWS, SITES))


def test_speculation(server, client, name):
    """Of two attempts at one task Spark names one."""
    create_sites(client, name)
    job = writer(server, name)
    first, second = stage(job, ROWS), stage(job, ROWS)
    assert first.token != second.token
    job.commit([second])
    assert_same(client.read(name), sites(ROWS, SITES))


def test_tokens_of_other_tables(server, client, name):
    create_sites(client, name)
    create_sites(client, name + "-2")
    job = writer(server, name)
    with refused("INVALID", field="staged[0]"):
        writer(server, name + "-2").commit([stage(job, ROWS)])
    assert client.read(name).num_rows == 0 and client.read(name + "-2").num_rows == 0


def test_two_jobs_with_one_id_at_once(server, client, name):
    """They are one job: the rows of one of them are there, once."""
    create_sites(client, name)
    jobs = [writer(server, name, request_id="job") for _ in range(2)]
    messages = [[stage(job, ROWS)] for job in jobs]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda job, message: job.commit(message), jobs, messages))
    assert_same(client.read(name), sites(ROWS, SITES))
    assert [entry["version"] for entry in history(client, name)] == [1, 0]


def test_a_commit_that_comes_too_late(tmp_path, built):
    """A driver that hung until what was staged has expired commits nothing, and nothing is left."""
    with Service(tmp_path / "warehouse", staged_lifetime="1s") as brief, Client(brief.uri) as client:
        create_sites(client, "late")
        job = writer(brief, "late", request_id="job")
        messages = [stage(job, ROWS)]
        time.sleep(1.1)
        with refused("INVALID", field="staged[0]"):
            job.commit(messages)
        assert client.read("late").num_rows == 0 and len(history(client, "late")) == 1
        assert list(brief.path("late").rglob("*.parquet"))
        job.abort(messages)
        assert not list(brief.path("late").rglob("*.parquet"))


def test_a_job_without_rows_makes_no_version(server, client, name):
    create_sites(client, name)
    job = writer(server, name)
    job.commit([stage(job, [])])
    assert [entry["version"] for entry in history(client, name)] == [0]


def test_a_table_without_a_schema_takes_sparks(server, client, name):
    client.act("create_table", table=name, index_column="ts", index_granularity="1h", index_type="timestamp")
    job = writer(server, name)
    job.commit([stage(job, ROWS[:5])])
    assert client.read(name).schema.field("ts").type == pa.timestamp("us", tz="UTC")
