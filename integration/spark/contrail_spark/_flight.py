"""The wire: one connection to the service, and the few calls that a data source makes."""

from __future__ import annotations

import json
import pathlib
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl

from contrail_spark._options import Connection

# Refusals after which the same request may be sent again; so may one whose answer was lost.
PASSING = {"STORE_UNAVAILABLE", "DRAINING", "COMMIT_UNKNOWN", "QUEUE_TIMEOUT", "TOO_MANY_STREAMS", "TIMED_OUT"}
ATTEMPTS = 6
PAUSE = 0.25  # seconds before the second attempt, doubled before each further one


class Client:
    """A connection, closed by the `with` around it. Refusals are pyarrow.flight.FlightError."""

    def __init__(self, connection: Connection, location: str | None = None):
        self._client = fl.connect(location or connection.location, **_tls(connection))
        self._call = fl.FlightCallOptions(headers=_headers(connection))

    def schema(self, request: dict[str, Any]) -> pa.Schema:
        return self._client.get_schema(_command(request), self._call).schema

    def info(self, request: dict[str, Any]) -> fl.FlightInfo:
        return self._client.get_flight_info(_command(request), self._call)

    def batches(self, ticket: bytes) -> Iterator[pa.RecordBatch]:
        """The batches that have rows, as they come. The read is cancelled if the caller stops early."""
        reader = self._client.do_get(fl.Ticket(ticket), self._call)
        try:
            for chunk in reader:
                if chunk.data is not None and chunk.data.num_rows:
                    yield chunk.data
        finally:
            reader.cancel()

    def act(self, name: str, **body: Any) -> dict[str, Any]:
        results = self._client.do_action(fl.Action(name, json.dumps(body).encode()), self._call)
        return json.loads(list(results)[-1].body.to_pybytes())["result"]

    def put(self, command: dict[str, Any], schema: pa.Schema) -> tuple[fl.FlightStreamWriter, fl.FlightMetadataReader]:
        return self._client.do_put(_command(command), schema, self._call)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()


def act_surely(connection: Connection, name: str, **body: Any) -> dict[str, Any]:
    """Run an action that may be repeated, again while the service is away or did not answer."""
    pause = PAUSE
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with Client(connection) as client:
                return client.act(name, **body)
        except fl.FlightError as error:
            if attempt == ATTEMPTS or token_of(error) not in PASSING | {None}:
                raise
        time.sleep(pause)
        pause *= 2
    raise AssertionError("the last attempt returns or raises")


def token_of(error: fl.FlightError) -> str | None:
    """The stable word for why the service refused; None where it was not the service that failed."""
    try:
        return json.loads(error.extra_info)["token"]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def locations(endpoint: fl.FlightEndpoint, connection: Connection) -> list[str]:
    """Where a ticket can be redeemed: none named, or one that only says so, means where it came from."""
    named = [location.uri.decode() for location in endpoint.locations]
    return [connection.location if uri.startswith("arrow-flight-reuse-connection") else uri for uri in named] or [
        connection.location
    ]


def _command(request: dict[str, Any]) -> fl.FlightDescriptor:
    return fl.FlightDescriptor.for_command(json.dumps(request).encode())


def _headers(connection: Connection) -> list[tuple[bytes, bytes]]:
    token = connection.token
    if connection.token_file:
        token = pathlib.Path(connection.token_file).read_text().strip()
    return [(b"authorization", f"Bearer {token}".encode())] if token else []


def _tls(connection: Connection) -> dict[str, bytes]:
    files = {
        "tls_root_certs": connection.tls_ca,
        "cert_chain": connection.tls_cert,
        "private_key": connection.tls_key,
    }
    return {name: pathlib.Path(path).read_bytes() for name, path in files.items() if path}
