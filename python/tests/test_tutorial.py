"""Runs the commands of the guides in docs/ as a reader types them. GRUNDY_BIN names the program."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys

import grundy
import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
DOCS = os.path.join(ROOT, "docs")
LONG = os.environ.get("GRUNDY_LONG")

pytestmark = pytest.mark.skipif("GRUNDY_BIN" not in os.environ, reason="GRUNDY_BIN is not set")


def blocks(page, language):
    """The blocks of a page in a language. Blocks in `console` install software and are not run."""
    with open(os.path.join(DOCS, page), encoding="utf-8") as file:
        return re.findall(rf"^```{language}\n(.*?)^```", file.read(), re.M | re.S)


def run_all(page, place, change=None):
    """Runs the lines of the blocks in `sh`, in order; returns what each printed.

    change(line) returns the command to run in place of a line, or None to leave it out.
    """
    draws = importlib.util.find_spec("matplotlib") is not None
    environment = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"}
    environment["PYTHONPATH"] = str(place / "python")
    printed = {}
    for line in [line for block in blocks(page, "sh") for line in block.splitlines()]:
        if "plot" in line and not draws:
            continue
        if change is not None:
            line = change(line)
            if not line:
                continue
        shell = ["bash", "-c", line]
        done = subprocess.run(shell, cwd=place, env=environment, capture_output=True, text=True)
        stopped = re.search(r"--for \d+s$", line)
        assert done.returncode == (130 if stopped else 0), f"{line}\n{done.stderr}"
        printed[line] = done.stdout
    return printed


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


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines()


def check_examples(page, printed):
    """Each line of a block in `text` is one that the commands before it print, in this order.

    "…" stands for further lines. The number of journal records may differ.
    """
    lines = []
    with open(os.path.join(DOCS, page), encoding="utf-8") as file:
        examples = re.findall(r"^```(sh|text)\n(.*?)^```", file.read(), re.M | re.S)
    assert any(language == "text" for language, _ in examples)
    for language, block in examples:
        if language == "sh":
            outputs = [printed[line] for line in block.splitlines() if line in printed]
            lines = "".join(outputs).splitlines()
            continue
        for line in block.splitlines():
            pattern = re.sub(r"\d+( journal)", r"\\d+\1", re.escape(line).replace("\\ ", " "))
            place = next((i for i, one in enumerate(lines) if re.fullmatch(pattern, one)), None)
            assert line == "…" or place is not None, (line, lines)
            lines = lines if place is None else lines[place + 1 :]


def test_commands_of_the_tutorial_do_what_it_says(place):
    printed = run_all("TUTORIAL.md", place)
    check_examples("TUTORIAL.md", printed)
    zeros = printed["grundy find runs/grundy --zeros"].splitlines()
    assert (len(zeros), zeros[-1]) == (42, "1222 0")  # OEIS A036685
    assert "period 12, preperiod 71" in printed["grundy verify kayles.json"]
    assert lines_of(place / "b002188.txt")[:6] == ["0 0", "1 0", "2 0", "3 1", "4 0", "5 2"]
    if importlib.util.find_spec("matplotlib") is not None:
        assert (place / "density.png").stat().st_size > 10_000
        assert lines_of(place / "records.svg")[-1] == "</svg>"


def test_commands_of_the_recipes_do_what_they_say(place):
    printed = run_all("HOW_TO.md", place)
    digests = [re.search('"digest":"([0-9a-f]+)"', out) for out in printed.values()]
    assert len({found[1] for found in digests if found}) == 1
    assert lines_of(place / "zeros.txt")[-1] == "42 1222"
    assert lines_of(place / "records.txt")[:4] == ["1 0", "2 3", "3 5", "4 13"]
    # data/periods.csv
    assert "period 349, preperiod 3,479" in printed["grundy verify 156.json"]
    assert len(lines_of(place / "table.csv")) == 4


def test_commands_about_units_do_what_they_say(place):
    printed = run_all("CLUSTERS.md", place)
    assert [out for line, out in printed.items() if "units --missing" in line] == [""]
    assert len(lines_of(place / "octal2.csv")) == 1 + 128
    assert "0.07 | 34 | 53" in printed["grundy merge survey"]
    assert "passed: 0..1000000 of 0..1000000" in " ".join(printed["grundy merge check"].split())


def shortened(line, to="1e7"):
    """Returns a line of a reference page with runs to `to`; None if it needs another program."""
    line = line.split("  #")[0].strip()
    for count in ["1e11", "1e9", "2^36", "1e8"]:
        line = line.replace(count, to)
    line = line.replace("cargo run --release -- ", "grundy ").removesuffix(" &")
    line = line.replace("survey --digits 2", "survey --digits 2 --to 2^12")
    if line == "grundy run --dir runs/grundy":
        line += " --for 1s"  # it would continue until it is stopped
    if line.endswith("--watch"):
        line = f"timeout -s INT 1 {line} || [ $? = 124 ]"
    first = line.split()[0]
    if "pip install" in line or (".104" in line or "104.json" in line) and LONG is None:
        return None
    own = ("grundy", "cp", "tar", "timeout", "nohup", "python3", "scripts/plot.py")
    return line if first in own else None


@pytest.mark.parametrize(
    ("page", "to"),
    [
        ("../README.md", "1e7"),  # the page prints values above 7,000,000
        ("BEHAVIOUR.md", "1e6"),
        ("LONG_RUNS.md", "1e6"),
        ("PERIODS.md", "1e6"),
        ("PYTHON.md", "1e7"),
    ],
)
def test_commands_of_the_reference_run(place, page, to):
    command = [place / "bin" / "grundy", "run", "grundy", "--to", to, "--quiet"]
    subprocess.run(command, cwd=place, check=True)
    (place / "games.txt").write_text(".07\nkayles\nsub:1,4,10\n")
    if page == "PERIODS.md":  # the page merges four shards and shows the command of the first
        for shard in range(1, 4):
            command = [
                place / "bin" / "grundy", "survey", "games.txt", "--shard", f"{shard}/4",
                "-o", f"shard{shard}",
            ]  # fmt: skip
            subprocess.run(command, cwd=place, check=True)
    assert len(run_all(page, place, lambda line: shortened(line, to))) >= 2


def test_commands_of_the_gallery_draw(place):
    if LONG is None or importlib.util.find_spec("matplotlib") is None:
        pytest.skip("takes a minute; GRUNDY_LONG and matplotlib are necessary")
    (place / "docs" / "pictures").mkdir(parents=True)
    (place / "data").symlink_to(os.path.join(ROOT, "data"))

    def change(line):
        if line.startswith("grundy run grundy "):  # the picture of the rate needs 10 s of computing
            return "grundy run grundy --to 4e9 --dir runs/grundy --for 20s"
        return shortened(line)

    run_all("GALLERY.md", place, change)
    names = {path.name for path in (place / "docs" / "pictures").iterdir()}
    assert names == set(os.listdir(os.path.join(DOCS, "pictures")))


def test_python_of_the_readme_and_of_the_format_runs(place, monkeypatch):
    pytest.importorskip("pyarrow")
    pytest.importorskip("blake3")
    game = ["grundy", "--to", "1e7", "--quiet"]
    subprocess.run([place / "bin" / "grundy", "run", *game], cwd=place, check=True)
    monkeypatch.chdir(place)
    names: dict = {}
    for page in ["../README.md", "FORMAT.md"]:
        [source] = blocks(page, "python")
        exec(source, names)
    assert names["run"][7250049] == 256  # as the page says
    assert (place / "grundy.parquet").stat().st_size > 10**6
    journal = (place / "runs" / "grundy" / "journal.jsonl").read_bytes()
    records = [journal[at : at + 4096] for at in range(0, len(journal), 4096)]
    assert records
    for record in records:
        stated, computed = names["record_hash"](record)
        assert stated == computed
    altered = records[0].replace(b"1", b"2", 1)
    stated, computed = names["record_hash"](altered)
    assert stated != computed


def test_program_in_c_reads_values_and_refuses_other_tables_and_numbers(place):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")

    def ended(*words):
        return subprocess.run([*map(str, words)], cwd=place, capture_output=True, text=True)

    [source] = blocks("HOW_TO.md", "c")
    (place / "read.c").write_text(source)
    compiled = ended("cc", "-Wall", "-Wextra", "-Werror", "-o", "read", "read.c")
    assert compiled.returncode == 0, compiled.stderr
    game = [".114", "--to", 20000, "--width", "u8"]  # has values of 255 and more early
    assert ended(place / "bin" / "grundy", "run", *game, "--dir", "run").returncode == 0
    run = grundy.open_run(place / "run")
    large = run.escapes["n"]
    assert len(large) > 2
    for n in [0, 1, 19_999, *large[[0, len(large) // 2, -1]]]:
        assert ended(place / "read", "run", n).stdout == f"{run[int(n)]}\n"
    for n in [20_000, -1, "-0", "x", "", "7x", " 7", "+7", 2**62, 2**64 - 1, 2**64, 10**30]:
        refused = ended(place / "read", "run", n)
        assert (refused.returncode, refused.stdout) == (1, ""), n
    game[-1] = "u16"
    assert ended(place / "bin" / "grundy", "run", *game, "--dir", "wide").returncode == 0
    refused = ended(place / "read", "wide", 5)
    assert (refused.returncode, refused.stdout) == (
        1,
        "",
    ) and "one byte per value" in refused.stderr
