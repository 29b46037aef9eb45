"""Tests of what the scripts have in common: the exit status for errors of stdout and for Ctrl-C."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from documented import write_runs

SCRIPTS = os.path.join(os.path.dirname(__file__), "..", "..", "scripts")
NAMES = ["bursts.py", "find_period.py", "results.py", "open_games.py"]


@pytest.fixture
def words(tmp_path):
    """The words of a command for each script."""
    write_runs(tmp_path)
    (tmp_path / "survey").write_text(
        "game,status,max_value,max_at,rares,last_rare,mask,position,checked_through,digest\n"
        "0.6,none,9,5,3,4,0x7,1,1000,a\n"
    )
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho \'{"equivalent": [], "period": null}\'\n')
    program.chmod(0o755)
    run = tmp_path / "runs" / "grundy"
    of_survey = [tmp_path / "survey", "--program", program]
    arguments = {"bursts.py": [run], "find_period.py": [run], "results.py": [run]}
    arguments["open_games.py"] = of_survey
    return {
        name: [sys.executable, os.path.join(SCRIPTS, name), *map(str, arguments[name])]
        for name in NAMES
    }


@pytest.mark.parametrize("name", NAMES)
def test_full_disk_and_closed_stdout_are_status_1(words, name, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # with it, argparse ignores the error
    for arguments in ([], ["--help"]):
        command = [*words[name], *arguments]
        with open("/dev/full", "w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        expected = f"{name}: stdout cannot be written: No space left on device; "
        assert done.returncode == 1 and done.stderr.startswith(expected)
        assert done.stderr.count("\n") == 1
        shell = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
        done = subprocess.run(shell, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and done.stderr.startswith(f"{name}: stdout is closed; ")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", NAMES)
def test_closed_pipe_is_no_error(words, name):
    with subprocess.Popen(
        words[name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_ctrl_c_is_status_130(words, tmp_path):
    os.mkfifo(tmp_path / "runs.jsonl")
    command = [*words["open_games.py"], "--runs", str(tmp_path / "runs.jsonl")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        with open(tmp_path / "runs.jsonl", "w"):  # returns when the script waits for a line
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=60)
    assert (process.returncode, *said) == (130, "", "open_games.py: stopped\n")


@pytest.mark.parametrize("name", ["bursts.py", "find_period.py", "results.py"])
def test_errors_begin_with_the_name_of_the_script(tmp_path, name):
    np.save(tmp_path / "none.npy", np.zeros(3))
    command = [sys.executable, os.path.join(SCRIPTS, name), str(tmp_path / "none.npy")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith(f"{name}: '{tmp_path}")
