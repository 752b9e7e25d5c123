"""Contrail itself: its real server on loopback, spoken to in the few lines of pyarrow that any program would write."""

import json

import pyarrow.flight as fl

import client
import service

from .base import NotOffered, Peer

MESSAGE_BYTES = 4 << 20


class Contrail(Peer):
    """Appends and scans in the order of the files (`order: unordered`)."""

    order = "unordered"

    def __init__(self, folder):
        super().__init__(folder)
        self.server = self.link = None

    def start(self):
        self.server = service.Service(self.folder / "warehouse").start()
        self.link = client.Client(self.server.uri)

    def stop(self):
        if self.link is not None:
            self.link.close()
        if self.server is not None:
            self.server.stop()

    def servers(self):
        return [self.server.process.pid]

    def another(self):
        other = type(self)(self.folder)
        other.link = client.Client(self.server.uri)
        return other

    def path(self, spec):
        return self.folder / "warehouse" / "default" / spec.name

    def create(self, spec, schema):
        self._ask(
            self.link.act,
            "create_table",
            table=spec.name,
            index_column=spec.index,
            index_granularity=spec.granularity,
            entity_columns=[spec.entity],
            uniqueness=spec.uniqueness,
            columns=[{"name": f.name, "type": str(f.type), "nullable": f.nullable} for f in schema],
        )

    def append(self, spec, rows):
        self.link.append(spec.name, rows, max_chunksize=_chunk(rows))

    overwrite = append  # of a table made with uniqueness "overwrite"

    def update(self, spec, source, columns):
        version = self.link.act("describe_table", table=spec.name)["version"]
        rows = source.select([spec.entity, spec.index, *columns])
        command = {"op": "update_rows", "table": spec.name, "columns": columns, "expected_version": version}
        self._ask(self.link.put, command | {"rows": rows.num_rows}, rows, _chunk(rows))

    def open(self, spec):
        self.link.act("describe_table", table=spec.name)

    def scan(self, spec, columns=None, entity=None, start=None, end=None):
        request = {"columns": columns, "start": start, "end": end, "order": self.order}
        request["entities"] = None if entity is None else [{spec.entity: entity}]
        return self.link.batches(spec.name, **request)

    def latest(self, spec):
        return self._ask(self.link.get, {"op": "latest", "table": spec.name})

    def gaps(self, spec, start, end):
        request = {"op": "coverage", "table": spec.name, "start": start, "end": end, "kind": "missing"}
        return self._ask(self.link.get, request)

    @staticmethod
    def _ask(call, *arguments, **fields):
        """Do it; a server that does not know the operation yet does not offer it."""
        try:
            return call(*arguments, **fields)
        except fl.FlightError as error:
            told = json.loads(error.extra_info or b"{}")
            if told.get("token") == "UNSUPPORTED" or told.get("field") in ("op", "uniqueness"):
                raise NotOffered(str(error)) from error
            raise


class Sorted(Contrail):
    """Reads the same tables in the default order."""

    order = "entity_index"


def _chunk(rows) -> int:
    """Rows a message: few enough for the server's limit whatever a row holds."""
    return max(1, min(65_536, MESSAGE_BYTES * rows.num_rows // max(rows.nbytes, 1)))
