"""Tests of scripts/parallel with GNU parallel, and of scripts/slurm with a Slurm of one node.

GRUNDY_BIN names the program. `pytest -s` shows what happens on the cluster.
"""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.dirname(HERE)

pytestmark = pytest.mark.skipif("GRUNDY_BIN" not in os.environ, reason="GRUNDY_BIN is not set")


class Place:
    """A directory in which commands run, with the program."""

    def __init__(self, path):
        self.path = path
        self.program = os.path.abspath(os.environ["GRUNDY_BIN"])
        self.environment = {**os.environ, "GRUNDY": self.program, "HOME": str(path)}

    def ended(self, *words):
        words = [str(word) for word in words]
        return subprocess.run(
            words, cwd=self.path, env=self.environment, capture_output=True, text=True, timeout=300
        )

    def well(self, *words):
        done = self.ended(*words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def grundy(self, line):
        return self.well(self.program, *line.split())

    def done_by_parallel(self, units):
        """The units that the last call of scripts/parallel did, in the order in which they ended."""
        rows = (self.path / f"{units}.joblog").read_text().splitlines()[1:]
        return [row.split("\t")[-1].split()[3] for row in rows]

    def merges_to(self, units, survey):
        """Whether units merge to the table of an undivided survey, byte for byte."""
        self.grundy(f"merge {units} --format csv -o {units}.csv")
        done = self.ended("cmp", f"{units}.csv", f"{survey}/survey.csv")
        print("cmp", f"{units}.csv", f"{survey}/survey.csv:", done.returncode, done.stdout)
        return done.returncode == 0


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def waited(what, happened, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = happened()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what} did not happen within {seconds} s")


def test_parallel_takes_names_with_spaces_and_refuses_unreadable_units(place):
    if shutil.which("parallel") is None:
        pytest.skip("GNU parallel is not installed")
    script = os.path.join(SCRIPTS, "parallel")
    place.path = place.path / "a place"
    place.path.mkdir()
    names = place.grundy("units survey --digits 1 --to 2^12 --parts 4")
    (place.path / "my units.txt").write_text(names)
    shutil.copy2(place.program, place.path / "my program")
    place.environment["GRUNDY"] = str(place.path / "my program")
    place.well(script, "my units.txt", "it's $HOME * parts")
    done = place.ended(place.program, "units", "--missing", "it's $HOME * parts")
    assert (done.returncode, done.stdout) == (0, "")
    for units in ["none.txt", "it's $HOME * parts"]:
        done = place.ended(script, units, "parts")
        assert done.returncode == 2 and f"{units} cannot be read; give" in done.stderr
        assert done.stderr.count("\n") == 1 and not (place.path / "parts.joblog").exists()
    (place.path / "no units.txt").write_text("")
    assert place.ended(script, "no units.txt", "empty").returncode == 1


def test_parallel_does_all_units_and_repeats_those_that_failed(place):
    if shutil.which("parallel") is None:
        pytest.skip("GNU parallel is not installed")
    names = place.grundy("units survey --digits 2 --to 2^12 --parts 20").splitlines()
    (place.path / "units.txt").write_text("".join(name + "\n" for name in names))
    place.grundy("-q survey --digits 2 --to 2^12 -o whole")
    # A program that is killed at one unit as long as the file `broken` exists.
    wrapper = place.path / "wrapper"
    wrapper.write_text(f'#!/bin/sh\n[ -e broken ] && [ "$3" = {names[7]} ] && kill -9 $$\n')
    wrapper.write_text(wrapper.read_text() + f'exec {place.program} "$@"\n')
    wrapper.chmod(0o755)
    (place.path / "broken").touch()
    place.environment["GRUNDY"] = str(wrapper)
    words = [os.path.join(SCRIPTS, "parallel"), "units.txt", "parts/", "-j", "2"]
    done = place.ended(*words)
    assert done.returncode == 4 and "1 of 20 units are missing" in done.stderr, done
    assert place.ended(place.program, "merge", "parts").returncode == 4
    (place.path / "broken").unlink()
    place.well(*words)
    # The second call did nothing but the unit that had failed.
    assert place.done_by_parallel("parts") == [names[7]]
    assert place.merges_to("parts", "whole")
    assert place.ended(words[0]).returncode == 2


def test_parallel_does_units_without_result_whatever_was_done_before(place):
    if shutil.which("parallel") is None:
        pytest.skip("GNU parallel is not installed")
    names = place.grundy("units survey --digits 2 --to 2^10 --parts 8").splitlines()

    def does(*units):
        (place.path / "units.txt").write_bytes("".join(name + "\r\n" for name in units).encode())
        done = place.ended(os.path.join(SCRIPTS, "parallel"), "units.txt", "parts", "-j", "1")
        left = place.ended(place.program, "units", "--missing", "parts").stdout.splitlines()
        assert (done.returncode, left) == (4 if left else 0, [name for name in names if name in left])
        return place.done_by_parallel("parts"), left

    assert does(*names[:3]) == (names[:3], names[3:])
    assert does(*names[5:]) == (names[5:], names[3:5])
    assert does(*reversed(names)) == ([names[4], names[3]], [])
    for name in names[1:3]:
        (place.path / "parts" / f"{name}.jsonl").unlink()
    assert does(*names) == (names[1:3], [])
    shutil.rmtree(place.path / "parts")
    assert does(*names) == (names, [])
    assert does(*names) == ([], [])


STAND_IN = """#!/usr/bin/env python3
import os, subprocess, sys

options = [word for word in sys.argv[1:] if word.startswith("-")]
script = next(i for i, word in enumerate(sys.argv) if word.endswith(".sbatch"))
with open("submitted", "a") as file:
    file.write(" ".join([*options, *map(os.path.basename, sys.argv[script:])]) + "\\n")
    number = str(file.tell())
print(number)
array = [option for option in options if option.startswith("--array=")]
first, last = (array[-1].split("=")[1].split("-") * 2)[:2] if array else (1, 1)
for task in range(int(first), int(last) + 1):
    for restart in range(9):
        of_task = {"SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_TASK_COUNT": int(last) - int(first) + 1}
        more = {**of_task, "SLURM_RESTART_COUNT": restart, "SLURM_JOB_ID": number}
        environment = {**os.environ, **{key: str(value) for key, value in more.items()}}
        with open(f"{number}.log", "a") as log:
            done = subprocess.run(["bash", *sys.argv[script:]], env=environment, stdout=log, stderr=log)
            log.write(f"task {task} ended with {done.returncode}\\n")
        if done.returncode != -9:
            break
"""


def test_slurm_scripts_with_a_stand_in_for_slurm(place):
    """Jobs run at once, one after another; a requeued task is killed and started again."""
    commands = place.path / "commands"
    commands.mkdir()
    (commands / "sbatch").write_text(STAND_IN)
    (commands / "scontrol").write_text("#!/bin/sh\nkill -9 $PPID\n")
    for command in commands.iterdir():
        command.chmod(0o755)
    place.environment["PATH"] = f"{commands}:{os.environ['PATH']}"
    place.environment["TASKS"] = "3"

    def submitted(*words):
        """What each job wrote: of the array, and of the report."""
        done = place.ended(os.path.join(SCRIPTS, "slurm", words[0]), *words[1:])
        assert done.returncode == 0, done
        array, report = done.stdout.split("(")[0].replace(",", "").split()[1::2]
        return [(place.path / f"{number}.log").read_text() for number in (array, report)]

    # awk would take this name for an assignment.
    work = ["to=10", "--digits", "1", "--to", "2^10", "--parts", "7"]
    array, report = submitted("survey", *work, "--", "--account=me", "-pshort", "--mem=1G")
    assert array.count("all units are complete") == 3 and "task 3 ended with 0" in array
    assert report.endswith("all units are complete\ntask 1 ended with 0\n")
    place.grundy("-q survey --digits 1 --to 2^10 -o whole")
    assert (place.path / "to=10" / "merged.csv").read_text() == (place.path / "whole" / "survey.csv").read_text()
    lines = (place.path / "submitted").read_text().splitlines()
    assert "--mem=1G units.sbatch to=10 3" in lines[0] and "--account=me -pshort" in lines[0]
    assert "--account=me -pshort report.sbatch to=10" in lines[1] and "--mem" not in lines[1]

    # One task of the array again, then a unit whose program is killed.
    units = (place.path / "to=10" / "units.txt").read_text().splitlines()
    (place.path / "to=10" / f"{units[4]}.jsonl").unlink()
    array, report = submitted("submit", "to=10", "--array=2")
    assert "task 2/3, restart 0: all units are complete" in array and "ended with 0" in report
    (place.path / "to=10" / f"{units[4]}.jsonl").unlink()
    wrapper = place.path / "wrapper"
    wrapper.write_text(
        f'#!/bin/sh\n[ "$3" = {units[4]} ] && [ ! -e tried ] && touch tried && kill -9 $$\n'
        f'exec {place.program} "$@"\n'
    )
    wrapper.chmod(0o755)
    place.environment["GRUNDY"] = str(wrapper)
    array, report = submitted("submit", "to=10")
    assert f"unit {units[4]} ended with 137" in array and "failed units: 1; queued again" in array
    assert "task 2/3, restart 1: all units are complete" in array and "ended with 0" in report

    place.grundy("run kayles --to 2^12 --dir run")
    array, report = submitted("verify", "check", "run", "--level", "recompute", "--parts", "4")
    assert array.count("all units are complete") == 3 and "ended with 0" in report
    assert json.loads((place.path / "check" / "merged.json").read_text())["verdict"] == "passed"
    # What another attempt would not change is not tried again.
    done = place.ended(os.path.join(SCRIPTS, "slurm", "submit"), "check")
    assert (done.returncode, done.stdout) == (0, "all units of check are complete and merged\n"), done
    unit = (place.path / "check" / "units.txt").read_text().splitlines()[1]
    (place.path / "check" / f"{unit}.jsonl").unlink()
    wrapper.write_text(f'#!/bin/sh\n[ "$3" = {unit} ] && exit 3\nexec {place.program} "$@"\n')
    array, report = submitted("submit", "check")
    assert "units with a wrong value or a damaged file: 1\ntask 2 ended with 3" in array
    assert "restart 1" not in array

    # A deliberate stop is final, and so is a kill of a run that has just begun.
    for end in ["exit 130", "kill -9 $$"]:
        wrapper.write_text(f"#!/bin/sh\n{end}\n")
        done = place.ended("sbatch", os.path.join(SCRIPTS, "slurm", "long_run.sbatch"), "grundy", "1e5", "long")
        log = (place.path / f"{done.stdout.strip()}.log").read_text()
        assert log.count("begins") == 1 and "task 1 ended with 1" in log, log

    for script in ["submit", "survey", "verify"]:
        done = place.ended(os.path.join(SCRIPTS, "slurm", script), "--help")
        assert done.returncode == 0 and f"scripts/slurm/{script} DIR" in done.stdout, done
        done = place.ended(os.path.join(SCRIPTS, "slurm", script))
        assert done.returncode == 2 and "usage" in done.stderr, done

    for words in [["submit", "none"], ["survey", "none", "--digits", "1"]]:
        done = place.ended(os.path.join(SCRIPTS, "slurm", words[0]), *words[1:])
        assert done.returncode != 0 and not (place.path / "none").exists()


class Cluster(Place):
    """A Slurm of one node, and what its commands say."""

    def __init__(self, path):
        super().__init__(path)
        self.environment["SLURM_CONF"] = str(path / "slurm" / "slurm.conf")
        self.environment.pop("SLURM_JOB_ID", None)
        self.begun = time.monotonic()
        (path / "slurm").mkdir()
        self.control("start")

    def control(self, command):
        print(self.well(os.path.join(HERE, "one_node_slurm"), command, self.path / "slurm"), end="")

    def say(self, text):
        print(f"{time.monotonic() - self.begun:6.1f} s  {text}", flush=True)

    def job(self, number):
        """What Slurm states of a job, by key."""
        text = self.well("scontrol", "-o", "show", "job", number).splitlines()[0]
        return dict(word.split("=", 1) for word in text.split() if "=" in word)

    def state(self, number):
        job = self.job(number)
        keys = ["JobState", "Reason", "Restarts", "ExitCode"]
        return "job {} ({}): {}".format(
            number, job["JobName"], " ".join(f"{key}={job[key]}" for key in keys)
        )

    def start_now(self, number):
        """Starts a job that waits because it was requeued: Slurm delays it by two minutes."""

        def is_pending():
            job = self.job(number)
            return job["JobState"] == "PENDING" and job["Restarts"] != "0"

        waited(f"job {number} is requeued", is_pending)
        self.say(self.state(number))
        time.sleep(2)  # the node refuses a job that starts in the second in which it was ended
        self.well("scontrol", "update", f"JobId={number}", "StartTime=now")

    def end_of(self, number):
        ended = ["COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"]
        waited(f"the end of job {number}", lambda: self.job(number)["JobState"] in ended)
        self.say(self.state(number))
        return self.job(number)

    def submitted(self, *words):
        """The numbers of the array and of the report that a script of scripts/slurm prints."""
        text = self.well(os.path.join(SCRIPTS, "slurm", words[0]), *words[1:])
        self.say(text.strip())
        array, report = text.split("(")[0].replace(",", "").split()[1::2]
        return array, report

    def process_of(self, unit):
        """The process that does a unit, and the number of its job."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
                    words = file.read().split("\0")
                with open(f"/proc/{pid}/environ", encoding="utf-8") as file:
                    variables = dict(line.split("=", 1) for line in file.read().split("\0") if "=" in line)
            except OSError:
                continue
            if words[0] == self.program and unit in words and "SLURM_JOB_ID" in variables:
                return int(pid), variables["SLURM_JOB_ID"]
        return None


@pytest.fixture
def cluster(tmp_path):
    if os.geteuid() != 0 or any(map(lambda p: shutil.which(p) is None, ["slurmctld", "slurmd", "munged"])):
        pytest.skip("needs root, slurmctld, slurmd and munged")
    for parent in [tmp_path, *tmp_path.parents]:
        if "pytest" not in str(parent):
            break
        parent.chmod(0o755)  # for the user munge
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.ended("scancel", "-u", "root")
    cluster.control("stop")


def test_slurm_repeats_killed_and_requeued_units(cluster):
    # .6 and .142 take some seconds. No two of the games have the same sequence, so each has a unit of its own.
    games = ["0.6", "0.142", "0.77", "0.16", "0.07", "0.156", "0.104", "0.106"]
    (cluster.path / "games.txt").write_text("\n".join(games) + "\n")
    cluster.grundy("-q survey games.txt --to 2^22 -o whole")
    # The division does not depend on the number of values.
    unit_of = {}
    for part, unit in enumerate(cluster.grundy("units survey games.txt --to 64 --parts 8 --in short").splitlines()):
        cluster.grundy(f"-q unit {unit} --in short")
        text = (cluster.path / "short" / f"{unit}.jsonl").read_text()
        unit_of[next(game for game in games if f'"game":"{game}"' in text)] = part
    array, report = cluster.submitted(
        "survey", "parts", "games.txt", "--to", "2^22", "--parts", "8", "--", "--mem=400"
    )  # fmt: skip
    units = (cluster.path / "parts" / "units.txt").read_text().splitlines()
    killed, requeued = units[unit_of["0.6"]], units[unit_of["0.142"]]
    pid, killed_job = waited("a process at .6", lambda: cluster.process_of(killed))
    cluster.say(cluster.state(killed_job))
    cluster.say(f"kill -9 of process {pid}, which does {killed} (0.6)")
    os.kill(pid, signal.SIGKILL)
    _, requeued_job = waited("a process at .142", lambda: cluster.process_of(requeued))
    cluster.say(cluster.state(requeued_job))
    cluster.say(f"scontrol requeue {requeued_job}, which does {requeued} (0.142)")
    cluster.well("scontrol", "requeue", requeued_job)
    for job in [killed_job, requeued_job]:
        cluster.start_now(job)
    assert cluster.end_of(report)["ExitCode"] == "0:0"
    for job in [killed_job, requeued_job]:
        cluster.say(cluster.state(job))
        assert (cluster.job(job)["JobState"], cluster.job(job)["Restarts"]) == ("COMPLETED", "1")
    logs = "".join(path.read_text() for path in sorted((cluster.path / "parts" / "log").iterdir()))
    print(logs)
    assert f"unit {killed} ended with 137" in logs and "failed units: 1; queued again" in logs
    assert "all units are complete" in logs
    print((cluster.path / "parts" / "merged.csv").read_text())
    assert cluster.merges_to("parts", "whole")
    assert (cluster.path / "parts" / "merged.csv").read_text() == (cluster.path / "parts.csv").read_text()

    # What is missing is stated at the end.
    (cluster.path / "parts" / f"{units[3]}.jsonl").unlink()
    done = cluster.well(
        "sbatch", "--parsable", "--output=left.out",
        os.path.join(SCRIPTS, "slurm", "report.sbatch"), "parts",
    )  # fmt: skip
    assert cluster.end_of(done.strip())["ExitCode"] == "4:0"
    assert units[3] in (cluster.path / "left.out").read_text()


def test_slurm_verifies_a_run_that_took_several_jobs(cluster):
    words = [os.path.join(SCRIPTS, "slurm", "long_run.sbatch"), "grundy", "4e7", "run"]
    job = cluster.well("sbatch", "--parsable", "--output=run.out", "--mem=1000", "-c", "1", *words).strip()
    journal = cluster.path / "run" / "journal.jsonl"
    waited("a commit", lambda: journal.exists() and journal.stat().st_size >= 2 * 4096)
    cluster.say(f"scancel --batch --signal=INT {job}, as Slurm does before the end of the time")
    cluster.well("scancel", "--batch", "--signal=INT", job)
    cluster.start_now(job)
    assert cluster.end_of(job)["Restarts"] == "1"
    log = (cluster.path / "run.out").read_text()
    print(log)
    assert "ends with 130" in log and "ends with 0" in log
    assert json.loads(cluster.grundy("status run --json"))["count"] == 40_000_000
    _, report = cluster.submitted(
        "verify", "check", "run", "--level", "exclusion", "--parts", "6", "--", "--mem=400"
    )  # fmt: skip
    assert cluster.end_of(report)["ExitCode"] == "0:0"
    verdict = json.loads((cluster.path / "check" / "merged.json").read_text())
    print(json.dumps(verdict))
    assert (verdict["verdict"], verdict["ranges"]) == ("passed", [[0, 40_000_000]])
