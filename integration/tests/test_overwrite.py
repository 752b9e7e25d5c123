"""Tables with uniqueness "overwrite": an append takes the place of the rows in the intervals it hits."""

import concurrent.futures
import json
import random

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import engines
from client import Client
from tables import assert_same, create_sites, create_weather, files, refused, sites

ENGINES = [engines.Deltalake, engines.DuckDB, engines.Polars]


def create(client: Client, name: str, rows=()) -> dict:
    return create_sites(client, name, rows, uniqueness="overwrite")


def with_temp(rows: pa.Table, values) -> pa.Table:
    """Weather with other temperatures."""
    at = rows.schema.get_field_index("temp")
    return rows.set_column(at, rows.schema.field(at), values)


def test_rows_of_the_same_interval_are_replaced(client, name):
    assert create(client, name)["uniqueness"] == "overwrite"
    first = client.append(name, sites([("a", 1, 1.0), ("a", 2, 2.0), ("b", 1, 3.0)]))
    assert (first["rows"], first["rows_replaced"]) == (3, 0)
    second = client.append(name, sites([("a", 2.5, 20.0), ("a", 3, 30.0)]))
    assert (second["rows"], second["rows_replaced"], second["committed_version"]) == (2, 1, 2)
    assert [f["rows"] for f in second["data_files"]] == [2]
    assert_same(client.read(name), sites([("a", 1, 1.0), ("a", 2.5, 20.0), ("a", 3, 30.0), ("b", 1, 3.0)]))
    assert_same(client.read(name, version=1), sites([("a", 1, 1.0), ("a", 2, 2.0), ("b", 1, 3.0)]))


def test_the_later_row_of_a_stream_wins(client, name):
    create(client, name)
    rows = [("a", 1.75, 1.0), ("b", 1, 2.0), ("a", 1, 3.0), ("b", 1.5, 4.0), ("a", 1.25, 5.0)]
    report = client.append(name, sites(rows), max_chunksize=2)
    assert (report["rows"], report["rows_replaced"]) == (2, 0)
    assert_same(client.read(name), sites([("a", 1.25, 5.0), ("b", 1.5, 4.0)]))


def test_only_the_files_that_hold_the_rows_are_rewritten(client, server, name, weather, months):
    create_weather(client, name, weather.schema, uniqueness="overwrite")
    for month in months:
        client.append(name, month)
    before = files(server.path(name) / "data")
    hit = with_temp(months[6].slice(10, 5), pa.array([99.0] * 5))
    assert client.append(name, hit)["rows_replaced"] == 5
    after = files(server.path(name) / "data")
    assert before.items() <= after.items()
    assert len(after) == len(before) + 2  # the rows, and July without the old ones
    assert client.get({"op": "files", "table": name}).num_rows == len(before) + 1
    assert client.read(name).num_rows == weather.num_rows


def test_no_engine_reads_a_row_twice(client, server, name, weather, months):
    """Half of the year is sent again with other values, in pieces that fit no month."""
    create_weather(client, name, weather.schema, uniqueness="overwrite")
    for month in months:
        client.append(name, month)
    half = weather.filter(pc.equal(weather["origin"], "JFK"))
    half = with_temp(half, pc.add(half["temp"], 1000))
    for start in range(0, half.num_rows, 5000):
        client.append(name, half.slice(start, 5000))
    want = pa.concat_tables([weather.filter(pc.not_equal(weather["origin"], "JFK")), half])
    order = [("origin", "ascending"), ("time_hour", "ascending")]
    want = want.sort_by(order)
    assert_same(client.read(name), want)
    for engine in ENGINES:
        got = engine().read(server.path(name)).sort_by(order)
        assert got.num_rows == weather.num_rows
        assert pc.sum(got["temp"]).as_py() == pytest.approx(pc.sum(want["temp"]).as_py())
        assert got.group_by(["origin", "time_hour"]).aggregate([]).num_rows == weather.num_rows


def test_history_and_the_delta_log_say_what_happened(client, server, name):
    create(client, name, [("a", 1, 1.0), ("a", 2, 2.0)])
    client.append(name, sites([("a", 2, 3.0)]))
    newest = client.get({"op": "history", "table": name}).slice(0, 1).to_pylist()[0]
    assert newest["operation"] == "append"
    assert (newest["rows_added"], newest["rows_removed"]) == (2, 2)  # the file was written anew
    assert json.loads(newest["report"])["rows_replaced"] == 1
    assert deltalake.DeltaTable(server.path(name)).history(1)[0]["operation"] == "MERGE"


def test_a_repetition_is_answered_and_not_repeated(client, name):
    create(client, name, [("a", 1, 1.0)])
    rows = sites([("a", 1, 2.0), ("a", 1, 3.0)])
    first = client.append(name, rows, request_id="once")
    client.append(name, sites([("a", 1, 4.0)]))
    assert client.append(name, rows, request_id="once") == first | {"replayed": True}
    assert client.read(name)["value"].to_pylist() == [4.0]
    with refused("REQUEST_ID_REUSED"):
        client.append(name, sites([("a", 1, 9.0), ("a", 1, 3.0)]), request_id="once")


def test_expected_version(client, name):
    create(client, name, [("a", 1, 1.0)])
    with refused("VERSION_CONFLICT", expected=0, found=1):
        client.append(name, sites([("a", 1, 2.0)]), expected_version=0)
    assert client.append(name, sites([("a", 1, 2.0)]), expected_version=1)["rows_replaced"] == 1


def test_append_only_tables_lose_no_row(client, name):
    create_sites(client, name, uniqueness="overwrite", properties={"delta.appendOnly": "true"})
    client.append(name, sites([("a", 1, 1.0)]))
    client.append(name, sites([("a", 2, 2.0)]))
    with refused("UNSUPPORTED", feature="delta.appendOnly"):
        client.append(name, sites([("a", 2, 3.0), ("a", 3, 3.0)]))
    assert client.read(name)["value"].to_pylist() == [1.0, 2.0]


def test_uniqueness_is_for_ever(client, name):
    create(client, name)
    with refused("INVALID"):
        client.act("set_properties", table=name, properties={"contrail.uniqueness": "reject"})


def test_many_clients_overwrite_the_same_rows(server, client, name):
    """The table is what the appends give one after the other, in the order of their versions."""
    create(client, name)
    table = {(site, hour): -1.0 for site in "ab" for hour in range(50)}
    client.append(name, sites([(*key, value) for key, value in table.items()]))

    def loader(number: int) -> list[tuple]:
        rng = random.Random(number)
        done = []
        with Client(server.uri) as own:
            for i in range(8):
                hours, value = rng.sample(range(50), 30), float(number * 100 + i)
                report = own.append(name, sites([("a", hour, value) for hour in hours]))
                done.append((report["committed_version"], report["rows_replaced"], hours, value))
        return done

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        done = sorted(one for some in pool.map(loader, range(8)) for one in some)
    assert [version for version, *_ in done] == list(range(2, 66))
    assert {replaced for _, replaced, *_ in done} == {30}
    for _, _, hours, value in done:
        table |= {("a", hour): value for hour in hours}
    assert_same(client.read(name), sites([(*key, value) for key, value in sorted(table.items())]))
