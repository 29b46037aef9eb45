"""Tests of the examples: in the docstrings, in docs/PYTHON.md, and of its Julia and R snippets."""

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import shutil
import subprocess

import grundy
import numpy as np
import pytest
from documented import write_runs

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PAGE = os.path.join(ROOT, "docs", "PYTHON.md")
# plot has tests of its own.
MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(grundy.__path__, "grundy.")
    if "__main__" not in name and not name.startswith("grundy.plot")
]
# The output of NumPy 1 differs: array([0, 1]) of int64 and np.int64(1) have other forms.
needs_numpy_2 = pytest.mark.skipif(
    int(np.__version__.split(".")[0]) < 2, reason="the examples show the output of NumPy 2"
)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Changes to a directory with the runs of the examples."""
    write_runs(tmp_path)
    monkeypatch.chdir(tmp_path)


def snippets(language):
    with open(PAGE, encoding="utf-8") as page:
        return re.findall(rf"^```{language}\n(.*?)^```", page.read(), re.M | re.S)


@needs_numpy_2
@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(runs, name):
    if name == "grundy.arrow":
        pytest.importorskip("pyarrow", exc_type=ImportError)
    module = importlib.import_module(name)
    failed = 0
    for test in doctest.DocTestFinder().find(module):
        if any(word in test.name for word in ["arrow", "to_batches", "to_parquet"]):
            pytest.importorskip("pyarrow", exc_type=ImportError)
        failed += doctest.DocTestRunner().run(test).failed
    assert failed == 0


def test_every_public_name_has_a_docstring_and_every_method_an_example():
    for name in grundy.__all__:
        assert getattr(grundy, name).__doc__, name
    for name, member in vars(grundy.Run).items():
        if name.startswith("_"):
            continue
        assert ">>>" in inspect.getdoc(member), name
    assert ">>>" in grundy.open_run.__doc__ and ">>>" in grundy.find_period.__doc__


@needs_numpy_2
def test_examples_of_the_page(runs):
    for library in ["pyarrow", "pandas", "polars", "duckdb"]:
        pytest.importorskip(library, exc_type=ImportError)
    result = doctest.testfile(os.path.abspath(PAGE), module_relative=False)
    assert result.attempted > 30 and result.failed == 0


@needs_numpy_2
@pytest.mark.skipif("GRUNDY_BIN" not in os.environ, reason="GRUNDY_BIN is not set")
def test_examples_of_the_page_hold_for_the_runs_of_its_commands(tmp_path, monkeypatch):
    for library in ["pyarrow", "pandas", "polars", "duckdb"]:
        pytest.importorskip(library, exc_type=ImportError)
    lines = [line for block in snippets("sh") for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("grundy run ")]
    assert len(commands) == 3
    for line in commands:
        words = [os.path.abspath(os.environ["GRUNDY_BIN"]), *line.split("#")[0].split()[1:], "-q"]
        subprocess.run(words, cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    assert doctest.testfile(os.path.abspath(PAGE), module_relative=False).failed == 0


def test_page_names_every_public_member_and_field(runs):
    with open(PAGE, encoding="utf-8") as page:
        text = page.read()
    members = [name for name in vars(grundy.Run) if not name.startswith("_")]
    result = grundy.find_period(grundy.open_run("runs/kayles"))
    fields = [*grundy.bursts.Burst._fields, *result, *result["searched"]]
    for name in [*grundy.__all__, *members, *fields]:
        assert re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", text), name


@pytest.mark.parametrize(("language", "program"), [("julia", "julia"), ("r", "Rscript")])
def test_snippets_of_other_languages(runs, language, program):
    found = snippets(language)
    assert found
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    for snippet in found:
        done = subprocess.run([program, "-"], input=snippet, text=True, capture_output=True)
        if "not found" in done.stderr or "no package called" in done.stderr:
            pytest.skip(f"a package for {program} is missing: {done.stderr.strip()[-200:]}")
        assert done.returncode == 0, done.stderr
