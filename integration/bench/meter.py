"""What a call costs: time, CPU, memory, bytes on disk. Linux only, by /proc."""

import contextlib
import os
import pathlib
import time

TICK = os.sysconf("SC_CLK_TCK")


def memory_mb(process: int | str, key: str) -> float:
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(key)) / 1024


def cpu_seconds(process: int | str) -> float:
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def busy_seconds() -> float:
    """CPU seconds that all cores have spent on anything since the machine started."""
    fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return (sum(fields[:3]) + sum(fields[5:8])) / TICK


class Meter:
    """Measures a block over this process and its servers.

    `wall`: seconds. `cpu`: CPU seconds, user and system. `over_mb`: peak resident memory above that at the start,
    summed over the processes; `server_mb`: the servers' part. `foreign`: cores that others kept busy meanwhile.
    """

    def __init__(self, peer):
        self.processes = ["self", *peer.servers()]

    def __enter__(self):
        for process in self.processes:
            with contextlib.suppress(OSError):  # else the peak counts from the start of the process
                pathlib.Path(f"/proc/{process}/clear_refs").write_text("5")
        self.before = [(cpu_seconds(process), memory_mb(process, "VmRSS")) for process in self.processes]
        self.busy, self.began = busy_seconds(), time.perf_counter()
        return self

    def __exit__(self, *_):
        wall, busy = time.perf_counter() - self.began, busy_seconds() - self.busy
        cpu = sum(cpu_seconds(process) - before for process, (before, _) in zip(self.processes, self.before))
        over = [memory_mb(process, "VmHWM") - before for process, (_, before) in zip(self.processes, self.before)]
        self.result = {
            "wall": wall,
            "cpu": cpu,
            "over_mb": sum(over),
            "foreign": max(0.0, busy - cpu) / max(wall, 1e-9),
        }
        if len(over) > 1:
            self.result["server_mb"] = sum(over[1:])


def on_disk(folder: pathlib.Path) -> dict:
    """Bytes and files below a folder."""
    found = {"bytes": 0, "files": 0}
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # a peer's background work may still tidy up
            if path.is_file():
                found["bytes"] += path.stat().st_size
                found["files"] += 1
    return found


def data_files(folder: pathlib.Path) -> int:
    """Parquet files of rows below a folder: what lies beside them is some table's log or metadata."""
    others = {"_delta_log", "_contrail", "metadata"}
    return sum(others.isdisjoint(path.relative_to(folder).parts) for path in folder.rglob("*.parquet"))


def sync(folder: pathlib.Path) -> float:
    """fsync every file and folder, in seconds: what a peer that does not do so leaves to its caller."""
    began = time.perf_counter()
    for parent, _, names in os.walk(folder):
        for path in [*(os.path.join(parent, name) for name in names), parent]:
            with contextlib.suppress(FileNotFoundError):
                descriptor = os.open(path, os.O_RDONLY)
                os.fsync(descriptor)
                os.close(descriptor)
    return time.perf_counter() - began
