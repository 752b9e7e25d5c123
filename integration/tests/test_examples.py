"""The programs in integration/examples run as they stand, and the page about them shows their lines."""

import re
import subprocess
import sys

import pytest

import service

FOLDER = service.ROOT / "integration/examples"
PAGE = service.ROOT / "integration/docs/python.md"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_runs(server, path):
    done = subprocess.run([sys.executable, path, server.uri], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_page_shows_lines_of_the_examples():
    text = PAGE.read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    code = "\n".join(path.read_text() for path in sorted(FOLDER.glob("*.py")))
    lines = {line.strip() for line in code.splitlines()}
    assert blocks
    for block in blocks:
        for line in block.splitlines():
            assert line.strip() in lines, line
    for path in FOLDER.glob("*.py"):
        assert f"examples/{path.name}" in text
