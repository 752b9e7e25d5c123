"""`make bench` at a tiny scale, with a peer that the tests have anyway: it measures, checks and reports."""

import subprocess
import sys

import service

BENCH = [sys.executable, "integration/bench/bench.py", "--quick", "--scale", "0.001", "--rounds", "2"]
BENCH += ["--budget", "600", "--patience", "600"]  # every round is there, however slow the machine
PEERS = ["--peers", "contrail,contrail_sorted,duckdb"]


def bench(work, only, *more):
    command = [*BENCH, *PEERS, "--work", work, "--only", only, *more]
    run = subprocess.run(command, cwd=service.ROOT, capture_output=True, text=True)
    page = work / "BENCHMARKS.md"
    assert page.exists(), run.stdout + run.stderr
    return run, page.read_text()


def section(page: str, name: str) -> dict[str, list[str]]:
    """A workload's table: the title of a peer → its cells."""
    lines = page.split(f"\n## `{name}`")[1].split("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {cells[0]: cells[1:] for cells in rows[2:]}


def test_every_peer_is_measured_and_its_rows_are_checked(built, tmp_path):
    run, page = bench(tmp_path, "scan.full,small.1x1")
    assert run.returncode == 0, run.stdout + run.stderr
    assert " round 2 " in run.stderr, "progress"
    assert section(page, "append.ordered").keys() == {"Contrail", "DuckDB"}, "the table that scan.full reads is laid"
    for name, peers in (
        ("scan.full", {"Contrail", "Contrail, sorted", "DuckDB"}),
        ("small.1x1", {"Contrail", "DuckDB"}),
    ):
        rows = section(page, name)
        assert rows.keys() == peers
        assert all(cells[-1] == "yes" for cells in rows.values()), page
        assert all(cells[1].startswith("±") for cells in rows.values()), page  # two rounds
    assert "| append in no order against DuckDB COPY ORDER BY | ≥ 1.5× | ≥ 2.5× | – | not measured |" in page
    assert "Only 0.1% of the rows" in page

    again, same = bench(tmp_path, "scan.full,small.1x1", "--resume")
    assert again.returncode == 0 and " round " not in again.stderr, "nothing was left to measure"
    assert same == page


def test_engines_over_the_service_and_staged_appends(built, tmp_path):
    run, page = bench(
        tmp_path, "query.full,append.staged", "--rounds", "1", "--peers", "contrail,contrail_files,contrail_put"
    )
    assert run.returncode == 0, run.stdout + run.stderr
    for name, other in (("query.full", "DuckDB on Contrail's files"), ("append.staged", "Contrail, one DoPut")):
        rows = section(page, name)
        assert rows.keys() == {"Contrail", other} and all(cells[-1] == "yes" for cells in rows.values()), page


def test_a_vacuum_deletes_what_an_optimize_has_replaced(built, tmp_path):
    run, page = bench(tmp_path, "vacuum.files", "--rounds", "1")
    assert run.returncode == 0, run.stdout + run.stderr
    assert section(page, "optimize.files").keys() == {"Contrail"}, "the table is laid and optimized"
    cells = section(page, "vacuum.files")["Contrail"]
    assert cells[-2:] == ["100", "yes"], page
    assert "| vacuum after it against deltalake | ≥ 1× | ≥ 2× | – | not measured |" in page


def test_a_peer_that_hangs_is_reported_and_the_run_goes_on(built, tmp_path):
    run, page = bench(tmp_path, "append.shuffled", "--patience", "0.05")
    assert "Contrail was wrong or failed" in run.stderr
    assert all(cells[0] == "no end after 0.05 s" for cells in section(page, "append.shuffled").values()), page
