"""Torture: servers that are killed at random under eight writers, and an oracle that knows what must be left.

    python torture.py --rounds 20 --seed 7

A round starts one server, or two on one warehouse, lets three processes of writers and readers work, kills the servers
at random times (SIGKILL, now and then SIGTERM), starts one again and compares everything with the oracle: the tables at
their newest version row by row, other versions by a digest, what each writer and reader was told, `check`, and what
deltalake reads. Everything random follows from the seed but the speed of the machine.
"""

import argparse
import collections
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import deltalake
import pyarrow.flight as fl

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

import rows
from oracle import Oracle, demand

import service
from client import Client, fields

PEOPLE = [
    {"writers": [0, 1, 2], "readers": [8]},
    {"writers": [3, 4, 5], "readers": [9]},
    {"writers": [6, 7], "readers": [10]},
]
GENERATION = 10  # rounds until new tables are made
SETTINGS = {"ticket_lifetime": "10s", "drain_grace": "2m"}
RETENTION = "20s"
SAMPLES = 8  # versions of a table that are read after a round


class Torture:
    def __init__(self, folder: pathlib.Path, seed: int, longest: float):
        self.folder, self.seed, self.longest = folder, seed, longest
        self.warehouse = folder / "warehouse"
        self.servers, self.workers = [], []
        self.tables, self.oracles, self.generation = {}, {}, 0
        self.counts = collections.Counter()
        self.kills = 0

    def __enter__(self) -> "Torture":
        command = [sys.executable, str(pathlib.Path(__file__).parent / "writers.py")]
        for number in range(len(PEOPLE)):
            with open(self.folder / f"writers{number}.log", "ab") as log:
                process = subprocess.Popen(command, stdin=-1, stdout=-1, stderr=log, text=True)
            self.workers.append(process)
        self.servers = [self.server(0).start()]
        return self

    def __exit__(self, *_):
        for worker in self.workers:
            worker.kill()
            worker.wait()
        for server in self.servers:
            server.kill()

    def server(self, number: int) -> service.Service:
        made = service.Service(self.warehouse, **SETTINGS)
        made.log, made.config = self.folder / f"server{number}.log", self.folder / f"server{number}.yaml"
        return made

    def round(self, number: int) -> str:
        """One round; returns what happened in it. Wrong when something is not as it must be."""
        chance = random.Random(f"{self.seed} {number}")
        with Client(self.servers[0].uri) as client:
            if number % GENERATION == 0:
                self.make_tables(client, number // GENERATION)
            actions = [a.type for a in client.flight.list_actions()]
        if chance.random() < 0.25:
            self.servers.append(self.server(1).start())
        order = {"uris": [s.uri for s in self.servers], "seed": f"{self.seed} {number}", "generation": self.generation}
        order |= {"tables": self.tables, "actions": actions, "force": len(self.servers) == 1}
        for worker, people in zip(self.workers, PEOPLE):
            self.say(worker, order | {"people": people})
        how = self.strike(chance)
        answers = [self.hear(worker) for worker in self.workers]
        self.servers = [self.server(0).start()]
        records = [r for a in answers for r in a["records"]]
        faults = [f for a in answers for f in a["faults"]]
        demand(not faults, "refused or failed:", *faults[:5])
        with Client(self.servers[0].uri) as client:
            commits = self.verify(client, chance, records)
        for record in records:
            self.counts[record["kind"]] += "report" in record
        told = sum("report" in r and "id" in r for r in records)
        open_ = sum("report" not in r and "token" in r and r["token"] is None for r in records)
        return f"{how}: {commits} commits, {told} puts acknowledged, {open_} calls without an answer"

    def make_tables(self, client: Client, generation: int):
        self.generation = generation
        self.tables = {"add": f"adds{generation}", "replace": f"replaces{generation}"}
        self.oracles = {}
        for kind, uniqueness in (("add", "reject"), ("replace", "overwrite")):
            columns = [{"name": f.name, "type": str(f.type), "nullable": f.nullable} for f in rows.SCHEMA]
            client.act(
                "create_table",
                table=self.tables[kind],
                columns=columns,
                index_column="ts",
                index_granularity="1s",
                entity_columns=["site"],
                uniqueness=uniqueness,
                properties={"contrail.snapshot-retention": RETENTION},
            )
            self.oracles[kind] = Oracle(self.tables[kind], uniqueness)

    def say(self, worker, order: dict):
        worker.stdin.write(json.dumps(order) + "\n")
        worker.stdin.flush()

    def hear(self, worker) -> dict:
        worker.stdin.write("over\n")
        worker.stdin.flush()
        line = worker.stdout.readline()
        demand(line, "a process of writers died")
        return json.loads(line)

    def strike(self, chance: random.Random) -> str:
        """Let them work, then end the servers one after the other."""
        told = []
        for server in chance.sample(self.servers, len(self.servers)):
            time.sleep(chance.uniform(0.2, self.longest))
            demand(server.alive, "a server ended by itself", server.log)
            if chance.random() < 0.2:
                code = server.stop(180)
                demand(code == 0, "a server that was asked to stop ended with", code)
                told.append("SIGTERM")
            else:
                server.kill()
                self.kills += 1
                told.append("SIGKILL")
        return "+".join(told)

    def verify(self, client: Client, chance: random.Random, records: list[dict]) -> int:
        commits = 0
        for oracle in self.oracles.values():
            oracle.tell(records)
            history = client.get({"op": "history", "table": oracle.table}).to_pylist()[::-1]
            lines = {line["version"]: line for line in history if line["version"] > oracle.version}
            oracle.advance(history)
            commits += len(lines)
            oracle.judge(records, lines)
            self.compare(client, oracle)
            for version in chance.sample(range(oracle.version), min(SAMPLES, oracle.version)):
                self.look_back(client, oracle, version)
            self.check(client, oracle.table)
            delta = deltalake.DeltaTable(self.servers[0].path(oracle.table))
            demand(delta.version() == oracle.version, oracle.table, "deltalake sees version", delta.version())
            self.same(oracle, delta.to_pyarrow_table(columns=rows.SCHEMA.names), "deltalake")
        return commits

    def compare(self, client: Client, oracle: Oracle):
        """The newest version, row by row, and its columns."""
        got = client.read(oracle.table)
        self.same(oracle, got, "a scan")
        demand(rows.as_dict(got) == oracle.state, oracle.table, "holds other rows than it must")
        names = set(got.column_names) - set(rows.SCHEMA.names)
        demand(names == oracle.columns[-1], oracle.table, "has the columns", names, "not", oracle.columns[-1])

    def same(self, oracle: Oracle, got, who: str):
        found = tuple(rows.digest(got))
        demand(found == oracle.digests[-1], oracle.table, who, "gives", found, "not", oracle.digests[-1])

    def look_back(self, client: Client, oracle: Oracle, version: int):
        try:
            found = tuple(rows.digest(client.read(oracle.table, version=version, order="unordered")))
        except fl.FlightError as error:
            told = fields(error)
            demand(told["token"] == "VERSION_EXPIRED", oracle.table, version, told)
            return
        demand(found == oracle.digests[version], oracle.table, version, "holds", found, "not", oracle.digests[version])

    def check(self, client: Client, table: str):
        *before, last = (
            json.loads(message.body.to_pybytes())
            for message in client.flight.do_action(fl.Action("check", json.dumps({"table": table}).encode()))
        )
        found = [f for message in before for f in message.get("findings", ())]
        demand(last["result"]["ok"] and not found, table, "check found", *found[:5])


def torture(rounds: int, seed: int, folder: pathlib.Path, longest: float = 1.2) -> str:
    """All rounds, a line each; returns the summary. The folder stays when one fails."""
    began = time.monotonic()
    with Torture(folder, seed, longest) as t:
        for number in range(rounds):
            try:
                print(f"round {number}: {t.round(number)}", flush=True)
            except BaseException:
                print(f"round {number} failed; its warehouse is {t.warehouse}", flush=True)
                print(f"again: make torture ROUNDS={number + 1} SEED={seed}", flush=True)
                raise
        done = ", ".join(f"{n:,} {kind}" for kind, n in sorted(t.counts.items()))
        return (
            f"{rounds} rounds, {t.kills} kills in {time.monotonic() - began:.0f} s, nothing lost: {done} (seed {seed})"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    service.build()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="contrail-torture-"))
    print(f"seed {arguments.seed}, warehouse {folder / 'warehouse'}", flush=True)
    print(torture(arguments.rounds, arguments.seed, folder))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
