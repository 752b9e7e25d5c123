"""Contrail itself: its real server on loopback, spoken to in the few lines of pyarrow that any program would write."""

import concurrent.futures
import datetime
import json
import time

import pyarrow.flight as fl

import client
import service

from .base import NotOffered, OverSpark, Peer

MESSAGE_BYTES = 4 << 20


class Contrail(OverSpark, Peer):
    """Appends and scans in the order of the files (`order: unordered`)."""

    order = "unordered"

    def __init__(self, folder):
        super().__init__(folder)
        self.server = self.link = self.dataset = self.duckdb = None

    def start(self, **settings):
        # What is timed is what was asked for; small files stay as they are until somebody asks.
        self.server = service.Service(self.folder / "warehouse", maintenance=False, **settings).start()
        self.link = client.Client(self.server.uri)

    def stop(self):
        super().stop()
        if self.link is not None:
            self.link.close()
        if self.server is not None:
            self.server.stop()

    def servers(self):
        return [self.server.process.pid, *super().servers()]

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

    def optimize(self, spec):
        self._ask(self.link.act, "optimize", table=spec.name)

    def ripen(self, spec):
        # A replaced file stays for as long as the tickets of the server may be for it, which is an hour, not a second.
        self.stop()
        self.start(ticket_lifetime="1s")
        self.link.act("set_properties", table=spec.name, properties={"contrail.snapshot-retention": "1s"})
        time.sleep(1.1)

    def vacuum(self, spec):
        now = datetime.datetime.now(datetime.UTC).isoformat()
        request = {"apply": True, "expire": True, "older_than": now, "force": True}
        self._ask(self.link.act, "vacuum", table=spec.name, **request)

    def live(self, spec):
        return self.link.act("describe_table", table=spec.name)["files"]

    def open(self, spec):
        self.link.act("describe_table", table=spec.name)

    def scan(self, spec, columns=None, entity=None, start=None, end=None):
        request = {"columns": columns, "start": start, "end": end, "order": self.order}
        request["entities"] = None if entity is None else [{spec.entity: entity}]
        return self.link.batches(spec.name, **request)

    def query(self, spec, sql):
        import duckdb

        import contrail_dataset

        if self.dataset is None:
            self.duckdb = duckdb.connect()
            self.duckdb.execute("SET TimeZone = 'UTC'")
            self.dataset = contrail_dataset.ContrailDataset(self.server.uri, spec.name)
            self.relation()
        return self.duckdb.execute(sql.format(table="dataset")).fetchone()

    def relation(self) -> None:
        """Make the table known to DuckDB, once."""
        self.duckdb.register("dataset", self.dataset)

    def look(self, spec, columns):
        self.engine.service(self.server.uri, spec.name, columns)

    def staged(self, spec, rows, tasks):
        """A thread and a connection for each part, as tasks on several machines have; then one commit of all."""
        step = -(-rows.num_rows // tasks)
        parts = [rows.slice(at, step) for at in range(0, rows.num_rows, step)]
        command = {"op": "stage", "table": spec.name}

        def stage(part):
            with client.Client(self.server.uri) as link:
                return link.put(command | {"rows": part.num_rows}, part, _chunk(part))["staged"]

        with concurrent.futures.ThreadPoolExecutor(tasks) as pool:
            tokens = list(pool.map(stage, parts))
        self._ask(self.link.act, "commit_staged", table=spec.name, request_id="staged", staged=tokens)

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


class Files(Contrail):
    """DuckDB bypasses the service: it reads the files that the service names."""

    def relation(self):
        files = self.dataset.files(self.folder / "warehouse")
        self.duckdb.execute(f"CREATE VIEW dataset AS FROM read_parquet({files}, union_by_name = true)")


class Directory(Contrail):
    """Spark goes by the service, to the table's directory, and finds out itself which columns it needs."""

    def look(self, spec, columns):
        self.engine.directory(self.path(spec))


class Listing(Contrail):
    """Spark asks the service how many rows each file has, and reads none of them."""

    def look(self, spec, columns):
        self.engine.service(self.server.uri, spec.name, op="files")

    def spark(self, spec, columns):
        ask = super().spark(spec, columns)
        return lambda _: ask("select sum(rows) from {table}")


class OnePut(Contrail):
    """One writer has all rows."""

    def staged(self, spec, rows, tasks):
        self.append(spec, rows)


def _chunk(rows) -> int:
    """Rows a message: few enough for the server's limit whatever a row holds."""
    return max(1, min(65_536, MESSAGE_BYTES * rows.num_rows // max(rows.nbytes, 1)))
