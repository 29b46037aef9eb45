"""Tests of compare with a project in a temporary directory, whose `cargo` copies a file.

The program of that project is a small script, so the tests choose its values, failures and hangs.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
COMPARE = os.path.join(os.path.dirname(HERE), "compare")

# Program of the project. The tests supply `digest`, an expression, and `more`, a statement.
PROGRAM = """#!{python}
import json, os, sys
digest = {digest}
if sys.argv[1] == "run":
    arguments = dict(zip(sys.argv[3::2], sys.argv[4::2]))
    os.mkdir(arguments["--dir"])
    with open(os.environ["LOG"], "a") as log:
        print(os.path.basename(sys.argv[0]), sys.argv[2], arguments["--to"],
              arguments["--threads"], sys.argv[-1], arguments["--dir"], file=log)
    with open(arguments["--dir"] + "/count", "w") as file:
        file.write(arguments["--to"])
    {more}
else:
    count = int(open(sys.argv[3] + "/count").read())
    print(json.dumps({{"digest": digest, "count": count}}))
"""
# Replacement for `cargo build`: prints the same kind of messages, and puts the program in the same place.
CARGO = """#!{python}
import json, os, shutil, sys
arguments = sys.argv[1:]
assert arguments[:2] == ["build", "--release"], arguments
target = "target"
if "--target-dir" in arguments:
    target = arguments[arguments.index("--target-dir") + 1]
os.makedirs(target, exist_ok=True)
if os.path.exists("broken"):
    sys.exit("error: broken here")
with open(os.environ["LOG"], "a") as log:
    print("build", "own" if "--target-dir" in arguments else "shared", file=log)
program = os.path.abspath(shutil.copy2("program", target + "/grundy"))
for executable in [None, program]:
    print(json.dumps({{"reason": "compiler-artifact", "executable": executable}}))
"""


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)


class Project:
    """A git repository with a program, a record and scripts/compare."""

    def __init__(self, path):
        self.path, self.root, self.temporary = path, path / "project", path / "tmp"
        for directory in ["tmp", "bin", "project/scripts", "project/benches/record"]:
            (path / directory).mkdir(parents=True)
        shutil.copy2(COMPARE, self.root / "scripts" / "compare")
        executable(path / "bin" / "cargo", CARGO.format(python=sys.executable))
        self.environment = {
            **os.environ,
            "PATH": f"{path / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "TMPDIR": str(self.temporary),
            "LOG": str(path / "log"),
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        self.git("init", "-q")
        self.program()
        self.base = self.commit()

    def git(self, *arguments):
        words = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
        done = subprocess.run(
            words, cwd=self.root, env=self.environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "a commit")
        return self.git("rev-parse", "HEAD")

    def program(self, digest="'aa'", more="pass"):
        text = PROGRAM.format(python=sys.executable, digest=digest, more=more)
        executable(self.root / "program", text)

    def record(self, name, text):
        (self.root / "benches" / "record" / name).write_text(text)

    def words(self, *arguments):
        return [sys.executable, str(self.root / "scripts" / "compare"), *map(str, arguments)]

    def compare(self, *arguments):
        done = subprocess.run(
            self.words(*arguments), env=self.environment, capture_output=True, text=True, timeout=60
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def log(self):
        path = self.path / "log"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def nothing_is_left(self):
        worktrees = self.git("worktree", "list", "--porcelain").count("worktree ")
        return os.listdir(self.temporary) == [] and worktrees == 1


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_base_and_new_alternate_in_new_directories(project):
    project.program(more="open(arguments['--dir'] + '/more', 'x')")  # fails if the directory is reused
    done = project.compare("--base", project.base, "--quick", "--rounds", "2", "--json")
    assert done.returncode == 0, done.stderr
    builds, runs = project.log()[:2], project.log()[2:]
    assert builds == [["build", "own"], ["build", "shared"]]
    assert [run[0] for run in runs] == ["base", "new"] * 10
    assert [run[1:5] for run in runs[::4]] == [
        ["grundy", "2000000", "1", "-q"],
        ["grundy", "2000000", "2", "-q"],
        [".6", "1000000", "2", "-q"],
        [".106", "10000000", "2", "-q"],
        ["kayles", "10000000", "2", "-q"],
    ]
    result = json.loads(done.stdout)
    assert result["base"] == project.base[:12] and "with changes" in result["new"]
    assert (result["rounds"], len(result["cases"])) == (2, 5)
    case = result["cases"][0]
    assert (case["case"], case["digest"]) == ("grundy to 2e6, 1 thread", "aa")
    for side in ["base", "new"]:
        assert len(case["seconds"][side]) == 2
        assert case["best"][side] == min(case["seconds"][side])
        assert abs(case["median"][side] - sum(case["seconds"][side]) / 2) < 1e-9
    assert case["ratio"] == case["median"]["new"] / case["median"]["base"]
    assert case["values_per_second"] == 2_000_000 / case["median"]["new"]
    assert project.nothing_is_left()


def test_result_is_a_table_on_stdout_and_progress_is_on_stderr(project):
    done = project.compare("--base", "HEAD", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert project.base[:12] in lines[0] and lines[1] == ""
    assert lines[2].startswith("| case |") and len(lines) == 4 + 5
    assert len({line.count("|") for line in lines[2:]}) == 1
    assert lines[7].startswith("| .106 to 1e8, 2 threads |")
    assert "round 1 of 1" in done.stderr and "round" not in done.stdout.replace("rounds", "")


def test_slower_build_has_ratio_above_1(project):
    project.program(more="import time; time.sleep(0.5)")
    done = project.compare("--base", "HEAD", "--rounds", "1", "--json")
    assert all(case["ratio"] > 1 for case in json.loads(done.stdout)["cases"])


def test_different_digest_is_status_3_without_figures(project):
    project.program(digest="'bb'")
    done = project.compare("--base", "HEAD")
    assert (done.returncode, done.stdout) == (3, "")
    assert "grundy to 2e7, 1 thread" in done.stderr and "new has digest bb, not aa" in done.stderr
    assert project.nothing_is_left()


def test_digest_that_changes_between_rounds_is_status_3(project):
    project.program(digest="str(len(open(os.environ['LOG']).readlines()) > 4)")
    done = project.compare("--base", project.root / "program")
    assert done.returncode == 3 and "has digest True, not False" in done.stderr


def test_too_few_values_are_status_1(project):
    project.program(more="open(arguments['--dir'] + '/count', 'w').write('5')")
    done = project.compare("--base", "HEAD")
    assert (done.returncode, done.stdout) == (1, "") and "5 values" in done.stderr


def test_failed_run_is_status_1_with_its_message(project):
    project.program(more="sys.exit('the disk is full')")
    done = project.compare("--base", "HEAD")
    assert (done.returncode, done.stdout) == (1, "") and "the disk is full" in done.stderr
    assert project.nothing_is_left()


def test_base_that_does_not_build_is_status_1_and_leaves_no_worktree(project):
    (project.root / "broken").write_text("")
    broken = project.commit()
    os.remove(project.root / "broken")
    done = project.compare("--base", broken)
    assert (done.returncode, done.stdout) == (1, "") and "broken here" in done.stderr
    assert project.nothing_is_left()


def test_program_as_base_is_not_built(project):
    shutil.copy2(project.root / "program", project.path / "older")
    done = project.compare("--base", project.path / "older", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    assert [line for line in project.log() if line[0] == "build"] == [["build", "shared"]]


def test_default_base_is_the_commit_of_the_newest_record(project):
    project.record("2026-01-02-a.md", f"# A record\n\nCommit {project.base[:7]} and more.\n")
    project.record("2025-12-31-z.md", "Commit 0000000\n")
    project.record("README.md", "Commit 1111111\n")
    done = project.compare("--rounds", "1", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["base"] == project.base[:12]


@pytest.mark.parametrize(
    "text", ["# none\n", "The Commit 1234567\n", "Commit xyz\n", "Commit 12\n"]
)
def test_record_without_commit_is_reported_by_name(project, text):
    project.record("2026-01-01-a.md", f"Commit {project.base}\n")
    project.record("2026-01-02-b.md", text)
    done = project.compare()
    assert (done.returncode, done.stdout) == (1, "")
    assert "2026-01-02-b.md" in done.stderr and "Commit HASH" in done.stderr


def test_missing_records_are_reported(project):
    done = project.compare()
    assert done.returncode == 1 and "no record" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["--rounds", "0"], ["--rounds", "x"], ["--base", "nowhere"], ["--base="], ["--base=--all"], ["more"]],
    ids=str,
)
def test_usage_error_is_status_2(project, arguments):
    project.record("2026-01-01-a.md", f"Commit {project.base}\n")
    done = project.compare(*arguments)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr
    assert project.log() == []


def test_base_that_is_not_executable_is_a_usage_error(project):
    (project.path / "text").write_text("")
    assert project.compare("--base", project.path / "text").returncode == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=str)
@pytest.mark.parametrize("where", ["build", "run"])
def test_signal_removes_temporary_files_and_ends_child_processes(project, number, where):
    if signal.getsignal(number) == signal.SIG_IGN:
        pytest.skip("ignored here, as under nohup")
    hang = (
        "open(os.environ['LOG'] + '.pid', 'w').write(str(os.getpid())); import time; time.sleep(60)"
    )
    if where == "run":
        project.program(more=hang)
    else:
        cargo = project.path / "bin" / "cargo"
        executable(cargo, cargo.read_text().replace("os.makedirs(", hang + "\nos.makedirs(", 1))
    child = subprocess.Popen(
        project.words("--base", "HEAD"),
        env=project.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    path = project.path / "log.pid"
    until = time.monotonic() + 30
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < until and child.poll() is None
        time.sleep(0.02)
    assert not project.nothing_is_left()
    child.send_signal(number)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out) == (130, "") and "Traceback" not in err
    assert project.nothing_is_left()
    with pytest.raises(ProcessLookupError):
        os.kill(int(path.read_text()), 0)
