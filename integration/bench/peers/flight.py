"""The Flight servers that one would write first: arrow-go's or pyarrow's Flight over folders of Parquet files.

Both speak the same few JSON commands: {"table": …} to append, {"table": …, "columns": …} to scan.
"""

import json
import pathlib
import subprocess
import sys

import pyarrow.flight as fl

from .base import NotOffered, OverSpark, Peer

HERE = pathlib.Path(__file__).resolve().parent
BINARY = HERE.parents[2] / "bin" / "stockflight"


class FlightPeer(Peer):
    def __init__(self, folder):
        super().__init__(folder)
        self.process = self.uri = self.link = None

    def command(self) -> list:
        """The server's command line; it prints its port."""
        raise NotImplementedError

    def start(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen([*self.command(), self.folder], stdout=subprocess.PIPE, text=True)
        self.uri = f"grpc://127.0.0.1:{int(self.process.stdout.readline())}"
        self.link = fl.connect(self.uri)

    def stop(self):
        if self.link is not None:
            self.link.close()
        if self.process is not None:
            self.process.terminate()
            self.process.wait(20)

    def servers(self):
        return [self.process.pid]

    def another(self):
        other = type(self)(self.folder)
        other.link = fl.connect(self.uri)
        return other

    def create(self, spec, schema):
        self.path(spec).mkdir(parents=True)

    def append(self, spec, rows):
        descriptor = fl.FlightDescriptor.for_command(json.dumps({"table": spec.name}))
        writer, reader = self.link.do_put(descriptor, rows.schema)
        try:
            writer.write_table(rows, max_chunksize=65_536)
            writer.done_writing()
            reader.read()  # the answer comes after the fsync
        finally:
            writer.close()

    def scan(self, spec, columns=None, entity=None, start=None, end=None):
        ticket = {"table": spec.name, "columns": columns}
        if entity is not None:
            ticket["equal"] = [spec.entity, entity]
        if start is not None:
            ticket["range"] = [spec.index, start, end]
        return (chunk.data for chunk in self.link.do_get(fl.Ticket(json.dumps(ticket))))


class PythonFlight(FlightPeer):
    def command(self):
        return [sys.executable, HERE / "flight_server.py"]


class StockFlight(FlightPeer):
    def command(self):
        return [BINARY]

    def scan(self, spec, columns=None, entity=None, start=None, end=None):
        if entity is not None or start is not None:
            raise NotOffered("only columns can be chosen")
        return super().scan(spec, columns)


class SparkFirst(OverSpark, StockFlight):
    """Spark over the stock server, by a source of few lines."""

    def look(self, spec, columns):
        self.engine.first_source(self.uri, spec.name, columns)


class SparkParquet(SparkFirst):
    """Spark on the stock server's file."""

    def look(self, spec, columns):
        self.engine.parquet(self.path(spec))
