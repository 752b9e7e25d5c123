"""Scans: columns, entities, ranges, versions, profiles, endpoints, and the schemas that must agree."""

import base64
import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as fl
import pytest

from client import Client
from tables import SITES, assert_same, create_sites, create_weather, refused, sites

ROWS = [(site, hour, hour / 2) for site in ("a", "b", "c") for hour in range(48)]


@pytest.fixture(scope="module")
def table(server) -> str:
    """Three sites, 48 hours, in two appends: the even hours, then the odd ones. No test changes it."""
    with Client(server.uri) as client:
        create_sites(client, "sites")
        client.append("sites", sites([r for r in ROWS if r[1] % 2 == 0]))
        client.append("sites", sites([r for r in ROWS if r[1] % 2 == 1]))
    return "sites"


def test_a_scan_is_ordered_by_entity_and_index_over_all_files(client, table):
    assert_same(client.read(table), sites(ROWS))


@pytest.mark.parametrize(
    "start, end, hours",
    [
        ("2026-01-01T05:00:00Z", "2026-01-01T08:00:00Z", [5, 6, 7]),
        ("2026-01-01T05:00:00.000001Z", "2026-01-01T08:00:00.000001Z", [6, 7, 8]),
        ("2026-01-01T04:59:59.9999999Z", "2026-01-01T08:00:00.0000001Z", [5, 6, 7, 8]),
        ("2026-01-01T00:00:00-05:00", "2026-01-01T13:30:00+05:30", [5, 6, 7]),
        (1_767_225_600_000_000, 1_767_225_600_000_001, [0]),
        ("1767225600000000", "1767225600000001", [0]),
        (None, "2026-01-01T02:00:00Z", [0, 1]),
        ("2026-01-02T22:00:00Z", None, [46, 47]),
        ("0001-01-01T00:00:00Z", "2026-01-01T01:00:00Z", [0]),
        ("9999-01-01T00:00:00Z", None, []),
        (-(2**63), 2**63 - 1, list(range(48))),
    ],
)
def test_ranges_are_half_open_and_exact(client, table, start, end, hours):
    got = client.read(table, entities=[{"site": "b"}], start=start, end=end)
    assert_same(got, sites([("b", h, h / 2) for h in hours]))


@pytest.mark.parametrize(
    "entities, found",
    [
        ([], ""),
        ([{"site": "b"}], "b"),
        ([{"site": "c"}, {"site": "a"}], "ac"),
        ([{"site": "nobody"}], ""),
        ([{}], "abc"),
    ],
)
def test_entities(client, table, entities, found):
    assert client.read(table, entities=entities)["site"].unique().to_pylist() == list(found)


def test_a_partial_identity_means_every_entity_that_agrees(client, name):
    schema = pa.schema([("plant", pa.string()), ("line", pa.int32()), ("n", pa.int64()), ("v", pa.string())])
    client.act(
        "create_table",
        table=name,
        index_column="n",
        index_granularity=10,
        entity_columns=["plant", "line"],
        columns=[{"name": f.name, "type": str(f.type)} for f in schema],
    )
    rows = [(p, i, n * 10, f"{p}{i}") for p in ("x", "x|1", "y") for i in (-1, 5) for n in range(3)]
    client.append(name, pa.table([list(c) for c in zip(*rows)], schema=schema))

    def read(*entities):
        return sorted(set(client.read(name, entities=list(entities))["v"].to_pylist()))

    assert read({"plant": "x"}) == ["x-1", "x5"]
    assert read({"line": -1}) == ["x-1", "x|1-1", "y-1"]
    assert read({"plant": "y"}, {"plant": "x", "line": 5}) == ["x5", "y-1", "y5"]
    assert read({"line": "5", "plant": "y"}) == ["y5"]  # an integer as decimal text


def test_columns_come_in_the_order_asked_for(client, table):
    got = client.read(table, columns=["value", "ts"], end="2026-01-01T02:00:00Z", entities=[{"site": "a"}])
    assert got.column_names == ["value", "ts"] and got["value"].to_pylist() == [0.0, 0.5]


@pytest.mark.parametrize(
    "request_", [{}, {"columns": ["value"]}, {"profile": "exact"}, {"columns": ["_ingest_ts", "site"]}]
)
def test_the_four_schemas_agree(client, table, request_):
    descriptor = fl.FlightDescriptor.for_command(json.dumps({"op": "scan", "table": table} | request_))
    schemas = [
        client.flight.get_schema(descriptor).schema,
        client.flight.get_flight_info(descriptor).schema,
        client.read(table, **request_).schema,
        client.read(table, entities=[], **request_).schema,
        client.read(table, version=0, **request_).schema,
    ]
    for schema in schemas[1:]:
        assert schema.equals(schemas[0], check_metadata=True)


def test_a_path_names_the_whole_table(client, table):
    for path in ([table], ["default", table]):
        info = client.flight.get_flight_info(fl.FlightDescriptor.for_path(*path))
        assert info.schema == SITES
        assert client.get(info.endpoints[0].ticket).num_rows == len(ROWS)


def test_flight_info_pins_the_version(client, name):
    made = create_sites(client, name, ROWS[:4])
    info = client.info(table=name)
    assert json.loads(info.app_metadata) | {"table": f"default.{name}", "table_id": made["table_id"], "version": 1} == (
        json.loads(info.app_metadata)
    )
    assert len(json.loads(info.app_metadata)["schema_id"]) == 16
    assert info.total_records in (4, -1) and info.ordered
    (endpoint,) = info.endpoints
    assert endpoint.locations == [] and endpoint.expiration_time is not None
    client.append(name, sites(ROWS[4:9]))
    assert client.get(endpoint.ticket).num_rows == 4
    assert client.stats()["version"] == 1
    assert client.read(name).num_rows == 9


def test_many_endpoints_hold_every_row_once_in_order(client, weather, months, name):
    create_weather(client, name, weather.schema)
    for month in months:
        client.append(name, month)
    info = client.info(table=name, max_endpoints=4)
    assert 1 < len(info.endpoints) <= 4
    parts = [client.get(endpoint.ticket) for endpoint in info.endpoints]
    assert all(part.num_rows for part in parts)
    whole = pa.concat_tables(parts)
    assert_same(
        whole if info.ordered else whole.sort_by([("origin", "ascending"), ("time_hour", "ascending")]), weather
    )
    assert len(client.info(table=name).endpoints) == 1


def test_batch_rows_is_an_upper_bound(client, table):
    reader = client.flight.do_get(fl.Ticket(json.dumps({"op": "scan", "table": table, "batch_rows": 7})))
    sizes = [chunk.data.num_rows for chunk in reader]
    assert sum(sizes) == len(ROWS) and max(sizes) <= 7


def test_profiles(client, name):
    """`exact` gives the declared types back, `compat` plain ones; both give the same values."""
    text = pa.array(["x", None, "", "longer than twelve bytes"])
    columns = {
        "ts": pa.array(range(4), pa.timestamp("ms")),
        "ls": text.cast(pa.large_string()),
        "sv": text.cast(pa.string_view()),
        "d": text.dictionary_encode(),
        "lb": text.cast(pa.large_binary()),
        "bv": text.cast(pa.binary()).cast(pa.binary_view()),
    }
    schema = pa.schema([pa.field(n, c.type, nullable=n != "ts") for n, c in columns.items()])
    rows = pa.table(columns, schema=schema)
    ipc = base64.b64encode(schema.serialize().to_pybytes()).decode()
    client.act("create_table", table=name, index_column="ts", index_granularity="1ms", schema_ipc=ipc)
    client.append(name, rows)
    exact, compat = client.read(name, profile="exact"), client.read(name)
    assert exact.schema == schema
    assert [str(t) for t in compat.schema.types] == ["timestamp[ms]", "string", "string", "string", "binary", "binary"]
    assert exact.to_pydict() == compat.to_pydict() == rows.to_pydict()


def test_an_empty_table_scans_to_no_row(client, name):
    create_sites(client, name)
    got = client.read(name)
    assert (got.num_rows, got.schema) == (0, SITES)
    info = client.info(table=name)
    assert sum(client.get(e.ticket).num_rows for e in info.endpoints) == 0


def test_a_scan_goes_on_while_appends_commit(client, server, name):
    create_sites(client, name, ROWS)
    reader = client.flight.do_get(fl.Ticket(json.dumps({"op": "scan", "table": name, "batch_rows": 1})))
    first = reader.read_chunk().data
    with Client(server.uri) as other:
        for day in range(5):
            other.append(name, sites([(s, 48 + h + 3 * day, 1.0) for s in "abc" for h in range(3)]))
    rest = [chunk.data for chunk in reader]
    assert_same(pa.Table.from_batches([first, *rest]), sites(ROWS))


def test_a_scan_left_in_the_middle_frees_the_server(client, server, weather, name):
    create_weather(client, name, weather.schema)
    client.append(name, weather)
    for _ in range(50):
        reader = client.flight.do_get(fl.Ticket(json.dumps({"op": "scan", "table": name, "batch_rows": 100})))
        reader.read_chunk()
        reader.cancel()
    assert client.read(name).num_rows == weather.num_rows


def test_uniqueness_none_keeps_every_row(client, name):
    create_sites(client, name, uniqueness="none")
    client.append(name, sites([("a", 1, 1.0), ("a", 1.25, 2.0)]))
    client.append(name, sites([("a", 1, 3.0)]))
    got = client.read(name)
    assert got["value"].to_pylist() in ([1.0, 3.0, 2.0], [3.0, 1.0, 2.0])
    assert pc.is_in(pa.array([1.0, 2.0, 3.0]), got["value"]).to_pylist() == [True] * 3


def test_a_table_without_entity_columns_is_one_series(client, name):
    create_sites(client, name, entity_columns=[])
    client.append(name, sites([("b", 2, 2.0), ("a", 1, 1.0)]))
    assert client.read(name)["site"].to_pylist() == ["a", "b"]
    with refused("INTERVAL_OVERLAP", conflict_count=1, entity={}):
        client.append(name, sites([("c", 1, 1.0)]))
