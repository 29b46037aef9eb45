"""Tests of the bursts. The expected ones follow the definition, block by block."""

import csv
import io
import os
import subprocess
import sys
from fractions import Fraction

import grundy
import grundy.bursts
import numpy as np
import pytest
from fake_run import is_rare, write_run
from grundy.bursts import Blocks, find_bursts

SCRIPTS = os.path.join(os.path.dirname(__file__), "..", "..", "scripts")


def expected(values, start, stop, least, blocks):
    block, share, gap = blocks
    bursts = []
    first, last = (start + block - 1) // block, stop // block
    parts = {i: values[i * block : (i + 1) * block] for i in range(first, last)}
    large = {i: sum(v >= least for v in part) for i, part in parts.items()}
    is_loud = {i for i in parts if large[i] >= share * block}
    begins = [i for i in is_loud if not is_loud & set(range(i - gap - 1, i))]
    ends = [i + 1 for i in is_loud if not is_loud & set(range(i + 1, i + gap + 2))]
    for a, b in zip(sorted(begins), sorted(ends)):
        positions = range(a * block, b * block)
        rares = sum(is_rare(n, values[n]) for n in positions)
        complete = (first == 0 or a - gap > first) and b + gap < last
        counts = sum(large[i] for i in range(a, b)), len(is_loud & set(range(a, b)))
        bursts.append((a * block, b * block, *counts, rares, complete))
    return bursts


@pytest.mark.parametrize("read", [1, 24, 800])
@pytest.mark.parametrize("least", [9, 300])
@pytest.mark.parametrize("blocks", [Blocks(8, 0.25, 3), Blocks(5, 0.4, 0), Blocks(7, 0.25, 1)])
def test_bursts_follow_the_definition(tmp_path, monkeypatch, read, least, blocks):
    monkeypatch.setattr(grundy.bursts, "READ", read)
    random = np.random.default_rng(41)
    found = 0
    for i, share in enumerate([0, 0.02, 0.1, 0.3, 1]):
        is_large = random.random(1003) < np.repeat(random.choice([0.01, share], 118), 9)[:1003]
        values = random.integers(0, 9, 1003) + is_large * least
        run = grundy.open_run(write_run(tmp_path / str(i), values))
        for start, stop in [(0, 1003), (301, 1003), (17, 640), (1001, 1003), (5, 5)]:
            bursts = list(find_bursts(run, least, start, stop, blocks))
            assert bursts == expected(values.tolist(), start, stop, least, blocks)
            found += len(bursts)
        whole = list(find_bursts(run, least, blocks=blocks))
        assert whole == list(find_bursts(run, least, 0, 1003, blocks))
    assert found > 40


def test_only_the_range_is_read(tmp_path, monkeypatch):
    values = np.random.default_rng(42).integers(0, 16, 5000)
    run = grundy.open_run(write_run(tmp_path / "run", values))
    blocks, parts, read = Blocks(8, 0.25, 3), [], run.values
    everything = expected(values.tolist(), 2001, 2100, 12, blocks)
    monkeypatch.setattr(run, "values", lambda a, b: parts.append((a, b)) or read(a, b))
    assert list(find_bursts(run, 12, 2001, 2100, blocks)) == everything != []
    parts.remove((run.last_record["last_rare"], run.last_record["last_rare"] + 1))
    assert parts and all(2008 <= a <= b <= 2096 for a, b in parts)
    empty = grundy.open_run(write_run(tmp_path / "empty", []))
    assert list(find_bursts(empty, 9)) == list(find_bursts(run, 9, 4999)) == []


@pytest.mark.parametrize(
    ("least", "start", "stop", "blocks", "error", "words"),
    [
        (0, 0, 100, Blocks(8, 0.25, 3), ValueError, "least 0"),
        (1 << 16, 0, 100, Blocks(8, 0.25, 3), ValueError, "least 65536"),
        (9, 50, 30, Blocks(8, 0.25, 3), IndexError, "ends before it"),
        (9, -1, 30, Blocks(8, 0.25, 3), IndexError, "negative"),
        (9, 0, 101, Blocks(8, 0.25, 3), IndexError, "100 committed values"),
        (9, 0, 100, Blocks(0, 0.25, 3), ValueError, "size 0"),
        (9, 0, 100, Blocks(-8, 0.25, 3), ValueError, "size -8"),
        (9, 0, 100, Blocks(8, 0, 3), ValueError, "share 0"),
        (9, 0, 100, Blocks(8, 1.5, 3), ValueError, "share 1.5"),
        (9, 0, 100, Blocks(8, float("nan"), 3), ValueError, "share nan"),
        (9, 0, 100, Blocks(8, 0.25, -1), ValueError, "gap -1"),
        (9, 0, 100, Blocks(8.5, 0.25, 3), TypeError, "is not an integer"),
    ],
)
def test_arguments_are_refused_at_the_call(tmp_path, least, start, stop, blocks, error, words):
    path = write_run(tmp_path / "run", range(100))
    with pytest.raises(error, match=words):
        find_bursts(grundy.open_run(path), least, start, stop, blocks)
    with pytest.raises(TypeError, match="is a path; open it"):
        find_bursts(path, 9)
    with pytest.raises(TypeError, match="expected a Run, not ndarray"):
        find_bursts(np.arange(100), 9)
    with pytest.raises(TypeError, match="expected Blocks, not tuple"):
        find_bursts(grundy.open_run(path), 9, blocks=(8, 0.25, 3))


def test_numbers_of_numpy_do_not_overflow(tmp_path):
    values = np.zeros(100_000, np.int64)
    values[65_536:] = 9
    run = grundy.open_run(write_run(tmp_path / "run", values, mask=0))
    blocks = Blocks(np.int16(4096), np.float32(0.5), np.int8(0))
    found = list(find_bursts(run, np.uint8(9), np.int32(0), np.int32(100_000), blocks))
    assert [(burst.begin, burst.end) for burst in found] == [(65_536, 98_304)]
    assert found == list(find_bursts(run, 9, blocks=Blocks(4096, 0.5, 0)))


def test_share_is_the_decimal_number_that_was_given(tmp_path):
    # 7 of 100 values are at least 7 %, although 0.07 * 100 is 7.000000000000001 as a float.
    values = np.zeros(300, np.int64)
    values[100:107], values[200:206] = 9, 9
    run = grundy.open_run(write_run(tmp_path / "run", values, mask=0))
    for share in [0.07, np.float64(0.07), Fraction(7, 100)]:
        found = list(find_bursts(run, 9, blocks=Blocks(100, share, 0)))
        assert [(burst.begin, burst.end) for burst in found] == [(100, 200)]
    for share in ["0.07", "7e-2", "7/100"]:
        done = call(run.path, "--large", "3^2", "--block", "100", "--share", share, "--gap", "0")
        assert [row.split(",")[0] for row in done.stdout.splitlines()[1:]] == ["100"]


def test_script_prints_the_bursts(tmp_path):
    values = np.zeros(400_000, np.int64)
    values[204_800:213_100] = 200
    run = write_run(tmp_path / "run", values, mask=0)
    done = call(run)
    assert done.returncode == 0 and done.stderr == ""
    # 213,099 is in the block that ends at 217,088.
    assert list(csv.DictReader(io.StringIO(done.stdout))) == [
        {
            "begin": "204800",
            "end": "217088",
            "length": "12288",
            "large": "8300",
            "loud": "3",
            "rares": "0",
            "complete": "0",
        }
    ]
    rows = call(run, "--block", "2^15", "--share", "0.25", "--gap", "0").stdout.splitlines()
    assert rows[1:] == ["196608,229376,32768,8300,1,0,1"]
    kept = [[0, 8192], [200_704, 400_000]]
    freed = write_run(tmp_path / "freed", values, mask=0, kept=kept)
    assert call(freed).stdout == done.stdout
    with pytest.raises(grundy.Discarded):
        list(find_bursts(grundy.open_run(freed), 176))
    assert call(run, "--large", "201").stdout.count("\n") == 1
    for name, count in [("bare", 0), ("all", 9000)]:
        gone = call(write_run(tmp_path / name, values[:count], kept=[]))
        assert (gone.returncode, gone.stdout.count("\n"), gone.stderr) == (0, 1, "")
    none = call(tmp_path / "none")
    assert (none.returncode, none.stdout) == (1, "") and "no such directory" in none.stderr
    for wrong in [("--large", "0"), ("--large", "2^16"), ("--gap", "-1"), ("--share", "nan")]:
        done = call(run, *wrong)
        assert done.returncode == 2 and wrong[0] in done.stderr and "Traceback" not in done.stderr


def call(*arguments):
    """Starts scripts/bursts.py."""
    return subprocess.run(
        [sys.executable, os.path.join(SCRIPTS, "bursts.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
    )
