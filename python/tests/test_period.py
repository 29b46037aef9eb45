"""Tests of the search for periods, in the package and as a command.

Expected periods are planted, or computed by `brute`, which follows the definition.
"""

import json
import os
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest
from fake_run import random_values, write_run
from grundy import Damage, RunError
from grundy import period as find_period

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.join(HERE, "..", "..", "scripts")


class Table:
    """Values in memory with the interface of a Run. Records the largest read and the total."""

    def __init__(self, values, kept=None, game=None):
        self._values, self.game, self.count = np.asarray(values), game, len(values)
        self.kept = [(0, self.count)] if kept is None else kept
        self.last_record = {"max_value": int(self._values.max(initial=0))}
        self.most = self.total = 0

    def values(self, a, b):
        assert (
            0 <= a <= b <= self.count
            and sum(max(0, min(b, hi) - max(a, lo)) for lo, hi in self.kept) == b - a
        )
        self.most, self.total = max(self.most, b - a), self.total + b - a
        return self._values[a:b].copy()


def find(values, **options):
    result = find_period.find_period(Table(values), **options)
    return result["period"], result["preperiod"]


def brute(values, length, repeats):
    """Returns the least p that holds throughout the last `length` values, and its preperiod."""
    count = len(values)
    for p in range(1, length // repeats + 1):
        if all(values[n] == values[n + p] for n in range(count - length, count - p)):
            exceptions = [n for n in range(count - p) if values[n] != values[n + p]]
            return p, max(exceptions, default=-1) + 1
    return None, None


def planted(preperiod, word, count):
    """Returns `preperiod` other values, the last of which breaks the period, then the period."""
    word = np.asarray(word, np.uint16)
    n = np.arange(count) - preperiod
    values = word[n % len(word)]
    if preperiod:
        values[: preperiod - 1] = np.arange(preperiod - 1) % 7 + 300
        values[preperiod - 1] += 1
    return values


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_small_random_tables_agree_with_the_definition(monkeypatch, chunk):
    monkeypatch.setattr(find_period, "CHUNK", chunk)
    seen = 0
    for seed in range(300):
        rng = random.Random(seed)
        count = rng.randrange(0, 90)
        word = [rng.randrange(rng.choice([1, 2, 3, 9])) for _ in range(rng.randrange(1, 20))]
        preperiod = rng.randrange(0, 40)
        values = [rng.randrange(3) for _ in range(preperiod)] + word * count
        values = values[:count]
        if count and rng.random() < 0.3:
            values[rng.randrange(count)] ^= 1
        tail, repeats = rng.choice([(1, 2), (2, 2), (3, 2), (2, 3)])
        expected = brute(values, count // tail, repeats)
        found = find(
            np.array(values, np.uint16), tail=find_period.Fraction(1, tail), repeats=repeats
        )
        assert found == expected, f"seed {seed}: tail 1/{tail}, repeats {repeats}, {values}"
        seen += expected[0] is not None
    assert 50 < seen < 250  # both cases occur


@pytest.mark.parametrize("period", [1, 2, 3, 12, 1000, 4096, 24999])
@pytest.mark.parametrize("preperiod", [0, 1, 71, 49999])
def test_planted_period_and_preperiod(period, preperiod):
    word = random_values(period, period)
    word[-1] = 1000  # occurs once: no shorter period
    assert find(planted(preperiod, word, 100_000)) == (period, preperiod)


def test_preperiod_just_before_and_inside_the_searched_part():
    assert find(planted(50, [1, 2, 3, 4], 100)) == (4, 50)
    assert find(planted(51, [1, 2, 3, 4], 100)) == (None, None)


def test_period_of_exactly_half_the_part_and_one_more():
    word = random_values(6, 50_000)
    word[0] = 1000
    table = np.tile(word, 2)
    assert find(table, tail=1) == (50_000, 0)
    assert find(table[1:], tail=1) == (None, None)  # not two whole periods
    assert find(np.tile(word, 3), tail=1, repeats=3) == (50_000, 0)
    assert find(np.tile(word, 3)[:-1], tail=1, repeats=3) == (None, None)


def test_constant_sequences_have_period_1():
    for count in [4, 5, 1000]:
        assert find(np.zeros(count, np.uint16)) == (1, 0)
        assert find(np.full(count, 65535, np.uint16)) == (1, 0)
    late = np.ones(1000, np.uint16)
    late[400] = 0
    assert find(late) == (1, 401)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_table_too_short_for_a_period_is_none(count):
    assert find(np.zeros(count, np.uint16)) == (None, None)


@pytest.mark.parametrize("seed", range(5))
def test_random_values_have_no_period(seed):
    assert find(random_values(seed, 200_000, 2)) == (None, None)


@pytest.mark.parametrize("at", [50_000, 50_001, 70_000, 99_000, 99_998, 99_999])
@pytest.mark.parametrize("period", [1, 12, 9973])
def test_one_wrong_value_in_the_searched_part_is_no_period(at, period):
    values = planted(0, np.arange(period) + 5, 100_000)
    values[at] ^= 1
    assert find(values) == (None, None)


def test_many_near_misses_take_linear_time():
    # all values but one are equal, so every p up to the limit nearly holds
    for at in [0, 100_000, 199_999]:
        values = np.zeros(200_000, np.uint16)
        values[at] = 1
        table = Table(values)
        assert find_period.find_period(table, tail=1)["status"] == "none"
        assert table.total < 4 * len(values)


def test_thue_morse_words_do_not_defeat_the_hashes():
    # hashes mod 2^64 agree on these words for every base
    n = np.arange(1 << 16)
    bits = sum(n >> k & 1 for k in range(16)) & 1
    assert find(bits.astype(np.uint16), tail=1) == (None, None)
    word = bits[: (1 << 14) - 1]
    assert find(np.tile(word, 4).astype(np.uint16), tail=1) == (len(word), 0)


def test_false_candidates_are_compared_and_dropped(monkeypatch):
    monkeypatch.setattr(
        find_period, "candidates", lambda table, a, b, limit: iter(range(1, limit + 1))
    )
    assert find(planted(20, [1, 2, 1, 2, 1, 3], 200)) == (6, 20)


def test_least_period_is_found_and_not_a_multiple():
    assert find(np.tile([1, 2, 1, 2, 1, 3], 1000).astype(np.uint16)) == (6, 0)
    assert find(np.tile([1, 2, 1, 2], 1000).astype(np.uint16)) == (2, 0)


def test_only_the_window_is_searched_but_the_preperiod_may_precede_it():
    values = planted(1234, np.arange(10), 100_000)
    table = Table(values)
    result = find_period.find_period(table, window=20)
    assert (result["period"], result["preperiod"]) == (10, 1234)
    assert result["searched"] == {
        "from": 99_980,
        "to": 100_000,
        "max_period": 10,
        "repeats": 2,
        "kept_from": 0,
    }
    assert find(values, window=19) == (None, None)


def test_memory_is_bounded_by_chunks(monkeypatch):
    monkeypatch.setattr(find_period, "CHUNK", 1000)
    table = Table(planted(5, np.arange(777), 100_000))
    result = find_period.find_period(table)
    assert (result["period"], result["preperiod"]) == (777, 5)
    assert table.most == 1000


def test_preperiod_before_a_hole_is_unknown():
    values = np.tile([1, 2, 3], 1000)
    holed = Table(values, kept=[(0, 500), (2000, 2500), (2500, 3000)])
    result = find_period.find_period(holed, tail=1)
    assert (result["status"], result["period"], result["preperiod"]) == ("observed", 3, None)
    assert result["searched"]["from"] == 2000
    text = find_period.describe(holed, result)
    assert "at most 2000" in text and "needs fewer values" in text
    values[2100] = 9
    result = find_period.find_period(Table(values, kept=holed.kept))
    assert result["status"] == "none"
    result = find_period.find_period(Table(values, kept=holed.kept), window=600)
    assert (result["period"], result["preperiod"]) == (3, 2101)


@pytest.mark.parametrize("dtype", ["u1", "<u2", ">u2", "u4", "u8"])
def test_values_equal_mod_the_hash_prime_are_distinguished(tmp_path, dtype):
    values = np.tile(np.array([0, 1, 0, 5], dtype), 100)
    if np.dtype(dtype).itemsize >= 4:
        values[2::4] = find_period.PRIME
    np.save(tmp_path / "v.npy", values)
    array = find_period.Array(str(tmp_path / "v.npy"))
    result = find_period.find_period(array)
    assert (result["period"], result["preperiod"], result["max_value"]) == (4, 0, int(values.max()))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"repeats": 1}, ValueError, "one whole period is no repetition"),
        ({"repeats": 0}, ValueError, "repeats 0"),
        ({"repeats": -1}, ValueError, "repeats -1"),
        ({"repeats": 2.0}, TypeError, "is not an integer"),
        ({"window": -5}, ValueError, "window -5"),
        ({"window": 0}, ValueError, "window 0"),
        ({"window": 1e6}, TypeError, "is not an integer"),
        ({"tail": 0}, ValueError, "above 0 and at most 1"),
        ({"tail": 2}, ValueError, "above 0 and at most 1"),
        ({"tail": -1}, ValueError, "above 0 and at most 1"),
        ({"tail": float("nan")}, ValueError, "above 0 and at most 1"),
        ({"tail": "1/2"}, TypeError, "is not a number"),
        ({"tail": True}, TypeError, "is not a number"),
    ],
    ids=str,
)
def test_arguments_outside_their_ranges_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        find(np.zeros(100, np.uint16), **options)


@pytest.mark.parametrize("values", [np.zeros(100, np.uint16), [0, 1] * 50], ids=["array", "list"])
def test_bare_arrays_are_refused_with_the_way_to_search_them(values):
    with pytest.raises(TypeError, match="period.Array"):
        find_period.find_period(values)


def test_numbers_of_numpy_and_floats_are_arguments():
    options = {"tail": np.float64(0.7), "window": np.int64(600), "repeats": np.uint8(2)}
    result = find_period.find_period(Table(planted(20, [1, 2, 3], 1000)), **options)
    assert json.loads(json.dumps(result)) == result
    assert (result["period"], result["searched"]["from"]) == (3, 400)
    # 0.7 as a binary fraction is less than 7/10: of 10 values, it would be 6.
    for tail in [0.7, np.float32(0.7), find_period.Fraction(7, 10)]:
        assert find_period.find_period(Table(np.ones(10)), tail=tail)["searched"]["from"] == 3
    assert find_period.find_period(Table(np.ones(10)), tail=np.int8(1))["searched"]["from"] == 0


# The bounds of the proofs, derived by hand from the theorems:
# P1 n0 <= n < 2 n0 + p + t; P2 n <= 2 n0 + p - 2; P3 n <= 2 n0 + 2 p + M - 2; each needs G(n + p).


@pytest.mark.parametrize(
    ("game", "p", "n0", "need"),
    [
        ("kayles", 12, 71, 168),  # n < 2*71 + 12 + 2 = 156
        ("0.77", 12, 71, 168),
        (".770", 12, 71, 168),
        ("4.3", 2, 1, 7),  # n < 2 + 2 + 1
        ("4.", 1, 0, 4),  # n0 = 1: n < 2 + 1 + 0
        ("dawson-chess", 34, 52, 175),  # n < 104 + 34 + 3
        ("grundy:d=0", 3, 5, 16),  # n < 10 + 3
        ("grundy", 3, 10, 25),  # n <= 20 + 3 - 2 = 21
        ("grundy:d=1", 3, 10, 25),
        ("grundy:d=2", 3, 10, 30),  # n <= 20 + 6 + 2 - 2 = 26
    ],
)
def test_proof_bound_follows_the_theorem(game, p, n0, need):
    for count, verdict in [(need, "reached"), (need - 1, "1 more needed")]:
        lines = find_period.proof_bounds(Table(np.ones(count, np.uint16), game=game), p, n0)
        assert len(lines) == 1 and f"needs {need} values" in lines[0] and verdict in lines[0]


def test_grundys_bound_falls_back_to_p3_if_a_zero_lies_in_the_period():
    values = np.ones(100, np.uint16)
    values[12] = 0
    lines = find_period.proof_bounds(Table(values, game="grundy"), 3, 10)
    assert "G(12) = 0" in lines[0] and "needs 29 values" in lines[1]  # n <= 20 + 6 + 1 - 2 = 25


def test_unknown_rule_gets_no_bound():
    for game in [None, "0.8", "nim", "grundy:d=", ".77\n"]:
        lines = find_period.proof_bounds(Table(np.ones(9, np.uint16), game=game), 1, 0)
        assert len(lines) == 1 and "not known" in lines[0]


# The command


def command(*arguments):
    return subprocess.run(
        [sys.executable, os.path.join(SCRIPTS, "find_period.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


def test_json_keys_and_status_0_for_observed_and_none(tmp_path):
    path = write_run(tmp_path / "r", planted(300, [1, 2, 999], 1000))
    done = command(path, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {
        "game": "kayles",
        "status": "observed",
        "period": 3,
        "preperiod": 300,
        "max_value": 1000,  # the exception at 299
        "checked_through": 1000,
        "searched": {"from": 500, "to": 1000, "max_period": 250, "repeats": 2, "kept_from": 0},
    }
    np.save(tmp_path / "v.npy", random_values(7, 1000))
    done = command(tmp_path / "v.npy", "--json", "--tail", "1/4", "--repeats", "5")
    result = json.loads(done.stdout)
    assert done.returncode == 0
    assert (result["game"], result["status"], result["period"], result["preperiod"]) == (
        None,
        "none",
        None,
        None,
    )
    assert result["searched"]["max_period"] == 50


def test_text_states_observed_and_never_proved(tmp_path):
    done = command(write_run(tmp_path / "r", planted(300, [1, 2, 4], 1000)))
    assert done.returncode == 0 and "observed: period 3, preperiod 300" in done.stdout
    assert "not proved" in done.stdout and "a proof needs 608 values" in done.stdout
    done = command(write_run(tmp_path / "s", random_values(8, 1000)))
    assert done.returncode == 0 and "none: no period up to 250" in done.stdout


def test_control_characters_of_a_hostile_name_are_escaped(tmp_path):
    done = command(write_run(tmp_path / "r", [0] * 100, game="\x1b[2Jnim\n"))
    assert "\x1b" not in done.stdout and "\\x1b[2Jnim\\n" in done.stdout


def test_exit_status_distinguishes_missing_usage_and_damage(tmp_path):
    path = write_run(tmp_path / "r", range(100))
    assert command(tmp_path / "nowhere").returncode == 1
    assert command(tmp_path).returncode == 1
    (tmp_path / "text.npy").write_text("hello")
    (tmp_path / "empty.npy").write_text("")
    np.save(tmp_path / "signed.npy", np.arange(9))
    np.save(tmp_path / "square.npy", np.ones((3, 3), np.uint8))
    for name in ["text.npy", "empty.npy", "signed.npy", "square.npy"]:
        done = command(tmp_path / name)
        assert done.returncode == 1 and name in done.stderr and "Traceback" not in done.stderr
    for bad in [
        ["--tail", "1e-99999999"],
        ["--tail", "0"],
        ["--tail", "2"],
        ["--window", "-1"],
        ["--window", "0"],
        ["--repeats", "1"],
        [],
    ]:
        done = command(*bad, *([path] if bad else []))
        assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "one whole period is no repetition" in command(path, "--repeats", "1").stderr
    np.save(tmp_path / "v.npy", np.ones(1000, np.uint16))
    with open(tmp_path / "v.npy", "r+b") as file:
        file.truncate(1000)
    assert command(tmp_path / "v.npy").returncode == 3
    with open(os.path.join(path, "values.npy"), "r+b") as file:
        file.truncate(4096 + 99)
    done = command(path)
    assert done.returncode == 3 and "offset 4195" in done.stderr and done.stdout == ""


def test_damaged_headers_are_damage(tmp_path):
    np.save(tmp_path / "v.npy", np.ones(1000, np.uint16))
    whole = (tmp_path / "v.npy").read_bytes()
    start, end = 10, whole.index(b"\n")
    texts = [b"{'descr': '<u2', 'shape': (", b"{" + b"-" * 100, b"{[]: 1}", b'"' * 3, b"9" * 100]
    for size in [b"-1", b"1e9", b"9" * 30, str(2**62).encode(), str(2**63).encode()]:
        texts.append(b"{'descr': '<u2', 'fortran_order': False, 'shape': (%s,), }" % size)
    texts.append(b"{'descr': ('<u2',), 'fortran_order': False, 'shape': (5,), }")
    headers = [whole[:start] + text.ljust(end - start) + whole[end:] for text in texts]
    rng = random.Random(51)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.randrange(6, start + 70)] = rng.randrange(256)
        headers.append(bytes(damaged))
    refused = []
    for header in headers:
        (tmp_path / "v.npy").write_bytes(header)
        try:
            find_period.Array(tmp_path / "v.npy")
        except RunError as e:
            refused.append(e)
    assert all("v.npy" in str(e) for e in refused)
    assert sum(isinstance(e, Damage) for e in refused) > 200
    (tmp_path / "v.npy").write_bytes(headers[0])
    done = command(tmp_path / "v.npy")
    assert done.returncode == 3 and done.stderr.startswith("find_period.py: ")
    assert done.stderr.count("\n") == 1


def test_values_npy_of_a_run_is_refused(tmp_path):
    """In a table of bytes, 255 stands for every larger value: they would look periodic."""
    path = write_run(tmp_path / "r", range(1000))
    os.symlink(os.path.join(path, "values.npy"), tmp_path / "link.npy")
    for name in [os.path.join(path, "values.npy"), tmp_path / "link.npy"]:
        with pytest.raises(RunError, match="open the directory"):
            find_period.Array(name)
        done = command(name)
        assert done.returncode == 1 and "open the directory" in done.stderr
    # A copy is recognized by the length of its header, if it lacks values.
    shutil.copy(os.path.join(path, "values.npy"), tmp_path / "copy.npy")
    with pytest.raises(RunError, match="lacks the values of 255 or more"):
        find_period.Array(tmp_path / "copy.npy")
    whole = os.path.join(write_run(tmp_path / "small", range(255)), "values.npy")
    shutil.copy(whole, tmp_path / "whole.npy")
    assert find_period.Array(tmp_path / "whole.npy").count == 255
    np.save(tmp_path / "bytes.npy", np.full(9, 255, np.uint8))
    assert find_period.Array(tmp_path / "bytes.npy").count == 9
    np.save(tmp_path / "values.npy", np.arange(9, dtype=np.uint16))
    assert find_period.Array(tmp_path / "values.npy").count == 9


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_matches_are_counted_as_by_the_definition(monkeypatch, chunk):
    monkeypatch.setattr(find_period, "CHUNK", chunk)
    seed = 5
    rng = random.Random(seed)
    values = [rng.randrange(3) for _ in range(60)]
    table = Table(values)
    for _ in range(200):
        a, b = sorted(rng.sample(range(61), 2))
        p = rng.randint(1, b - a)
        expected = sum(values[n] == values[n + p] for n in range(a, b - p))
        assert find_period.matches(table, p, a, b) == expected, f"seed {seed}: {p}, {a}, {b}"
    for p in [0, 61, -1]:
        with pytest.raises(ValueError, match="from 1 to the 60 values"):
            find_period.matches(table, p)
    with pytest.raises(IndexError):
        find_period.matches(table, 1, 5, 61)
    with pytest.raises(TypeError, match="expected a Run or an Array, not list"):
        find_period.matches([1, 2], 1)


def test_empty_tables_are_none(tmp_path):
    np.save(tmp_path / "v.npy", np.zeros(0, np.uint16))
    for path in [write_run(tmp_path / "r", [], kept=[]), tmp_path / "v.npy"]:
        done = command(path, "--json")
        assert done.returncode == 0 and json.loads(done.stdout)["status"] == "none"
        said = command(path).stdout
        assert "cannot be searched" in said and "no period up to" not in said
