"""What a workload asks of a peer. A method that it leaves as it is here counts as "not offered", never as a time."""

import datetime
import pathlib


class NotOffered(Exception):
    """The peer has nothing for this."""


class Peer:
    """One system over one folder of tables."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder

    def start(self) -> None:
        """Start what must run beside this process."""

    def stop(self) -> None:
        """Stop it, and drop connections."""

    def servers(self) -> list[int]:
        """Process ids of servers, whose CPU time and memory count."""
        return []

    def another(self) -> "Peer":
        """A second client of the same tables, and of the same server where there is one."""
        return type(self)(self.folder)

    def path(self, spec) -> pathlib.Path:
        """Where a table lies on disk."""
        return self.folder / spec.name

    def create(self, spec, schema) -> None:
        raise NotOffered

    def append(self, spec, rows) -> None:
        """One commit, as durable as the peer makes it; lost races are retried."""
        raise NotOffered

    def update(self, spec, source, columns) -> None:
        """Set `columns` in the rows of the source's (entity, index); the source holds whole rows."""
        raise NotOffered

    def overwrite(self, spec, rows) -> None:
        """An append whose rows replace those of the same entity and interval."""
        raise NotOffered

    def optimize(self, spec) -> None:
        """Make few files in a good order of what many appends have left."""
        raise NotOffered

    def ripen(self, spec) -> None:
        """Open the table and let pass what a vacuum waits for, so that all that was replaced may go."""
        raise NotOffered

    def vacuum(self, spec) -> None:
        """Delete all files that the newest version does not need."""
        raise NotOffered

    def live(self, spec) -> int:
        """How many data files the newest version has."""
        raise NotOffered

    def open(self, spec) -> None:
        """Learn the table's current state as a process does that has just started."""
        raise NotOffered

    def scan(self, spec, columns=None, entity=None, start=None, end=None):
        """Record batches; `start` and `end` are microseconds, half-open."""
        raise NotOffered

    def query(self, spec, sql):
        """The one row that DuckDB finds; `{table}` stands for the table in the query."""
        raise NotOffered

    def spark(self, spec, columns):
        """A function from SQL to the one row that Spark finds; `{table}` stands for the table, all of it or columns."""
        raise NotOffered

    def staged(self, spec, rows, tasks):
        """One commit of rows that so many writers have each a part of."""
        raise NotOffered

    def latest(self, spec):
        """The newest row of every entity, whole, as an Arrow table."""
        raise NotOffered

    def gaps(self, spec, start, end):
        """The runs of intervals without a row inside the range: a table of entity, start, end, intervals."""
        raise NotOffered


def utc(microseconds: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(microseconds=microseconds)


def where(spec, entity, start, end, kind="TIMESTAMP") -> str:
    """A scan's condition for peers that speak SQL."""
    terms = [f"{spec.entity} = '{entity}'"] if entity is not None else []
    if start is not None:
        terms += [
            f"{spec.index} >= {kind} '{utc(start).isoformat()}'",
            f"{spec.index} < {kind} '{utc(end).isoformat()}'",
        ]
    return " WHERE " + " AND ".join(terms) if terms else ""


class OverSpark:
    """What a peer needs, in front of its other bases, to answer from a Spark session of its own."""

    engine = None

    def spark(self, spec, columns):
        from .spark import Spark

        self.engine = Spark()
        self.look(spec, columns)
        return self.engine.ask

    def look(self, spec, columns) -> None:
        """Make the table known to Spark, all columns or those that a query needs."""
        raise NotImplementedError

    def stop(self):
        if self.engine is not None:
            self.engine.stop()
        super().stop()

    def servers(self):
        return [*super().servers(), *([] if self.engine is None else [self.engine.java.pid])]
