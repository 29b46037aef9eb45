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


# Calls with every type of argument that the docstrings allow.
CALLS = """
from fractions import Fraction
from pathlib import Path

import grundy
import numpy as np
from grundy.bursts import Blocks, find_bursts
from grundy.period import Array

run = grundy.open_run(Path("r"))
n = np.int64(3)
value: int = run[n]
run.values(n, n)
run.chunks(n, n, n)
run.zeros(n, n), run.records(n, n), run.first(n, n), run.histogram(n, n), run.rares(n, n)
run.positions(np.uint16(5), end=n, start=n, stop=n)
run.to_arrow(n, n), run.to_batches(n, n)
run.to_parquet(Path("p"), n, n)
for tail in (1, 0.5, Fraction(1, 2), np.float32(0.5), np.int8(1)):
    grundy.find_period(run, tail, n, n)
grundy.find_period(Array(Path("v.npy")))
find_bursts(run, np.uint8(9), n, n, Blocks(n, np.float64(0.5), n))
find_bursts(run, 9, blocks=Blocks(8, Fraction(1, 3), 0))
grundy.bursts.find_bursts(run, 9), grundy.period.Array("v.npy")
version: str = grundy.__version__
"""


def test_calls_that_the_docstrings_allow_have_types(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "calls.py").write_text(CALLS)
    command = [sys.executable, *COMMANDS["mypy"], str(tmp_path / "calls.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_misspelt_names_and_assignments_are_type_errors(tmp_path):
    pytest.importorskip("mypy")
    lines = ["import grundy", 'run = grundy.opn_run("r")', 'grundy.open_run("r").count = 5']
    (tmp_path / "calls.py").write_text("\n".join(lines))
    command = [sys.executable, *COMMANDS["mypy"], str(tmp_path / "calls.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert 'has no attribute "opn_run"' in done.stdout and '"count"' in done.stdout


@pytest.mark.parametrize("module", COMMANDS)
def test_sources_are_clean(module):
    pytest.importorskip(module)
    command = [sys.executable, *COMMANDS[module]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
