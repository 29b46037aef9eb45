"""Runs the commands of docs/TUTORIAL.md as a reader types them. GRUNDY_BIN names the program."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PAGE = os.path.join(ROOT, "docs", "TUTORIAL.md")

pytestmark = pytest.mark.skipif("GRUNDY_BIN" not in os.environ, reason="GRUNDY_BIN is not set")


def commands():
    """The lines of the blocks in `sh`; blocks in `console` install software and are not run."""
    with open(PAGE, encoding="utf-8") as page:
        blocks = re.findall(r"^```sh\n(.*?)^```", page.read(), re.M | re.S)
    return [line for block in blocks for line in block.splitlines()]


@pytest.fixture
def place(tmp_path):
    """A directory like the root of the repository, without its runs."""
    for name in ["scripts", "python"]:
        (tmp_path / name).symlink_to(os.path.join(ROOT, name))
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "grundy").symlink_to(os.path.abspath(os.environ["GRUNDY_BIN"]))
    (tools / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tools / "python3").chmod(0o755)
    return tmp_path


def test_commands_of_the_tutorial_do_what_it_says(place):
    draws = importlib.util.find_spec("matplotlib") is not None
    environment = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"}
    printed = {}
    lines = commands()
    assert len(lines) > 10
    for line in lines:
        if "plot.py" in line and not draws:
            continue
        shell = ["bash", "-c", line]
        done = subprocess.run(shell, cwd=place, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        printed[line] = done.stdout
    zeros = printed["grundy find runs/grundy --zeros"].splitlines()
    assert (len(zeros), zeros[-1]) == (42, "1222 0")  # OEIS A036685
    assert "period 12, preperiod 71" in printed["grundy verify kayles.json"]
    with open(place / "b002188.txt", encoding="ascii") as table:
        assert table.read().splitlines()[:6] == ["0 0", "1 0", "2 0", "3 1", "4 0", "5 2"]
    if draws:
        assert (place / "density.png").stat().st_size > 10_000
        assert (place / "records.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")
