"""The few lines of pyarrow that speak Contrail's wire protocol, for the tests, the demo and the benchmark.

Contrail needs no client library: this file is an example of what a program writes for itself.
"""

import json

import pyarrow as pa
import pyarrow.flight as fl


class Client:
    """One connection. Every call raises pyarrow.flight.FlightError with the server's `extra_info` on refusal."""

    def __init__(self, uri: str):
        self._trailers = _TrailersFactory()
        self.flight = fl.connect(uri, middleware=[self._trailers])

    def act(self, name: str, **body) -> dict:
        """Run an action; its last message holds the result, progress may come before it."""
        return self.act_raw(name, json.dumps(body).encode())

    def act_raw(self, name: str, body: bytes) -> dict:
        return json.loads(list(self.flight.do_action(fl.Action(name, body)))[-1].body.to_pybytes())["result"]

    def append(self, table: str, data: pa.Table, max_chunksize: int | None = None, **settings) -> dict:
        """Append all rows or none; the announced row count tells the server a whole stream from a broken one."""
        return self.put({"op": "append", "table": table, "rows": data.num_rows} | settings, data, max_chunksize)

    def put(
        self, command: dict | bytes | fl.FlightDescriptor, rows: pa.Table, max_chunksize: int | None = None
    ) -> dict:
        if isinstance(command, dict):
            command = json.dumps(command).encode()
        if not isinstance(command, fl.FlightDescriptor):
            command = fl.FlightDescriptor.for_command(command)
        writer, reader = self.flight.do_put(command, rows.schema)
        try:
            writer.write_table(rows, max_chunksize=max_chunksize)
            writer.done_writing()
            receipt = reader.read()  # None if the server refused; closing then raises its error
        finally:
            writer.close()
        return json.loads(receipt.to_pybytes())

    def read(self, table: str, **request) -> pa.Table:
        """Read one endpoint by a ticket written by hand."""
        return self.get({"op": "scan", "table": table} | request)

    def get(self, ticket: dict | bytes | fl.Ticket) -> pa.Table:
        if isinstance(ticket, dict):
            ticket = json.dumps(ticket).encode()
        if not isinstance(ticket, fl.Ticket):
            ticket = fl.Ticket(ticket)
        return self.flight.do_get(ticket).read_all()

    def batches(self, table: str, **request):
        """Like read, but batch by batch as they arrive."""
        ticket = fl.Ticket(json.dumps({"op": "scan", "table": table} | request).encode())
        return (chunk.data for chunk in self.flight.do_get(ticket))

    def info(self, **request) -> fl.FlightInfo:
        return self.flight.get_flight_info(fl.FlightDescriptor.for_command(json.dumps({"op": "scan"} | request)))

    def stats(self) -> dict:
        """What the trailer x-contrail-stats of the last read said."""
        return json.loads(self._trailers.last["x-contrail-stats"][0])

    def close(self) -> None:
        self.flight.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def fields(error: fl.FlightError) -> dict:
    """The machine-readable part of a refusal: its token, its text and the token's own fields."""
    return json.loads(error.extra_info)


class _TrailersFactory(fl.ClientMiddlewareFactory):
    """Keeps the headers and trailers of the newest call."""

    def __init__(self):
        self.last = {}

    def start_call(self, _):
        self.last = {}
        return _Trailers(self.last)


class _Trailers(fl.ClientMiddleware):
    def __init__(self, seen: dict):
        self.seen = seen

    def received_headers(self, headers):
        self.seen.update(headers)
