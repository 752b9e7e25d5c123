"""A table as a pyarrow Dataset: versions, copies, readers that leave early, and what goes wrong."""

import json
import os
import pickle
import subprocess
import sys
import threading

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.flight as fl
import pytest

import contrail_dataset
import service
import ticks
from client import Client
from contrail_dataset import ContrailDataset, files
from richtable import ROWS, SCHEMA, served
from tables import assert_same, columns, create_sites, eventually, expire, refused, sites

# -- one version --------------------------------------------------------------------------------------


def test_a_query_sees_one_version(server, client, name):
    create_sites(client, name, [("a", 0, 1.0), ("b", 0, 2.0)])
    table = ContrailDataset(server.uri, name)
    client.append(name, sites([("a", 1, 3.0)]))
    db = duckdb.connect()
    db.register("t", table)
    assert db.sql("select count(*) from t x join t y using (ts)").fetchall() == [(4,)]
    assert (table.version, table.count_rows()) == (1, 2)
    assert (table.at().version, table.at().count_rows()) == (2, 3)
    db.register("now", table.at())
    db.register("before", table.at(1))
    assert db.sql("select count(*) from now x join before y using (ts)").fetchall() == [(4,)]
    assert db.sql("select value from now anti join before using (site, ts)").fetchall() == [(3.0,)]
    assert table.at(0).count_rows() == 0
    assert ContrailDataset(server.uri, name, version=1).to_table().num_rows == 2
    moment = client.get({"op": "history", "table": name}).to_pylist()[0]["committed_at"]
    assert table.at(as_of=moment.isoformat()).version == 2
    assert repr(table) == f"<ContrailDataset default.{name} at version 1>"
    with refused("VERSION_NOT_FOUND", version=9):
        table.at(9)
    client.act("drop_table", table=name)
    create_sites(client, name, [("a", 0, 1.0)])
    with refused("TABLE_NOT_FOUND"):
        table.to_table()


def test_a_version_that_has_expired(tmp_path):
    settings = {"ticket_lifetime": "1s", "maintenance": False}
    with service.Service(tmp_path / "warehouse", **settings) as brief:
        with Client(brief.uri) as client:
            create_sites(client, "t", [("a", 0, 1.0)], properties={"contrail.snapshot-retention": "1s"})
            table = ContrailDataset(brief.uri, "t")
            client.append("t", sites([("a", 1, 2.0)]))
        brief.stop()  # a server that has given tickets holds their version for minutes
        table._link.location = brief.start().uri
        with Client(brief.uri) as client:
            expire(client, "t", table.version)
        for read in (table.to_table, table.count_rows, lambda: table.at(table.version), lambda: table.files("")):
            with refused("VERSION_EXPIRED", version=table.version):
                read()
        with pytest.raises(duckdb.Error, match="VERSION_EXPIRED"):
            duckdb.connect().from_arrow(table).fetchall()
        assert table.at().count_rows() == 2


def test_the_files_of_a_version(server, client, name):
    create_sites(client, name, [("a", 0, 1.0), ("b", 0, 2.0)])
    client.append(name, sites([("a", 1, 3.0)]))
    newest, first = (files(server.uri, name, server.warehouse, version=v) for v in (None, 1))
    db = duckdb.connect()
    assert [db.read_parquet(paths).count("*").fetchall() for paths in (newest, first)] == [[(3,)], [(2,)]]
    assert ContrailDataset(server.uri, name).files(server.warehouse) == newest


def test_a_plain_delta_table(server, client, name):
    deltalake.write_deltalake(server.path(name), ROWS.select(["n", "text", "f64"]))
    table = ContrailDataset(server.uri, name, ordered=True)
    wanted = (pc.field("n") < 300) & (pc.field("text") == "a")
    with served(client) as counted:
        assert table.to_table(filter=wanted).num_rows == ROWS.filter(wanted).num_rows
    assert counted["rows"] == ROWS.filter(wanted).num_rows
    with pytest.raises(ValueError, match="plain Delta table"):
        table.files(server.warehouse)


# -- what else a Dataset can do -----------------------------------------------------------------------


def test_heads_numbers_fragments_joins_and_copies(rich, tmp_path):
    ordered = ContrailDataset(rich._link.location, "rich", ordered=True, max_endpoints=3)
    expected = ROWS.sort_by([("site", "ascending"), ("unit", "ascending"), ("ts", "ascending")])
    assert_same(ordered.to_table(), expected)
    assert_same(ordered.head(7, columns=["n"]), expected.select(["n"]).slice(0, 7))
    assert_same(ordered.take([599, 3], columns=["n"]), expected.select(["n"]).take([599, 3]))
    assert_same(rich.take([5, 599, 0]), rich.take([5, 599, 0]))
    assert rich.head(3, filter=pc.field("site") == "b")["site"].to_pylist() == ["b"] * 3
    flat = ContrailDataset(rich._link.location, "rich", columns=["n", "site", "unit", "ts"])
    of_b = flat.filter(pc.field("site") == "b").filter(pc.field("unit") == 1)
    number = ROWS.filter((pc.field("site") == "b") & (pc.field("unit") == 1)).num_rows
    assert of_b.count_rows() == pickle.loads(pickle.dumps(of_b)).at().count_rows() == number
    assert of_b.join(of_b, "n", right_suffix="_right").count_rows() == number
    beside = ContrailDataset(rich._link.location, "rich", columns=["ts", "i8"]).sort_by("ts")
    assert of_b.sort_by("ts").join_asof(beside, "ts", [], 0).count_rows() == number
    assert of_b.sort_by("n").head(1)["n"].to_pylist() == [min(of_b.to_table()["n"].to_pylist())]
    assert sum(f.count_rows() for f in of_b.get_fragments(pc.field("n") < 300)) == of_b.count_rows(pc.field("n") < 300)
    assert of_b.partition_expression.equals(pc.scalar(True))
    with pytest.raises(NotImplementedError):
        of_b.replace_schema(SCHEMA)
    for read in (
        lambda: ds.dataset(ROWS.select(["n"])).join(flat, "n"),
        lambda: ds.Scanner.from_dataset(of_b).to_table(),
    ):
        with pytest.raises(FileNotFoundError, match="a ContrailDataset, which only its own methods read"):
            read()
    ds.write_dataset(rich, tmp_path / "copy", format="parquet")
    assert ds.dataset(tmp_path / "copy").count_rows() == ROWS.num_rows
    doubled = rich.to_table(columns={"twice": pc.field("n") * 2, "n": pc.field("n")}, filter=pc.field("u8") == 7)
    assert doubled["twice"].to_pylist() == [2 * n for n in doubled["n"].to_pylist()]
    by_place = rich.to_table(columns=["n"], filter=pc.field(3) < 10)
    assert sorted(by_place["n"].to_pylist()) == list(range(10))


def test_the_columns_of_a_dataset(server, rich):
    stamped = ContrailDataset(server.uri, "rich", columns=["n", "_ingest_ts"], compression="zstd")
    assert stamped.schema.names == ["n", "_ingest_ts"] and "_ingest_ts" not in rich.schema.names
    assert stamped.to_table(filter=pc.field("_ingest_ts").is_valid()).num_rows == ROWS.num_rows


def test_arrow_does_not_warn(rich, capfd):
    pc.sum(rich.to_table(columns=["i64"])["i64"])
    pl.scan_pyarrow_dataset(rich).filter(pl.col("f64") > 1).collect()
    assert "align" not in capfd.readouterr().err


# -- leaving early ------------------------------------------------------------------------------------


def readers() -> int:
    return sum(thread.name == "contrail-reader" for thread in threading.enumerate())


@pytest.mark.parametrize("endpoints", [1, 4])
def test_a_dropped_reader_ends_its_streams(tmp_path, endpoints):
    """On a server with room for four scans, so that one that goes on would be in the way of the next."""
    limits = {"max_concurrent_scans": 4, "queue_wait": "2m"}
    with service.Service(tmp_path / "warehouse", limits=limits) as tight, Client(tight.uri) as client:
        client.act("create_table", table="t", index_column="ts", columns=columns(ticks.SCHEMA), uniqueness="none")
        client.append("t", ticks.make(500_000), max_chunksize=65_536)
        table = ContrailDataset(tight.uri, "t", max_endpoints=endpoints)
        db = duckdb.connect()
        db.register("t", table)
        for _ in range(5):
            reader = table.scanner().to_reader()
            assert reader.read_next_batch().num_rows
            del reader
            batches = table.to_batches(filter=pc.field("price") > 0)
            assert next(batches).num_rows
            del batches
            table.scanner()
            assert len(db.sql("select * from t limit 3").fetchall()) == 3
            assert pl.scan_pyarrow_dataset(table).head(3).collect().height == 3
            with pytest.raises(ZeroDivisionError):
                for _batch in table.to_batches():
                    raise ZeroDivisionError
        assert table.to_table().num_rows == 500_000
        eventually(lambda: readers() == 0 and not contrail_dataset._running)


LEFT = {
    "reader": "reader = table.scanner().to_reader(); reader.read_next_batch()",
    "polars": "import polars; rows = polars.scan_pyarrow_dataset(table).head(3).collect()",
}


@pytest.mark.parametrize("endpoints", [1, 4])
@pytest.mark.parametrize("statement", LEFT.values(), ids=LEFT)
def test_a_process_ends_in_the_middle_of_a_read(server, many, endpoints, statement):
    """Arrow's threads and the interpreter do not wait for each other."""
    code = "import sys; from contrail_dataset import ContrailDataset\n"
    code += f"table = ContrailDataset(sys.argv[1], 'many', max_endpoints={endpoints})\n{statement}\n"
    environment = os.environ | {"PYTHONPATH": str(service.ROOT / "integration" / "python")}
    command = [sys.executable, "-c", code, server.uri]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


FORK = """
import os, pickle, sys
from contrail_dataset import ContrailDataset
table = ContrailDataset(sys.argv[1], "many")
for use in (table.count_rows, lambda: pickle.loads(pickle.dumps(table)), lambda: ContrailDataset(sys.argv[1], "many")):
    child = os.fork()
    if not child:
        try:
            use()
        except RuntimeError as error:
            os._exit(7 if "'spawn' or 'forkserver'" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert table.count_rows() == table.to_table().num_rows
"""


def test_a_forked_process_is_refused(server, many):
    """A call there would hang, and break the connection of the process that it was forked from."""
    environment = os.environ | {"PYTHONPATH": str(service.ROOT / "integration" / "python")}
    command = [sys.executable, "-c", FORK, server.uri]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=environment)
    assert done.returncode == 0, done.stderr


# -- what goes wrong ----------------------------------------------------------------------------------


def test_unknown_columns(rich):
    for wanted in ({"columns": ["F64"]}, {"filter": pc.field("F64") > 1}, {"columns": {"x": pc.field("F64")}}):
        with pytest.raises(pa.ArrowInvalid, match="default.rich has no column 'F64'; there is 'f64'"):
            rich.to_table(**wanted)
    with pytest.raises(pa.ArrowInvalid, match="no column '__filename'; its columns are ts, site"):
        rich.head(1, columns=["__filename"])
    db = duckdb.connect()
    db.register("rich", rich)
    assert db.sql("select count(F64) from rich").fetchall() == [(pc.count(ROWS["f64"]).as_py(),)]
    with pytest.raises(duckdb.BinderException, match="F640"):
        db.sql("select F640 from rich")
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="F64"):
        pl.scan_pyarrow_dataset(rich).select("F64").collect()


def test_what_is_not_there(server, client, rich, name, tmp_path):
    with refused("TABLE_NOT_FOUND"):
        ContrailDataset(server.uri, name)
    client.act("create_table", table=name, index_column="at", index_type="timestamp", uniqueness="none")
    with pytest.raises(pa.ArrowInvalid, match="has no columns yet"):
        ContrailDataset(server.uri, name)
    with refused("INVALID", field="columns[0]"):
        ContrailDataset(server.uri, "rich", columns=["nope"])
    with pytest.raises(fl.FlightUnavailableError):
        ContrailDataset("127.0.0.1:1", name)
    with pytest.raises(ValueError, match="not both"):
        ContrailDataset(server.uri, name, token="x", token_file=tmp_path / "token")


READS = {
    "arrow": lambda table: table.to_table(),
    "batches": lambda table: list(table.to_batches()),
    "duckdb": lambda table: duckdb.connect().from_arrow(table).aggregate("max(symbol), max(price)").fetchall(),
    "polars": lambda table: pl.scan_pyarrow_dataset(table).collect(),
}


@pytest.mark.parametrize("endpoints", [1, 3])
def test_a_server_that_restarts_under_a_scan(tmp_path, endpoints):
    """Every engine tells it, and none takes the rows so far for all there are."""
    with service.Service(tmp_path / "warehouse") as running:
        with Client(running.uri) as client:
            client.act("create_table", table="t", index_column="ts", columns=columns(ticks.SCHEMA), uniqueness="none")
            client.append("t", ticks.make(500_000), max_chunksize=65_536)
        for number, read in enumerate(READS.values()):
            table = ContrailDataset(running.uri, "t", max_endpoints=endpoints, ordered=number % 2 == 1)
            table._link._open = killing(running, table._link._open)
            with pytest.raises((fl.FlightUnavailableError, duckdb.Error), match="broke off after .* rows"):
                read(table)
            eventually(lambda: readers() == 0)
            running.kill()
            running.start()
        assert ContrailDataset(running.uri, "t").count_rows() == 500_000


def killing(server, opened):
    """The server dies when a stream has been opened, and no client has read it."""

    def open_and_kill(endpoint):
        reader = opened(endpoint)
        server.kill()
        return reader

    return open_and_kill


# -- where and as whom --------------------------------------------------------------------------------


def test_rows_come_from_the_first_place_that_answers(tmp_path, server, client, rich):
    """A planner names places that have the rows; one is dead."""
    places = ["grpc+tcp://127.0.0.1:1", server.uri.replace("grpc:", "grpc+tcp:")]
    with service.Service(tmp_path / "other", advertise=places) as planner, Client(planner.uri) as other:
        create_sites(other, "rich")
        endpoint = other.info(table="rich").endpoints[0]
        assert [place.uri.decode() for place in endpoint.locations] == places
        with served(client) as counted:
            moved = fl.FlightEndpoint(json.dumps({"op": "scan", "table": "rich"}), endpoint.locations)
            reader = ContrailDataset(planner.uri, "rich")._link._open(moved)
            assert reader.read_all().num_rows == ROWS.num_rows
        assert counted["rows"] == ROWS.num_rows


class Guarded(fl.FlightServerBase):
    """Answers what a Contrail server would, to those who show a token."""

    class Token(fl.ServerMiddlewareFactory):
        def start_call(self, info, headers):
            if headers.get("authorization") != ["Bearer secret"]:
                raise fl.FlightUnauthenticatedError("no token")

    def __init__(self):
        super().__init__("grpc://127.0.0.1:0", middleware={"token": self.Token()})
        self.rows = pa.table({"at": [1, 2, 3]})

    def get_flight_info(self, context, descriptor):
        told = {"table": "default.t", "table_id": "x", "version": 1}
        endpoint = fl.FlightEndpoint(b"", [])
        return fl.FlightInfo(self.rows.schema, descriptor, [endpoint], 4, -1, app_metadata=json.dumps(told).encode())

    def do_action(self, context, action):
        yield json.dumps({"result": {"index_column": "at", "entity_columns": []}}).encode()

    def do_get(self, context, ticket):
        return fl.RecordBatchStream(self.rows)


def test_options_of_the_connection_reach_it(monkeypatch):
    class Made(Exception):
        pass

    def make(location, **options):
        raise Made(location, options)

    monkeypatch.setattr(fl, "FlightClient", make)
    options = {"tls_root_certs": b"pem", "override_hostname": "db"}
    with pytest.raises(Made) as made:
        ContrailDataset("grpc+tls://10.0.0.1:8815", "t", **options)
    assert made.value.args == ("grpc+tls://10.0.0.1:8815", options)
    with pytest.raises(Made) as made:
        ContrailDataset("10.0.0.1:8815", "t")
    assert made.value.args == ("grpc://10.0.0.1:8815", {})


def test_tokens_and_short_answers(tmp_path):
    """A token goes with every call; a stream that has fewer rows than the plan promised is an error."""
    (tmp_path / "token").write_text("secret\n")
    with Guarded() as server:
        location = f"grpc://127.0.0.1:{server.port}"
        with pytest.raises(fl.FlightUnauthenticatedError):
            ContrailDataset(location, "t")
        for shown in ({"token": "secret"}, {"token_file": tmp_path / "token"}):
            table = pickle.loads(pickle.dumps(ContrailDataset(location, "t", **shown)))
            with pytest.raises(fl.FlightInternalError, match="default.t gave 3 of 4 rows"):
                table.to_table()
