"""Coverage queries: the known gaps of a year of weather, edges of ranges and domains, and what is refused."""

import datetime

import pyarrow as pa
import pytest

from client import Client
from tables import UTC, create_sites, create_weather, refused, sites

HOUR = datetime.timedelta(hours=1)


def at(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)


@pytest.fixture(scope="module")
def year(server, months) -> str:
    """The year of weather, month by month."""
    with Client(server.uri) as client:
        create_weather(client, "year", months[0].schema)
        for month in months:
            client.append("year", month)
    return "year"


def ask(client: Client, table: str, kind: str, **more) -> list[dict]:
    return client.get({"op": "coverage", "table": table, "kind": kind} | more).to_pylist()


def hours(weather: pa.Table, origin: str) -> list[datetime.datetime]:
    rows = weather.to_pylist()
    return sorted({row["time_hour"].astimezone(datetime.UTC) for row in rows if row["origin"] == origin})


def gaps_of(stamps: list[datetime.datetime], start: datetime.datetime, end: datetime.datetime) -> list[tuple]:
    """The runs of hours in [start, end) that are not among the stamps."""
    gaps, expected = [], start
    for stamp in [*(s for s in stamps if start <= s < end), end]:
        if stamp > expected:
            gaps.append((expected, stamp, (stamp - expected) // HOUR))
        expected = stamp + HOUR
    return gaps


def test_the_gaps_of_the_year(client, year, weather):
    range_ = {"start": "2013-01-01T00:00:00Z", "end": "2014-01-01T00:00:00Z"}
    rows = ask(client, year, "missing", **range_)
    start, end = at("2013-01-01"), at("2014-01-01")
    want = [(o, *gap) for o in ("EWR", "JFK", "LGA") for gap in gaps_of(hours(weather, o), start, end)]
    assert [(r["origin"], r["start"], r["end"], r["intervals"]) for r in rows] == want
    assert (rows[0]["origin"], rows[0]["start"], rows[0]["end"], rows[0]["intervals"]) == (
        "EWR",
        start,
        at("2013-01-01T06:00:00"),
        6,
    )

    covered = ask(client, year, "covered", **range_)
    for origin in ("EWR", "JFK", "LGA"):
        pieces = sorted((r["start"], r["end"]) for r in rows + covered if r["origin"] == origin)
        assert pieces[0][0] == start and pieces[-1][1] == end
        assert all(a[1] == b[0] for a, b in zip(pieces, pieces[1:]))

    for row in ask(client, year, "summary", **range_):
        stamps = hours(weather, row["origin"])
        missing = [gap[2] for gap in gaps_of(stamps, start, end)]
        assert row["covered_intervals"] == len(stamps)
        assert row["missing_intervals"] == sum(missing) and row["longest_gap_intervals"] == max(missing)
        assert row["covered_ratio"] == len(stamps) / 8760


def test_the_last_covered_day(client, year, weather):
    for row in ask(client, year, "last_window", n=24):
        stamps = set(hours(weather, row["origin"]))
        last = max(s for s in stamps if all(s - i * HOUR in stamps for i in range(24)))
        assert (row["start"], row["end"]) == (last - 23 * HOUR, last + HOUR)
    (row,) = ask(client, year, "last_window", n=9000, entities=[{"origin": "EWR"}])
    assert row == {"origin": "EWR", "start": None, "end": None}


def test_schemas_are_as_documented(client, year):
    def fields(kind, **more):
        ticket = {"op": "coverage", "table": year, "kind": kind} | more
        return [(f.name, f.type, f.nullable) for f in client.get(ticket).schema]

    runs = [
        ("origin", pa.string(), False),
        ("start", UTC, False),
        ("end", UTC, True),
        ("intervals", pa.uint64(), False),
    ]
    assert fields("missing") == fields("covered") == runs
    counts = ["covered_intervals", "missing_intervals", "longest_gap_intervals"]
    summary = [("covered_ratio", pa.float64(), False)] + [(name, pa.uint64(), False) for name in counts]
    assert fields("summary") == runs[:1] + summary
    assert fields("last_window", n=1) == [runs[0], ("start", UTC, True), ("end", UTC, True)]


def test_whole_domain_and_unknown_entities(client, year):
    whole = {"op": "coverage", "table": year, "kind": "missing"}
    gaps = client.get(whole | {"entities": [{"origin": "EWR"}]})
    assert gaps["end"][0].as_py() == at("2013-01-01T06:00:00") and gaps["end"].null_count == 1
    assert not gaps["end"][-1].is_valid and gaps["start"][0].value < -(2**62)
    nowhere = client.get(whole | {"entities": [{"origin": "XXX"}]})
    assert nowhere["origin"].to_pylist() == ["XXX"] and nowhere["end"].null_count == 1
    (row,) = ask(
        client, year, "summary", entities=[{"origin": "XXX"}], start="2013-01-01T00:00:00Z", end="2013-01-02T00:00:00Z"
    )
    assert row == {
        "origin": "XXX",
        "covered_ratio": 0.0,
        "covered_intervals": 0,
        "missing_intervals": 24,
        "longest_gap_intervals": 24,
    }
    assert ask(client, year, "missing", entities=[]) == []


def test_a_touched_interval_counts_whole(client, name):
    create_sites(client, name, [("a", 0, 1.0), ("a", 2, 1.0)])
    range_ = {"start": "2026-01-01T00:59:59.999999Z", "end": "2026-01-01T02:00:00.000001Z"}
    (gap,) = ask(client, name, "missing", **range_)
    assert (gap["start"], gap["end"]) == (at("2026-01-01T01:00:00"), at("2026-01-01T02:00:00"))
    first, second = ask(client, name, "covered", **range_)
    assert (first["start"], second["end"]) == (at("2026-01-01T00:00:00"), at("2026-01-01T03:00:00"))


def test_versions_and_empty_tables(client, name):
    made = create_sites(client, name)
    assert ask(client, name, "summary") == [] and made["version"] == 0
    client.append(name, sites([("a", 0, 1.0)]))
    client.append(name, sites([("a", 1, 1.0), ("b", 7, 1.0)]))
    day = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"}
    assert [r["covered_intervals"] for r in ask(client, name, "summary", **day)] == [2, 1]
    assert [r["covered_intervals"] for r in ask(client, name, "summary", version=1, **day)] == [1]
    times = client.get({"op": "history", "table": name})["committed_at"].to_pylist()
    assert [r["covered_intervals"] for r in ask(client, name, "summary", as_of=times[1].isoformat(), **day)] == [1]


def test_partial_identities_and_numbers_at_the_ends_of_their_domain(client, name):
    schema = pa.schema([("plant", pa.string()), ("sensor", pa.int32()), ("n", pa.uint64()), ("v", pa.float64())])
    client.act(
        "create_table",
        table=name,
        index_column="n",
        index_type="uint64",
        index_granularity="9223372036854775809",
        entity_columns=["plant", "sensor"],
    )
    top = 2**64 - 1
    rows = pa.table(
        {"plant": ["p", "p", "q"], "sensor": [1, -(2**31), 1], "n": [0, top, top], "v": [0.0, 1.0, 2.0]}, schema=schema
    )
    client.append(name, rows)
    got = ask(client, name, "covered", entities=[{"plant": "p"}])
    assert [(r["sensor"], r["start"], r["end"], r["intervals"]) for r in got] == [
        (-(2**31), 2**63 + 1, None, 1),
        (1, 0, 2**63 + 1, 1),
    ]
    assert ask(client, name, "missing", entities=[{"plant": "nowhere"}]) == []
    assert len(ask(client, name, "missing", entities=[{"plant": "nowhere", "sensor": 3}])) == 1


def test_a_count_of_all_there_is(client, name):
    client.act("create_table", table=name, index_column="n", index_type="uint64", index_granularity=1)
    client.append(name, pa.table({"n": pa.array([], pa.uint64())}))
    with refused("INVALID", table=f"default.{name}"):  # nothing was stored, so there is no schema
        ask(client, name, "missing")
    client.append(name, pa.table({"n": pa.array([5], pa.uint64())}))
    (row,) = ask(client, name, "summary")
    assert (row["covered_intervals"], row["missing_intervals"]) == (1, 2**64 - 1)
    counts = [r["intervals"] for r in ask(client, name, "missing")]
    assert counts == [5, 2**64 - 6]


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        ({"kind": "gaps"}, {"field": "kind"}),
        ({"kind": None}, {"field": "kind"}),
        ({"kind": "last_window"}, {"field": "n"}),
        ({"kind": "last_window", "n": 0}, {"field": "n"}),
        ({"kind": "last_window", "n": -3}, {"field": "n"}),
        ({"kind": "last_window", "n": True}, {"field": "n"}),
        ({"kind": "missing", "n": 3}, {"field": "n"}),
        ({"kind": "missing", "start": "2013-01-02T00:00:00Z", "end": "2013-01-01T00:00:00Z"}, {"field": "start"}),
        ({"kind": "missing", "start": "2013-01-01T00:00:00Z", "end": "2013-01-01T00:00:00Z"}, {"field": "start"}),
        ({"kind": "missing", "start": "tomorrow"}, {"field": "start"}),
        ({"kind": "missing", "end": 1.5}, {"field": "end"}),
        ({"kind": "missing", "entities": [{"airport": "EWR"}]}, {"field": "entities[0].airport", "column": "airport"}),
        ({"kind": "missing", "entities": [{"origin": 5}]}, {"field": "entities[0].origin", "column": "origin"}),
        ({"kind": "missing", "entities": {"origin": "EWR"}}, {"field": "entities"}),
        ({"kind": "missing", "at": "2013-01-01T00:00:00Z"}, {"field": "at"}),
        ({"kind": "missing", "version": 1, "as_of": "2013-01-01T00:00:00Z"}, {"field": "as_of"}),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(client, year, request_, told):
    with refused("INVALID", table="default.year", **told):
        ask(client, year, **({"kind": "missing"} | request_))


def test_other_refusals(client, name, year):
    with refused("VERSION_NOT_FOUND"):
        ask(client, year, "missing", version=99)
    with refused("TABLE_NOT_FOUND"):
        ask(client, year, "missing", table_id="another")
    with refused("INVALID"):
        client.get(b'{"op":"coverage","table":"year","kind":"missing","entities":[{"origin":"EWR","origin":"JFK"}]}')
    client.act(
        "create_table",
        table=name,
        index_column="n",
        index_type="int64",
        uniqueness="none",
        columns=[{"name": "n", "type": "int64"}],
    )
    with refused("NO_GRANULARITY", table=f"default.{name}"):
        ask(client, name, "missing")
    assert client.get({"op": "latest", "table": name}).num_rows == 0
    numbers = name + "-ids"
    client.act(
        "create_table",
        table=numbers,
        index_column="n",
        index_type="int64",
        index_granularity=1,
        entity_columns=["id"],
        columns=[{"name": "n", "type": "int64"}, {"name": "id", "type": "int32"}],
    )
    with refused("INVALID", field="entities[0].id", column="id"):
        ask(client, numbers, "missing", entities=[{"id": 2**31}])
