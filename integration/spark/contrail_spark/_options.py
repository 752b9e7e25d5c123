"""What the options of a read or a write mean. A misspelt option is refused: ignoring it would read other rows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CONNECTION = {"location", "token", "token_file", "tls_ca", "tls_cert", "tls_key"}
TABLE = {"table", "path"}
STREAM = {"startingversion", "maxrowsperbatch", "maxversionsperbatch", "changes"}
# The fields of a request, in their form on the wire, for each op of a batch read.
REQUESTS = {
    "scan": {"version", "as_of", "entities", "start", "end", "filter", "columns", "max_endpoints", "compression"},
    "latest": {"version", "as_of", "entities", "at", "columns"},
    "coverage": {"version", "as_of", "entities", "start", "end", "kind", "n"},
    "history": set(),
    "files": {"version", "as_of"},
}
READ = {"op", "pushdown"}
STREAMED = {"entities", "start", "end", "filter", "columns", "max_endpoints", "compression"}
WRITE = {"request_id", "expected_version", "compression"}
# What Spark itself adds to the options of a query.
SPARKS = {"checkpointlocation", "queryname", "outputmode", "mergeschema", "overwriteschema"}

TEXTS = {"as_of", "compression", "kind"}
NUMBERS = {"version", "n", "max_endpoints", "expected_version"}
BOUNDS = {"start", "end", "at"}
# What every scan asks for: types that Spark has, and rows in whatever order costs least, as Spark promises none.
SCAN = {"profile": "spark", "order": "unordered"}


@dataclass(frozen=True)
class Connection:
    """Where the service is and how a client shows who it is. It travels to the workers."""

    location: str
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None


class Options:
    """The options of one read or write, their names in any case."""

    def __init__(self, options: Mapping[str, str]):
        self._values = {name.lower(): value for name, value in options.items()}
        self.connection = self._connection()
        if "table" in self._values and "path" in self._values:
            raise ValueError("the table is named twice, by the option table and by load or save")
        self.table = self._values.get("table") or self._values.get("path")
        if not self.table:
            raise ValueError("the option table names the table to read or write")

    def _connection(self) -> Connection:
        values = {name: self._values[name] for name in CONNECTION if name in self._values}
        if not values.get("location"):
            raise ValueError("the option location says where the service is, such as grpc://127.0.0.1:8815")
        if "token" in values and "token_file" in values:
            raise ValueError("of token and token_file only one can be given")
        if "://" not in values["location"]:
            values["location"] = f"grpc://{values['location']}"
        return Connection(**values)

    @property
    def op(self) -> str:
        op = self._values.get("op", "scan")
        if op not in REQUESTS:
            raise ValueError(f"the option op is {op!r}, which is none of {', '.join(REQUESTS)}")
        return op

    @property
    def pushdown(self) -> bool:
        """Whether Spark's filters go to the service."""
        text = self._values.get("pushdown", "true").lower()
        if text not in ("true", "false"):
            raise ValueError(f"the option pushdown is {text!r}, neither true nor false")
        return text == "true" and self.op == "scan"

    def request(self) -> dict[str, Any]:
        """The request of a batch read as it goes over the wire."""
        known = REQUESTS[self.op]
        self._refuse_unknown(READ | known, f"a read with op {self.op}")
        return self._request(self.op, known)

    def streamed(self) -> dict[str, Any]:
        """The request of a streaming read, without its versions."""
        self._refuse_unknown(STREAMED | STREAM, "a streaming read")
        return self._request("scan", STREAMED)

    def described(self) -> dict[str, Any]:
        """The request whose schema is asked for: Spark does not tell whether it will be a stream."""
        known = REQUESTS[self.op]
        stream = STREAM if self.op == "scan" else set()
        self._refuse_unknown(READ | known | stream, f"a read with op {self.op}")
        return self._request(self.op, known)

    def written(self) -> dict[str, Any]:
        """The settings of a write."""
        self._refuse_unknown(WRITE, "a write")
        return self._fields({"expected_version", "compression"})

    def text(self, name: str) -> str | None:
        return self._values.get(name)

    def starting(self) -> int | str | None:
        """Where a stream begins: a version, "latest", or with the whole table."""
        text = self._values.get("startingversion")
        if text is None or text == "latest":
            return text
        version = _number("startingVersion", text)
        if version < 0:
            raise ValueError(f"the option startingVersion is {version}, which is below 0")
        return version

    def positive(self, name: str) -> int | None:
        """A number that must be at least 1, or None where it is left out."""
        if name not in self._values:
            return None
        number = _number(name, self._values[name])
        if number < 1:
            raise ValueError(f"the option {name} is {number}, which is below 1")
        return number

    def _refuse_unknown(self, known: set[str], what: str) -> None:
        for name in self._values:
            if name not in CONNECTION | TABLE | SPARKS | known:
                raise ValueError(f"{what} has no option {name}; it has {', '.join(sorted(CONNECTION | known))}, table")

    def _request(self, op: str, names: set[str]) -> dict[str, Any]:
        scan = SCAN if op == "scan" else {}
        return {"op": op, "table": self.table} | scan | self._fields(names)

    def _fields(self, names: set[str]) -> dict[str, Any]:
        return {name: _field(name, self._values[name]) for name in sorted(names) if name in self._values}


def _field(name: str, text: str) -> Any:
    if name in TEXTS:
        return text
    if name in NUMBERS:
        return _number(name, text)
    if name in BOUNDS:
        return int(text) if re.fullmatch(r"-?\d+", text) else text
    if name == "columns" and not text.lstrip().startswith("["):
        return [column.strip() for column in text.split(",")]
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"the option {name} is no JSON: {error}") from None


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"the option {name} is {text!r}, which is no number") from None
