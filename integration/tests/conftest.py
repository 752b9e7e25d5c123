"""Fixtures: the server is built once, and each test module has a server and a warehouse of its own."""

import re

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import engines
import service
import spark_session
from client import Client
from contrail_dataset import ContrailDataset
from interop import Stored
from richtable import lay, lay_ticks

if not spark_session.offered():
    collect_ignore = [
        "test_interop_spark.py",
        "test_spark.py",
        *(f"test_spark_{n}.py" for n in ("docs", "stream", "write")),
    ]


def pytest_report_header():
    return "Spark: " + ("tested" if spark_session.offered() else "left out, Java or Maven is missing here")


@pytest.fixture(scope="session", autouse=True)
def built():
    service.build()


@pytest.fixture(scope="module")
def server(tmp_path_factory, built):
    with service.Service(tmp_path_factory.mktemp("server") / "warehouse") as running:
        yield running
        assert running.alive, running.log.read_text()[-4096:]


@pytest.fixture
def fresh(tmp_path, built):
    """A server over an empty warehouse, for one test alone."""
    with service.Service(tmp_path / "warehouse") as running:
        yield running


@pytest.fixture
def client(server):
    with Client(server.uri) as connection:
        yield connection


@pytest.fixture
def name(request) -> str:
    """A table name of the test's own."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", request.node.name)[:100].strip("-")


@pytest.fixture(scope="module")
def rich(server) -> ContrailDataset:
    """A table of every type. No test changes it."""
    with Client(server.uri) as client:
        lay(client, "rich")
    return ContrailDataset(server.uri, "rich", max_endpoints=3)


@pytest.fixture(scope="module")
def many(server) -> str:
    """A table of ticks. No test changes it."""
    with Client(server.uri) as client:
        lay_ticks(client, "many")
    return "many"


@pytest.fixture(scope="session")
def spark(tmp_path_factory) -> engines.Spark:
    """The one session of all tests, for its start takes longer than they do; it knows the format contrail."""
    import contrail_spark

    engine = engines.Spark(spark_session.build_wheel(tmp_path_factory.mktemp("wheel")))
    contrail_spark.register(engine.session)
    yield engine
    engine.stop()


@pytest.fixture(scope="session")
def weather() -> pa.Table:
    """A year of hourly weather at three airports, sorted as a scan gives it."""
    return pq.read_table(service.ROOT / "integration/testdata/weather.parquet").sort_by(
        [("origin", "ascending"), ("time_hour", "ascending")]
    )


@pytest.fixture(scope="session")
def months(weather) -> list[pa.Table]:
    """The year cut by calendar month in UTC."""
    month = pc.month(weather["time_hour"])
    return [weather.filter(pc.equal(month, number)) for number in range(1, 13)]


@pytest.fixture(scope="session")
def stored(tmp_path_factory, built, weather, months) -> Stored:
    """Tables for other engines to open; nobody changes them."""
    with service.Service(tmp_path_factory.mktemp("stored") / "warehouse") as server:
        yield Stored(server, weather, months)
