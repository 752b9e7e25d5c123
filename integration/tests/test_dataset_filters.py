"""Random filters and projections: DuckDB, Polars and pandas find over Flight what Arrow finds in the whole table."""

import datetime
import decimal
import math
import operator
import os
import random

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from contrail_dataset import ContrailDataset
from richtable import ROWS, SCHEMA, SITES, START, VALUES, served
from tables import assert_same

SEEDS = int(os.environ.get("SEEDS", "60"))
UTC = datetime.UTC


def by_number(table: pa.Table) -> pa.Table:
    return table.sort_by("n").combine_chunks()


# -- every filter and projection ----------------------------------------------------------------------


def literal(chance: random.Random, column: str):
    """A value to compare a column with: one that is stored, one beside it, one of another width or unit."""
    kind, value = SCHEMA.field(column).type, chance.choice(VALUES[column])
    if pa.types.is_timestamp(kind) and chance.random() < 0.5:
        unit = chance.choice(["s", "ms", "us", "ns"])
        scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
        moved = value * scale[unit] // scale[kind.unit] + chance.choice([-1, 0, 1])
        return pa.scalar(moved, pa.timestamp(unit, kind.tz))
    if pa.types.is_integer(kind) and chance.random() < 0.4:
        value = chance.choice([value, 7, 3, 0, 300])
        return pa.scalar(value, chance.choice([pa.int64(), pa.int16()])) if -(2**15) <= value < 2**15 else value
    if pa.types.is_floating(kind) and chance.random() < 0.3:
        return chance.choice([0.1, 7, 0, 1.5])
    return pa.scalar(value, kind)


def simple(chance: random.Random) -> pc.Expression:
    if chance.random() < 0.25:
        return about_keys(chance)
    column = chance.choice([c for c in VALUES if c not in ("list", "point")])
    field, shape = pc.field(column), chance.randrange(12)
    if shape == 0:
        return field.is_null(nan_is_null=chance.random() < 0.3)
    if shape == 1:
        return field.is_valid()
    if shape == 2 and SCHEMA.field(column).type in (pa.float32(), pa.float64()):
        return field.is_nan()
    if shape in (3, 4) and column not in ("zone", "sec", "nano", "clock", "span"):
        chosen = chance.sample(VALUES[column], chance.randint(0, 2))
        if chance.random() < 0.2:
            chosen.append(None)
        return field.isin(pa.array(chosen, SCHEMA.field(column).type))
    if shape == 5:
        return pc.field("i8").cast(pa.float64()) > chance.choice([-1.5, 6.5])
    if shape == 6:
        return pc.starts_with(pc.utf8_lower(pc.field("text")), "a")
    if shape == 7:
        odd = [pc.field("flag"), pc.field("f64") > pc.field("f32"), pc.scalar(True), pc.field("point", "x").is_valid()]
        return chance.choice(odd)
    compare = chance.choice([operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge])
    if column == "flag":
        compare = chance.choice([operator.eq, operator.ne])
    value = literal(chance, column)
    return compare(pc.scalar(value), field) if chance.random() < 0.2 else compare(field, value)


def about_keys(chance: random.Random) -> pc.Expression:
    shape = chance.randrange(5)
    if shape == 0:
        return pc.field("site") == chance.choice([*SITES, "nowhere", "A"])
    if shape == 1:
        return pc.field("site").isin(chance.sample([*SITES, "d"], chance.randint(0, 3)))
    if shape == 2:
        return pc.field("unit") == pa.scalar(chance.choice([0, 1, 2**31 - 1, 2**40]), pa.int64())
    bound = START + 1_000_000 * chance.randrange(-50, 650) + chance.randrange(3)
    bound = pa.scalar(bound * 1000 + chance.randrange(2), pa.timestamp("ns", "UTC"))
    compare = chance.choice([operator.ge, operator.lt, operator.gt, operator.le])
    return compare(pc.field("ts"), bound)


def random_filter(chance: random.Random, depth: int = 3) -> pc.Expression:
    shape = chance.random()
    if depth == 0 or shape < 0.3:
        return simple(chance)
    if shape < 0.45:
        return ~random_filter(chance, depth - 1)
    left, right = random_filter(chance, depth - 1), random_filter(chance, depth - 1)
    return left & right if shape < 0.8 else left | right


def test_any_filter_and_projection_gives_what_arrow_finds_in_the_whole_table(rich):
    checked = 0
    for seed in range(SEEDS * 4):
        chance = random.Random(seed)
        wanted = random_filter(chance)
        names = ["n", *chance.sample([f.name for f in SCHEMA if f.name != "n"], chance.randint(0, 4))]
        try:
            expected = ROWS.filter(wanted).select(names)
        except pa.ArrowException:
            continue  # compares what Arrow cannot compare
        got = by_number(rich.to_table(columns=names, filter=wanted))
        try:
            assert_same(got, by_number(expected))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {wanted}") from error
        checked += 1
    assert checked > SEEDS


SQL = [
    "site = 'b'",
    "site in ('a', 'c') and unit = 1",
    "ts >= '2026-01-01 00:02:00' and ts < '2026-01-01 00:03:00.5'",
    "i8 between 0 and 100",
    "u64 > 9007199254740992",
    "i64 = 9007199254740993",
    "f64 > 1",
    "f64 = 'nan'",
    "f64 < 'nan'",
    "f32 <= 0",
    "text like 'a%'",
    "text >= 'é'",
    "lower(text) = 'a'",
    "raw = '\\xFF'::blob or raw = 'a'::blob",
    "flag",
    "not flag",
    "day <= '2026-01-01'",
    "sec = '2026-01-01'",
    "nano > '2026-01-01'",
    "nano >= '1970-01-01 00:00:00.000000001'::timestamp_ns",
    "zone < '2026-01-01'",
    "clock < '12:00:00'",
    "price >= 12.5",
    "price = 12.5 and i8 is not null",
    "f64 is null",
    "i8 <> 7",
    "i8 = 7 or i8 = 0",
    "u8 in (0, 7)",
    "n % 7 = 3",
    "len(list) = 2",
    "point.x = 1",
    "point.x = 1 and site = 'b'",
]


def test_duckdb_finds_what_it_finds_in_the_whole_table(rich):
    """In the same rows as a Dataset in memory, so that what DuckDB itself tells Arrow is the same."""
    whole = ds.dataset(ROWS)
    db = duckdb.connect()
    db.execute("set TimeZone = 'UTC'")
    db.register("whole", whole)
    db.register("rich", rich)
    for seed in range(SEEDS):
        chance = random.Random(seed)
        if seed < len(SQL):
            where = SQL[seed]
        else:
            where = f" {chance.choice(['and', 'or'])} ".join(f"({p})" for p in chance.sample(SQL, chance.randint(2, 3)))
        names = ", ".join(["n", *chance.sample([c for c in SCHEMA.names if c not in ("n", "span")], 3)])
        query = f"select {names} from {{}} where {where} order by n"
        got, expected = (db.sql(query.format(t)).to_arrow_table() for t in ("rich", "whole"))
        assert_same(got, expected)
        summary = f"select count(*), sum(n), max(text) from {{}} where {where}"
        assert db.sql(summary.format("rich")).fetchall() == db.sql(summary.format("whole")).fetchall(), where


C = pl.col
POLARS = [
    C("site") == "b",
    C("site").is_in(["a", "z"]),
    C("unit") == 1,
    C("ts") >= datetime.datetime(2026, 1, 1, 0, 5, tzinfo=UTC),
    C("i8") > 5,
    C("u8").is_in([0, 7]),
    C("u64") >= 7,
    C("f64") > 1,
    C("f64").is_nan(),
    C("f32") < 0.1,
    C("f64").is_null(),
    C("text") == "é",
    C("text").str.starts_with("a"),
    C("flag"),
    ~C("flag"),
    C("day") == datetime.date(2026, 1, 1),
    C("price") > decimal.Decimal("1.5"),
    C("nano") > datetime.datetime(2026, 1, 1),
    C("i8").is_between(0, 100),
    C("i64").eq_missing(7),
    C("i8") == C("u8"),
    C("list").list.len() == 2,
    C("n") % 7 == 3,
]


def test_polars_finds_what_it_finds_in_the_whole_table(rich):
    ours, whole = pl.scan_pyarrow_dataset(rich), pl.scan_pyarrow_dataset(ds.dataset(ROWS))
    for seed in range(SEEDS):
        chance = random.Random(seed)
        where = POLARS[seed] if seed < len(POLARS) else chance.choice(POLARS)
        for _ in range(chance.randint(0, 2) if seed >= len(POLARS) else 0):
            other = chance.choice(POLARS)
            where = chance.choice([where & other, where | other, ~where])
        names = list(dict.fromkeys(["n", *chance.sample(SCHEMA.names, 3)]))
        got, expected = (frame.filter(where).select(names).sort("n").collect() for frame in (ours, whole))
        assert_same(got.to_arrow(), expected.to_arrow())


def test_pandas(rich):
    wanted = (pc.field("f64") > 0) & (pc.field("site") == "a")
    names = ["n", "ts", "text", "f64"]
    got = rich.to_table(columns=names, filter=wanted).to_pandas().sort_values("n", ignore_index=True)
    expected = ROWS.filter(wanted).select(names).to_pandas()
    assert got.equals(expected)


# -- what the service is told -------------------------------------------------------------------------

PUSHED = {
    "entity": (pc.field("site") == "a", True),
    "entities": (pc.field("site").isin(["a", "b"]) & (pc.field("unit") == 1), True),
    "range": ((pc.field("ts") >= pa.scalar(START + 10**7, SCHEMA.field("ts").type)) & (pc.field("n") < 90), True),
    "integer": (pc.field("i8") > 5, True),
    "unsigned": (pc.field("u8") == 7, True),
    "float": (pc.field("f64") < 1.5, True),
    "text": (pc.field("text") >= "b", True),
    "nanoseconds": (pc.field("nano") > pa.scalar(0, pa.timestamp("ns")), True),
    "decimal": (pc.field("price") == decimal.Decimal("12.50"), True),
    "list": (pc.field("i8").isin([7, 0]), True),
    "null": (pc.field("i8").is_null(), True),
    "negation": (~(pc.field("i8") > 5), True),
    "alternatives": ((pc.field("i8") == 7) | (pc.field("i8") == 0), True),
    "neither": (~((pc.field("i8") == 7) | (pc.field("u8") == 7)), True),
    "known part": ((pc.field("i8") > 5) & (pc.utf8_lower(pc.field("text")) == "a"), False),
    "beside a struct": ((pc.field("site") == "a") & (pc.field("point", "x") == 1), False),
    "struct": (pc.field("point", "x") == 1, None),
    "unknown": (pc.utf8_lower(pc.field("text")) == "a", None),
    "either": ((pc.field("i8") == 7) | (pc.field("u8") == 7), None),
    "not in": (~pc.field("i8").isin([7]), None),
    "nan": (pc.field("f64") != math.nan, None),
    "not greater": (~(pc.field("f64") > 1.0), None),
    "nothing": ((pc.field("n") > 5) & (pc.field("ts") < pc.field("ts").cast(pa.timestamp("us", "UTC"))), False),
}


@pytest.mark.parametrize(["wanted", "whole"], PUSHED.values(), ids=PUSHED)
def test_the_service_sends_only_rows_that_may_be_wanted(client, rich, wanted, whole):
    """`whole`: it is told all of the filter (True), a part (False), or nothing (None)."""
    matching = ROWS.filter(wanted).num_rows
    with served(client) as counted:
        assert rich.to_table(columns=["n"], filter=wanted).num_rows == matching
    if whole:
        assert counted["rows"] == matching
    else:
        assert (counted["rows"] < ROWS.num_rows) == (whole is False)


def test_engines_push_down(server, client, many):
    """Entity, range and columns reach the service from DuckDB's SQL and Polars' expressions."""
    table = ContrailDataset(server.uri, many, max_endpoints=1)
    db = duckdb.connect()
    db.execute("set TimeZone = 'UTC'")
    db.register("many", table)
    with served(client) as whole:
        table.to_table()
    frame = pl.scan_pyarrow_dataset(table)
    minute = datetime.datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
    queries = {
        "one entity": lambda: db.sql("select price from many where symbol = 'S0007'").fetchall(),
        "polars entity": lambda: frame.filter(C("symbol") == "S0007").select("price").collect(),
    }
    for query in queries.values():
        with served(client) as counted:
            query()
        assert counted["rows"] == 500 and counted["bytes"] < whole["bytes"] / 500
    queries = [
        lambda: db.sql("select sum(size) from many where ts < '2026-01-01 00:01:00'").fetchall(),
        lambda: frame.filter(C("ts") < minute).select(C("size").sum()).collect(),
    ]
    for query in queries:
        with served(client) as counted:
            query()
        assert counted["rows"] == 60_000 and counted["files_skipped"] == 1
    with served(client) as counted:
        db.sql("select sum(size) from many").fetchall()
    assert counted["rows"] == 500_000 and counted["bytes"] < whole["bytes"] / 5


def test_counting_reads_no_row(server, client, many):
    table = ContrailDataset(server.uri, many)
    with served(client) as counted:
        assert table.count_rows() == 500_000
    assert counted["rows"] == 0
    with served(client) as counted:
        assert table.to_table(columns=[]).num_rows == 500_000
        assert table.count_rows(pc.field("symbol") == "S0007") == 500
    assert counted["rows"] == 500_500 and counted["bytes"] < 2_000_000


def test_long_filters(client, rich):
    """However deep they are nested, and more than is sent."""
    chain = pc.field("n") > 0
    for number in range(1_100):
        chain = chain & (pc.field("n") > number % 500)
    with served(client) as counted:
        assert rich.to_table(filter=chain).num_rows == 100
    assert counted["rows"] == 100
    either = pc.field("n") == 0
    for number in range(1_100):
        either = either | (pc.field("n") == number * 2)
    with served(client) as counted:
        assert rich.to_table(filter=either).num_rows == 300
        assert rich.to_table(filter=pc.field("n").isin(list(range(0, 100_000, 2)))).num_rows == 300
    assert counted["rows"] == 900
    for _ in range(1_100):
        chain = ~chain
    assert rich.to_table(filter=chain).num_rows == 100


def test_a_form_of_expressions_that_is_not_known_is_not_pushed(client, rich, monkeypatch):
    """As a later pyarrow may have one: rows are the same, and all of them cross the wire."""
    monkeypatch.setattr("contrail_dataset._metadata", lambda schema: [("surprise", "0")])
    with served(client) as counted:
        assert (
            rich.to_table(columns=["n"], filter=pc.field("i8") == 7).num_rows == pc.sum(pc.equal(ROWS["i8"], 7)).as_py()
        )
    assert counted["rows"] == ROWS.num_rows
