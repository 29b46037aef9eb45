"""Tests of `python -m grundy` and of what an import loads."""

import os
import subprocess
import sys

import pytest

PYTHON = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def python(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "GRUNDY": "", "PYTHONPATH": PYTHON, **environment},
    )


def executable(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def test_program_on_the_path_receives_the_arguments_and_gives_the_status(tmp_path):
    executable(tmp_path / "grundy", 'printf "<%s>" "$@"; exit 75\n')
    path = f"{tmp_path}:/usr/bin:/bin"
    done = python("-m", "grundy", "run", "a b", "--to", "1e6", PATH=path)
    assert (done.returncode, done.stdout) == (75, "<run><a b><--to><1e6>")


def test_help_to_a_closed_pipe_or_a_full_disk_blames_neither_program(tmp_path):
    executable(tmp_path / "grundy", "exit 0\n")
    environment = {**os.environ, "GRUNDY": str(tmp_path / "grundy"), "PYTHONPATH": PYTHON}
    command = f"PYTHONUNBUFFERED=1 {sys.executable} -m grundy --help"
    for line, status, words in [
        ("set -o pipefail; { sleep 1; %s; } | true", 0, ""),
        ("%s > /dev/full", 1, "stdout cannot be written"),
    ]:
        done = subprocess.run(
            ["bash", "-c", line % command], capture_output=True, text=True, env=environment
        )
        assert done.returncode == status and words in done.stderr, done.stderr
        assert "Traceback" not in done.stderr and "GRUNDY" not in done.stderr, done.stderr


def test_program_of_the_environment_comes_before_the_path(tmp_path):
    """A package in DIR belongs to a program in DIR/bin, as after `pip install --target`."""
    (tmp_path / "bin").mkdir()
    executable(tmp_path / "bin" / "grundy", "echo beside\n")
    os.symlink(os.path.join(PYTHON, "grundy"), tmp_path / "grundy")
    (tmp_path / "path").mkdir()
    executable(tmp_path / "path" / "grundy", "echo path\n")
    done = python("-m", "grundy", PYTHONPATH=str(tmp_path), PATH=f"{tmp_path}/path:/usr/bin:/bin")
    assert done.stdout == "beside\n", done.stderr


def test_variable_names_the_program_before_the_path(tmp_path):
    executable(tmp_path / "grundy", "echo path\n")
    executable(tmp_path / "other", 'echo other "$@"\n')
    path = f"{tmp_path}:/usr/bin:/bin"
    for named in ["other", str(tmp_path / "other")]:
        assert python("-m", "grundy", "info", GRUNDY=named, PATH=path).stdout == "other info\n"
    assert python("-m", "grundy", "info", PATH=path).stdout == "path\n"
    done = python("-m", "grundy", "info", GRUNDY=str(tmp_path / "none"), PATH=path)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "none" in done.stderr and "GRUNDY" in done.stderr


def test_help_is_that_of_the_program_and_mentions_plot(tmp_path):
    executable(tmp_path / "grundy", 'echo "help $@"; exit 3\n')
    for word in ["--help", "-h", "help"]:
        done = python("-m", "grundy", word, PATH=f"{tmp_path}:/usr/bin:/bin")
        assert done.returncode == 3 and done.stdout.startswith(f"help {word}\n")
        assert "python3 -m grundy plot --help" in done.stdout
    done = python("-m", "grundy", "run", "--help", PATH=f"{tmp_path}:/usr/bin:/bin")
    assert done.stdout == "help run --help\n"


def test_missing_program_is_reported_in_one_line():
    done = python("-m", "grundy", "--version", PATH="/nonexistent")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "was not found" in done.stderr and "cargo install" in done.stderr


def test_plot_is_dispatched_to_the_package(tmp_path):
    """A stand-in for grundy.plot prints its arguments."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, types\n"
        "plot = types.ModuleType('grundy.plot')\n"
        "plot.main = lambda arguments: print(arguments) or 3\n"
        "sys.modules['grundy.plot'] = plot\n"
    )
    done = python("-m", "grundy", "plot", "runs/x", "-o", PYTHONPATH=f"{tmp_path}:{PYTHON}")
    assert (done.returncode, done.stdout) == (3, "['runs/x', '-o']\n"), done.stderr


def test_commands_of_the_package_are_dispatched(tmp_path):
    numpy = pytest.importorskip("numpy")
    numpy.save(tmp_path / "v.npy", numpy.array([1, 2] * 50, numpy.uint8))
    done = python("-m", "grundy", "find-period", str(tmp_path / "v.npy"))
    assert (done.returncode, "observed: period 2" in done.stdout) == (0, True), done.stderr
    for name in ["find-period", "bursts"]:
        done = python("-m", "grundy", name, "--help")
        assert done.returncode == 0 and done.stdout.startswith(f"usage: grundy {name}")


def test_program_receives_the_interpreter_for_its_pictures(tmp_path):
    executable(tmp_path / "grundy", 'echo "$GRUNDY_PYTHON"\n')
    done = python("-m", "grundy", "publish", GRUNDY=str(tmp_path / "grundy"))
    assert done.stdout == f"{sys.executable}\n"


def test_import_loads_numpy_only_when_a_name_is_used():
    loaded = "print('numpy' in sys.modules)"
    code = f"import sys, grundy; {loaded}; grundy.Run; {loaded}"
    assert python("-c", code).stdout.split() == ["False", "True"]
    code = "import sys, grundy.run; print('pyarrow' in sys.modules)"
    assert python("-c", code).stdout.split() == ["False"]


def test_public_names_are_listed_and_others_refused():
    import grundy

    for name in [*grundy.__all__, "__version__"]:
        assert getattr(grundy, name) is not None and name in dir(grundy)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        grundy.nothing  # noqa: B018
