"""A table of a Contrail service as a pyarrow Dataset, for DuckDB, Polars, pandas and whatever else reads Datasets.

    import duckdb, polars
    from contrail_dataset import ContrailDataset

    ticks = ContrailDataset("grpc://127.0.0.1:8815", "ticks")
    duckdb.sql("select symbol, max(price) from ticks where ts >= '2026-01-01' group by symbol")
    polars.scan_pyarrow_dataset(ticks).filter(polars.col("symbol") == "AAA").collect()

This one file needs pyarrow alone and may be copied. The columns and the filter that an engine asks for go to the
service; the filter is applied here once more, so what the service is not told costs time and never a row.

A dataset reads one version of its table, the newest when it was made, however many scans a query makes of it. `at()`
gives a dataset of what is the newest version now.
"""

import atexit
import base64
import contextlib
import ctypes
import dataclasses
import itertools
import json
import math
import os
import pathlib
import queue
import struct
import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.flight as fl
import pyarrow.fs as fs

types = pa.types

MAX_FILTER_BYTES = 1 << 16  # what goes beyond is not sent but applied here alone; every ticket repeats the filter
MAX_ENTITIES = 1_000
QUEUE_BATCHES = 4  # that wait here for each endpoint; the service sends about 1 MB a batch


class ContrailDataset(ds.FileSystemDataset):
    """One version of a table, read over Flight. Immutable, safe to share between threads, may be pickled.

    Arrow's C++ code cannot call what is overridden here. So that it fails, and neither crashes nor finds nothing, it is
    given a dataset of one file that is not there: hence the base class.
    """

    def __init__(
        self,
        location: str,
        table: str,
        *,
        columns: list[str] | None = None,
        version: int | None = None,
        as_of: str | None = None,
        ordered: bool = False,
        max_endpoints: int | None = None,
        compression: str = "none",
        token: str | None = None,
        token_file: str | os.PathLike | None = None,
        **connection,
    ):
        """`location` is HOST:PORT, grpc://HOST:PORT or grpc+tls://HOST:PORT.

        `columns` are those that the dataset has; left out, all but the insertion-time column. `version` or `as_of` (RFC
        3339) choose what is read, else it is the newest version. `ordered` gives the rows by entity and index, which
        costs the service a merge; else they come as they arrive. `max_endpoints` bounds the streams that are read at
        once (the number of processors, at most 8), `compression` (`lz4`, `zstd`) packs what goes over a slow network.
        `token` is a bearer token, `token_file` a file that holds one. All else goes to pyarrow.flight.FlightClient:
        tls_root_certs, cert_chain, private_key, override_hostname, middleware …

        Raises pyarrow.flight.FlightError: TABLE_NOT_FOUND, VERSION_NOT_FOUND …, or if there is no service.
        """
        if token is not None and token_file is not None:
            raise ValueError("give token or token_file, not both")
        if "://" not in location:
            location = f"grpc://{location}"
        self._link = _Link(location, token, token_file, connection)
        self._settings = {"columns": columns, "ordered": ordered, "compression": compression}
        self._settings["max_endpoints"] = max_endpoints or min(8, os.cpu_count() or 1)
        self._filter = None
        request = {"op": "scan", "table": table, "columns": columns, "version": version, "as_of": as_of}
        info = self._link.info(request)
        told = json.loads(info.app_metadata)
        self.table, self.version, self._schema = told["table"], told["version"], info.schema
        self._table_id = told["table_id"]
        if not info.schema.names:
            raise pa.ArrowInvalid(f"{self.table} has no columns yet: nothing was appended to it")
        definition = self._link.act("describe_table", {"table": self.table, "version": self.version})
        self._set_base()
        self._translator = _Translator(info.schema, definition["index_column"], definition["entity_columns"] or [])

    def _set_base(self) -> None:
        form, place = ds.IpcFileFormat(), fs.LocalFileSystem()
        file = form.make_fragment("a ContrailDataset, which only its own methods read, such as to_table()", place)
        super().__init__([file], self._schema, form, place)

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def at(self, version: int | None = None, *, as_of: str | None = None) -> "ContrailDataset":
        """The same table at another version; without arguments, at what is the newest one now."""
        other = type(self)(version=version, as_of=as_of, **self._arguments())
        other._filter = self._filter
        return other

    def _arguments(self) -> dict:
        link = self._link
        given = {"location": link.location, "table": self.table, "token": link.token, "token_file": link.token_file}
        return given | self._settings | link.connection

    def __reduce__(self):
        return _restore, (type(self), self._arguments() | {"version": self.version}, self._filter)

    def __repr__(self) -> str:
        return f"<ContrailDataset {self.table} at version {self.version}>"

    def filter(self, expression: pc.Expression) -> "ContrailDataset":
        other = type(self).__new__(type(self))
        other.__dict__ |= self.__dict__ | {"_filter": _both(self._filter, expression)}
        other._set_base()
        return other

    def scanner(self, columns=None, filter: pc.Expression | None = None, **options) -> ds.Scanner:
        """A scan that starts when it is first read from, and may be read once. Dropping what reads it ends it."""
        return self._scanner({"max_endpoints": self._settings["max_endpoints"]}, columns, filter, options)

    def _scanner(self, settings: dict, columns, filter, options: dict) -> ds.Scanner:
        expression = _both(self._filter, filter)
        request = settings | self._request(columns, expression)
        schema = pa.schema([self._schema.field(name) for name in request["columns"]], self._schema.metadata)
        batches = self._link.batches(request, self._settings["ordered"])
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        known = {k: options[k] for k in ("batch_size", "use_threads", "memory_pool") if k in options}
        return ds.Scanner.from_batches(reader, columns=columns, filter=expression, **known)

    def _request(self, columns, expression: pc.Expression | None) -> dict:
        """What the service is asked for, so that `columns` and `expression` can be applied to its rows."""
        wanted = [] if expression is None else [expression]
        names = self._schema.names if columns is None else columns
        if isinstance(names, dict):
            wanted += [e for e in names.values() if isinstance(e, pc.Expression)]
            names = []
        parsed = [_parse(e) for e in wanted]
        used = {*names, *(name for _, fields in parsed for name in fields or ())}
        for name in used:
            self._require(name)
        if any(fields is None for _, fields in parsed):  # what only Arrow understands may need any column
            used = set(self._schema.names)
        used = used or {self._cheapest()}
        request = {
            "op": "scan",
            "table": self.table,
            "table_id": self._table_id,
            "version": self.version,
            "columns": [name for name in self._schema.names if name in used],
            "order": "entity_index" if self._settings["ordered"] else "unordered",
            "compression": self._settings["compression"],
        }
        if expression is not None and parsed[0][0] is not None:
            request |= self._translator.pushed(parsed[0][0])
        return request

    def _require(self, name: str) -> None:
        if name in self._schema.names:
            return
        alike = [known for known in self._schema.names if known.lower() == name.lower()]
        hint = f"; there is {alike[0]!r}" if alike else f"; its columns are {', '.join(self._schema.names)}"
        raise pa.ArrowInvalid(f"{self.table} has no column {name!r}{hint}")

    def _cheapest(self) -> str:
        """The column to read where only the number of rows matters."""

        def width(field: pa.Field) -> int:
            with contextlib.suppress(ValueError):
                return field.type.bit_width
            return 1 << 20

        return min(self._schema, key=width).name

    def count_rows(self, filter: pc.Expression | None = None, **options) -> int:
        """The number of rows; without a filter the service knows it without reading any."""
        expression = _both(self._filter, filter)
        if expression is None:
            known = self._link.info(self._request([], None)).total_records
            if known >= 0:
                return known
        return self.scanner(columns=[], filter=filter, **options).count_rows()

    def head(self, num_rows: int, columns=None, filter: pc.Expression | None = None, **options) -> pa.Table:
        """Some `num_rows` rows: the first ones where the dataset is `ordered`."""
        settings = {"limit": num_rows} if _both(self._filter, filter) is None else {}
        return self._scanner(settings, columns, filter, options).head(num_rows)

    def take(self, indices, columns=None, filter: pc.Expression | None = None, **options) -> pa.Table:
        """Rows by their numbers, in the order that one stream has them, which is the same every time."""
        return self._scanner({}, columns, filter, options).take(indices)

    def files(self, warehouse: str | os.PathLike) -> list[str]:
        """See the function `files`."""
        if not self._translator.index:
            raise ValueError(f"{self.table} is a plain Delta table; read it with a reader of Delta tables")
        request = {"op": "files", "table": self.table, "table_id": self._table_id, "version": self.version}
        folder = pathlib.Path(warehouse, *self.table.split("."))
        return [str(folder / path) for b in self._link.batches(request, True) for path in b["path"].to_pylist()]

    # What Arrow's C++ code would read goes through memory, or is refused.

    def get_fragments(self, filter: pc.Expression | None = None):
        return ds.dataset(self.to_table(filter=filter)).get_fragments()

    def sort_by(self, sorting, **options):
        return ds.dataset(self.to_table()).sort_by(sorting, **options)

    def join(self, right_dataset, keys, *arguments, **options):
        return ds.dataset(self.to_table()).join(_in_memory(right_dataset), keys, *arguments, **options)

    def join_asof(self, right_dataset, on, by, tolerance, *arguments, **options):
        left = ds.dataset(self.to_table())
        return left.join_asof(_in_memory(right_dataset), on, by, tolerance, *arguments, **options)

    def replace_schema(self, schema: pa.Schema):
        raise NotImplementedError("a ContrailDataset has the schema of its table; project columns instead")


def files(location: str, table: str, warehouse: str | os.PathLike, **options) -> list[str]:
    """The data files of one version of a table, for readers such as DuckDB's read_parquet([...]).

    Aggregates over most of a table are several times faster over them than over a ContrailDataset.
    `warehouse` is where this machine sees the service's warehouse; `options` are those of ContrailDataset, such as
    `version`. The list holds the rows of that version and no others for as long as vacuum keeps the version. Files
    older than an added column lack it, so read with `union_by_name`.
    """
    return ContrailDataset(location, table, **options).files(warehouse)


def _restore(cls, arguments: dict, expression: pc.Expression | None) -> ContrailDataset:
    made = cls(**arguments)
    made._filter = expression
    return made


def _both(a: pc.Expression | None, b: pc.Expression | None) -> pc.Expression | None:
    return b if a is None else a if b is None else a & b


def _in_memory(dataset: ds.Dataset) -> ds.Dataset:
    return ds.dataset(dataset.to_table()) if isinstance(dataset, ContrailDataset) else dataset


# -- over the wire ------------------------------------------------------------------------------------


class _Link:
    """The connection to the service: made when it is first used, kept, shared by all threads."""

    def __init__(self, location: str, token: str | None, token_file, connection: dict):
        self.location, self.token, self.token_file, self.connection = location, token, token_file, connection
        self._lock, self._clients = threading.Lock(), {}

    def _client(self, location) -> fl.FlightClient:
        global _connected
        if _connected not in (None, os.getpid()):  # calls would hang here, and break the connection there
            raise RuntimeError("a process forked from one that used gRPC cannot: start it with 'spawn' or 'forkserver'")
        _connected = os.getpid()
        with self._lock:
            if location not in self._clients:
                self._clients[location] = fl.FlightClient(location, **self.connection)
            return self._clients[location]

    def _options(self) -> fl.FlightCallOptions:
        token = self.token
        if self.token_file is not None:
            token = pathlib.Path(self.token_file).read_text().strip()
        headers = [] if token is None else [(b"authorization", b"Bearer " + token.encode())]
        # Arrow's compute functions warn of every buffer that is not aligned, and gRPC aligns none.
        read = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.DataTypeSpecific)
        return fl.FlightCallOptions(headers=headers, read_options=read)

    def act(self, name: str, body: dict) -> dict:
        answers = self._client(self.location).do_action(fl.Action(name, _json(body)), self._options())
        return json.loads(list(answers)[-1].body.to_pybytes())["result"]

    def info(self, request: dict) -> fl.FlightInfo:
        descriptor = fl.FlightDescriptor.for_command(_json(request))
        return self._client(self.location).get_flight_info(descriptor, self._options())

    def batches(self, request: dict, ordered: bool) -> Iterator[pa.RecordBatch]:
        """The batches of a request's endpoints. Closing the generator ends the streams and their threads."""
        info = self.info(request)
        rows = 0
        try:
            with contextlib.closing(self._streams(info.endpoints, ordered)) as batches:
                for batch in batches:
                    rows += batch.num_rows
                    yield batch
        except fl.FlightUnavailableError as error:
            told = f"the read of {request['table']} broke off after {rows} rows and must be repeated: {error}"
            raise fl.FlightUnavailableError(told, error.extra_info) from error
        if 0 <= info.total_records != rows:
            raise fl.FlightInternalError(f"{request['table']} gave {rows} of {info.total_records} rows")

    def _streams(self, endpoints: list, ordered: bool) -> Iterator[pa.RecordBatch]:
        """A thread an endpoint puts what it reads into a queue: one of its own, or one for all if any order will do."""
        count = len(endpoints)
        queues = [queue.Queue(QUEUE_BATCHES) for _ in endpoints]
        if not ordered:
            queues = [queue.Queue(QUEUE_BATCHES * count)] * count
        stop = threading.Event()
        readers = [_Reader(self, e, q, stop) for e, q in zip(endpoints, queues)]
        _running.add(stop)
        try:
            for reader in readers:
                reader.start()
            for q in queues:  # the shared queue holds as many ends as there are endpoints
                while (item := _take(q, stop)) is not None:
                    if isinstance(item, BaseException):
                        raise item
                    yield item
        finally:
            _running.discard(stop)
            stop.set()
            for reader in readers:
                reader.end()

    def _open(self, endpoint: fl.FlightEndpoint) -> fl.FlightStreamReader:
        """A stream from the first of the endpoint's places that answers; without any, from where the plan came."""
        here = "arrow-flight-reuse-connection"
        places = [place.uri.decode() for place in endpoint.locations]
        places = [self.location if place.startswith(here) else place for place in places]
        for number, place in enumerate(places or [self.location], 1):
            try:
                return self._client(place).do_get(endpoint.ticket, self._options())
            except fl.FlightUnavailableError:
                if number >= len(places):
                    raise


class _Reader(threading.Thread):
    """Reads one endpoint into a queue; behind its last batch, or its error, comes the end."""

    def __init__(self, link: _Link, endpoint, out: queue.Queue, stop: threading.Event):
        super().__init__(name="contrail-reader", daemon=True)
        self._link, self._endpoint, self._out, self._stop_event = link, endpoint, out, stop
        self._stream = None

    def run(self) -> None:
        try:
            self._stream = self._link._open(self._endpoint)
            for chunk in self._stream:
                self._put(chunk.data)
            self._put(None)
        except _Stopped:
            pass
        except BaseException as error:
            with contextlib.suppress(_Stopped):
                self._put(error)

    def _put(self, item) -> None:
        while not self._stop_event.is_set():
            with contextlib.suppress(queue.Full):
                return self._out.put(item, timeout=0.05)
        raise _Stopped

    def end(self) -> None:
        """Cancel the stream and wait for the thread; the event is set."""
        while self.is_alive():
            if self._stream is not None:
                self._stream.cancel()
            self.join(0.05)


class _Stopped(Exception):
    """Nobody wants the rest."""


def _take(source: queue.Queue, stop: threading.Event):
    while not stop.is_set():
        with contextlib.suppress(queue.Empty):
            return source.get(timeout=0.05)
    raise _Stopped


_connected = None  # the process that first made a connection
_running = set()  # the event that ends it, of each scan that is being read


@atexit.register
def _end_all() -> None:
    """Arrow's threads that read a scan in Python would wait for an interpreter that has gone, and it for them."""
    scans = list(_running)
    for stop in scans:
        stop.set()
    if scans:
        time.sleep(0.5)  # in which those threads learn of it


def _json(request: dict) -> bytes:
    return json.dumps({key: value for key, value in request.items() if value is not None}).encode()


# -- filters ------------------------------------------------------------------------------------------
#
# pyarrow shows an expression in three ways: as text, as Substrait and as what it pickles to. Substrait cannot say
# nanoseconds, most casts, nor a column of type duration anywhere in the table. What is pickled can say everything: a
# record batch of one row that holds the literals, and in its schema's metadata the tree, as a list of steps. That form
# is pyarrow's own; whatever is not as expected below makes the filter one that is applied here alone.


@dataclasses.dataclass
class _Node:
    """A call, a field (name is None, field its name) or a literal."""

    name: str | None = None
    arguments: list = dataclasses.field(default_factory=list)
    options: dict = dataclasses.field(default_factory=dict)
    field: str | None = None
    literal: pa.Scalar | None = None


def _parse(expression: pc.Expression) -> tuple[_Node | None, list[str] | None]:
    """The tree of an expression, and the columns it names; None if they are not understood."""
    try:
        values = pa.ipc.open_file(expression.__reduce__()[1][0]).get_batch(0)
        return _tree(iter(_metadata(values.schema)), values)
    except (pa.ArrowException, LookupError, TypeError, ValueError):
        return None, None


def _tree(steps: Iterator[tuple[str, str]], values: pa.RecordBatch) -> tuple[_Node, list[str]]:
    open_nodes, columns = [_Node()], []
    for kind, text in steps:
        if kind == "call":
            open_nodes.append(_Node(text))
            continue
        if kind == "options":
            given = values.column(int(text))[0]
            open_nodes[-1].options = {name: given[name] for name in given}
            continue
        if kind == "end":
            node = open_nodes.pop()
        elif kind == "field_ref":
            node = _Node(field=text)
            columns.append(text)
        elif kind == "nested_field_ref":  # of so many steps, the first one a column
            (_, column), *_ = itertools.islice(steps, int(text))
            node = _Node("struct_field")
            columns.append(column)
        elif kind == "literal":
            node = _Node(literal=values.column(int(text))[0])
        else:
            raise ValueError(kind)
        open_nodes[-1].arguments.append(node)
    (root,) = open_nodes
    (node,) = root.arguments
    return node, columns


def _parts(node: _Node, call: str) -> Iterator[_Node]:
    """What a chain of calls of `and_kleene` or `or_kleene` joins, however long it is."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node.name == call:
            waiting += reversed(node.arguments)
        else:
            yield node


def _metadata(schema: pa.Schema) -> list[tuple[str, str]]:
    """A schema's metadata with repeated keys, which a dict would lose, through the C data interface."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = schema.__arrow_c_schema__()
    at = ctypes.cast(get(capsule, b"arrow_schema"), ctypes.POINTER(ctypes.c_void_p))[2]  # format, name, metadata
    if not at:
        return []

    def number() -> int:
        nonlocal at
        at += 4
        return struct.unpack("=i", ctypes.string_at(at - 4, 4))[0]

    def text() -> str:
        nonlocal at
        size = number()
        at += size
        return ctypes.string_at(at - size, size).decode()

    return [(text(), text()) for _ in range(number())]


class _Unknown(Exception):
    """A part of a filter that the service is not told."""


COMPARE = {"equal": "=", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
FLIP = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
NEGATE = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
NEGATE |= {"is null": "is not null", "is not null": "is null"}


class _Translator:
    """Turns filters into the service's words: whatever Arrow keeps, the service must keep, too.

    They agree but for NaN, which Arrow compares with nothing (`!=` is true) while the service sorts it above all else;
    so the service may keep more where NaN is stored, and is not told of a condition where it would keep less.
    """

    def __init__(self, schema: pa.Schema, index: str | None, entities: list[str]):
        self.types = {f.name: f.type for f in schema}
        self.index, self.entities = index, entities

    def pushed(self, node: _Node) -> dict:
        """The fields of a scan that stand for as much of the filter as the service understands."""
        conditions, room = [], MAX_FILTER_BYTES
        for condition in self._conjuncts(node):
            size = len(json.dumps(condition))
            if size <= room:
                conditions.append(condition)
                room -= size
        request = self._identities(conditions) | self._range(conditions)
        return request | {"filter": conditions or None}

    def _conjuncts(self, node: _Node) -> Iterator[list]:
        for part in _parts(node, "and_kleene"):
            options = [part]
            if part.name == "invert":  # neither of these: not this, and not that
                options = [_Node("invert", [inner]) for inner in _parts(part.arguments[0], "or_kleene")]
            for option in options:
                with contextlib.suppress(_Unknown, RecursionError):
                    yield self._condition(option)

    def _condition(self, node: _Node) -> list:
        if node.field is not None and types.is_boolean(self.types[node.field]):
            return [node.field, "=", True]
        if node.name in COMPARE:
            return self._comparison(node)
        if node.name == "is_in":
            return self._membership(node)
        if node.name == "or_kleene":
            return self._alternatives(node)
        if node.name == "invert":
            return self._negation(node.arguments[0])
        if node.name in ("is_null", "is_valid", "is_nan"):
            return self._test(node)
        raise _Unknown

    def _comparison(self, node: _Node) -> list:
        column, op, literal = _sides(node)
        value, rest = _value(literal, self.types[column])
        if value == "NaN" and types.is_floating(self.types[column]):
            raise _Unknown
        if rest:  # the value lies between two that the column can hold; this one is below it
            if op in ("=", "!="):
                raise _Unknown
            op = ">" if op in (">", ">=") else "<="
        return [column, op, value]

    def _membership(self, node: _Node) -> list:
        (argument,) = node.arguments
        if argument.field is None:
            raise _Unknown
        values = node.options["value_set"].values
        given = [v for v in values if v.is_valid]
        if len(given) < len(values):  # a null in the list may find nulls
            raise _Unknown
        return [argument.field, "in", [_exactly(v, self.types[argument.field]) for v in given]]

    def _alternatives(self, node: _Node) -> list:
        """Alternatives for one column are a list of values; any other `or` stays here."""
        parts = [self._condition(part) for part in _parts(node, "or_kleene")]
        if len({column for column, *_ in parts}) > 1 or any(op not in ("=", "in") for _, op, *_ in parts):
            raise _Unknown
        return [parts[0][0], "in", [v for _, op, value in parts for v in (value if op == "in" else [value])]]

    def _negation(self, inner: _Node) -> list:
        if inner.name == "invert":
            return self._condition(inner.arguments[0])
        if inner.name not in (*COMPARE, "is_null", "is_valid", "is_nan") and inner.field is None:
            raise _Unknown  # `is_in` among them: Arrow's negation of it keeps nulls
        column, op, *value = self._condition(inner)
        # Of floats, NaN too is not greater, and the service would not give it for `<=`.
        if op in (">", ">=") and types.is_floating(self.types[column]):
            raise _Unknown
        if inner.name in COMPARE and _value(_sides(inner)[2], self.types[column])[1]:
            raise _Unknown  # the condition names another value than the comparison
        return [column, NEGATE[op], *value]

    def _test(self, node: _Node) -> list:
        (argument,) = node.arguments
        kind = self.types[argument.field] if argument.field is not None else None
        if kind is None or types.is_nested(kind) or types.is_null(kind):
            raise _Unknown
        if node.name == "is_valid":
            return [argument.field, "is not null"]
        if node.name == "is_nan":
            if not types.is_floating(kind):
                raise _Unknown
            return [argument.field, "=", "NaN"]
        if "nan_is_null" in node.options and node.options["nan_is_null"].as_py():
            raise _Unknown
        return [argument.field, "is null"]

    def _identities(self, conditions: list) -> dict:
        """Takes out what is said of entity columns: the service finds entities without comparing rows."""
        choices = {}
        for condition in list(conditions):
            column, op, *value = condition
            kind = self.types[column]
            if column not in self.entities or column in choices or op not in ("=", "in"):
                continue
            values = value[0] if op == "in" else value
            if not (types.is_string(kind) or types.is_integer(kind)):
                continue
            others = math.prod(len(v) for v in choices.values())
            if others * len(values) <= MAX_ENTITIES and all(_holds(kind, v) for v in values):
                choices[column] = list(dict.fromkeys(values))
                conditions.remove(condition)
        if not choices:
            return {}
        return {"entities": [dict(zip(choices, values)) for values in itertools.product(*choices.values())]}

    def _range(self, conditions: list) -> dict:
        """Takes out what is said of the index column, as a half-open range."""
        start = end = None
        kind = self.types.get(self.index)
        if kind is None or not (types.is_timestamp(kind) or types.is_integer(kind)):
            return {}
        for condition in list(conditions):
            column, op, *value = condition
            if column != self.index or op not in ("=", "<", "<=", ">", ">="):
                continue
            conditions.remove(condition)
            low = {"=": value[0], ">=": value[0], ">": value[0] + 1}.get(op)
            high = {"=": value[0] + 1, "<": value[0], "<=": value[0] + 1}.get(op)
            start = low if start is None else start if low is None else max(start, low)
            end = high if end is None else end if high is None else min(end, high)
        if start is not None and end is not None and start >= end:
            return {"limit": 0}
        return {"start": start, "end": end}


def _holds(kind: pa.DataType, value) -> bool:
    if types.is_string(kind):
        return True
    bits, signed = kind.bit_width, types.is_signed_integer(kind)
    return -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) if signed else 0 <= value < 2**bits


def _sides(node: _Node) -> tuple[str, str, pa.Scalar]:
    """Column, operator and literal of a comparison, whichever stands first."""
    left, right = node.arguments
    op = COMPARE[node.name]
    if left.literal is not None:
        left, right, op = right, left, FLIP[op]
    if left.field is None or right.literal is None:
        raise _Unknown
    return left.field, op, right.literal


def _exactly(literal: pa.Scalar, kind: pa.DataType):
    value, rest = _value(literal, kind)
    if rest:
        raise _Unknown
    return value


def _value(literal: pa.Scalar, kind: pa.DataType) -> tuple[object, bool]:
    """A literal as JSON for a column of that type, rounded down where the column is coarser, and whether it was."""
    given = literal.type
    if not literal.is_valid:
        raise _Unknown
    if types.is_timestamp(kind) and types.is_timestamp(given) and (kind.tz is None) == (given.tz is None):
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
        value, rest = divmod(literal.value * per_second[kind.unit], per_second[given.unit])
        return value, rest != 0
    if types.is_integer(kind) and types.is_integer(given) or types.is_boolean(kind) and types.is_boolean(given):
        return literal.as_py(), False
    if types.is_floating(kind) and (types.is_floating(given) or types.is_integer(given)):
        return _float(literal.as_py(), kind), False
    if _is_text(kind) and _is_text(given):
        return literal.as_py(), False
    if _is_binary(kind) and _is_binary(given):
        return base64.b64encode(literal.as_py()).decode(), False
    if types.is_decimal(kind) and (types.is_decimal(given) or types.is_integer(given)):
        return f"{literal.as_py():f}", False
    if kind == given and types.is_date32(kind):
        try:
            return literal.as_py().isoformat(), False
        except (OverflowError, ValueError):
            raise _Unknown from None
    if kind == given and (types.is_time(kind) or types.is_duration(kind)):
        return literal.value, False
    raise _Unknown


def _float(value: float, kind: pa.DataType):
    """A number that a column of that type holds exactly: of others, Arrow's comparison may round."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    form = {16: "e", 32: "f", 64: "d"}[kind.bit_width]
    try:
        (held,) = struct.unpack(form, struct.pack(form, value))
    except OverflowError:
        raise _Unknown from None
    if held != value:
        raise _Unknown
    return held


def _is_text(kind: pa.DataType) -> bool:
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _is_binary(kind: pa.DataType) -> bool:
    return types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
