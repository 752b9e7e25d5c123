"""The head and the state files of a table only save time: whatever becomes of them, every answer stays the same."""

import shutil
import threading

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as fl
import pytest

import service
from client import Client
from tables import assert_same, create_sites, eventually, sites

COMMITS = 104  # a state is written at a hundred; the last ones lie behind it


def answers(client: Client, table: str) -> list[pa.Table]:
    """All that a table says of its rows and series."""
    return [client.read(table), client.get({"op": "latest", "table": table})] + [
        client.get({"op": "coverage", "table": table, "kind": kind}) for kind in ("covered", "missing", "summary")
    ]


def assert_equal(got: list[pa.Table], want: list[pa.Table]) -> None:
    for g, w in zip(got, want, strict=True):
        assert_same(g, w)


def assert_consistent(client: Client, table: str) -> pa.Table:
    """Newest rows and coverage are what the rows of a scan, which needs no state, say. Returns the rows."""
    rows, latest, covered, *_ = answers(client, table)
    last = rows.group_by("site", use_threads=False).aggregate([("ts", "max")]).sort_by("site")
    assert latest["site"].to_pylist() == last["site"].to_pylist()
    assert latest["ts"].to_pylist() == last["ts_max"].to_pylist()
    assert (pc.sum(covered["intervals"]).as_py() or 0) == rows.num_rows
    return rows


def grow(client: Client, table: str, commits: int = COMMITS, first: int = 0) -> None:
    """One row for each of two sites a commit; a site has gaps of its own."""
    for n in range(first, first + commits):
        client.append(table, sites([("a", n + n // 10, float(n)), ("b", 2 * n, -float(n))]))


def states(server: service.Service, table: str) -> list:
    return sorted((server.path(table) / "_contrail/state").glob("*"))


def head(server: service.Service, table: str):
    return server.path(table) / "_contrail/head"


@pytest.fixture(scope="module")
def grown(tmp_path_factory, built):
    """A warehouse that no server runs on, with two tables that have a state of all sections and commits behind it."""
    # As many files as appends, and none merged because the machine paused between two of them.
    server = service.Service(tmp_path_factory.mktemp("grown") / "warehouse", maintenance=False)
    with server, Client(server.uri) as client:
        for table in ("mine", "theirs"):
            create_sites(client, table)
            answers(client, table)
            grow(client, table, COMMITS if table == "mine" else COMMITS + 7)
            answers(client, table)
            eventually(lambda table=table: head(server, table).exists())
    return server.warehouse


@pytest.fixture(scope="module")
def reference(grown, tmp_path_factory) -> list[pa.Table]:
    """The answers of a server that finds no derived data."""
    server = service.Service(tmp_path_factory.mktemp("reference") / "warehouse")
    shutil.copytree(grown, server.warehouse)
    without_derived_data(server)
    with server, Client(server.uri) as client:
        return answers(client, "mine")


@pytest.fixture
def server(grown, tmp_path):
    """A server, not started, on a copy of the warehouse."""
    shutil.copytree(grown, tmp_path / "warehouse")
    stopped = service.Service(tmp_path / "warehouse")
    yield stopped
    stopped.stop()


def every(change):
    """Do something to a table's head and each of its state files."""

    def damage(server):
        change(head(server, "mine"))
        every_state(change)(server)

    return damage


def every_state(change):
    def damage(server):
        for path in states(server, "mine"):
            change(path)

    return damage


def cut(path, keep: float):
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * keep)])


def flip(path, where: float):
    content = bytearray(path.read_bytes())
    content[int((len(content) - 1) * where)] ^= 0x40
    path.write_bytes(content)


def without_head(server):
    head(server, "mine").unlink(missing_ok=True)


def without_states(server):
    shutil.rmtree(server.path("mine") / "_contrail/state")


def without_derived_data(server):
    shutil.rmtree(server.path("mine") / "_contrail")


def anothers_head(server):
    shutil.copy(head(server, "theirs"), head(server, "mine"))


def anothers_head_and_states(server):
    anothers_head(server)
    for path in states(server, "theirs"):
        shutil.copy(path, server.path("mine") / "_contrail/state")


def anothers_content(server):
    """The other table's state under the name of this one's."""
    every_state(lambda path: shutil.copy(states(server, "theirs")[-1], path))(server)


def a_directory(path):
    path.unlink()
    path.mkdir()


DAMAGES = {
    "nothing": lambda server: None,
    "no head": without_head,
    "no states": without_states,
    "no derived data": without_derived_data,
    "empty": every(lambda path: path.write_bytes(b"")),
    "half": every(lambda path: cut(path, 0.5)),
    "last byte missing": every(lambda path: path.write_bytes(path.read_bytes()[:-1])),
    "longer": every(lambda path: path.write_bytes(path.read_bytes() + b"\0")),
    "first bit": every(lambda path: flip(path, 0)),
    "middle bit": every(lambda path: flip(path, 0.5)),
    "last bit": every(lambda path: flip(path, 1)),
    "half states": every_state(lambda path: cut(path, 0.5)),
    "states without an end": every_state(lambda path: cut(path, 0.99)),
    "another's head": anothers_head,
    "another's head and states": anothers_head_and_states,
    "another's content": anothers_content,
    "directories in their place": every(a_directory),
}

# After all others there is a file that leads nowhere, which the log tells.
UNNOTICED = {"nothing", "no head", "no derived data", "directories in their place"}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_while_the_server_is_down(server, reference, damage):
    DAMAGES[damage](server)
    with server, Client(server.uri) as client:
        assert_equal(answers(client, "mine"), reference)
        grow(client, "mine", 2, first=COMMITS)
        assert assert_consistent(client, "mine").num_rows == 2 * COMMITS + 4
    assert ("head ignored" in server.log.read_text()) == (damage not in UNNOTICED)


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_while_the_server_runs(server, damage):
    with server, Client(server.uri) as client:
        client.read("mine")  # it knows the head and the state, but not the series
        DAMAGES[damage](server)
        assert assert_consistent(client, "mine").num_rows == 2 * COMMITS
        grow(client, "mine", 3, first=COMMITS)
        before = answers(client, "mine")
        assert before[0].num_rows == 2 * COMMITS + 6
    with server, Client(server.uri) as client:
        assert_equal(answers(client, "mine"), before)


def test_a_restart_reads_the_head_and_a_damaged_one_is_replaced(server):
    damaged = head(server, "mine")
    damaged.write_bytes(b"no head")
    with server, Client(server.uri) as client:
        want = answers(client, "mine")  # of so many files that a state is worth its while
        eventually(lambda: damaged.read_bytes() != b"no head")
    assert server.log.read_text().count("head ignored") == 1
    with server, Client(server.uri) as client:
        assert_equal(answers(client, "mine"), want)
    assert server.log.read_text().count("head ignored") == 1


class Writer(threading.Thread):
    """Appends a row of its own site a time until the server is gone or `limit` rows are there."""

    def __init__(self, uri: str, site: str, first: int, limit: int | None = None):
        super().__init__()
        self.uri, self.site, self.next, self.limit, self.error = uri, site, first, limit, None
        self.start()

    def run(self):
        try:
            with Client(self.uri) as client:
                while self.limit is None or self.next < self.limit:
                    client.append("mine", sites([(self.site, self.next, float(self.next))]))
                    self.next += 1
        except Exception as error:
            if not isinstance(error, fl.FlightError) or error.extra_info:
                self.error = error


def test_kill_minus_nine_around_states(server):
    """Two writers, a state after every hundred rows, and a kill at whatever it does; then other damage."""
    first = {"x": 0, "y": 0}
    for damage in (None, "half", "another's content", "no states", None):
        server.start()
        writers = [Writer(server.uri, site, n) for site, n in first.items()]
        enough = sum(first.values()) + 100
        eventually(
            lambda enough=enough, writers=writers: (
                any(w.error for w in writers) or sum(w.next for w in writers) >= enough
            ),
            patience=600,
            otherwise=lambda writers=writers: [w.next for w in writers],
        )
        server.kill()
        for writer in writers:
            writer.join(120)
            assert writer.error is None, repr(writer.error)
        if damage:
            DAMAGES[damage](server)
        server.start()
        with Client(server.uri) as client:
            rows = assert_consistent(client, "mine")
        server.kill()
        for writer in writers:
            found = pc.sum(pc.equal(rows["site"], writer.site)).as_py()
            assert found - writer.next in (0, 1), "more than the append without an answer differs"
            first[writer.site] = found


def test_two_servers_on_one_warehouse(server, tmp_path):
    """Both append and write states; each answers for both, and so does a third one."""
    (tmp_path / "second").symlink_to(server.warehouse, target_is_directory=True)
    second = service.Service(tmp_path / "second")
    with server, second:
        writers = [Writer(s.uri, f"{site}{n}", 0, 80) for n, s in enumerate((server, second)) for site in "xy"]
        for writer in writers:
            writer.join(600)
            assert writer.error is None and writer.next == 80, repr(writer.error)
        with Client(server.uri) as one, Client(second.uri) as other:
            want = answers(one, "mine")
            assert_equal(answers(other, "mine"), want)
            assert assert_consistent(other, "mine").num_rows == 2 * COMMITS + 4 * 80
    assert 2 <= len(states(server, "mine")) <= 6  # of about ten that were written
    with server, Client(server.uri) as client:
        assert_equal(answers(client, "mine"), want)
    lines = (server.log.read_text() + second.log.read_text()).splitlines()
    # A state that one server knows may be gone when it is read: the other has removed it for two newer ones.
    assert not [line for line in lines if "head ignored" in line and "object does not exist" not in line]
    without_derived_data(server)
    with server, Client(server.uri) as client:
        assert_equal(answers(client, "mine"), want)
