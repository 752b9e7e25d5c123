"""latest: the newest row of each entity, now and before, as a scan would find it, and what is refused."""

import datetime
import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as fl
import pytest

from client import Client
from tables import assert_same, create_sites, create_weather, refused, sites


@pytest.fixture(scope="module")
def year(server, months) -> str:
    with Client(server.uri) as client:
        create_weather(client, "year", months[0].schema)
        for month in months:
            client.append("year", month)
    return "year"


def latest(client: Client, table: str, **more) -> pa.Table:
    return client.get({"op": "latest", "table": table} | more)


def newest(rows: pa.Table, at: datetime.datetime | None = None) -> pa.Table:
    """The last row of each origin in a table sorted by origin and time."""
    if at is not None:
        rows = rows.filter(pc.field("time_hour") <= at)
    keep = [
        i
        for i, o in enumerate(rows["origin"].to_pylist())
        if i + 1 == rows.num_rows or rows["origin"][i + 1].as_py() != o
    ]
    return rows.take(keep)


def test_newest_rows_of_the_year(client, year, weather):
    assert_same(latest(client, year), newest(weather))
    assert latest(client, year).schema == client.read(year, limit=0).schema
    assert_same(
        latest(client, year, entities=[{"origin": "JFK"}, {"origin": "nowhere"}]),
        newest(weather).filter(pc.field("origin") == "JFK"),
    )
    assert latest(client, year, entities=[]).num_rows == 0
    columns = ["time_hour", "temp", "origin"]
    assert_same(latest(client, year, columns=columns), newest(weather).select(columns))
    assert latest(client, year, columns=["origin", "_ingest_ts"])["_ingest_ts"].null_count == 0


@pytest.mark.parametrize(
    "text", ["2013-06-30T23:00:00", "2013-07-01T00:30:00", "2013-01-01T06:00:00", "2014-06-01T00:00:00"]
)
def test_at_a_time(client, year, weather, text):
    at = datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)
    assert_same(latest(client, year, at=text + "Z"), newest(weather, at))


def test_before_all_rows(client, year):
    assert latest(client, year, at="2013-01-01T05:59:59.999999Z").num_rows == 0
    assert latest(client, year, at="1600-01-01T00:00:00Z").num_rows == 0


def test_versions_and_late_rows(client, name):
    create_sites(client, name, [("a", 5, 1.0), ("b", 1, 2.0)])
    client.append(name, sites([("a", 4, 3.0), ("b", 9, 4.0)]))
    assert latest(client, name)["value"].to_pylist() == [1.0, 4.0]
    assert latest(client, name, version=1)["value"].to_pylist() == [1.0, 2.0]
    assert latest(client, name, version=0).num_rows == 0
    times = client.get({"op": "history", "table": name})["committed_at"].to_pylist()
    assert latest(client, name, as_of=times[1].isoformat())["value"].to_pylist() == [1.0, 2.0]


def test_ties_go_to_the_later_insertion(client, name):
    create_sites(client, name, [("a", 5, 1.0)], uniqueness="none")
    client.append(name, sites([("a", 5, 2.0), ("a", 5, 3.0)]))
    assert latest(client, name)["value"].to_pylist() == [3.0]
    old = sites([("a", 5, 4.0)])
    old = old.append_column("_ingest_ts", pa.array([datetime.datetime(2000, 1, 1)], pa.timestamp("us", tz="UTC")))
    client.append(name, old)
    assert latest(client, name)["value"].to_pylist() == [3.0]


def test_flight_info_pins_the_version(client, name):
    create_sites(client, name, [("a", 5, 1.0)])
    command = fl.FlightDescriptor.for_command(json.dumps({"op": "latest", "table": name}))
    info = client.flight.get_flight_info(command)
    assert info.schema == client.flight.get_schema(command).schema == latest(client, name).schema
    assert len(info.endpoints) == 1 and json.loads(info.app_metadata)["version"] == 1
    client.append(name, sites([("a", 6, 2.0)]))
    assert client.get(info.endpoints[0].ticket)["value"].to_pylist() == [1.0]
    assert latest(client, name)["value"].to_pylist() == [2.0]
    assert client.stats()["rows"] == 1


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        ({"columns": []}, {"field": "columns"}),
        ({"columns": ["temp", "temp"]}, {"field": "columns[1]"}),
        ({"columns": ["temperature"]}, {"field": "columns[0]", "value": "temperature"}),
        ({"entities": [{"airport": "EWR"}]}, {"field": "entities[0].airport", "column": "airport"}),
        ({"entities": [{"origin": 5}]}, {"field": "entities[0].origin", "column": "origin"}),
        ({"entities": "EWR"}, {"field": "entities"}),
        ({"at": "noon"}, {"field": "at"}),
        ({"at": 1.5}, {"field": "at"}),
        ({"start": "2013-01-01T00:00:00Z"}, {"field": "start"}),
        ({"version": -1}, {"field": "version"}),
        ({"version": 1, "as_of": "2013-01-01T00:00:00Z"}, {"field": "as_of"}),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(client, year, request_, told):
    with refused("INVALID", table="default.year", **told):
        latest(client, year, **request_)


def test_other_refusals(client, name, year):
    with refused("VERSION_NOT_FOUND"):
        latest(client, year, version=99)
    with refused("TABLE_NOT_FOUND"):
        latest(client, year, table_id="another")
    client.act("create_table", table=name, index_column="n", index_type="int64", index_granularity=1)
    with refused("INVALID", table=f"default.{name}"):
        latest(client, name)
