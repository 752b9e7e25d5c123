"""Spark reads tables through the service: every type, every option, and the service does the filtering."""

import datetime
import decimal
import functools
import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

from alltypes import CASES, DEFINITION, IDS
from alltypes import table as alltypes
from client import Client
from interop import ipc
from tables import assert_same, create_sites, create_weather

HOUR = datetime.timedelta(hours=1)
ORDER = [("time_hour", "ascending"), ("temp", "ascending")]
START = datetime.datetime(2013, 4, 1, tzinfo=datetime.UTC)


@pytest.fixture(scope="module")
def loaded(server, months):
    """A year of weather in twelve files, one a month."""
    with Client(server.uri) as client:
        create_weather(client, "weather", months[0].schema)
        for month in months:
            client.append("weather", month)
    return server


@pytest.fixture
def load(spark, loaded):
    """Reads a table of the module's server with options."""

    def read(name="weather", schema=None, **options):
        reader = spark.session.read.format("contrail").option("location", loaded.uri).options(**options)
        return (reader.schema(schema) if schema else reader).load(name)

    return read


@pytest.fixture
def served(loaded):
    """Runs something and tells by how much the service's counters grew."""

    def run(do):
        with Client(loaded.uri) as client:
            before = client.act("server_info")["served"]
            result = do()
            after = client.act("server_info")["served"]
        return result, {name: after[name] - before[name] for name in after}

    return run


class OverFlight:
    """Reads the tables of a server as the other engines do, but not from their directories."""

    def __init__(self, spark, server):
        self.reader = spark.session.read.format("contrail").option("location", server.uri)
        self.server = server

    def read(self, path) -> pa.Table:
        with Client(self.server.uri) as client:
            names = [*client.read(path.name, end=0).column_names, "_ingest_ts"]
        got = self.reader.option("columns", json.dumps(names)).load(path.name).toArrow()
        # Here a reader of the directory finds nanoseconds as integers.
        fine = [n for n in got.column_names if n in ("timestamp_ns", "instant_ns")]
        for name in fine:
            nanos = pc.multiply(got[name].cast(pa.int64()), 1000)
            got = got.set_column(got.column_names.index(name), name, nanos)
        return got


@pytest.mark.parametrize("table", ["weather", "kinds", "corrected"])
def test_reads_what_the_directory_holds(stored, spark, table):
    stored.assert_reads_the_same(OverFlight(spark, stored.server), table)


def test_types(spark, loaded, load):
    """Every type of the table format, and what Spark makes of it: the table of the page."""
    with Client(loaded.uri) as client:
        client.act("create_table", table="alltypes", index_type="timestamp", **DEFINITION)
        client.append("alltypes", alltypes())
    names = [name for name in CASES if name != "times_inside"]
    # As in the tests of the directory, a null struct cannot go to Arrow, but its rows are there.
    got = load("alltypes", columns=json.dumps(["ts", *names]))
    direct = spark.session.read.format("delta").load(str(loaded.path("alltypes"))).select("ts", *names)
    assert [(f.name, f.dataType.simpleString()) for f in got.schema] == [
        (f.name, f.dataType.simpleString()) for f in direct.schema
    ]
    rows = sorted(got.collect())
    assert rows == sorted(direct.collect())
    assert sorted(row.uuid for row in rows if row.uuid) == IDS
    with pytest.raises(Exception, match=r"column=\"times_inside\" value=.*no whole number of microseconds"):
        load("alltypes", columns="ts,times_inside").collect()


def test_options(load, weather, months):
    april = START, START + 30 * 24 * HOUR
    assert load(columns="temp, origin").columns == ["temp", "origin"]
    narrow = load(schema="time_hour timestamp, temp double", end="2013-02-01T00:00:00Z")
    january = weather.filter(pc.field("time_hour") < datetime.datetime(2013, 2, 1, tzinfo=datetime.UTC))
    assert_same(narrow.sort("time_hour", "temp").toArrow(), january.select(narrow.columns).sort_by(ORDER))
    assert load(version="1", columns="temp").count() == months[0].num_rows
    chosen = weather.filter(
        (pc.field("origin") == "EWR")
        & (pc.field("time_hour") >= april[0])
        & (pc.field("time_hour") < april[1])
        & (pc.field("temp") > 50)
    )
    found = load(
        entities='[{"origin": "EWR"}]',
        start=april[0].isoformat(),
        end=april[1].isoformat(),
        filter='[["temp", ">", 50]]',
        compression="zstd",
        max_endpoints="2",
    )
    assert_same(found.sort("time_hour").toArrow(), chosen)


def test_listings(loaded, load):
    missing = {"kind": "missing", "start": "2013-01-01T00:00:00Z", "end": "2014-01-01T00:00:00Z"}
    with Client(loaded.uri) as client:
        wanted = {
            "latest": client.get({"op": "latest", "table": "weather", "at": "2013-06-30T00:00:00Z"}),
            "coverage": client.get({"op": "coverage", "table": "weather"} | missing),
            "history": client.get({"op": "history", "table": "weather"}),
            "files": client.get({"op": "files", "table": "weather"}),
        }
    options = {"latest": {"at": "2013-06-30T00:00:00Z"}, "coverage": missing}
    for op, want in wanted.items():
        got = load(op=op, **options.get(op, {})).toArrow()
        assert got.num_rows == want.num_rows, op
        for name in want.column_names:
            values = got[name].to_pylist()
            assert [int(v) if isinstance(v, decimal.Decimal) else v for v in values] == want[name].to_pylist(), name


def test_an_endpoint_is_a_partition(load, served):
    frame = load(max_endpoints="3")
    assert frame.rdd.getNumPartitions() == 3
    _, grown = served(lambda: frame.select("temp").count())
    assert grown["scans"] == 3


def test_filters_are_pushed_down(load, served, weather):
    condition = "origin = 'EWR' and time_hour >= '2013-02-01' and time_hour < '2013-03-01' and not temp <= 40"
    moment = functools.partial(datetime.datetime, 2013, tzinfo=datetime.UTC)
    chosen = weather.filter(
        (pc.field("origin") == "EWR")
        & (pc.field("time_hour") >= moment(2, 1))
        & (pc.field("time_hour") < moment(3, 1))
        & (pc.field("temp") > 40)
    )
    pushed, grown = served(lambda: load().where(condition).toArrow())
    assert_same(pushed.sort_by("time_hour"), chosen)
    assert (grown["rows"], grown["files"], grown["files_skipped"]) == (chosen.num_rows, 1, 11)
    kept, grown = served(lambda: load(pushdown="false").where(condition).toArrow())
    assert_same(kept.sort_by("time_hour"), chosen)
    assert (grown["rows"], grown["files"]) == (weather.num_rows, 12)


ODD = pa.table(
    {
        "n": pa.array(range(8), pa.int64()),
        "x": pa.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, 2.5, None], pa.float64()),
        "tiny": pa.array([0, 1, 127, 128, 255, 2, 3, None], pa.uint8()),
        "huge": pa.array([0, 1, 2**63, 2**64 - 1, 5, 6, 7, None], pa.uint64()),
        "price": pa.array([*map(decimal.Decimal, "0.00 -1.50 1.50 99.99 0.01 5.00 1.00".split()), None]).cast(
            pa.decimal128(12, 2)
        ),
        "text": pa.array(["", "a", "A", "é", "\U0001f600", "\uffff", "b", None]),
        "word": pa.array(["p", "q", "p", "q", "r", "r", "p", None]).dictionary_encode(),
        "raw": pa.array([b"", b"\0", b"\xff", b"a", b"ab", b"b", b"\x7f", None]),
        "ok": pa.array([True, False, True, False, True, False, True, None]),
        "day": pa.array([datetime.date(2026, 1, d + 1) for d in range(7)] + [None]),
        "at": pa.array([START + d * HOUR for d in range(7)] + [None], pa.timestamp("ms", tz="America/New_York")),
        "fine": pa.array([START + d * HOUR for d in range(7)] + [None], pa.timestamp("ns", tz="UTC")),
        "local": pa.array([datetime.datetime(2013, 4, 1, d) for d in range(7)] + [None], pa.timestamp("s")),
        "time": pa.array([*range(7), None], pa.time32("s")),
    }
)
CONDITIONS = [
    *(
        f"x {op} {value}"
        for op in ("=", "<", ">", "<=", ">=", "!=", "<=>")
        for value in ("1.5D", "0.0D", "double('nan')")
    ),
    "x in (1.5D, -0.0D, double('nan'))",
    "x not in (1.5D, 2.5D)",
    "x < double('inf') and not x > 2.0D",
    "tiny > 127 and tiny <= 255",
    "tiny = 300 or n = 1",
    "tiny < -1",
    "huge >= 9223372036854775808",
    "huge = 1.5 or huge is null",
    "price = 1.5 and price != 1",
    "price in (1.50, 99.990)",
    "price < 1.005",
    "text > 'b' and text <= '\U0001f600'",
    "text <=> null or text = ''",
    "not text in ('a', 'b')",
    "word in ('q', 'r') and word is not null",
    "raw >= X'7f'",
    "ok and n > 0",
    "not ok",
    "day between '2026-01-02' and date'2026-01-04'",
    "at > '2013-04-01 02:00:00' and at <= timestamp'2013-04-01 09:00:00+05:30'",
    "fine = timestamp'2013-04-01 03:00:00'",
    "local >= timestamp_ntz'2013-04-01 03:00:00'",
    "local < timestamp'2013-04-01 03:00:00' and at > timestamp_ntz'2013-04-01 01:00:00'",
    "time > 3",
    "x is null and not ok is not null",
]


def test_a_filter_means_there_what_it_means_here(spark, loaded, load):
    """Every condition over a table with NaN, both zeros and nulls, once pushed down and once by Spark alone."""
    with Client(loaded.uri) as client:
        client.act("create_table", table="odd", index_column="n", index_granularity="1", schema_ipc=ipc(ODD.schema))
        client.append("odd", ODD)
    spark.session.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        alone = spark.session.createDataFrame(load("odd", pushdown="false").toArrow())
        found = [
            frame.where(condition).select(F.lit(i).alias("i"), F.lit(k).alias("k"), "n")
            for i, condition in enumerate(CONDITIONS)
            for k, frame in enumerate((load("odd", columns=json.dumps(ODD.column_names)), alone))
        ]
        rows = functools.reduce(lambda a, b: a.union(b), found).collect()
    finally:
        spark.session.conf.set("spark.sql.session.timeZone", "UTC")
    for i, condition in enumerate(CONDITIONS):
        pushed, here = (sorted(row.n for row in rows if (row.i, row.k) == (i, k)) for k in (0, 1))
        assert pushed == here, condition


def test_versions(load, loaded):
    with Client(loaded.uri) as client:
        create_sites(client, "grows", [("a", 0, 1.0)])
        first = load("grows", version="1")
        committed = client.get({"op": "history", "table": "grows"}).to_pylist()[0]["committed_at"]
        client.act("add_columns", table="grows", columns=[{"name": "more", "type": "double"}])
        assert first.columns == ["site", "ts", "value"] and first.count() == 1
        assert load("grows", as_of=committed.isoformat()).columns == first.columns
        assert load("grows").columns == ["site", "ts", "value", "more"]


@pytest.mark.parametrize(
    "table, options, told",
    [
        ("none", {}, "TABLE_NOT_FOUND"),
        ("weather", {"columns": "origin,none"}, r'column \\?"none\\?" is not in the table'),
        ("weather", {"columns": '["origin"'}, "the option columns is no JSON"),
        ("weather", {"version": "77"}, "VERSION_NOT_FOUND"),
        ("weather", {"version": "x"}, "the option version is 'x', which is no number"),
        ("weather", {"entites": "[]"}, "a read with op scan has no option entites"),
        ("weather", {"op": "explode"}, "which is none of scan, latest"),
        ("weather", {"op": "history", "version": "1"}, "a read with op history has no option version"),
        ("weather", {"pushdown": "perhaps"}, "neither true nor false"),
        ("weather", {"token": "a", "token_file": "b"}, "only one can be given"),
        ("weather", {"table": "sites"}, "the table is named twice"),
    ],
)
def test_refusals(load, table, options, told):
    with pytest.raises(Exception, match=told):
        load(table, **options).count()


def test_a_schema_of_another_table_is_refused(load):
    with pytest.raises(Exception, match="column 'temp' is double, the schema asks for float"):
        load(schema="temp float").count()
    with pytest.raises(Exception, match=r'column \\?"none\\?" is not in the table'):
        load(schema="temp double, none double").count()
