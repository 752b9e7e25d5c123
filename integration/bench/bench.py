"""Contrail beside what people would use instead: runs the workloads of workloads.py and writes the page and the plots.

    make bench                   everything, twenty minutes on two quiet cores; integration/BENCHMARKS.md and plots
    make bench QUICK=1           a twentieth of the rows, one round, under five minutes; into bench/data/
    make bench ONLY=append,scan  the workloads whose names begin so (and those that lay their tables); into bench/data/
    make bench RESUME=1          go on where a run was broken off

Each measurement is a fresh process (and a fresh server); peers take turns within a workload, and whole rounds are
repeated, so that a ratio compares neighbours in time. This driver never imports a library that is measured. A peer that
fails or hangs is reported so, and the run goes on.
"""

import argparse
import collections
import contextlib
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
import zlib

import report
import workloads
from peers import PEERS
from results import MISSING

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DATA = HERE / "data"
PACKAGES = ("pyarrow", "duckdb", "deltalake", "polars", "timeseries-table-format", "timelake", "pyspark", "numpy")


def run_child(command: list, seconds: float, **options) -> tuple[str | None, str]:
    """A command's output, None if it took too long, and its last words; nothing that it started survives it."""
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **options
    )
    try:
        out, err = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        out, err = None, ""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    return out, err.strip()[-300:]


class Run:
    """One run: its settings, what has been measured, where things lie."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        source = b"".join(path.read_bytes() for path in (HERE / "data.py", ROOT / "integration" / "ticks.py"))
        self.data = options.work / f"rows-{options.scale:g}-{zlib.crc32(source):08x}"
        self.tables = options.work / "tables"
        self.log = options.work / ("part.jsonl" if options.only or options.peers else "results.jsonl")
        self.results = []
        self.spent = collections.Counter()  # (workload, peer) → seconds
        self.deadline = time.monotonic() + 60 * options.minutes

    def begin(self) -> None:
        """Clear the working folder, or read what an earlier run has left there."""
        self.options.work.mkdir(parents=True, exist_ok=True)
        if self.options.resume and self.log.exists():
            lines = [json.loads(line) for line in self.log.read_text().splitlines()]
            self.facts, self.results = lines[0], lines[1:]
            if self.facts["scale"] != self.options.scale:
                sys.exit(f"the run to go on with is of scale {self.facts['scale']:g}")
            commit = machine()["commit"]
            if commit not in self.facts["commit"].split(", "):  # a page of several says so
                self.facts["commit"] += f", {commit}"
                self.log.write_text("".join(json.dumps(line) + "\n" for line in (self.facts, *self.results)))
            return
        shutil.rmtree(self.tables, ignore_errors=True)
        for old in self.options.work.glob("rows-*"):  # of other rows than these
            if old != self.data:
                shutil.rmtree(old)
        self.facts = machine() | {"scale": self.options.scale, "rounds": self.options.rounds}
        self.log.write_text(json.dumps(self.facts) + "\n")

    def record(self, workload: str, peer: str, number: int, result: dict) -> None:
        entry = {"workload": workload, "peer": peer, "round": number} | result
        self.results.append(entry)
        with open(self.log, "a") as log:
            log.write(json.dumps(entry) + "\n")
        progress = f"{time.strftime('%H:%M:%S')} round {number} {workload:14} {peer:16} {report.brief(entry)}"
        print(progress, file=sys.stderr, flush=True)

    def wanted(self, workload: str, peer: str, number: int, once: bool) -> bool:
        """Whether the peer is to be measured in this round: not again if it failed, was slow, or time is up."""
        mine = [r for r in self.results if r["workload"] == workload and r["peer"] == peer]
        if any(r["round"] == number for r in mine) or any(key in r for r in mine for key in MISSING):
            return False
        if number == 1:
            return True
        return not once and self.spent[workload, peer] < self.options.budget and time.monotonic() < self.deadline

    def measure(self, settings: dict, peer: str, folder: pathlib.Path, verify: bool) -> dict:
        settings = settings | {"peer": peer, "folder": str(folder), "data": str(self.data), "verify": verify}
        command = [sys.executable, HERE / "measure.py", json.dumps(settings)]
        out, err = run_child(command, self.options.patience)
        if out is None:
            return {"timeout": self.options.patience}
        try:
            return json.loads(out.splitlines()[-1])
        except (IndexError, ValueError):
            return {"failed": err or "it ended without a word"}

    def one(self, work: workloads.Workload, peer: str, number: int) -> None:
        """Lay the tables, measure, clear away."""
        began = time.monotonic()
        owner = PEERS[peer].reads_of or peer
        folder = self.tables / (work.reads or work.keep or "passing") / owner
        if not work.reads:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        result = {} if folder.exists() else {"failed": "there is no table to read"}
        for step in (*work.before, work.does):
            if not any(key in result for key in MISSING):
                result = self.measure(step, peer, folder, verify=number == 1 and not work.keep)
        self.spent[work.name, peer] += time.monotonic() - began
        self.record(work.name, peer, number, result)
        if not work.reads and not work.keep:
            shutil.rmtree(folder)

    def go(self, bench: workloads.GoBenchmark, number: int) -> None:
        """A package's Go benchmarks, as results of the workloads that they stand for."""
        wanted = {line: pair for line, pair in bench.lines.items() if self.wanted(*pair, number, bench.once)}
        if not wanted:
            return
        command = ["go", "test", "-run", "^$", "-bench", bench.pattern, "-skip", bench.skip]
        command += ["-benchtime", self.options.benchtime, bench.package]
        out, err = run_child(command, 2 * self.options.patience, cwd=ROOT)
        pattern = r"^(Benchmark\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op(?:\s+([\d.]+) MB/s)?"
        found = {name: figures for name, *figures in re.findall(pattern, out or "", re.MULTILINE)}
        for line, (workload, peer) in wanted.items():
            result = (
                {"timeout": 2 * self.options.patience} if out is None else {"failed": err or f"no benchmark {line}"}
            )
            if line in found:
                ns, rate = found[line]
                result = {"wall": float(ns) / 1e9} | ({"mb_per_second": float(rate)} if rate else {})
            self.record(workload, peer, number, result)

    def all(self) -> None:
        chosen, only = select(workloads.plan(self.options.quick), self.options.only), self.options.only
        benches = [b for b in workloads.GO_BENCHMARKS if any(matches(w, only) for w, _ in b.lines.values())]
        needed = {w.dataset for w in chosen} - {"small"}
        for dataset in sorted(needed):
            subprocess.run([sys.executable, HERE / "data.py", self.data, str(self.options.scale), dataset], check=True)
        for number in range(1, self.options.rounds + 1):
            for work in chosen:
                peers = [p for p in work.peers if not self.options.peers or p in self.options.peers]
                turn = number - 1  # who goes first changes with the round
                for peer in peers[turn:] + peers[:turn]:
                    if self.wanted(work.name, peer, number, work.once):
                        self.one(work, peer, number)
            for bench in benches:
                self.go(bench, number)
        shutil.rmtree(self.tables, ignore_errors=True)


def matches(name: str, only: list[str]) -> bool:
    return not only or any(name.startswith(prefix) for prefix in only)


def select(plan: list[workloads.Workload], only: list[str]) -> list[workloads.Workload]:
    """The chosen workloads, and those that lay the tables that they read."""
    tables = {w.reads for w in plan if matches(w.name, only)}
    return [w for w in plan if matches(w.name, only) or (w.keep and w.keep in tables)]


def machine() -> dict:
    """What the figures were made on and with; no names, no paths."""

    def first(path: str, pattern: str) -> str:
        found = re.search(pattern, pathlib.Path(path).read_text(), re.MULTILINE)
        return found[1].strip() if found else "unknown"

    def told(*command: str) -> str:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()

    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return {
        "date": datetime.date.today().isoformat(),
        # A plus: with changes that are not in the commit.
        "commit": told("git", "rev-parse", "--short=12", "HEAD")
        + ("+" if told("git", "status", "--porcelain") else ""),
        "cores": os.cpu_count(),
        "cpu": first("/proc/cpuinfo", r"^model name\s*:(.*)$"),
        "memory_gb": round(int(first("/proc/meminfo", r"^MemTotal:\s*(\d+)")) / 2**20),
        "system": f"{platform.system()} {platform.release().split('-')[0]}, {platform.machine()}",
        "go": told("go", "env", "GOVERSION").removeprefix("go"),
        "python": platform.python_version(),
        "versions": versions,
    }


def build(stock: bool) -> None:
    """Compile the servers; the stock one, a module of its own, only where it is measured."""
    for folder, package, name in ((ROOT, "./cmd/flightsrv", "flightsrv"), (HERE / "stockflight", ".", "stockflight")):
        if stock or folder == ROOT:
            subprocess.run(["go", "build", "-o", ROOT / "bin" / name, package], cwd=folder, check=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[], help="workloads whose names begin so")
    parser.add_argument("--peers", type=lambda text: text.split(","), default=[], help=", ".join(PEERS))
    parser.add_argument("--resume", action="store_true", help="keep what the last run has measured")
    parser.add_argument("--scale", type=float, help="share of the full number of rows")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--minutes", type=float, default=18, help="no second or third rounds after that")
    parser.add_argument(
        "--budget", type=float, default=14, help="seconds of a workload after which a peer gets no further round"
    )
    parser.add_argument("--patience", type=float, default=90, help="seconds after which a measurement is killed")
    parser.add_argument("--work", type=pathlib.Path, help="folder for rows, tables and results")
    options = parser.parse_args()
    options.work = options.work or DATA / ("quick" if options.quick else "full")
    options.scale = options.scale or (0.05 if options.quick else 1.0)
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.benchtime = "0.2s" if options.quick else "1s"
    return options


def main() -> None:
    options = arguments()
    run = Run(options)
    run.begin()
    build(stock=not options.peers or "stock_flight" in options.peers)
    run.all()
    official = options.scale == 1 and not options.only and not options.peers
    page = ROOT / "integration" / "BENCHMARKS.md" if official else options.work / "BENCHMARKS.md"
    report.write(page, run.facts, run.results, workloads.plan(options.quick))
    print(page.read_text() if not official else "", f"written: {page}", sep="\n")
    ours = [r for r in run.results if r["peer"].startswith("contrail")]
    wrong = [r for r in ours if r.get("right") is False or "failed" in r or "timeout" in r]
    sys.exit(f"Contrail was wrong or failed: {wrong}" if wrong else 0)


if __name__ == "__main__":
    main()
