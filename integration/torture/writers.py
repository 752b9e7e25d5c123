"""A process of writers and readers. It takes one line of JSON for each round and answers with one, when the servers of
the round are gone or it is told to stop: what was sent, and what came of it."""

import json
import pathlib
import random
import sys
import threading
import time

import pyarrow as pa
import pyarrow.flight as fl

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

import rows

from client import Client, fields

# How often each thing is done, and which refusals are no fault. A server that stops refuses anything.
CHOICES = {
    "add": 40,
    "replace": 22,
    "update": 12,
    "again": 8,
    "add_columns": 1,
    "optimize": 3,
    "vacuum": 3,
    "rollback": 3,
    "checkpoint": 2,
    "upgrade": 1,
}
MAY_BE = {
    # A rollback may take away a column that the rows were written with, as null.
    "add": {"VERSION_CONFLICT", "SCHEMA_MISMATCH"},
    "replace": {"VERSION_CONFLICT", "SCHEMA_MISMATCH"},
    "update": {"VERSION_CONFLICT", "UNMATCHED_SOURCE_KEY"},
    "add_columns": {"VERSION_CONFLICT", "INVALID"},
    "optimize": {"VERSION_CONFLICT"},
    "vacuum": {"VERSION_CONFLICT", "CLOCK_BEHIND"},
    "rollback": {"VERSION_CONFLICT", "VERSION_EXPIRED"},
    "checkpoint": set(),
    "upgrade": {"VERSION_CONFLICT"},
    "read": {"VERSION_EXPIRED"},
}
ALWAYS = {"DRAINING", "STORE_UNAVAILABLE"}
KEPT_IDS = 50


class Gone(Exception):
    """The server does not answer any more."""


class Writer:
    """One writer with what it remembers from round to round."""

    def __init__(self, number: int):
        self.number, self.count, self.generation = number, 0, None
        self.pending, self.sent = None, []

    def begin(self, order: dict, uri: str):
        if self.generation != order["generation"]:
            self.generation, self.pending, self.sent = order["generation"], None, []
        self.order, self.uri = order, uri
        self.chance = random.Random(f"{order['seed']} {self.number}")
        self.records, self.faults = [], []
        kinds = [k for k in CHOICES if k in ("add", "replace", "update", "again") or k in order["actions"]]
        self.kinds, self.weights = kinds, [CHOICES[k] for k in kinds]

    def run(self, stop: threading.Event):
        try:
            with Client(self.uri) as self.client:
                if self.pending:
                    self.send(self.pending)
                while not stop.is_set():
                    self.step()
        except Gone:
            pass
        except Exception as error:  # the harness tells of it
            self.faults.append(f"writer {self.number}: {error!r}")

    def step(self):
        kind = self.chance.choices(self.kinds, self.weights)[0]
        if kind in ("add", "replace"):
            self.put({"kind": kind, "id": self.new_id(kind), "table": self.order["tables"][kind]})
        elif kind == "update":
            self.update()
        elif kind == "again":
            if self.sent:
                self.send(self.chance.choice(self.sent) | {"again": True})
        else:
            getattr(self, kind)(self.order["tables"][self.chance.choice(("add", "replace"))])

    def new_id(self, kind: str) -> str:
        self.count += 1
        return f"{kind[0]}{self.number}-{self.order['generation'] * 100_000 + self.count}"

    def put(self, record: dict):
        """Send something that has a request id; without an answer it is sent again in the next round."""
        self.pending = record
        self.send(record)
        self.sent = (self.sent + [record])[-KEPT_IDS:]

    def send(self, record: dict):
        record = dict(record)
        self.records.append(record)
        settings = {"request_id": record["id"], "table": record["table"]}
        if record["kind"] == "update":
            data = rows.table(rows.updated(record["id"], record["keys"]))
            command = {"op": "update_rows", "columns": ["value", "label"], "expected_version": record["expected"]}
        else:
            make = rows.added if record["kind"] == "add" else rows.replacing
            data, command = rows.table(make(record["id"])), {"op": "append"}
        command |= settings | {"rows": data.num_rows}
        self.call(record, lambda: self.client.put(command, data))
        self.pending = None

    def call(self, record: dict, do):
        """Call the server and note what came of it."""
        try:
            record["report"] = do()
            return
        except (fl.FlightError, pa.ArrowException, OSError) as error:
            told = fields(error) if getattr(error, "extra_info", None) else None
        record["token"] = told["token"] if told else None
        if told is None or record["token"] in ALWAYS:
            raise Gone
        if record["token"] not in MAY_BE[record["kind"]]:
            self.faults.append(f"writer {self.number}: {record} was refused: {told}")

    def act(self, kind: str, table: str, **body):
        record = {"kind": kind, "table": table}
        self.records.append(record)
        self.call(record, lambda: self.client.act(kind, table=table, **body))

    def version(self, table: str) -> int:
        record = {"kind": "read", "table": table}
        self.call(record, lambda: self.client.act("describe_table", table=table))
        return record["report"]["version"]

    def update(self):
        mine = [r for r in self.sent if r["kind"] == "add"]
        if not mine:
            return
        keys = list(rows.added(self.chance.choice(mine)["id"]))
        keys = self.chance.sample(keys, self.chance.randint(1, len(keys)))
        table = self.order["tables"]["add"]
        record = {"kind": "update", "id": self.new_id("update"), "table": table, "keys": keys}
        self.put(record | {"expected": self.version(table)})

    def add_columns(self, table: str):
        name = f"extra{self.chance.randrange(4)}"
        self.act("add_columns", table, columns=[{"name": name, "type": "double"}])

    def optimize(self, table: str):
        self.act("optimize", table)

    def checkpoint(self, table: str):
        self.act("checkpoint", table)

    def upgrade(self, table: str):
        self.act("upgrade", table, keep_snapshots="1s")

    def vacuum(self, table: str):
        body = {"apply": True, "expire": self.chance.random() < 0.5}
        if self.order["force"]:  # only where no other server writes
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 1))
            body |= {"force": True, "older_than": now}
        self.act("vacuum", table, **body)

    def rollback(self, table: str):
        for _ in range(5):  # most of them come too late
            current = self.version(table)
            target = max(0, current - self.chance.randint(1, 6))
            self.act("rollback", table, version=target, expected_version=current)
            if self.records[-1].get("report"):
                return


class Reader(Writer):
    """One that only reads, any version that it has heard of."""

    def step(self):
        table = self.order["tables"][self.chance.choice(("add", "replace"))]
        version = self.version(table)
        if self.chance.random() < 0.7:
            version = self.chance.randint(max(0, version - 40), version)
        record = {"kind": "read", "table": table, "version": version}
        self.call(record, lambda: rows.digest(self.client.read(table, version=version, order="unordered")))
        if "report" in record:
            self.records.append(record)


def main():
    writers = {}
    lines = iter(sys.stdin.readline, "")
    for line in lines:
        order = json.loads(line)
        people = []
        for role, numbers in order["people"].items():
            for number in numbers:
                made = writers.setdefault((role, number), (Reader if role == "readers" else Writer)(number))
                made.begin(order, order["uris"][number % len(order["uris"])])
                people.append(made)
        stop = threading.Event()
        threads = [threading.Thread(target=p.run, args=(stop,)) for p in people]
        for thread in threads:
            thread.start()
        next(lines)  # the round is over
        stop.set()
        for thread in threads:
            thread.join()
        answer = {"records": [r for p in people for r in p.records], "faults": [f for p in people for f in p.faults]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
