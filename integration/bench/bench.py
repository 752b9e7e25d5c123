"""Append and full scan of generated ticks: Contrail over Flight beside DuckDB and deltalake in process.

    make bench             10 M rows, 3 rounds; writes integration/BENCHMARKS.md
    make bench QUICK=1     1 M rows, printed only

Every measurement is a fresh process (and a fresh server), systems take turns inside a round and whole rounds are
repeated, so that a ratio compares neighbours in time. The clock runs over the call alone: imports and loading of the
rows are left out, the server's fsyncs are in. What the others do not sync is synced after their call and timed apart.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import pyarrow as pa
import pyarrow.compute as pc

import client
import service
import ticks

DATA = HERE / "data"
BATCH_ROWS = 65_536
ORDERS = ("ordered", "shuffled")


class Contrail:
    """The server on loopback, its client in this process; sorted, checked for duplicates, fsynced; scans are sorted."""

    order = "entity_index"

    def __init__(self, folder):
        self.server = service.Service(folder / "warehouse").start()
        self.client = client.Client(self.server.uri)

    def create(self, schema):
        columns = [{"name": f.name, "type": str(f.type), "nullable": f.nullable} for f in schema]
        self.client.act(
            "create_table",
            table="ticks",
            index_column="ts",
            index_granularity="1s",
            entity_columns=["symbol"],
            columns=columns,
        )

    def append(self, rows):
        self.client.append("ticks", rows, max_chunksize=BATCH_ROWS)

    def scan(self):
        return self.client.batches("ticks", order=self.order)

    def servers(self):
        return [self.server]

    def close(self):
        self.client.close()
        self.server.stop()


class Unordered(Contrail):
    """A scan of what Contrail stored, in the order of the files (`order: unordered`)."""

    order = "unordered"


class InProcess:
    """What the two libraries share: no server."""

    def __init__(self, folder):
        self.path = folder / "table"

    def create(self, schema):
        pass

    def servers(self):
        return []

    def close(self):
        pass


# DuckDB and deltalake are imported where they are used, so that one's pages do not count as another's memory.
class DuckDB(InProcess):
    """COPY … ORDER BY symbol, ts TO one Parquet file: sorted, no check, no commit, no fsync."""

    order = " ORDER BY symbol, ts"

    def __init__(self, folder):
        super().__init__(folder)
        import duckdb

        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")

    def append(self, rows):
        self.path.mkdir()
        self.connection.register("rows", rows)
        self.connection.execute(
            f"COPY (SELECT * FROM rows{self.order}) TO '{self.path / 'ticks.parquet'}' (FORMAT parquet)"
        )

    def scan(self):
        return self.connection.execute(f"SELECT * FROM read_parquet('{self.path}/*.parquet')").to_arrow_reader(122_880)


class DuckDBUnsorted(DuckDB):
    """COPY … TO one Parquet file in the order of arrival: no sort, no check, no commit, no fsync."""

    order = ""


class Deltalake(InProcess):
    """write_deltalake: the order of arrival, a Delta commit, no check, no fsync."""

    def append(self, rows):
        import deltalake

        deltalake.write_deltalake(self.path, rows, mode="append")

    def scan(self):
        import deltalake

        return deltalake.DeltaTable(self.path).to_pyarrow_dataset().scanner().to_reader()


READS_OF = {"Contrail, unordered": "Contrail"}  # these append nothing of their own
SYSTEMS = {
    "Contrail": Contrail,
    "Contrail, unordered": Unordered,
    "DuckDB COPY ORDER BY": DuckDB,
    "DuckDB COPY": DuckDBUnsorted,
    "deltalake": Deltalake,
}


# -- one measurement, in a process of its own ---------------------------------------------------------


def vm_mb(key: str) -> float:
    status = pathlib.Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(key)) / 1024


def reset_peak() -> None:
    """Start VmHWM anew, so that what came before the measured call does not count; the input itself does."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def load(order: str, rows: int) -> pa.Table:
    """The rows in private memory, so that page-cache mappings do not count as somebody's."""
    with pa.OSFile(str(DATA / f"{order}-{rows}.arrow"), "rb") as source, pa.ipc.open_file(source) as reader:
        return reader.read_all()


def sync(folder: pathlib.Path) -> float:
    """fsync every file and folder, in seconds: what a library that does not do so leaves to its caller."""
    began = time.perf_counter()
    for parent, _, names in os.walk(folder):
        for path in [*(os.path.join(parent, name) for name in names), parent]:
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
    return time.perf_counter() - began


def size(folder: pathlib.Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def fingerprint(batches) -> list[int]:
    """Rows and sums that no lost, doubled or torn row leaves as they were; the order does not matter."""
    rows = times = sizes = flags = venues = cents = 0
    for batch in batches:
        rows += batch.num_rows
        times += pc.sum(pc.subtract(batch["ts"].cast(pa.int64()), ticks.START)).as_py() or 0
        sizes += pc.sum(batch["size"]).as_py() or 0
        flags += pc.sum(batch["flag"]).as_py() or 0
        venues += batch["venue"].null_count
        cents += pc.sum(pc.round(pc.multiply(batch["price"], 100.0)).cast(pa.int64())).as_py() or 0
    return [rows, times, sizes, flags, venues, cents]


class Meter:
    """Wall, CPU and peak memory of a block, the server's included; and what others did on the machine meanwhile."""

    def __init__(self, subject):
        self.servers = subject.servers()

    def _cpu(self) -> float:
        return time.process_time() + sum(server.cpu_seconds() for server in self.servers)

    def __enter__(self):
        reset_peak()
        self.cpu, self.busy, self.began = self._cpu(), busy_seconds(), time.perf_counter()
        return self

    def __exit__(self, *_):
        wall = time.perf_counter() - self.began
        cpu = self._cpu() - self.cpu
        self.result = {
            "wall": wall,
            "cpu": cpu,
            "foreign": max(0.0, busy_seconds() - self.busy - cpu) / wall,
            "client_mb": vm_mb("VmHWM"),
            "server_mb": sum(server.peak_mb() for server in self.servers) if self.servers else None,
        }


def busy_seconds() -> float:
    """CPU seconds that all cores have spent on anything since the machine started."""
    fields = [int(f) for f in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return (sum(fields[:3]) + sum(fields[5:7])) / os.sysconf("SC_CLK_TCK")


def measure(system: str, work: str, order: str, rows: int, folder: pathlib.Path) -> dict:
    """Do one append or one scan and say what it took."""
    table = load(order, rows) if work == "append" else None
    subject = SYSTEMS[system](folder)
    if work == "append":
        subject.create(table.schema)
        with Meter(subject) as meter:
            subject.append(table)
        right = True  # the scan that follows counts and sums
    else:
        with Meter(subject) as meter:
            seen = sum(batch.num_rows for batch in subject.scan())
        right = seen == rows and fingerprint(subject.scan()) == json.loads((DATA / f"{rows}.json").read_text())
    subject.close()
    unsynced = sync(folder) if work == "append" else None
    return meter.result | {"right": right, "sync": unsynced, "bytes": size(folder)}


# -- the whole run ----------------------------------------------------------------------------------


def prepare(rows: int) -> None:
    """Generate the rows once; they stay in a git-ignored folder."""
    DATA.mkdir(exist_ok=True)
    for order in ORDERS:
        target = DATA / f"{order}-{rows}.arrow"
        if target.exists():
            continue
        table = ticks.make(rows, shuffled=order == "shuffled")
        with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=BATCH_ROWS)
        (DATA / f"{rows}.json").write_text(json.dumps(fingerprint(table.to_batches())))


def run(rows: int, rounds: int) -> dict:
    """All measurements: (order, work, system) → list of results, one a round."""
    results = {}
    for number in range(rounds):
        for order in ORDERS:
            systems = list(SYSTEMS)
            systems = systems[number % len(systems) :] + systems[: number % len(systems)]
            with tempfile.TemporaryDirectory(dir=DATA) as scratch:
                for work in ("append", "scan"):
                    for system in systems:
                        if work == "append" and system in READS_OF:
                            continue
                        folder = pathlib.Path(scratch) / READS_OF.get(system, system).replace(" ", "_")
                        folder.mkdir(exist_ok=True)
                        command = [sys.executable, __file__, "--measure", system, work, order, str(rows), str(folder)]
                        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                        result = json.loads(out.splitlines()[-1])
                        if not result["right"]:
                            sys.exit(f"{system} {work} {order}: wrong rows")
                        results.setdefault((order, work, system), []).append(result)
                        told = f"{result['wall']:.2f} s, CPU {result['cpu']:.2f} s"
                        print(f"round {number + 1} {order:8} {work:6} {system:20} {told}", flush=True)
                shutil.rmtree(scratch, ignore_errors=True)
                pathlib.Path(scratch).mkdir()
    return results


def median(results: list[dict], key: str) -> float | None:
    values = [r[key] for r in results if r.get(key) is not None]
    return statistics.median(values) if values else None


def report(results: dict, rows: int, rounds: int) -> str:
    lines = []
    titles = {
        ("ordered", "append"): "Append, rows in time order",
        ("shuffled", "append"): "Append, rows in no order",
        ("ordered", "scan"): "Full scan of what the ordered append stored",
        ("shuffled", "scan"): "Full scan of what the shuffled append stored",
    }
    for (order, work), title in titles.items():
        own = {key: median(results[order, work, "Contrail"], key) for key in ("wall", "cpu")}
        fsync = " fsync after it, s |" if work == "append" else ""
        lines += [
            f"\n## {title}\n",
            f"| system | s (each round) | million rows/s | time ÷ ours | CPU s | CPU ÷ ours |{fsync}"
            " client peak MB | server peak MB | Parquet MB |",
            "| --- | --- | --- | --- | --- | --- |" + (" --- |" if fsync else "") + " --- | --- | --- |",
        ]
        for system in [name for name in SYSTEMS if (order, work, name) in results]:
            found = results[order, work, system]
            wall, cpu = median(found, "wall"), median(found, "cpu")
            each = ", ".join(f"{r['wall']:.2f}" for r in found)
            sync_cell = f" {median(found, 'sync'):.2f} |" if fsync else ""
            server = median(found, "server_mb")
            lines.append(
                f"| {system} | **{wall:.2f}** ({each}) | {rows / wall / 1e6:.1f} | {wall / own['wall']:.2f} |"
                f" {cpu:.2f} | {cpu / own['cpu']:.2f} |{sync_cell} {median(found, 'client_mb'):.0f} |"
                f" {'–' if server is None else f'{server:.0f}'} | {median(found, 'bytes') / 1e6:.0f} |"
            )
    foreign = statistics.median(r["foreign"] for found in results.values() for r in found)
    return (
        HEAD.format(
            rows=rows,
            rounds=rounds,
            cores=os.cpu_count(),
            foreign=foreign,
            python=platform.python_version(),
            versions=", ".join(
                f"{name} {importlib.metadata.version(name)}" for name in ("pyarrow", "duckdb", "deltalake")
            ),
            systems="\n".join(f"- **{name}**: {kind.__doc__}" for name, kind in SYSTEMS.items()),
        )
        + "\n".join(lines)
        + "\n"
    )


HEAD = """# Benchmarks

Made by `make bench`; only ratios within this one run mean anything, and ±15 % is noise. {rows:,} generated ticks (`ts`
timestamp in µs, 1,000 symbols, price, size, flag, venue with nulls; one row per symbol and second), {rounds} rounds of
fresh processes in turn, medians, {cores} cores shared by client and server, files in the page cache. Python {python},
{versions}. Every scan's rows are counted and summed against the generated ones.

{systems}

Client peak is VmHWM of the measuring process from the start of the call, its input table included; server peak is VmHWM
of the server's process. Contrail's time includes its fsyncs and the way through Flight; the others hand their rows over
in the same process, and what they leave unsynced is timed apart. Contrail's CPU counts server and client. Other work on
the machine took {foreign:.1f} cores meanwhile (median): where that is much, CPU says more than time.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, help="a multiple of 1,000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--measure", nargs=5, metavar=("SYSTEM", "WORK", "ORDER", "ROWS", "FOLDER"), help=argparse.SUPPRESS
    )
    options = parser.parse_args()
    if options.measure:
        system, work, order, rows, folder = options.measure
        print(json.dumps(measure(system, work, order, int(rows), pathlib.Path(folder))))
        return
    service.build()
    quick = bool(os.environ.get("QUICK")) or options.rows is not None
    rows = options.rows or (1_000_000 if quick else 10_000_000)
    prepare(rows)
    text = report(run(rows, options.rounds), rows, options.rounds)
    print(text)
    if not quick:
        (HERE.parent / "BENCHMARKS.md").write_text(text)


if __name__ == "__main__":
    main()
