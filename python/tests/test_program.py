"""Tests of the package with runs that the program writes. GRUNDY_BIN names the program."""

import csv
import hashlib
import io
import json
import os
import subprocess
import sys

import grundy
import numpy as np
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.join(HERE, "..", "..", "scripts")
DATA = os.path.join(HERE, "..", "..", "data")

pytestmark = pytest.mark.skipif("GRUNDY_BIN" not in os.environ, reason="GRUNDY_BIN is not set")


def command(*arguments):
    """Starts scripts/find_period.py."""
    return subprocess.run(
        [sys.executable, os.path.join(SCRIPTS, "find_period.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
    )


def kayles_by_definition(count):
    values = []
    for n in range(count):
        options = {
            values[a] ^ values[n - s - a] for s in (1, 2) if n >= s for a in range((n - s) // 2 + 1)
        }
        values.append(next(v for v in range(len(options) + 1) if v not in options))
    return values


def test_table_written_by_the_program(tmp_path):
    path = str(tmp_path / "kayles")
    subprocess.run(
        [os.environ["GRUNDY_BIN"], "run", "kayles", "--to", "20000", "--dir", path, "-q"],
        check=True,
    )
    expected = kayles_by_definition(500)
    run = grundy.open_run(path)
    assert run.count == 20000 and run[:500].tolist() == expected
    mapped = np.load(os.path.join(path, "values.npy"), mmap_mode="r")
    assert mapped.shape == (20000,) and np.array_equal(mapped, run[:])
    export = [os.environ["GRUNDY_BIN"], "-q", "export", path, "--format", "npy"]
    file = io.BytesIO(subprocess.run(export, check=True, capture_output=True).stdout)
    assert np.array_equal(np.load(file), run[:]) and file.read() == b""
    done = command(path, "--json")
    result = json.loads(done.stdout)
    # published: Kayles has period 12 and preperiod 71 (Guy and Smith 1956)
    assert (result["status"], result["period"], result["preperiod"]) == ("observed", 12, 71)
    assert result["max_value"] == int(run[:].max())
    assert "reached" in command(path).stdout


def test_b_files_are_those_of_the_oeis_to_the_byte():
    with open(os.path.join(DATA, "oeis-bfiles.csv"), encoding="utf-8") as file:
        published = list(csv.DictReader(line for line in file if not line.startswith("#")))
    assert len(published) == 5
    for row in published:
        export = [os.environ["GRUNDY_BIN"], "-q", "export", row["game"], "--format", "bfile"]
        lines = subprocess.run([*export, "--range", row["range"]], capture_output=True).stdout
        found = (str(len(lines)), hashlib.sha256(lines).hexdigest())
        assert found == (row["bytes"], row["sha256"]), row["file"]


def test_octal_sequences_of_the_oeis_are_those_of_their_games():
    with open(os.path.join(DATA, "oeis-octal.csv"), encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("#")]
    sequences = list(csv.DictReader(lines, delimiter=";"))
    assert len(sequences) == 76
    for row in sequences:
        first = 1 + int(row["shift"])
        values = [os.environ["GRUNDY_BIN"], "-q", "values", row["game"], f"{first}..{first + 12}"]
        printed = subprocess.run(values, capture_output=True, text=True).stdout.split()
        assert printed[1::2] == row["terms"].split(","), row["sequence"]


def five_become_two_heaps(count):
    """Computes the game .00004 by definition: a move takes five tokens and leaves two heaps."""
    values = np.zeros(count, np.uint16)
    for n in range(7, count):
        left = n - 5
        options = np.unique(
            values[1 : left // 2 + 1] ^ values[left - 1 : left - left // 2 - 1 : -1]
        )
        gaps = np.flatnonzero(options != np.arange(len(options)))
        values[n] = gaps[0] if len(gaps) else len(options)
    return values


@pytest.mark.parametrize("width", ["u8", "u16"])
def test_values_of_255_and_more_written_by_the_program(tmp_path, width):
    expected, path = five_become_two_heaps(8000), str(tmp_path / "run")
    assert (expected == 255).any() and (expected > 255).any()
    subprocess.run(
        [
            os.environ["GRUNDY_BIN"],
            "run",
            ".00004",
            "--to",
            "8000",
            "--dir",
            path,
            "--width",
            width,
            "-q",
        ],
        check=True,
    )
    run = grundy.open_run(path)
    assert np.array_equal(run[:], expected) and np.array_equal(np.asarray(run), expected)
    assert np.array_equal(run[np.arange(8000)], expected) and list(run) == expected.tolist()
    table = np.load(os.path.join(path, "values.npy"), mmap_mode="r")
    if width == "u16":
        assert np.array_equal(table, expected) and len(run.escapes) == 0
        return
    assert np.array_equal(table, np.minimum(expected, 255))
    large = np.flatnonzero(expected >= 255)
    entries = np.load(os.path.join(path, "escapes.npy"))
    assert len(run.escapes) == len(large)
    assert np.array_equal(entries["n"], large) and np.array_equal(entries["v"], expected[large])


def found(source, *arguments):
    """Returns the rows that `grundy find` prints as CSV, with -1 for an empty field."""
    command = [os.environ["GRUNDY_BIN"], "find", source, *arguments, "--format", "csv", "-q"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = [line.split(",") for line in text.splitlines()[1:]]
    return [tuple(int(field or -1) for field in row) for row in rows]


# With a mask; with a mask and the position term (.106, remove-a-square, grundy:d=2); without a
# space (.004, a table of two bytes per value); with values of 255 and more in bytes (.6).
@pytest.mark.parametrize(
    ("game", "count", "options"),
    [
        ("grundy", 100_000, []),
        ("kayles", 70_000, []),
        (".106", 300_000, []),
        ("remove-a-square", 70_000, []),
        (".6", 70_000, ["--width", "u8"]),
        (".004", 20_000, []),
        ("grundy:d=2", 5000, []),
    ],
)
def test_answers_are_those_of_find(tmp_path, game, count, options):
    path = str(tmp_path / "run")
    command = [os.environ["GRUNDY_BIN"], "run", game, "--to", str(count), "--dir", path, "-q"]
    subprocess.run([*command, *options], check=True)
    run = grundy.open_run(path)
    for a, b in [(0, count), (count // 3, count // 2)]:
        span = ["--range", f"{a}..{b}"]
        assert [(n, 0) for n in run.zeros(a, b).tolist()] == found(path, "--zeros", *span)
        assert run.records(a, b).tolist() == found(path, "--records", *span)
        assert list(enumerate(run.first(a, b).tolist())) == found(path, "--first", *span)
        counts = [(v, n) for v, n in enumerate(run.histogram(a, b).tolist()) if n]
        assert counts == found(path, "--histogram", *span)
        values = found(path, "--value", "3..300", *span)
        assert run.positions(3, end=300, start=a, stop=b).tolist() == values
        if run.last_record["mask"]:
            assert run.rares(a, b).tolist() == found(path, "--rares", *span)
    assert run.last_record["mask"] == 0 or len(run.rares()) == run.last_record["rares"]


def test_parquet_files_of_package_and_program_agree(tmp_path):
    pyarrow = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    program, path = os.environ["GRUNDY_BIN"], str(tmp_path / "run")
    subprocess.run([program, "run", ".00004", "--to", "8000", "--dir", path, "-q"], check=True)
    theirs, ours = str(tmp_path / "theirs.parquet"), str(tmp_path / "ours.parquet")
    export = [program, "export", path, "--format", "parquet", "-o", theirs, "-q"]
    subprocess.run(export, check=True)
    grundy.open_run(path).to_parquet(ours)
    a, b = pyarrow.read_table(theirs), pyarrow.read_table(ours)
    assert a.equals(b) and a.schema.equals(b.schema)
    keys = ["game", "from", "to", "digest"]
    metadata = [{key: t.schema.metadata[key.encode()] for key in keys} for t in (a, b)]
    assert metadata[0] == metadata[1]


def test_values_discarded_by_the_program_are_refused_and_others_read(tmp_path):
    program, path = os.environ["GRUNDY_BIN"], str(tmp_path / "kept")
    run = [program, "run", ".106", "--dir", path, "-q"]
    subprocess.run([*run, "--to", "84100000", "--keep", "140000"], check=True)
    subprocess.run([*run, "--to", "84200000"], check=True)
    run = grundy.open_run(path)
    head, start = (
        1 << 26,
        5 << 24,
    )  # end of the retained head, and end of the only segment that is discarded
    assert run.kept == [(0, head), (start, 84200000)]
    for a, b in [(head - 5, head), (start, start + 5)]:
        printed = subprocess.run(
            [program, "values", path, f"{a}..{b}"], check=True, capture_output=True, text=True
        )
        assert [
            f"{n} {v}" for n, v in enumerate(run[a:b].tolist(), a)
        ] == printed.stdout.splitlines()
    for a, b in [(0, run.count), (1, head + 5), (start - 9, run.count)]:
        assert run.rares(a, b).tolist() == found(path, "--rares", "--range", f"{a}..{b}")
    for n in (head, start - 1):
        with pytest.raises(grundy.Discarded):
            run[n]
    assert json.loads(command(path, "--json").stdout)["searched"]["kept_from"] == start


def test_results_of_a_run_that_discards_values_equal_those_of_a_whole_run(tmp_path):
    program, texts = os.environ["GRUNDY_BIN"], []
    for name, keep in [("whole", []), ("kept", ["--keep", "140000"])]:
        path = str(tmp_path / name)
        subprocess.run(
            [program, "run", ".106", "--to", "101000000", "--dir", path, "-q", *keep], check=True
        )
        done = subprocess.run(
            [sys.executable, os.path.join(SCRIPTS, "results.py"), path],
            check=True,
            capture_output=True,
            text=True,
        )
        other = ("- kept", "- checks", "- time", "- seconds")
        texts.append([line for line in done.stdout.splitlines() if not line.startswith(other)])
    assert texts[0] == texts[1]
    run = grundy.open_run(str(tmp_path / "whole"))
    values = run[: 1 << 20]
    running = np.maximum.accumulate(values)
    at = [0, *(np.flatnonzero(np.diff(running)) + 1).tolist()]
    rows = [f"| {n} | {values[n]} |" for n in at]
    assert (
        rows == [row for row in texts[0] if row.startswith("| ") and row[2].isdigit()][: len(rows)]
    )
    zeros = sum(int((block == 0).sum()) for _, block in run.chunks())
    assert any(line.startswith(f"- zeros: {zeros},") for line in texts[0])
    kept = grundy.open_run(str(tmp_path / "kept"))
    blocks, end = list(kept.counts()), kept.kept[1][0]
    assert end in (5 << 24, 6 << 24)  # the last segment is discarded only if its digest was ready
    assert [block.start for block in blocks] == [*range(1 << 26, end, 1 << 22)]
    for start, stop, counts in blocks:
        assert np.bincount(run.values(start, stop)).tolist() == counts.tolist()


def test_results_while_the_program_discards_values(tmp_path):
    program, whole, kept = os.environ["GRUNDY_BIN"], str(tmp_path / "whole"), str(tmp_path / "kept")
    command = [program, "run", ".106", "--to", "150000000", "--threads", "1", "-q", "--dir"]
    subprocess.run([*command, whole], check=True)
    child, texts = subprocess.Popen([*command, kept, "--keep", "140000"]), []
    try:
        while child.poll() is None:
            done = subprocess.run(
                [sys.executable, os.path.join(SCRIPTS, "results.py"), kept],
                capture_output=True,
                text=True,
            )
            if (
                "nothing has been committed" not in done.stderr
                and "no such directory" not in done.stderr
            ):
                assert done.returncode == 0, done.stderr
                texts.append(done.stdout)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 0 and texts
    values = np.asarray(grundy.open_run(whole))
    running = np.maximum.accumulate(values)
    maxima = [0, *(np.flatnonzero(running[1:] > running[:-1]) + 1).tolist()]
    for text in texts:
        count = int(text.split("- count: ")[1].split()[0])
        print(count, "values, kept", text.split("- kept: ")[1].split("\n")[0])
        assert f"- zeros: {count - np.count_nonzero(values[:count])}, " in text
        rows = [f"| {n} | {values[n]} |" for n in maxima if n < count]
        assert rows == [
            line for line in text.splitlines() if line.startswith("| ") and line[2].isdigit()
        ]


@pytest.mark.parametrize(
    ("game", "count"),
    [
        ("kayles", 400),
        (".07", 4096),
        (".45", 5000),
        (".055", 3000),
        (".156", 20000),
        (".116", 999),
        ("4.3", 64),
        (".007", 8000),
        ("grundy", 30000),
    ],
)
def test_script_and_program_find_the_same_period(tmp_path, game, count):
    program, path = os.environ["GRUNDY_BIN"], str(tmp_path / "run")
    subprocess.run([program, "run", game, "--to", str(count), "--dir", path, "-q"], check=True)
    theirs = subprocess.run(
        [program, "period", path, "--json"], check=True, capture_output=True, text=True
    )
    theirs, ours = json.loads(theirs.stdout), json.loads(command(path, "--json").stdout)
    for key in ("game", "period", "preperiod", "max_value", "checked_through"):
        assert ours[key] == theirs[key], key
    # The script proves nothing. It reports that the bound is reached where the program proves.
    assert ours["status"] == ("none" if theirs["status"] == "none" else "observed")
    if theirs["theorem"] == "P1":
        assert "reached" in command(path).stdout
