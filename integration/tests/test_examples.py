"""The programs in integration/examples run as they stand, and the pages about them show their lines."""

import re
import subprocess
import sys

import pytest

import service

FOLDER = service.ROOT / "integration/examples"
PAGES = [service.ROOT / "integration/docs" / name for name in ("python.md", "duckdb-polars.md")]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_runs(server, path):
    command = [sys.executable, path, server.uri, server.warehouse]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout and "aligned" not in done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_lines_of_the_examples(page):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    code = "\n".join(path.read_text() for path in sorted(FOLDER.glob("*.py")))
    lines = {line.strip() for line in code.splitlines()}
    assert blocks
    for block in blocks:
        for line in block.splitlines():
            assert line.strip() in lines, line


def test_the_pages_name_every_example():
    text = "".join(page.read_text() for page in PAGES)
    for path in FOLDER.glob("*.py"):
        assert f"examples/{path.name}" in text
