"""Append streams that end badly, or hold what no stream should: nothing of them is left, and the server lives on."""

import gc
import json
import struct
import subprocess
import sys
import threading
import time

import pyarrow as pa
import pyarrow.flight as fl
import pytest

import raw
import service
from client import Client, fields
from tables import SITES, assert_same, create_sites, refused, sites, untouched

ROWS = sites([("a", hour, hour * 1.0) for hour in range(6)])
BATCH = ROWS.combine_chunks().to_batches()[0]


@pytest.fixture
def table(client, name) -> str:
    create_sites(client, name)
    return name


def put(client: Client, command: dict):
    return client.flight.do_put(fl.FlightDescriptor.for_command(json.dumps({"op": "append"} | command)), ROWS.schema)


@pytest.mark.parametrize("announced", [0, 5, 7])
def test_rows_that_were_not_announced(server, client, table, announced):
    with untouched(server), refused("STREAM_INCOMPLETE", expected_rows=announced, rows=6, table=f"default.{table}"):
        client.append(table, ROWS, rows=announced)


def test_an_announced_stream_without_a_row(server, client, table):
    with untouched(server), refused("STREAM_INCOMPLETE", expected_rows=6, rows=0):
        client.append(table, ROWS.slice(0, 0), rows=6)


def test_a_marker_ends_the_stream(client, table):
    writer, reader = put(client, {"table": table, "end": "marker"})
    writer.write_table(ROWS)
    writer.write_metadata(b'{"commit":true,"rows":6}')
    writer.done_writing()
    assert reader.read() is not None
    writer.close()
    assert_same(client.read(table), ROWS)


@pytest.mark.parametrize(
    "marker", [None, b'{"commit":true,"rows":5}', b'{"commit":false,"rows":6}', b'{"rows":6}', b"done"]
)
def test_a_marker_that_is_none(server, client, table, marker):
    with untouched(server):
        writer, _ = put(client, {"table": table, "end": "marker"})
        writer.write_table(ROWS)
        if marker:
            writer.write_metadata(marker)
        with pytest.raises(fl.FlightError) as caught:
            writer.close()
        told = fields(caught.value)
        assert told["token"] in ("STREAM_INCOMPLETE", "INVALID"), told
        if marker is None:
            assert (told["token"], told["expected_rows"], told["rows"]) == ("STREAM_INCOMPLETE", None, 6)


@pytest.mark.parametrize("command", [{"rows": 12}, {"end": "marker"}])
def test_a_writer_left_by_an_exception(server, client, table, command):
    """pyarrow half-closes then, as at a normal end; only the announced end tells the server."""
    with untouched(server):
        writer, _ = put(client, {"table": table} | command)
        with pytest.raises((ZeroDivisionError, fl.FlightError)), writer:
            writer.write_table(ROWS)
            raise ZeroDivisionError
    assert client.read(table).num_rows == 0


@pytest.mark.parametrize("command", [{"rows": 12}, {"end": "marker"}])
def test_a_writer_that_is_dropped(server, client, table, command):
    with untouched(server):
        writer, reader = put(client, {"table": table} | command)
        writer.write_table(ROWS)
        del writer, reader
        gc.collect()
        time.sleep(0.2)
    assert client.read(table).num_rows == 0


KILLED = """
import json, sys, time, pyarrow as pa, pyarrow.flight as fl
uri, table = sys.argv[1:]
start = 1_767_225_600_000_000
rows = pa.table({"site": ["a"] * 1000, "ts": pa.array([start + i * 3_600_000_000 for i in range(1000)],
                 pa.timestamp("us", tz="UTC")), "value": [1.0] * 1000})
put = {"op": "append", "table": table}
writer, _ = fl.connect(uri).do_put(fl.FlightDescriptor.for_command(json.dumps(put)), rows.schema)
writer.write_table(rows)
print("written", flush=True)
time.sleep(60)
"""


def test_a_client_killed_while_writing(server, client, table):
    with untouched(server):
        command = [sys.executable, "-c", KILLED, server.uri, table]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"written\n"
            process.kill()
        time.sleep(0.2)
    assert client.read(table).num_rows == 0


def test_a_stream_cut_in_the_middle(server, client, table):
    header, body = raw.batch(BATCH)
    release = threading.Event()

    def messages():
        yield raw.schema(ROWS.schema, {"op": "append", "table": table})
        yield raw.message(header, body)
        release.wait(30)

    with untouched(server), raw.Put(server.uri) as connection:
        call = connection.start(messages())
        time.sleep(0.2)
        call.cancel()
        release.set()
    assert client.read(table).num_rows == 0


def test_a_message_over_the_limit(server, client, table):
    rows = pa.table({"site": ["x" * (65 << 20)], "ts": ROWS["ts"].slice(0, 1), "value": [1.0]}, schema=ROWS.schema)
    with untouched(server), refused("MESSAGE_TOO_LARGE", limit_bytes=64 << 20, table=f"default.{table}"):
        client.append(table, rows)
    assert client.append(table, ROWS)["rows"] == 6


def test_empty_batches_and_bare_metadata_between_rows_are_nothing(client, table):
    writer, reader = put(client, {"table": table, "rows": 6})
    writer.write_metadata(b"hello")
    for row in range(6):
        writer.write_table(ROWS.slice(row, 1))
        writer.write_batch(BATCH.slice(0, 0))
        writer.write_metadata(b'{"commit":true}')
    writer.done_writing()
    assert reader.read() is not None
    writer.close()
    assert_same(client.read(table), ROWS)


def test_a_stream_of_empty_batches_alone_changes_nothing(server, client, table):
    with untouched(server):
        report = client.append(table, ROWS.slice(0, 0))
        assert (report["rows"], report["data_files"], report["committed_version"]) == (0, [], 0)


HEADER, BODY = raw.batch(BATCH)


def streams(table: str) -> dict:
    """Hostile streams: name → messages, tokens that may answer it."""
    command = {"op": "append", "table": table}
    opening = raw.schema(ROWS.schema, command)
    other = raw.schema(pa.schema([("x", pa.int32())]))
    rows = raw.message(HEADER, BODY)
    mismatch = {"INVALID", "SCHEMA_MISMATCH"}
    return {
        "schema changes": ([opening, rows, other, rows], mismatch),
        "schema again": ([opening, rows, raw.schema(ROWS.schema), rows], mismatch),
        "rows before a schema": ([raw.message(HEADER, BODY, command=command), rows], {"INVALID"}),
        "no descriptor": ([raw.schema(ROWS.schema), rows], {"INVALID"}),
        "no message": ([], {"INVALID"}),
        "descriptor alone": ([raw.message(command=command)], {"INVALID"}),
        "garbage for a header": ([opening, raw.message(b"\xff" * 64, BODY)], {"INVALID"}),
        "garbage for a schema": ([raw.message(b"\x10\0\0\0" * 16, command=command)], {"INVALID"}),
        "body cut short": ([opening, raw.message(HEADER, BODY[:-16])], {"INVALID"}),
        "body missing": ([opening, raw.message(HEADER)], {"INVALID"}),
        "no protobuf": ([b"\xff\xff\xff\xff"], {"INVALID", "StatusCode.INTERNAL"}),
    }


@pytest.mark.parametrize("case", streams(""))
def test_hostile_streams(server, client, table, case):
    messages, tokens = streams(table)[case]
    with untouched(server), raw.Put(server.uri) as connection:
        token, message, results = connection.outcome(messages)
        assert token in tokens, (token, message, results)
        assert results == []
        if token in ("INVALID", "SCHEMA_MISMATCH"):
            assert message.startswith(token)


def test_a_million_columns(server, client, name):
    """Refused on the first message, by its size, before a million columns are made of it."""
    client.act("create_table", table=name, index_column="ts", index_type="timestamp", index_granularity="1s")
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), *((f"c{i}", pa.int8()) for i in range(1_000_000))])
    command = fl.FlightDescriptor.for_command(json.dumps({"op": "append", "table": name}))
    with untouched(server), refused("INVALID") as caught:
        writer, _ = client.flight.do_put(command, schema)
        writer.done_writing()
        writer.close()
    assert "too many columns" in str(caught.value)


@pytest.mark.parametrize("change, compression", [("claiming", "lz4"), ("claiming", "zstd"), ("stretching", None)])
@pytest.mark.parametrize("claimed", [2**40, 2**62, 2**31, -5])
@pytest.mark.parametrize("position", ["first", "second"])
def test_buffers_that_claim_more_than_there_is(server, client, table, change, compression, claimed, position):
    header, body = raw.batch(BATCH, compression)
    lying = getattr(raw, change)(header, body, claimed)
    assert lying != (header, body)
    opening = raw.schema(ROWS.schema, {"op": "append", "table": table})
    sound = [raw.message(header, body)] if position == "second" else []
    before = server.peak_mb()
    with untouched(server), raw.Put(server.uri) as connection:
        token, message, results = connection.outcome([opening, *sound, raw.message(*lying)])
        assert token in ("INVALID", "MESSAGE_TOO_LARGE"), (token, message)
        assert results == []
    assert server.peak_mb() < before + 512


@pytest.mark.parametrize(
    "length, buffer, offset", [(20, 0, 1 << 20), (20, 0, -1), (20, 7, 0), (1 << 30, 0, 0), (-1, 0, 0)]
)
def test_text_views_that_lead_outside(server, client, table, length, buffer, offset):
    """Any text type may be sent for a string column, views among them, and their places are the sender's word."""
    rows = ROWS.set_column(0, "site", pa.array(["x" * 20] * 6).cast(pa.string_view())).combine_chunks().to_batches()[0]
    header, body = raw.batch(rows)
    honest = struct.pack("<i4sii", 20, b"xxxx", 0, 0)
    assert body.count(honest) == 1
    lying = body.replace(honest, struct.pack("<i4sii", length, b"xxxx", buffer, offset))
    with untouched(server), raw.Put(server.uri) as connection:
        opening = raw.schema(rows.schema, {"op": "append", "table": table})
        token, message, _ = connection.outcome([opening, raw.message(header, lying)])
        assert token == "INVALID", (token, message)


def test_a_sound_compressed_stream(server, client, table):
    header, body = raw.batch(BATCH, "zstd")
    with raw.Put(server.uri) as connection:
        token, message, results = connection.outcome(
            [raw.schema(ROWS.schema, {"op": "append", "table": table, "rows": 6}), raw.message(header, body)]
        )
    assert (token, len(results)) == (None, 1), message
    assert_same(client.read(table), ROWS)


SILENT = {
    "first_message": ("first_message_timeout", ()),
    "stall": (
        "stall_timeout",
        (raw.schema(ROWS.schema, {"op": "append", "table": "sites"}), raw.message(HEADER, BODY)),
    ),
}


@pytest.mark.parametrize("wait", SILENT)
def test_a_silent_client_is_told_to_go(tmp_path, built, wait):
    """The server is impatient of one thing alone, and a patient one appends: so no machine is too slow for it."""
    limit, messages = SILENT[wait]
    patient = service.Service(tmp_path / "warehouse")
    with patient, Client(patient.uri) as client:
        create_sites(client, "sites")
    release = threading.Event()

    def silent():
        yield from messages
        release.wait(120)

    with service.Service(tmp_path / "warehouse", limits={limit: "1s"}) as server, untouched(server):
        with raw.Put(server.uri) as connection:
            token, message, _ = connection.outcome(silent())
            release.set()
            assert token == "TIMED_OUT" and f'wait="{wait}"' in message, message
    with patient, Client(patient.uri) as client:
        assert client.append("sites", ROWS)["rows"] == 6


def test_settings_of_one_append(server, client, table):
    report = client.append(table, ROWS, compression="ZSTD", max_rows_per_row_group=2)
    assert (report["compression"], report["max_rows_per_row_group"]) == ("zstd", 2)
    assert [f["row_groups"] for f in report["data_files"]] == [3]
    assert SITES == client.read(table).schema
