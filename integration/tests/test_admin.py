"""The README's commands run as they stand, and flight-admin's files are what other software reads."""

import re
import subprocess

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import service

WEATHER = service.ROOT / "integration" / "testdata" / "weather.parquet"


@pytest.fixture
def admin(tmp_path):
    """Runs flight-admin on a directory of its own and returns what it prints."""

    def run(*args, **options):
        command = [service.ADMIN, "--warehouse", tmp_path / "warehouse", *args]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, **options).stdout

    return run


def test_the_readmes_commands_run(admin, tmp_path):
    blocks = re.findall(r"```sh\n(.*?)```", (service.ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        script = block.replace("./warehouse", str(tmp_path / "warehouse"))
        run = subprocess.run(["sh", "-e", "-c", script], cwd=service.ROOT, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        assert "appended 26115 rows" in run.stdout
        assert "█" in run.stdout


def test_files_go_both_ways(admin, tmp_path):
    created = ("--index-column", "time_hour", "--index-granularity", "1h", "--entity-columns", "origin")
    admin("create", "weather", *created)
    admin("append", "weather", WEATHER)
    columns = ["origin", "time_hour", "temp", "wind_gust"]
    want = pq.read_table(WEATHER, columns=columns).sort_by([("origin", "ascending"), ("time_hour", "ascending")])
    admin("scan", "weather", "--columns", ",".join(columns), "--output", "rows.parquet")
    assert pq.read_table(tmp_path / "rows.parquet").cast(want.schema).equals(want)
    admin("scan", "weather", "--columns", ",".join(columns), "--output", "rows.arrow")
    assert pa.ipc.open_file(tmp_path / "rows.arrow").read_all().cast(want.schema).equals(want)
    stream = admin("scan", "weather", "--columns", ",".join(columns), "--format", "arrows")
    assert pa.ipc.open_stream(stream).read_all().cast(want.schema).equals(want)

    pa.csv.write_csv(want, tmp_path / "theirs.csv")  # which writes times with a blank and a Z
    admin("create", "copy", *created, "--schema-from", "rows.parquet")
    admin("append", "copy", "theirs.csv")
    assert pa.ipc.open_stream(admin("scan", "copy", "--format", "arrows")).read_all().cast(want.schema).equals(want)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, want.schema) as writer:
        writer.write_table(want)
    admin("create", "stream", *created)
    admin("append", "stream", "-", "--format", "arrows", input=sink.getvalue().to_pybytes())
    assert pa.ipc.open_stream(admin("scan", "stream", "--format", "arrows")).read_all().cast(want.schema).equals(want)
