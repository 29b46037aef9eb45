"""Tests of the sources: types, lints, and no syntax or name newer than Python 3.9."""

import os
import subprocess
import sys

import pytest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


COMMANDS = {
    "mypy": ["-m", "mypy", "--cache-dir", os.path.join("target", "mypy")],
    "ruff": ["-m", "ruff", "check", "--no-cache", "--output-format", "concise"],
    "vermin": ["-c", "import vermin; vermin.main()", "-t=3.9-", "--no-tips", "python", "scripts"],
}


@pytest.mark.parametrize("module", COMMANDS)
def test_sources_are_clean(module):
    pytest.importorskip(module)
    command = [sys.executable, *COMMANDS[module]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
