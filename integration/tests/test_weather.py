"""The year of weather, month by month: what is appended comes back, by airport, by time and by version."""

import datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as fl
import pytest

from client import Client, fields
from tables import assert_same, columns, create_weather, files, refused, untouched


@pytest.fixture(scope="module")
def reports(server, months) -> list[dict]:
    """The reports of twelve appends to the table `weather`, which no test of this module changes."""
    with Client(server.uri) as client:
        create_weather(client, "weather", months[0].schema)
        return [client.append("weather", month, request_id=f"weather-2013-{i:02}") for i, month in enumerate(months, 1)]


def test_each_append_is_one_version_and_reports_its_files(server, reports, months):
    for number, (report, month) in enumerate(zip(reports, months), 1):
        assert (report["starting_version"], report["committed_version"]) == (number - 1, number)
        assert report["rows"] == month.num_rows == sum(f["rows"] for f in report["data_files"])
        assert (report["request_id"], report["replayed"]) == (f"weather-2013-{number:02}", False)
        assert (report["compression"], report["rows_replaced"]) == ("auto", 0)
        for file in report["data_files"]:
            assert (server.path("weather") / file["path"]).stat().st_size == file["bytes"]


def test_the_year_comes_back_to_the_bit(client, reports, weather):
    got = client.read("weather")
    assert got.schema == weather.schema.remove_metadata()
    assert_same(got, weather)


def test_one_airport_for_one_week(client, reports, weather):
    got = client.read(
        "weather",
        columns=["time_hour", "temp", "origin"],
        entities=[{"origin": "JFK"}],
        start="2013-07-01T00:00:00Z",
        end="2013-07-07T20:00:00-04:00",
    )
    july = datetime.datetime(2013, 7, 1, tzinfo=datetime.UTC)
    hour = pc.field("time_hour")
    week = weather.filter((pc.field("origin") == "JFK") & (hour >= july) & (hour < july + datetime.timedelta(days=7)))
    assert week.num_rows == 168
    assert_same(got, week.select(["time_hour", "temp", "origin"]))


def test_every_version_stays_readable(client, reports, months):
    rows = 0
    for version, month in enumerate([months[0].slice(0, 0), *months]):
        rows += month.num_rows
        assert client.read("weather", version=version).num_rows == rows
    with refused("VERSION_NOT_FOUND", version=13, current=12, table="default.weather"):
        client.read("weather", version=13)


def test_describe_tells_what_was_created_and_appended(client, reports, weather, months):
    told = client.act("describe_table", table="weather")
    assert (
        told
        | {
            "table": "default.weather",
            "version": 12,
            "format_version": "0.3.0",
            "index_column": "time_hour",
            "index_type": "timestamp",
            "index_granularity": "1h",
            "timezone": None,
            "entity_columns": ["origin"],
            "uniqueness": "reject",
            "ingest_time_column": "_ingest_ts",
            "columns": columns(weather.schema),
            "rows": 26_115,
            "files": sum(len(r["data_files"]) for r in reports),
            "bytes": sum(f["bytes"] for r in reports for f in r["data_files"]),
            "entities": 3,
            "index_min": "2013-01-01T06:00:00Z",
            "index_max": "2013-12-30T23:00:00Z",
            "properties": {},
        }
        == told
    )
    january = client.act("describe_table", table="weather", version=1)
    assert (january["version"], january["rows"], january["table_id"]) == (1, months[0].num_rows, told["table_id"])


def test_a_month_sent_twice_is_refused_whole(server, client, reports, months):
    with (
        untouched(server),
        refused(
            "INTERVAL_OVERLAP",
            table="default.weather",
            conflict_count=months[6].num_rows,
            entity={"origin": "EWR"},
            interval="[2013-07-01T00:00:00Z, 2013-07-01T01:00:00Z)",
            version=12,
        ),
    ):
        client.append("weather", months[6])


def test_a_known_request_id_is_answered_with_its_first_report(server, client, reports, months):
    with untouched(server):
        again = client.append("weather", months[3], request_id="weather-2013-04", max_chunksize=100)
        assert again == reports[3] | {"replayed": True}
    with untouched(server), refused("REQUEST_ID_REUSED", request_id="weather-2013-04", version=4):
        client.append("weather", months[4], request_id="weather-2013-04")


def test_a_stale_expected_version_is_a_conflict(server, client, reports, months):
    with untouched(server), refused("VERSION_CONFLICT", expected=3, found=12):
        client.append("weather", months[3], expected_version=3)


def test_one_airport_for_one_week_reads_two_row_groups_at_most(client, reports):
    got = client.read("weather", entities=[{"origin": "EWR"}], start="2013-03-28T00:00:00Z", end="2013-04-04T00:00:00Z")
    stats = client.stats()
    assert (stats["version"], stats["rows"]) == (12, got.num_rows)
    assert stats["files"] == 2 and stats["files"] + stats["files_skipped"] == 12
    assert stats["row_groups"] <= 2
    assert stats["bytes"] > 0 and stats["queue_ms"] >= 0


def test_local_time_as_the_index_is_refused_where_the_hour_repeats(server, client, weather, name):
    """On 2013-11-03 New York's clocks showed 01:00 twice: with local time as index that is one interval, two rows."""
    zone = pc.local_timestamp(weather["time_hour"].cast(pa.timestamp("us", tz="America/New_York")))
    local = weather.set_column(1, "time_hour", zone)
    create_weather(client, name, local.schema, timezone="America/New_York")
    day = local.filter((pc.field("month") == 11) & (pc.field("day") == 3))
    hours = day.filter(pc.field("origin") == "EWR")["time_hour"].to_pylist()
    rows = [row for row, hour in enumerate(hours) if hour.hour == 1]
    assert len(rows) == 2
    with (
        untouched(server),
        refused(
            "DUPLICATE_INTERVAL",
            entity={"origin": "EWR"},
            interval="[2013-11-03T01:00:00Z, 2013-11-03T02:00:00Z)",
            rows=rows,
        ),
    ):
        client.append(name, day)


def test_a_table_without_a_schema_adopts_the_first_appends(client, months, name):
    definition = {"index_column": "time_hour", "index_granularity": "1h", "entity_columns": ["origin"]}
    made = client.act("create_table", table=name, index_type="timestamp", **definition)
    assert made["columns"] is None and made["schema_ipc"] is None
    assert client.append(name, months[0].slice(0, 0))["committed_version"] == 0
    assert client.act("describe_table", table=name)["columns"] is None
    client.append(name, months[0].select(["temp", "time_hour", "origin"]))
    assert [c["name"] for c in client.act("describe_table", table=name)["columns"]] == ["temp", "time_hour", "origin"]
    assert_same(client.read(name), months[0].select(["temp", "time_hour", "origin"]))


def test_rows_may_come_in_any_order_and_columns_too(client, weather, name):
    create_weather(client, name, weather.schema)
    shuffled = weather.take([(i * 7919) % weather.num_rows for i in range(weather.num_rows)])
    client.append(name, shuffled.select(sorted(shuffled.column_names)), max_chunksize=1000)
    assert_same(client.read(name), weather)


def test_pandas_frames_append_twice(client, months, name):
    """pandas adds schema metadata that changes with the row count; it must not make a second append a mismatch."""
    create_weather(client, name, months[0].schema)
    for month in months[:2]:
        frame = month.to_pandas()
        client.append(name, type(month).from_pandas(frame))
    assert client.read(name).num_rows == months[0].num_rows + months[1].num_rows


def test_the_insertion_time_is_there_when_it_is_named(client, reports, weather):
    got = client.read("weather", columns=["_ingest_ts", "origin"])
    assert got.schema.field("_ingest_ts").type == weather.schema.field("time_hour").type
    assert got["_ingest_ts"].null_count == 0
    assert len(got["_ingest_ts"].unique()) == 12


def test_dropping_frees_the_name_and_a_ticket_for_the_old_table_is_told_so(server, client, months, name):
    create_weather(client, name, months[0].schema)
    client.append(name, months[0])
    ticket = client.info(table=name).endpoints[0].ticket
    before = files(server.warehouse)
    dry = client.act("drop_table", table=name, dry_run=True)
    assert files(server.warehouse) == before
    dropped = client.act("drop_table", table=name)
    assert dropped == dry | {"dry_run": False}
    assert (dropped["table"], dropped["version"]) == (f"default.{name}", 1)
    for call in (lambda: client.read(name), lambda: client.get(ticket), lambda: client.act("drop_table", table=name)):
        with refused("TABLE_NOT_FOUND", table=f"default.{name}"):
            call()
    create_weather(client, name, months[0].schema)
    with refused("TABLE_NOT_FOUND", table=f"default.{name}"):
        client.get(ticket)
    assert client.read(name).num_rows == 0


def test_two_creates_of_one_name_leave_one_table(client, months, name):
    create_weather(client, name, months[0].schema)
    with refused("TABLE_EXISTS", table=f"default.{name}"):
        create_weather(client, name, months[0].schema)


def test_a_stopped_server_has_lost_nothing(fresh, months):
    with Client(fresh.uri) as client:
        create_weather(client, "weather", months[0].schema)
        client.append("weather", months[0])
        before = client.act("describe_table", table="weather")
    assert fresh.stop() == 0
    with fresh, Client(fresh.uri) as client:
        assert client.act("describe_table", table="weather") == before
        assert_same(client.read("weather"), months[0])


def test_get_schema_drops_extra_info_but_not_the_token(client):
    with pytest.raises(pa.ArrowKeyError, match='^TABLE_NOT_FOUND table="default.nobody"'):
        client.flight.get_schema(fl.FlightDescriptor.for_path("nobody"))
    with pytest.raises(fl.FlightError) as caught:
        client.flight.get_flight_info(fl.FlightDescriptor.for_path("nobody"))
    assert fields(caught.value)["token"] == "TABLE_NOT_FOUND"
