"""One measurement in this fresh process, for bench.py: the last line printed is its result as JSON.

    python measure.py '{"peer": "duckdb", "op": "scan", "dataset": "ordered", "data": …, "folder": …}'

An operation does its work untimed but for the call itself, and says whether the rows were right: counts always, whole
fingerprints where `verify` asks for them.
"""

import importlib
import itertools
import json
import os
import pathlib
import statistics
import sys
import threading
import time
import traceback

import data
import meter
import peers


class Job:
    """The measurement's settings, the peer, the dataset."""

    def __init__(self, settings: dict):
        self.settings = settings
        self.data = pathlib.Path(settings["data"])
        self.spec = data.SPECS[settings["dataset"]]
        self.peer = peers.make(settings["peer"], pathlib.Path(settings["folder"]))
        self.verify = settings.get("verify", True)

    def __getattr__(self, name):
        """Whatever else the workload sets; None where it does not."""
        return self.settings.get(name)

    def load(self, part: str = ""):
        return data.load(self.data, self.spec.name + part)

    def names(self) -> list[str]:
        return data.names_in(self.data, self.spec.name)

    def answers(self) -> dict:
        return data.answers_of(self.data, self.spec.name)

    def holds(self, expected: list, columns: list[str]) -> bool:
        """Whether a fresh client reads just those rows."""
        return data.fingerprint(self.peer.another().scan(self.spec), columns) == expected


def append(job: Job) -> dict:
    """All rows of a dataset in one commit."""
    rows = job.load()
    job.peer.create(job.spec, rows.schema)
    with meter.Meter(job.peer) as m:
        job.peer.append(job.spec, rows)
    result = m.result | {"rows": rows.num_rows, "input_bytes": rows.nbytes}
    result |= {"sync": meter.sync(job.peer.path(job.spec))} | meter.on_disk(job.peer.path(job.spec))
    if job.verify:
        result["right"] = job.holds(job.answers()["rows"], rows.column_names)
    return result


def fill(job: Job) -> dict:
    """Lay a table for later measurements, in so many appends."""
    rows = job.load()
    job.peer.create(job.spec, rows.schema)
    step = -(-rows.num_rows // job.parts)
    for part in range(job.parts):
        job.peer.append(job.spec, rows.slice(part * step, step))
    return {"rows": rows.num_rows}


def repeat(job: Job, call) -> tuple[dict, object]:
    """The first call of a fresh process, and the median of those after it."""
    walls = []
    with meter.Meter(job.peer) as m:
        for _ in range(job.repeat):
            began = time.perf_counter()
            answer = call()
            walls.append(time.perf_counter() - began)
    m.result |= {"first": walls[0], "cpu": m.result["cpu"] / len(walls)}
    return m.result | {"wall": statistics.median(walls[1:] or walls)}, answer


def scan(job: Job) -> dict:
    """Batches dropped as they arrive."""
    answers, case = job.answers(), job.case
    request = {
        "full": {},
        "two": {"columns": job.columns},
        "entity": {"entity": data.ENTITY},
        "range": {key: answers.get(key) for key in ("start", "end")},
    }[case]
    expected = answers["rows" if case == "full" else case]
    result, rows = repeat(job, lambda: sum(batch.num_rows for batch in job.peer.scan(job.spec, **request)))
    right = rows == expected[0]
    if job.verify:
        columns = job.columns or job.names()
        right = data.fingerprint(job.peer.scan(job.spec, **request), columns) == expected
    return result | {"rows": rows, "right": right}


def query(job: Job) -> dict:
    """One row of SQL from DuckDB, over the service or beside it."""
    importlib.import_module("duckdb")  # all peers have it in this process, and none in its times
    importlib.import_module("contrail_dataset")
    result, found = repeat(job, lambda: job.peer.query(job.spec, job.sql))
    return result | {"rows": found[0], "right": found[0] == job.answers()[job.answer][0]}


def spark(job: Job) -> dict:
    """One row of SQL from Spark, whose start does not count."""
    ask = job.peer.spark(job.spec, job.columns)
    result, found = repeat(job, lambda: ask(job.sql))
    return result | {"rows": found[0], "right": found[0] == job.answers()[job.answer][0]}


def staged(job: Job) -> dict:
    """All rows of a dataset in one commit, by several writers at once."""
    rows = job.load()
    job.peer.create(job.spec, rows.schema)
    with meter.Meter(job.peer) as m:
        job.peer.staged(job.spec, rows, job.tasks)
    result = m.result | {"rows": rows.num_rows} | meter.on_disk(job.peer.path(job.spec))
    if job.verify:
        result["right"] = job.holds(job.answers()["rows"], rows.column_names)
    return result


def latest(job: Job) -> dict:
    result, table = repeat(job, lambda: job.peer.latest(job.spec))
    right = data.fingerprint(table.to_batches(), job.names()) == job.answers()["latest"]
    return result | {"rows": table.num_rows, "right": right}


def gaps(job: Job) -> dict:
    answers = job.answers()
    result, table = repeat(job, lambda: job.peer.gaps(job.spec, answers["start"], answers["end"]))
    found = data.fingerprint(table.to_batches(), ["entity", "start", "end", "intervals"])
    return result | {"rows": table.num_rows, "right": found == answers["missing"]}


def change(job: Job, call) -> dict:
    """A commit that changes rows of a table laid before, in another process."""
    source, columns = job.load(f".{job.fix}"), job.names()
    job.peer.open(job.spec)
    before = meter.on_disk(job.peer.path(job.spec))["bytes"]
    with meter.Meter(job.peer) as m:
        call(source)
    result = m.result | {"rows": source.num_rows, "sync": meter.sync(job.peer.path(job.spec))}
    result["bytes"] = meter.on_disk(job.peer.path(job.spec))["bytes"] - before
    if job.verify:
        result["right"] = job.holds(job.answers()[job.fix], columns)
    return result


def update(job: Job) -> dict:
    return change(job, lambda source: job.peer.update(job.spec, source, job.columns))


def overwrite(job: Job) -> dict:
    return change(job, lambda source: job.peer.overwrite(job.spec, source))


def optimize(job: Job) -> dict:
    """Rewrite a table that many appends have laid, in another process; a fresh client scans it before and after."""

    def once() -> float:
        began = time.perf_counter()
        for _ in job.peer.another().scan(job.spec):
            pass
        return time.perf_counter() - began

    def scan() -> float:
        return statistics.median(once() for _ in range(3))

    job.peer.open(job.spec)
    before = scan()
    with meter.Meter(job.peer) as m:
        job.peer.optimize(job.spec)
    result = m.result | {"sync": meter.sync(job.peer.path(job.spec)), "before": before, "after": scan()}
    if job.verify:
        result["right"] = job.holds(job.answers()["rows"], job.names())
    return result


def vacuum(job: Job) -> dict:
    """Delete what an optimize has replaced, in another process, and give up the versions before it."""
    path = job.peer.path(job.spec)
    job.peer.ripen(job.spec)
    before = meter.data_files(path)
    with meter.Meter(job.peer) as m:
        job.peer.vacuum(job.spec)
    left = meter.data_files(path)
    result = m.result | {"deleted": before - left}
    if job.verify:
        result["right"] = left == job.peer.live(job.spec) < before and job.holds(job.answers()["rows"], job.names())
    return result


class Appends:
    """Small appends by several clients at once, each append by one of them, until the time or the supply ends."""

    def __init__(self, job: Job, supply: list, seconds: float):
        self.job, self.supply, self.seconds = job, supply, seconds
        self.next = itertools.count()
        self.done, self.walls, self.errors = [], [], []

    def _client(self, peer) -> None:
        while time.perf_counter() < self.deadline and (number := next(self.next)) < len(self.supply):
            began = time.perf_counter()
            try:
                peer.append(self.job.spec, self.supply[number])
            except Exception as error:
                self.errors.append(f"{type(error).__name__}: {error}"[:300])
                return
            self.walls.append(time.perf_counter() - began)
            self.done.append(number)

    def run(self, clients: list) -> None:
        self.deadline = time.perf_counter() + self.seconds
        threads = [threading.Thread(target=self._client, args=(peer,)) for peer in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def small(job: Job) -> dict:
    """Appends of a few rows, on a table of their own or behind the rows of a dataset with that many entities."""
    filled, entities = job.spec.name != "small", job.entities
    supply = [data.small(job.rows, number, entities) for number in range(int(job.seconds * 2_500))]
    if not filled:
        job.peer.create(job.spec, supply[0].schema)
    before = meter.on_disk(job.peer.path(job.spec))["bytes"]
    clients = [job.peer] if job.clients == 1 else [job.peer.another() for _ in range(job.clients)]
    appends = Appends(job, supply, job.seconds)
    with meter.Meter(job.peer) as m:
        appends.run(clients)
    if not appends.walls:
        raise RuntimeError(f"no append succeeded: {appends.errors[:1]}")
    count, walls = len(appends.walls), sorted(appends.walls)
    result = m.result | {"appends": count, "per_second": count / m.result["wall"], "cpu": m.result["cpu"] / count}
    result |= {"wall": m.result["wall"] / count, "median": walls[count // 2], "p99": walls[int(count * 0.99)]}
    result |= {"errors": len(appends.errors), "error": (appends.errors or [None])[0]}
    result["sync"] = meter.sync(job.peer.path(job.spec)) / count
    result["bytes"] = (meter.on_disk(job.peer.path(job.spec))["bytes"] - before) / count
    expected = [batch for number in appends.done for batch in supply[number].to_batches()]
    if filled:
        expected += job.load().to_batches()
    found = data.fingerprint(job.peer.another().scan(job.spec), supply[0].column_names)
    result["lost"] = sum(batch.num_rows for batch in expected) - found[0]
    return result | {"right": found == data.fingerprint(expected, supply[0].column_names) and not appends.errors}


def grow(job: Job) -> dict:
    """One-row appends up to a version, or as far as the time allows; the last 20 tell what a commit costs."""
    have = sum(batch.num_rows for batch in job.peer.scan(job.spec)) if job.have else 0
    if not have:
        job.peer.create(job.spec, data.small(1, 0).schema)
    supply = [data.small(1, number) for number in range(have, job.want)]
    appends = Appends(job, supply, job.seconds)
    with meter.Meter(job.peer) as m:
        appends.run([job.peer])
    if appends.errors:
        raise RuntimeError(appends.errors[0])
    versions, last = have + len(appends.done), appends.walls[-20:]
    result = m.result | {"versions": versions, "wall": statistics.median(last), "worst": max(appends.walls)}
    result |= {
        "early": statistics.median(appends.walls[5:15] or appends.walls),
        "cpu": m.result["cpu"] / len(appends.done),
    }
    result |= meter.on_disk(job.peer.path(job.spec))
    if versions < job.want:
        result["stopped"] = True
    rows = [data.small(1, number).to_batches()[0] for number in range(versions)]
    names = rows[0].schema.names
    return result | {"right": job.holds(data.fingerprint(rows, names), names)}


def cold(job: Job) -> dict:
    """The first look of a fresh process, and a fresh server, at a table of many versions."""
    with meter.Meter(job.peer) as m:
        job.peer.open(job.spec)
    began = time.perf_counter()
    rows = sum(batch.num_rows for batch in job.peer.scan(job.spec))
    return m.result | {"scan": time.perf_counter() - began, "rows": rows}


OPERATIONS = {
    f.__name__: f
    for f in (
        *(append, fill, staged, small, grow),
        *(scan, query, spark, latest, gaps, cold),
        *(update, overwrite, optimize, vacuum),
    )
}


def main() -> None:
    job = Job(json.loads(sys.argv[1]))
    try:
        job.peer.start()
        result = OPERATIONS[job.op](job)
    except peers.NotOffered as reason:
        result = {"not_offered": str(reason)[:300]}
    except Exception as error:
        traceback.print_exc()
        result = {"failed": f"{type(error).__name__}: {error}"[:300]}
    finally:
        job.peer.stop()
    print(json.dumps(result), flush=True)
    os._exit(0)  # the background threads of some peers outlive the main one; the result is out


if __name__ == "__main__":
    main()
