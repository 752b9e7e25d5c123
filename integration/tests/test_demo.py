"""`make demo` shows what it promises, and `make bench` measures right rows."""

import subprocess
import sys

import service


def test_the_demo_runs_and_prints_each_step(built):
    run = subprocess.run([sys.executable, "integration/demo.py"], cwd=service.ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    for shown in (
        "start a server on a free port",
        "default.weather version 0",
        "month 12: version 12",
        'INTERVAL_OVERLAP table="default.weather" conflict_count=2228',
        "extra_info: {'token': 'INTERVAL_OVERLAP'",
        "still version 12 with 26115 rows",
        "the server's own count of what it read",
        "26115 rows, the scan had 26115",
        "DuckDB asks it",
        "contrail-timeseries",
    ):
        assert shown in run.stdout, shown


def test_the_benchmark_measures_and_checks_every_system(built):
    command = [sys.executable, "integration/bench/bench.py", "--rows", "2000", "--rounds", "1"]
    run = subprocess.run(command, cwd=service.ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("| Contrail, unordered | **") == 2
    for system in ("Contrail", "DuckDB COPY ORDER BY", "DuckDB COPY", "deltalake"):
        assert run.stdout.count(f"| {system} | **") == 4
