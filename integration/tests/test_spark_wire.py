"""What contrail_spark does at the wire, without Spark: locations, tokens, certificates, attempts."""

import json

import pyarrow as pa
import pyarrow.flight as fl
import pytest
from contrail_spark import _flight, _read
from contrail_spark._flight import Client
from contrail_spark._options import Connection, Options
from contrail_spark._read import Endpoint, PushingReader, batches, endpoints
from contrail_spark._source import ContrailDataSource
from pyspark.sql.datasource import GreaterThan, In, Not
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from tables import create_sites, sites

NOWHERE = "grpc://127.0.0.1:1"


def test_every_location_is_tried(server, client, name):
    create_sites(client, name, [("a", 0, 1.0), ("b", 0, 2.0)])
    ticket = json.dumps({"op": "scan", "table": name}).encode()
    connection = Connection(server.uri)
    assert sum(b.num_rows for b in batches(Endpoint(ticket, [NOWHERE, server.uri]), connection)) == 2
    with pytest.raises(fl.FlightUnavailableError):
        list(batches(Endpoint(ticket, [NOWHERE, NOWHERE + "2"]), connection))
    with pytest.raises(fl.FlightError, match="TABLE_NOT_FOUND"):  # another place would say the same
        list(batches(Endpoint(ticket.replace(name.encode(), b"none"), [server.uri, NOWHERE]), connection))


def test_where_a_ticket_is_redeemed():
    def places(*uris):
        endpoint = fl.FlightEndpoint(b"", [fl.Location(uri) for uri in uris])
        return _flight.locations(endpoint, Connection("grpc://here:1"))

    assert places() == ["grpc://here:1"]
    assert places("arrow-flight-reuse-connection://?", "grpc://there:2") == ["grpc://here:1", "grpc://there:2"]


def test_who_a_client_is(tmp_path):
    secret, authority = tmp_path / "token", tmp_path / "ca.pem"
    secret.write_text("abc\n")
    authority.write_bytes(b"pem")
    base = {"location": "grpc+tls://host:1", "table": "t"}
    connection = Options(base | {"Token_File": str(secret), "tls_ca": str(authority)}).connection
    assert _flight._headers(connection) == [(b"authorization", b"Bearer abc")]
    assert _flight._tls(connection) == {"tls_root_certs": b"pem"}
    assert _flight._headers(Options(base | {"token": "x"}).connection) == [(b"authorization", b"Bearer x")]
    assert "xyz" not in repr(Options(base | {"token": "xyz"}).connection)
    assert _flight._headers(Options(base).connection) == []


def test_where_the_service_is():
    for given, meant in (("host:1", "grpc://host:1"), ("grpc+tls://host:1", "grpc+tls://host:1")):
        assert Options({"location": given, "table": "t"}).connection.location == meant


def test_a_table_without_columns_cannot_be_read(server, client, name):
    client.act("create_table", table=name, index_column="ts", index_granularity="1h", index_type="timestamp")
    with pytest.raises(ValueError, match=f"the table {name} has no columns yet"):
        ContrailDataSource({"location": server.uri, "table": name}).schema()


def test_an_option_of_streams_is_none_of_a_listing(server):
    with pytest.raises(ValueError, match="a read with op latest has no option changes"):
        ContrailDataSource({"location": server.uri, "table": "t", "op": "latest", "changes": "ignore"}).schema()


def test_an_action_is_tried_again_while_the_service_is_away(server, monkeypatch):
    monkeypatch.setattr(_flight, "PAUSE", 0.001)
    real, made = _flight.Client, []

    def sometimes(connection):
        made.append(connection)
        return real(connection, NOWHERE if len(made) < 3 else server.uri)

    monkeypatch.setattr(_flight, "Client", sometimes)
    assert _flight.act_surely(Connection(server.uri), "server_info")["name"] == "contrail"
    assert len(made) == 3
    with pytest.raises(fl.FlightError, match="TABLE_NOT_FOUND"):
        _flight.act_surely(Connection(server.uri), "describe_table", table="none")
    assert len(made) == 4  # what was refused is refused again
    monkeypatch.setattr(_flight, "Client", lambda connection: made.append(connection) or real(connection, NOWHERE))
    with pytest.raises(fl.FlightUnavailableError):
        _flight.act_surely(Connection(server.uri), "server_info")
    assert len(made) == 4 + _flight.ATTEMPTS


def test_a_filter_too_long_for_a_request_stays_with_spark(server, client, name):
    create_sites(client, name, [("a", 0, 1.0), ("b", 0, 2.0)])
    schema = StructType([StructField("site", StringType()), StructField("value", DoubleType())])
    read = PushingReader(Options({"location": server.uri, "table": name}), schema)
    long = In(("site",), tuple("x" * 5_000 + str(n) for n in range(1_000)))
    assert read.pushFilters([long, GreaterThan(("value",), 1.0), Not(long)]) == [long, Not(long)]
    [part] = read.partitions()
    assert [row for batch in read.read(part) for row in batch.to_pylist()] == [{"site": "b", "value": 2.0}]


def test_a_partition_is_worth_its_task(server, client, name, monkeypatch):
    """As many partitions as the rows or the values are worth, in powers of two, and for a filter, whose rows nobody has
    counted, too."""
    create_sites(client, name)
    for site in "abcd":  # a small file is not divided
        client.append(name, sites([(site, hour, 1.0) for hour in range(3)]))
    connection = Connection(server.uri)
    scan = {"op": "scan", "table": name, "order": "unordered"}

    def count(**more) -> int:
        with Client(connection) as link:
            return len(endpoints(link, scan | more, connection))

    late = {"filter": [["value", "=", 1]]}
    assert count() == count(**late) == 1
    monkeypatch.setattr(_read, "ROWS_OF_A_PARTITION", 6)
    assert count() == count(columns=["site"]) == count(**late) == 2
    assert count(start="2026-01-01T01:00:00Z") == 2  # within the files, so nobody has counted
    assert count(entities=[{"site": "a"}]) == 1
    assert count(max_endpoints=3) == count(max_endpoints=3, **late) == 3
    monkeypatch.setattr(_read, "VALUES_OF_A_PARTITION", 9)  # of three columns
    assert (count(), count(columns=["site"])) == (4, 2)
    monkeypatch.setattr(_read, "MAX_UNCOUNTED", 2)
    assert (count(), count(**late)) == (4, 2)
    monkeypatch.setattr(_read, "MAX_PARTITIONS", 2)
    assert count() == 2


@pytest.mark.parametrize(
    ("rows", "columns", "partitions"),
    [(-1, 6, 1), (0, 6, 1), (2_800_000, 2, 1), (2_900_000, 2, 2), (10**7, 6, 4), (10**7, 60, 32), (10**12, 6, 64)],
)
def test_partitions_are_as_many_as_cores_may_be(rows, columns, partitions):
    assert _read._partitions(rows, columns) == partitions


def test_partitions_are_the_rows_of_one_version(server, client, name, monkeypatch):
    """Each row is in one of them, and what is appended once they are planned is in none."""
    create_sites(client, name)
    for site in "abcd":
        client.append(name, sites([(site, hour, float(hour)) for hour in range(3)]))
    monkeypatch.setattr(_read, "ROWS_OF_A_PARTITION", 4)
    connection = Connection(server.uri)

    class Meanwhile(Client):
        """Somebody appends behind each answer about a read."""

        def info(self, request):
            found = super().info(request)
            client.append(name, sites([("z", len(client.read(name)), 2.0)]))
            return found

    for more in ({}, {"filter": [["value", ">", 0]]}, {"start": "2026-01-01T01:00:00Z"}):
        scan = {"op": "scan", "table": name, "columns": ["site", "value"], "order": "unordered"} | more
        wanted = client.get(scan)
        with Meanwhile(connection) as link:
            parts = endpoints(link, scan, connection)
        assert len(parts) > 1 and client.get(scan).num_rows > wanted.num_rows
        got = pa.Table.from_batches([b for part in parts for b in batches(part, connection)])
        order = [("site", "ascending"), ("value", "ascending")]
        assert got.sort_by(order).equals(wanted.sort_by(order))
