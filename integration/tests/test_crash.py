"""kill -9 of a real server under four appending clients: every acknowledged row once, no half append, ever."""

import random
import threading
import time

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as fl

import service
from client import Client
from tables import create_sites, sites

ROUNDS, CLIENTS, ROWS = 20, 4, 25


class Appender(threading.Thread):
    """Sends one append after the other until the server is gone. What had no answer is sent again after the restart.

    Every append has an id of its own, which is also its rows' value: `sent` are the ids it ever sent, `acknowledged`
    those that the server confirmed, with the version it named.
    """

    def __init__(self, number: int, table: str):
        super().__init__()
        self.number, self.table, self.uri = number, table, None
        self.sent, self.acknowledged, self.error = [], {}, None

    def again(self, uri: str) -> "Appender":
        """The same client after the server's restart."""
        successor = Appender(self.number, self.table)
        successor.sent, successor.acknowledged, successor.uri = self.sent, self.acknowledged, uri
        successor.start()
        return successor

    def run(self):
        try:
            with Client(self.uri) as client:
                while True:
                    if not self.sent or self.sent[-1] in self.acknowledged:
                        self.sent.append(self.number + CLIENTS * len(self.sent))
                    self.append(client, self.sent[-1])
        except Exception as error:
            # A server that is gone sends no details; anything it did send is a refusal, and there is none to expect.
            if not isinstance(error, fl.FlightError) or error.extra_info:
                self.error = error

    def append(self, client: Client, number: int):
        site, first = f"site{self.number}", len(self.sent) * ROWS
        rows = sites([(site, first + row, float(number)) for row in range(ROWS)])
        report = client.append(self.table, rows, request_id=f"append-{number}")
        assert report["rows"] == ROWS
        self.acknowledged[number] = report["committed_version"]


def verify(client: Client, table: str, appenders: list[Appender]) -> int:
    """Every acknowledged append is there whole and once; of the others each is there whole and once, or not at all.

    Returns how many there are.
    """
    rows = client.read(table)
    found = rows.group_by("value").aggregate([([], "count_all")])
    assert pc.all(pc.equal(found["count_all"], ROWS)).as_py() is not False, found.to_pydict()
    present = {int(v) for v in found["value"].to_pylist()}
    acknowledged = {number for a in appenders for number in a.acknowledged}
    sent = {number for a in appenders for number in a.sent}
    assert acknowledged <= present <= sent, (acknowledged - present, present - sent)
    versions = [v for a in appenders for v in a.acknowledged.values()]
    assert len(set(versions)) == len(versions), "two appends were given one version"
    return len(present)


def test_kill_minus_nine_under_four_clients(tmp_path, built):
    chance = random.Random(20131103)
    server = service.Service(tmp_path / "warehouse")
    appenders = {name: [Appender(n, name) for n in range(CLIENTS)] for name in ("strict", "loose")}

    def acks() -> int:
        return sum(len(a.acknowledged) for group in appenders.values() for a in group)

    with server, Client(server.uri) as client:
        create_sites(client, "strict")
        create_sites(client, "loose", uniqueness="none")
    for number in range(ROUNDS):
        server.start()
        with Client(server.uri) as client:
            for name, group in appenders.items():
                verify(client, name, group)
        name = ("strict", "loose")[number % 2]
        goal = acks() + chance.randint(1, 40)
        running = appenders[name] = [a.again(server.uri) for a in appenders[name]]
        while acks() < goal:
            assert server.alive and any(a.is_alive() for a in running), [a.error for a in running]
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.01))
        server.kill()
        for appender in running:
            appender.join(120)
            assert not appender.is_alive() and appender.error is None, repr(appender.error)
    # The last server merges no files, for then versions would come between two looks at the newest one.
    with service.Service(tmp_path / "warehouse", maintenance=False) as server, Client(server.uri) as client:
        for name, group in appenders.items():
            for appender in filter(lambda a: a.sent, group):  # settle what had no answer; others are only repeated
                appender.append(client, appender.sent[-1])
            appends = verify(client, name, group)
            assert appends == sum(len(a.sent) for a in group)
            table = deltalake.DeltaTable(server.path(name))
            # Servers have merged files in versions of their own meanwhile.
            assert table.version() == client.act("describe_table", table=name)["version"] >= appends
            assert table.to_pyarrow_table().num_rows == appends * ROWS


def test_a_killed_server_leaves_nothing_that_blocks_the_next(tmp_path, built):
    """A leftover of an append that was never acknowledged must not stop the ones after it."""
    server = service.Service(tmp_path / "warehouse")
    with server, Client(server.uri) as client:
        create_sites(client, "sites")
    half = sites([("a", hour, 1.0) for hour in range(1000)])
    server.start()
    with Client(server.uri) as client:
        writer, _ = client.flight.do_put(
            fl.FlightDescriptor.for_command(b'{"op":"append","table":"sites","rows":2000}'), half.schema
        )
        writer.write_table(half)
        time.sleep(0.1)
        server.kill()
        try:
            writer.close()
        except (fl.FlightError, pa.ArrowException):
            pass
    with server, Client(server.uri) as client:
        assert client.read("sites").num_rows == 0
        assert client.append("sites", half)["committed_version"] == 1
