"""The programs in integration/spark/examples run as they stand, and the page about Spark shows their lines."""

import re
import runpy

import pytest

import service
import spark_session

FOLDER = service.ROOT / "integration/spark/examples"
PAGE = service.ROOT / "integration/docs/spark.md"
PRINTED = {
    "batch": ["24 readings of one meter", "50 averages", "2400 rows, counted", "50 newest rows"],
    "streaming": ["9 alarms"],
}


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_an_example_runs(built, spark, name, tmp_path_factory, capsys):
    def run():
        folder = tmp_path_factory.mktemp(name)
        more = [str(folder / "checkpoint")] if name == "streaming" else []
        with service.Service(folder / "warehouse") as server:
            runpy.run_path(str(FOLDER / f"{name}.py"))["main"](spark.session, server.uri, *more)

    spark_session.stream(run)
    printed = capsys.readouterr().out
    for text in PRINTED[name]:
        assert text in printed


def test_the_page_shows_lines_of_the_examples():
    text = PAGE.read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    lines = {line.strip() for path in FOLDER.glob("*.py") for line in path.read_text().splitlines()}
    assert blocks
    for block in blocks:
        for line in block.splitlines():
            assert line.strip() in lines, line
    for path in FOLDER.glob("*.py"):
        assert f"examples/{path.name}" in text
