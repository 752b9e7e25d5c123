"""`make demo` shows what it promises."""

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
