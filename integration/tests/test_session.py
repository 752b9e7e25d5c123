"""The shortest programs that people copy: the README's and the protocol's whole session run as they stand."""

import re
import subprocess
import sys

import pyarrow.flight as fl

import service
from client import Client

# The protocol's example of a whole session, its last section, word for word but for the address.
SESSION = """
import json, pyarrow.flight as fl
c = fl.connect("grpc://127.0.0.1:8815")
def act(name, **body): return json.loads(list(c.do_action((name, json.dumps(body).encode())))[-1].body.to_pybytes())["result"]
act("create_table", table="weather", index_column="time_hour", index_granularity="1h", entity_columns=["origin"], index_type="timestamp")
put = {"op": "append", "table": "weather", "rows": table.num_rows}
w, r = c.do_put(fl.FlightDescriptor.for_command(json.dumps(put)), table.schema)
w.write_table(table); w.done_writing()
receipt = r.read()      # None if the append was refused ...
w.close()               # ... and this raises the error
report = json.loads(receipt.to_pybytes())
scan = {"op": "scan", "table": "weather", "entities": [{"origin": "EWR"}], "start": "2013-01-01T00:00:00Z", "end": "2013-01-08T00:00:00Z"}
print(report["committed_version"], c.do_get(fl.Ticket(json.dumps(scan))).read_all())
"""


def at(server, program: str) -> str:
    """The program with the server's own address in place of the default one."""
    assert "127.0.0.1:8815" in program
    return program.replace("127.0.0.1:8815", server.uri.removeprefix("grpc://"))


def test_the_protocols_whole_session(fresh, months, capsys):
    exec(at(fresh, SESSION), {"table": months[0]})
    assert capsys.readouterr().out.startswith("1 pyarrow.Table\norigin: string")
    with Client(fresh.uri) as client:
        week = client.read("weather", entities=[{"origin": "EWR"}], end="2013-01-08T00:00:00Z")
    assert set(week["origin"].to_pylist()) == {"EWR"}
    assert week.num_rows == 7 * 24 - 6 - 1  # the year's data begins at 06:00, and one hour is missing


def test_the_readmes_python_runs(fresh):
    blocks = re.findall(r"```python\n(.*?)```", (service.ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        run = subprocess.run([sys.executable, "-c", at(fresh, block)], cwd=service.ROOT, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        assert "EWR" in run.stdout
    with Client(fresh.uri) as client:
        assert [t["table"] for t in client.act("list_tables")["tables"]] == ["default.weather_py"]


def test_the_readmes_programs_do_not_meet():
    """Who runs the commands and then the Python, in one warehouse, meets no table that exists already."""
    text = (service.ROOT / "README.md").read_text()
    made = re.findall(r"flight-admin create (\w+)", text) + re.findall(r'new = {"table": "(\w+)"', text)
    assert len(made) == 2
    assert len(set(made)) == 2


def test_a_proxy_is_not_asked_for_a_server_on_loopback(fresh, monkeypatch):
    """What `service` sets for all programs here; the other clients' libraries do so by themselves."""
    for variable in ("grpc_proxy", "http_proxy", "https_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:1")
    with Client(fresh.uri) as client:
        assert client.act("server_info")["name"] == "contrail"


def test_listing_flights_needs_no_table(fresh):
    with fl.connect(fresh.uri) as connection:
        connection.wait_for_available(timeout=120)
        assert list(connection.list_flights()) == []
