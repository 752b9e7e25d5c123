"""DoPut streams made by hand over gRPC: what no Flight library would send, but a hostile or broken client might."""

import json
import struct

import grpc
import pyarrow as pa


def _field(number: int, payload: bytes) -> bytes:
    """A length-delimited protobuf field."""
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def message(header: bytes = b"", body: bytes = b"", metadata: bytes = b"", command: dict | None = None) -> bytes:
    """A FlightData; with a command it carries a CMD descriptor."""
    out = b""
    if command is not None:
        out += _field(1, b"\x08\x02" + _field(2, json.dumps(command).encode()))
    for number, part in ((2, header), (3, metadata), (1000, body)):
        if part:
            out += _field(number, part)
    return out


def schema(wanted: pa.Schema, command: dict | None = None) -> bytes:
    """The schema message of a stream, with the command that opens it."""
    return message(bytes(pa.ipc.read_message(wanted.serialize()).metadata), command=command)


def batch(rows: pa.RecordBatch, compression: str | None = None) -> tuple[bytes, bytes]:
    """Header and body of a record batch message."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(rows)
    messages = pa.ipc.MessageReader.open_stream(sink.getvalue())
    messages.read_next_message()  # the schema
    encapsulated = messages.read_next_message()
    return bytes(encapsulated.metadata), bytes(encapsulated.body)


def _buffers(header: bytes, size: int):
    """Where the header's Buffer structs (offset, length; little-endian int64 both) of a body of this size stand."""
    for at in range(0, len(header) - 15, 4):
        offset, length = struct.unpack_from("<qq", header, at)
        if 0 <= offset < size and 8 < length <= size - offset and offset % 8 == 0:
            yield at, offset


def claiming(header: bytes, body: bytes, claimed: int) -> tuple[bytes, bytes]:
    """The batch with the uncompressed length of every compressed buffer replaced."""
    changed = bytearray(body)
    for _, offset in _buffers(header, len(body)):
        struct.pack_into("<q", changed, offset, claimed)
    return header, bytes(changed)


def stretching(header: bytes, body: bytes, claimed: int) -> tuple[bytes, bytes]:
    """The batch with the length of every buffer replaced in its header."""
    changed = bytearray(header)
    for at, _ in _buffers(header, len(body)):
        struct.pack_into("<q", changed, at + 8, claimed)
    return bytes(changed), body


class Put:
    """One DoPut call; `send` what it is given, then `outcome`."""

    METHOD = "/arrow.flight.protocol.FlightService/DoPut"

    def __init__(self, uri: str):
        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self.channel = grpc.insecure_channel(uri.removeprefix("grpc://"), options)
        self.method = self.channel.stream_stream(self.METHOD)

    def outcome(self, messages, timeout: float = 120) -> tuple[str | None, str, list[bytes]]:
        """Send all and half-close. Returns (token or None for OK, message, results)."""
        call = self.method(iter(messages), timeout=timeout)
        results = []
        try:
            results += list(call)
            return None, "", results
        except grpc.RpcError as error:
            trailers = dict(error.trailing_metadata() or ())
            return trailers.get("x-contrail-error", str(error.code())), error.details(), results

    def start(self, messages):
        """Send and keep the call open; the iterator decides when it ends. Returns the call, to be cancelled."""
        return self.method(iter(messages))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()
