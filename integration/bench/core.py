"""The engine's own benchmarks as a section of integration/BENCHMARKS.md.

    make bench             after bench.py has written the page
    make bench QUICK=1     printed only

Runs the Go benchmarks beside the code and turns their lines into a table: commits per second of small appends, their
cost behind a long history, cold open and warm plans over 10,000 files, sorted scans over 1,000 files.
"""

import os
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PAGE = HERE.parent / "BENCHMARKS.md"
TITLE = "## Inside the engine"
BENCHMARKS = "^(BenchmarkAppend|BenchmarkOpen|BenchmarkPlan|BenchmarkScan)$/^(history|files=1000[0-9]*)"
HEAD = f"""{TITLE}

Go benchmarks of `tablecore` on local disk (appends, open) and in memory (plans, scans), run by `make bench` after the
above: `go test -run '^$' -bench '{BENCHMARKS}' ./tablecore`. Each append is one row, durable, a commit of its own;
`peak-MB` is VmHWM of the process.

| benchmark | time per operation | other figures |
| --- | --- | --- |
"""


def run() -> list[str]:
    """The benchmark lines of one run."""
    command = ["go", "test", "-run", "^$", "-bench", BENCHMARKS, "-timeout", "30m", "./tablecore"]
    out = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [line for line in out.splitlines() if line.startswith("Benchmark")]


def row(line: str) -> str:
    """A benchmark's line as a row of the table."""
    name, _, *figures = line.split()
    pairs = dict(zip(figures[1::2], figures[::2], strict=True))
    time = float(pairs.pop("ns/op"))
    unit, scale = next((u, s) for u, s in (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1)) if time >= s or s == 1)
    others = ", ".join(f"{float(value):,.0f} {key}" for key, value in pairs.items())
    return f"| `{re.sub(r'-[0-9]+$', '', name.removeprefix('Benchmark'))}` | {time / scale:.3g} {unit} | {others} |"


def main() -> None:
    section = HEAD + "\n".join(row(line) for line in run()) + "\n"
    print(section)
    if not os.environ.get("QUICK"):
        before = PAGE.read_text(encoding="utf-8").split(TITLE)[0].rstrip()
        PAGE.write_text(before + "\n\n" + section, encoding="utf-8")


if __name__ == "__main__":
    main()
