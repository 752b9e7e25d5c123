"""The reference of test_model: what a table is to hold in each version, in plain Python.

An index value is a whole number of ticks here, whatever the column's type, and an interval is a tick divided by the
table's width, rounded down. A row is a dict of its columns' values, and `stamp`, the number of the put that brought it.
"""

import dataclasses
import random

import pyarrow as pa

UTC = pa.timestamp("us", tz="UTC")
STAMP = "stamp"


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a table is made as."""

    index: pa.DataType
    first: int  # the tick that the index values lie about
    width: int | None  # None: no granularity
    entities: tuple[tuple[str, pa.DataType, tuple], ...]
    uniqueness: str
    ingest: bool = True
    adopts: bool = False  # made without a schema

    @property
    def keys(self) -> tuple[str, ...]:
        return (*(name for name, _, _ in self.entities), "at")

    def columns(self) -> "Columns":
        """Those of a new table: the keys, and two of payload."""
        keys = {name: (kind, False) for name, kind, _ in self.entities} | {"at": (self.index, False)}
        return keys | {"value": (pa.float64(), True), "count": (pa.int64(), False)}

    def definition(self) -> dict:
        """The fields of create_table."""
        fields = {"index_column": "at", "entity_columns": list(self.keys[:-1]), "uniqueness": self.uniqueness}
        if self.width is not None:
            fields["index_granularity"] = "1h" if self.index == UTC else self.width
        if not self.ingest:
            fields["ingest_time_column"] = ""
        if self.adopts:
            return fields | {"index_type": "timestamp" if self.index == UTC else str(self.index)}
        return fields | {
            "columns": [{"name": n, "type": str(t), "nullable": o} for n, (t, o) in self.columns().items()]
        }

    def entity(self, row: dict) -> tuple:
        return tuple(row[name] for name in self.keys[:-1])

    def key(self, row: dict) -> tuple:
        return (*self.entity(row), row["at"])

    def newest_first(self, row: dict) -> tuple:
        return (-row["at"], *self.entity(row))

    def slot(self, row: dict) -> tuple:
        """The interval of the entity that a row lies in."""
        return (*self.entity(row), row["at"] // (self.width or 1))


Columns = dict[str, tuple[pa.DataType, bool]]  # by name: type, and whether it takes null

SITES = ("site", pa.string(), ("a", "b", "", "zürich"))
PAIR = (("plant", pa.string(), ("a", "ab")), ("sensor", pa.int64(), (-1, 0, 7)))
YEAR = 1_767_225_600_000_000
KINDS = [
    Kind(UTC, YEAR, 3_600_000_000, (SITES,), "reject"),
    Kind(UTC, YEAR, 3_600_000_000, (SITES,), "reject", adopts=True),
    Kind(UTC, YEAR, 3_600_000_000, (SITES,), "none"),
    Kind(pa.int64(), -200, 10, PAIR, "overwrite"),
    Kind(pa.int64(), 0, 7, (), "overwrite", ingest=False, adopts=True),
    Kind(pa.uint64(), 2**63 - 99, 3, PAIR, "reject", ingest=False),
    Kind(pa.uint64(), 50, None, (), "none", ingest=False),
]


@dataclasses.dataclass
class Put:
    """What a table remembers of a request id."""

    verb: str
    content: object  # what must be the same for a repetition
    report: dict


@dataclasses.dataclass
class State:
    """A version. Those who change one change a copy."""

    columns: Columns | None
    rows: list[dict] = dataclasses.field(default_factory=list)
    team: str | None = None
    added: bool = False  # an add_columns has happened
    puts: dict[str, Put] = dataclasses.field(default_factory=dict)
    undone: frozenset[int] = frozenset()  # versions that rollbacks have taken back

    def copy(self) -> "State":
        columns = self.columns and dict(self.columns)
        return dataclasses.replace(self, columns=columns, rows=list(self.rows), puts=dict(self.puts))


@dataclasses.dataclass
class Commit:
    """A version and how it came about."""

    operation: str
    state: State
    changed: bool = False  # rows were changed, removed or brought back
    appended: list[dict] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Token:
    """Staged rows."""

    text: str
    table_id: str
    columns: Columns
    rows: list[dict]
    gone: bool = False  # committed, aborted or dropped


class Refusal(Exception):
    """What the table is to answer instead of a report."""

    def __init__(self, token: str, **fields):
        super().__init__(token, fields)
        self.token, self.fields = token, fields


class Reference:
    """A table, version by version."""

    def __init__(self, kind: Kind, table_id: str):
        self.kind, self.table_id = kind, table_id
        self.commits = [Commit("create_table", State(None if kind.adopts else kind.columns()))]
        self.oldest = 0

    @property
    def version(self) -> int:
        return len(self.commits) - 1

    @property
    def now(self) -> State:
        return self.commits[-1].state

    def at(self, version: int) -> State:
        return self.commits[version].state

    def readable(self) -> range:
        return range(self.oldest, self.version + 1)

    def expect(self, version: int | None) -> None:
        if version is not None and version != self.version:
            raise Refusal("VERSION_CONFLICT", expected=version, found=self.version)

    def commit(self, operation: str, state: State, **more) -> None:
        self.commits.append(Commit(operation, state, **more))

    def last_of_intervals(self, rows: list[dict]) -> list[dict]:
        """What a put keeps of its rows, or DUPLICATE_INTERVAL."""
        if self.kind.uniqueness == "none":
            return rows
        slots = {}
        for row in rows:
            if self.kind.slot(row) in slots and self.kind.uniqueness == "reject":
                raise Refusal("DUPLICATE_INTERVAL")
            slots[self.kind.slot(row)] = row
        return list(slots.values())

    def append(self, rows: list[dict], columns: Columns, stamp: int | None) -> tuple[int, int]:
        """Commit rows; `stamp` None leaves those that they have. How many were stored, and how many replaced."""
        state = self.now.copy()
        state.columns = state.columns or dict(columns)
        rows = [dict.fromkeys(state.columns) | row | ({} if stamp is None else {STAMP: stamp}) for row in rows]
        slots = {self.kind.slot(row) for row in rows}
        taken = [row for row in state.rows if self.kind.slot(row) in slots]
        if self.kind.uniqueness == "reject" and taken:
            raise Refusal("INTERVAL_OVERLAP", conflict_count=len(taken), version=self.version)
        if self.kind.uniqueness == "none":
            taken = []
        gone = {id(row) for row in taken}
        state.rows = [row for row in state.rows if id(row) not in gone] + rows
        self.commit("append", state, changed=bool(taken), appended=rows)
        return len(rows), len(taken)

    def update(self, keys: list[tuple], values: list[dict]) -> None:
        """Give the rows with these keys other values, or say what is wrong with the keys."""
        stored = {}
        for row in self.now.rows:
            stored.setdefault(self.kind.key(row), []).append(row)
        for token, wrong in [
            ("DUPLICATE_SOURCE_KEY", {k for k in keys if keys.count(k) > 1}),
            ("UNMATCHED_SOURCE_KEY", {k for k in keys if k not in stored}),
            ("AMBIGUOUS_TARGET_KEY", {k for k in keys if len(stored.get(k, ())) > 1}),
        ]:
            if wrong:
                raise Refusal(token, violations=len(wrong), rows_seen=len(keys))
        state, fresh = self.now.copy(), dict(zip(keys, values))
        state.rows = [row | fresh.get(self.kind.key(row), {}) for row in state.rows]
        self.commit("update_rows", state, changed=True)

    def roll_back(self, version: int, moves_files: bool) -> None:
        state = self.at(version).copy()
        state.undone |= set(range(version + 1, self.version + 1))
        self.commit("rollback", state, changed=moves_files)

    def since(self, version: int, until: int, ignore: bool) -> list[dict]:
        """What appends have added behind one version up to another."""
        rows = []
        for number in range(version + 1, until + 1):
            commit = self.commits[number]
            if commit.changed and not ignore:
                raise Refusal("NOT_APPEND_ONLY", version=number, operation=commit.operation)
            rows += [] if commit.changed else commit.appended
        return rows

    def latest(self, version: int, at: int | None) -> dict[tuple, list[dict]]:
        """By entity, the row that counts; where the table cannot tell, all that may."""
        found = {}
        for row in self.at(version).rows:
            if at is None or row["at"] <= at:
                found.setdefault(self.kind.entity(row), []).append(row)
        for entity, rows in found.items():
            newest = max(row["at"] for row in rows)
            rows = [row for row in rows if row["at"] == newest]
            stamp = max(row[STAMP] for row in rows)
            # Without an insertion time an update makes an old row the newest of several alike.
            found[entity] = [row for row in rows if row[STAMP] == stamp][-1:] if self.kind.ingest else rows
        return found

    def covered(self, version: int) -> dict[tuple, set[int]]:
        """By entity, the intervals with a row."""
        found = {}
        for row in self.at(version).rows:
            *entity, interval = self.kind.slot(row)
            found.setdefault(tuple(entity), set()).add(interval)
        return found


def runs(intervals: set[int]) -> list[tuple[int, int]]:
    """Sets of neighbours, as the first one and the one behind the last."""
    found = []
    for i in sorted(intervals):
        if found and found[-1][1] == i:
            found[-1] = (found[-1][0], i + 1)
        else:
            found.append((i, i + 1))
    return found


def random_value(rng: random.Random, kind: pa.DataType, nullable: bool):
    if nullable and rng.random() < 0.25:
        return None
    if kind == pa.float64():
        return rng.choice([float("nan"), -0.0, 0.0, float("inf"), 1.5, round(rng.gauss(0, 10), 3)])
    if kind == pa.string():
        return rng.choice(["", "näher", "x" * 40, str(rng.random())])
    return rng.randint(-5, 5)


def as_table(rows: list[dict], columns: Columns) -> pa.Table:
    """Rows as a client sends them."""
    arrays = {name: pa.array([row[name] for row in rows], kind) for name, (kind, _) in columns.items()}
    return pa.table(arrays, schema=pa.schema([pa.field(n, k, nullable=o) for n, (k, o) in columns.items()]))


def as_rows(table: pa.Table) -> list[dict]:
    """Rows as a client reads them, the index in ticks."""
    if "at" in table.column_names and pa.types.is_timestamp(table["at"].type):
        table = table.set_column(table.column_names.index("at"), "at", table["at"].cast(pa.int64()))
    return table.to_pylist()


def exact(row: dict, columns) -> tuple[str, ...]:
    """A row's values, so that NaN is equal to itself and 0.0 not to -0.0."""
    return tuple(repr(row.get(name)) for name in columns)
