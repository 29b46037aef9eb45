"""Tests of grundy_table.py and find_period.py.

fake_run.py writes the run directories. Expected periods are planted, or computed by `brute`, which
follows the definition.
"""

import json
import os
import random
import subprocess
import sys

import numpy as np
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.dirname(HERE)
sys.path.insert(0, SCRIPTS)

import find_period  # noqa: E402
import grundy_table  # noqa: E402
from fake_run import ESCAPE, append, fields, next_line, punch, random_values, record_line, write_run  # noqa: E402

try:
    from blake3 import blake3
except ImportError:
    blake3 = None

needs_blake3 = pytest.mark.skipif(blake3 is None, reason="the blake3 package is not installed")


# The reader


@pytest.mark.parametrize("width", ["u8", "u16"])
def test_all_values_are_read_including_escapes(tmp_path, width):
    values = random_values(1, 5000, 65536)
    values[[0, 255, 256, 4999]] = [65535, 255, 256, 511]
    run = grundy_table.open_run(write_run(tmp_path / "r", values, width))
    assert (run.game, run.count, len(run)) == ("kayles", 5000, 5000)
    assert run.values(0, 5000).dtype == np.uint16
    assert np.array_equal(run.values(0, 5000), values)
    for a, b in [(0, 1), (1, 1), (17, 300), (4999, 5000), (5000, 5000)]:
        assert np.array_equal(run.values(a, b), values[a:b])
    assert run[0] == 65535 and run[256] == 256 and run[-1] == 511 and type(run[0]) is int
    assert np.array_equal(run[10:20], values[10:20])
    assert np.array_equal(run[-20:], values[-20:])
    assert len(run[20:10]) == 0
    blocks = list(run.chunks(size=999))
    assert [start for start, _ in blocks] == [0, 999, 1998, 2997, 3996, 4995]
    assert np.array_equal(np.concatenate([block for _, block in blocks]), values)
    assert [int(v) for v in run] == values.tolist()


def test_result_is_a_copy_and_files_are_not_written(tmp_path):
    path = write_run(tmp_path / "r", [1, 2, 3])
    before = open(os.path.join(path, "values.npy"), "rb").read()
    run = grundy_table.open_run(path)
    run.values(0, 3)[:] = 9
    assert run.values(0, 3).tolist() == [1, 2, 3]
    assert open(os.path.join(path, "values.npy"), "rb").read() == before


@pytest.mark.parametrize("shape", [0, 7, 100, 10**15])
def test_journal_decides_the_length_not_the_header_shape(tmp_path, shape):
    values = random_values(2, 100)
    run = grundy_table.open_run(write_run(tmp_path / "r", values, shape=shape))
    assert np.array_equal(run.values(0, 100), values)


def test_bytes_and_escapes_beyond_the_journal_are_ignored(tmp_path):
    values = random_values(3, 100, 255)
    path = write_run(tmp_path / "r", values)
    append(path, "values.npy", b"\1" * 5000)
    append(path, "escapes.npy", np.array([(100, 257)], ESCAPE).tobytes() + b"torn")
    run = grundy_table.open_run(path)
    assert run.count == 100 and np.array_equal(run.values(0, 100), values)
    with pytest.raises(IndexError, match="100 committed values"):
        run[100]
    with pytest.raises(IndexError, match="committed"):
        run[90:101]
    with pytest.raises(IndexError):
        run[-101]
    with pytest.raises(IndexError):
        run.values(-1, 5)


@pytest.mark.parametrize(
    "tail",
    [
        b"{",
        record_line(**fields(range(200)))[:4000],
        b"\0" * 4096,
        b" " * 4095 + b"\n",
        b"{}".ljust(4095) + b"\n",
    ],
    ids=["one byte", "cut record", "zeros", "blank line", "empty object"],
)
def test_torn_journal_tail_is_ignored(tmp_path, tail):
    path = write_run(tmp_path / "r", range(100))
    append(path, "journal.jsonl", tail)
    assert grundy_table.open_run(path).count == 100


def test_last_record_decides_after_a_rollback(tmp_path):
    path = write_run(tmp_path / "r", range(100))
    append(path, "journal.jsonl", next_line(path, range(60), event="rollback"))
    run = grundy_table.open_run(path)
    assert run.count == 60 and run.record["event"] == "rollback"
    with pytest.raises(IndexError):
        run[60]


@needs_blake3
def test_altered_last_record_is_ignored(tmp_path):
    path = write_run(tmp_path / "r", range(100))
    line = next_line(path, range(90))
    append(path, "journal.jsonl", line.replace(b'"count": 90', b'"count": 91'))
    assert grundy_table.open_run(path).count == 100
    os.truncate(os.path.join(path, "journal.jsonl"), 4096)
    append(path, "journal.jsonl", line)
    assert grundy_table.open_run(path).count == 90


@needs_blake3
def test_record_with_altered_padding_is_ignored(tmp_path):
    path = write_run(tmp_path / "r", range(100))
    line = next_line(path, range(90))
    append(path, "journal.jsonl", line[:-2] + b"\t\n")
    assert grundy_table.open_run(path).count == 100


def test_hole_is_refused_and_not_read_as_zeros(tmp_path):
    values = random_values(4, 100)
    path = write_run(tmp_path / "r", values, kept=[[0, 20], [20, 30], [60, 100]])
    punch(path, 30, 60)
    run = grundy_table.open_run(path)
    assert np.array_equal(run.values(0, 30), values[:30])
    assert np.array_equal(run.values(60, 100), values[60:])
    assert len(run.values(40, 40)) == 0
    for a, b, where in [(29, 31, 30), (30, 31, 30), (0, 100, 30), (59, 100, 59), (35, 40, 35)]:
        with pytest.raises(grundy_table.NotKept, match=rf"G\({where}\)"):
            run.values(a, b)
    with pytest.raises(grundy_table.NotKept):  # a loop must not end silently at the hole
        list(run)


def test_hole_punched_after_opening_is_refused(tmp_path):
    values = random_values(5, 100)
    path = write_run(tmp_path / "r", values)
    run = grundy_table.open_run(path)
    append(
        path,
        "journal.jsonl",
        next_line(path, range(120), kept=[[0, 10], [50, 120]]),
    )
    assert np.array_equal(run.values(0, 10), values[:10])
    assert np.array_equal(run.values(50, 100), values[50:])
    for n in range(10, 50):
        with pytest.raises(grundy_table.NotKept):
            run[n]
    assert run.count == 100


def test_rollback_after_opening_is_noticed(tmp_path):
    path = write_run(tmp_path / "r", range(100))
    run = grundy_table.open_run(path)
    punch(path, 10, 50)
    append(path, "journal.jsonl", next_line(path, range(50), event="rollback"))
    append(path, "journal.jsonl", next_line(path, range(200)))
    for _ in range(2):
        with pytest.raises(grundy_table.RunError, match="went back to 50"):
            run[3]


def test_other_format_is_refused_and_not_skipped(tmp_path):
    path = write_run(tmp_path / "r", range(100))
    append(path, "journal.jsonl", record_line(**fields(range(100), format=3)))
    with pytest.raises(grundy_table.RunError, match="format 3"):
        grundy_table.open_run(path)


def test_format_1_is_refused_with_advice(tmp_path):
    path = write_run(tmp_path / "r", range(100), format=1)
    with pytest.raises(grundy_table.RunError) as refused:
        grundy_table.open_run(path)
    for part in ["has format 1", "format 2 only", "grundy export", "another directory"]:
        assert part in str(refused.value)
    assert not isinstance(refused.value, grundy_table.Damage)
    done = command(path)
    assert done.returncode == 1 and "has format 1" in done.stderr


@pytest.mark.parametrize("change", [{"format": True}, {"format": "2"}, {"format": 2.0}])
def test_format_2_of_another_type_is_refused(tmp_path, change):
    with pytest.raises(grundy_table.RunError, match="format"):
        grundy_table.open_run(write_run(tmp_path / "r", range(9), **change))


@pytest.mark.parametrize(
    "change",
    [
        {"count": -1},
        {"count": 1.0},
        {"count": None},
        {"count": 2**80},
        {"width": "u4"},
        {"width": ["u8"]},
        {"kept": [[0, 101]]},
        {"kept": [[50, 40]]},
        {"kept": [[0, 50], [40, 100]]},
        {"kept": [0, 100]},
        {"kept": None},
        {"escapes": -1},
        {"game": 7},
        {"time": None},
        {"seconds": 1.5},
        {"seconds": -1},
        {"suspect": "7"},
        {"program": 1},
        {"snapshot": {"name": "snapshot-50.json", "blake3": "0"}},  # a snapshot needs two kept ranges
        {"snapshot": "snapshot-50.json"},
    ],
    ids=str,
)
def test_hostile_record_is_damage_and_allocates_nothing(tmp_path, change):
    with pytest.raises(grundy_table.Damage, match="record 0"):
        grundy_table.open_run(write_run(tmp_path / "r", range(100), **change))


@pytest.mark.parametrize(
    "change", [{"count": 2**62}, {"count": 101}, {"escapes": 1}, {"escapes": 2**60}], ids=str
)
def test_file_shorter_than_the_journal_says_is_damage(tmp_path, change):
    with pytest.raises(grundy_table.Damage, match="the file ends here"):
        grundy_table.open_run(write_run(tmp_path / "r", range(100), **change))


def test_other_dtype_than_the_journal_says_is_damage(tmp_path):
    path = write_run(tmp_path / "r", range(100), "u16")
    os.remove(os.path.join(path, "journal.jsonl"))
    append(path, "journal.jsonl", record_line(**fields(range(100), "u8")))
    with pytest.raises(grundy_table.Damage, match="dtype"):
        grundy_table.open_run(path)


@pytest.mark.parametrize("name", ["values.npy", "escapes.npy"])
@pytest.mark.parametrize(
    "content", [b"", b"\x93NUMPY", b"x" * 5000, b"\x93NUMPY\x01\x00\xf6\x0f" + b"(" * 5000]
)
def test_broken_header_is_damage(tmp_path, name, content):
    path = write_run(tmp_path / "r", range(100))
    with open(os.path.join(path, name), "wb") as file:
        file.write(content)
    with pytest.raises(grundy_table.Damage, match=name):
        grundy_table.open_run(path)


@pytest.mark.parametrize(
    ("entries", "bytes255", "offset"),
    [
        ([(10, 256), (5, 256)], [5, 10], 4106),
        ([(5, 256), (5, 256)], [5], 4106),
        ([(5, 256), (5, 257)], [5, 6], 4106),
        ([(5, 256)], [], 4096),
        ([(5, 256), (7, 300)], [5], 4106),
        ([(5, 254)], [5], 4096),
        ([(5, 0)], [5], 4096),
    ],
    ids=["descending", "twice", "twice for another", "byte 0", "second byte 0", "254", "zero"],
)
@pytest.mark.parametrize("dense", [0, 16])
def test_escapes_that_contradict_the_table_are_damage(tmp_path, monkeypatch, dense, entries, bytes255, offset):
    monkeypatch.setattr(grundy_table, "DENSE", dense)
    values = np.zeros(100, np.uint16)
    values[bytes255] = 255
    run = grundy_table.open_run(write_run(tmp_path / "r", values, entries=entries))
    with pytest.raises(grundy_table.Damage, match=rf"escapes.npy', offset {offset}\b"):
        run.values(0, 100)
    with pytest.raises(grundy_table.Damage, match="escapes.npy"):
        for n in range(11):
            run[n]
    with pytest.raises(grundy_table.Damage, match="escapes.npy"):
        for n in range(11):
            run[[n]]


@pytest.mark.parametrize("entries", [[], [(3, 300)], [(3, 300), (9, 300)]], ids=str)
def test_byte_255_without_an_escape_is_damage_in_every_read(tmp_path, entries):
    values = np.zeros(100, np.uint16)
    values[[7, *(n for n, _ in entries)]] = 255
    run = grundy_table.open_run(write_run(tmp_path / "r", values, entries=entries))
    reads = [
        lambda: run[7],
        lambda: run.values(0, 100),
        lambda: run.values(7, 8),
        lambda: run[[1, 7]],
        lambda: run[::7],
        lambda: run[77::-70],
        lambda: np.asarray(run),
        lambda: list(run),
    ]
    for read in reads:
        with pytest.raises(grundy_table.Damage, match=r"values.npy', offset 4103.*G\(7\)"):
            read()
    assert run.values(0, 7).tolist() == [0, 0, 0, 300 if entries else 0, 0, 0, 0]
    assert run[99::-70].tolist() == [0, 0]


def test_two_escapes_for_one_value_are_damage(tmp_path):
    entries = [(3, 300), (10, 301), (5, 302), (10, 303), (20, 304)]
    values = np.zeros(100, np.uint16)
    values[[3, 5, 10, 20]] = 255
    run = grundy_table.open_run(write_run(tmp_path / "r", values, entries=entries))
    for read in [lambda: run[[3, 10, 20]], lambda: run[[20, 3]], lambda: run[0:30]]:
        with pytest.raises(grundy_table.Damage, match=r"escapes.npy', offset 4116\b"):
            read()


def test_value_255_itself_is_an_escape(tmp_path):
    path = write_run(tmp_path / "r", [254, 255, 256])
    assert np.load(os.path.join(path, "values.npy")).tolist() == [254, 255, 255]
    assert np.load(os.path.join(path, "escapes.npy")).tolist() == [(1, 255), (2, 256)]
    run = grundy_table.open_run(path)
    assert run.escapes == 2 and run[:].tolist() == [254, 255, 256]


def test_zeros_among_the_escapes_are_damage(tmp_path):
    entries = [(n, 256) for n in range(99)]
    entries[40:60] = [(0, 0)] * 20
    run = grundy_table.open_run(write_run(tmp_path / "r", [256] * 100, entries=entries))
    for key in [10, [10], [98, 10]]:
        with pytest.raises(grundy_table.Damage, match="offset 4586"):  # 4096 + 10 * 49
            run[key]


def test_one_small_escape_among_many_is_damage(tmp_path):
    entries = [(n, 256) for n in range(100)]
    entries[10] = (10, 0)
    run = grundy_table.open_run(write_run(tmp_path / "r", [256] * 100, entries=entries))
    with pytest.raises(grundy_table.Damage, match="offset 4196"):  # 4096 + 10 * 10
        run.values(0, 100)


def test_directory_without_a_run_is_a_run_error(tmp_path):
    with pytest.raises(grundy_table.RunError, match="no such directory"):
        grundy_table.open_run(tmp_path / "nowhere")
    with pytest.raises(grundy_table.RunError, match="journal.jsonl"):
        grundy_table.open_run(tmp_path)
    path = write_run(tmp_path / "r", range(9))
    os.remove(os.path.join(path, "escapes.npy"))
    with pytest.raises(grundy_table.RunError, match="escapes.npy"):
        grundy_table.open_run(path)


def test_empty_run_and_run_killed_before_the_first_commit(tmp_path):
    run = grundy_table.open_run(write_run(tmp_path / "r", [], kept=[]))
    assert len(run) == 0 and len(run.values(0, 0)) == 0 and list(run.chunks()) == []
    path = write_run(tmp_path / "s", range(9))
    with open(os.path.join(path, "journal.jsonl"), "wb") as file:
        file.write(b'{"format": 2')
    with pytest.raises(grundy_table.RunError, match="nothing has been committed"):
        grundy_table.open_run(path)


# The period


class Table:
    """Values in memory with the interface of a Run. Records the largest read and the total."""

    def __init__(self, values, kept=None, game=None):
        self._values, self.game, self.count = np.asarray(values), game, len(values)
        self.kept = [(0, self.count)] if kept is None else kept
        self.record = {"max_value": int(self._values.max(initial=0))}
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
    """Returns `preperiod` other values, the last of which breaks the period, then `word` repeated."""
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
    # every p up to the limit is a near miss: all values are equal except the first, a middle, or the last one
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
    assert "at most 2000" in find_period.describe(holed, result)
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


# The bounds of the proofs, derived by hand from the theorems:
# P1 n0 <= n < 2 n0 + p + t; P2 n <= 2 n0 + p - 2; P3 n <= 2 n0 + 2 p + M - 2; each needs G(n + p).


@pytest.mark.parametrize(
    "game, p, n0, need",
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
        ["--tail", "0"],
        ["--tail", "2"],
        ["--window", "-1"],
        ["--window", "0"],
        ["--repeats", "1"],
        [],
    ]:
        assert command(*bad, *([path] if bad else [])).returncode == 2
    np.save(tmp_path / "v.npy", np.ones(1000, np.uint16))
    with open(tmp_path / "v.npy", "r+b") as file:
        file.truncate(1000)
    assert command(tmp_path / "v.npy").returncode == 3
    with open(os.path.join(path, "values.npy"), "r+b") as file:
        file.truncate(4096 + 99)
    done = command(path)
    assert done.returncode == 3 and "offset 4195" in done.stderr and done.stdout == ""


def test_values_npy_of_a_run_is_refused(tmp_path):
    path = write_run(tmp_path / "r", range(1000))
    done = command(os.path.join(path, "values.npy"))
    assert done.returncode == 2 and "give the directory" in done.stderr


def test_empty_tables_are_none(tmp_path):
    np.save(tmp_path / "v.npy", np.zeros(0, np.uint16))
    for path in [write_run(tmp_path / "r", [], kept=[]), tmp_path / "v.npy"]:
        done = command(path, "--json")
        assert done.returncode == 0 and json.loads(done.stdout)["status"] == "none"


def test_numbers_are_parsed_as_by_the_program():
    for text, value in [
        ("2^24", 1 << 24),
        ("1e7", 10**7),
        ("10M", 10**7),
        ("10_000", 10**4),
        ("7", 7),
    ]:
        assert find_period.number(text) == value


# With the program


def kayles_by_definition(count):
    values = []
    for n in range(count):
        options = {
            values[a] ^ values[n - s - a] for s in (1, 2) if n >= s for a in range((n - s) // 2 + 1)
        }
        values.append(next(v for v in range(len(options) + 1) if v not in options))
    return values


@pytest.mark.skipif("GRUNDY_BIN" not in os.environ, reason="GRUNDY_BIN is not set")
def test_table_written_by_the_program(tmp_path):
    path = str(tmp_path / "kayles")
    subprocess.run(
        [os.environ["GRUNDY_BIN"], "run", "kayles", "--to", "20000", "--dir", path, "-q"],
        check=True,
    )
    expected = kayles_by_definition(500)
    run = grundy_table.open_run(path)
    assert run.count == 20000 and run[:500].tolist() == expected
    mapped = np.load(os.path.join(path, "values.npy"), mmap_mode="r")
    assert mapped.shape == (20000,) and np.array_equal(mapped, run[:])
    done = command(path, "--json")
    result = json.loads(done.stdout)
    # published: Kayles has period 12 and preperiod 71 (Guy and Smith 1956)
    assert (result["status"], result["period"], result["preperiod"]) == ("observed", 12, 71)
    assert result["max_value"] == int(run[:].max())
    assert "reached" in command(path).stdout


def five_become_two_heaps(count):
    """Computes the game .00004 by definition: a move takes five tokens and leaves two heaps."""
    values = np.zeros(count, np.uint16)
    for n in range(7, count):
        left = n - 5
        options = np.unique(values[1 : left // 2 + 1] ^ values[left - 1 : left - left // 2 - 1 : -1])
        gaps = np.flatnonzero(options != np.arange(len(options)))
        values[n] = gaps[0] if len(gaps) else len(options)
    return values


@pytest.mark.skipif("GRUNDY_BIN" not in os.environ, reason="GRUNDY_BIN is not set")
@pytest.mark.parametrize("width", ["u8", "u16"])
def test_values_of_255_and_more_written_by_the_program(tmp_path, width):
    expected, path = five_become_two_heaps(8000), str(tmp_path / "run")
    assert (expected == 255).any() and (expected > 255).any()
    subprocess.run(
        [os.environ["GRUNDY_BIN"], "run", ".00004", "--to", "8000", "--dir", path, "--width", width, "-q"],
        check=True,
    )
    run = grundy_table.open_run(path)
    assert np.array_equal(run[:], expected) and np.array_equal(np.asarray(run), expected)
    assert np.array_equal(run[np.arange(8000)], expected) and list(run) == expected.tolist()
    table = np.load(os.path.join(path, "values.npy"), mmap_mode="r")
    if width == "u16":
        assert np.array_equal(table, expected) and run.escapes == 0
        return
    assert np.array_equal(table, np.minimum(expected, 255))
    large = np.flatnonzero(expected >= 255)
    entries = np.load(os.path.join(path, "escapes.npy"))
    assert run.escapes == len(large)
    assert np.array_equal(entries["n"], large) and np.array_equal(entries["v"], expected[large])


@pytest.mark.skipif("GRUNDY_BIN" not in os.environ, reason="GRUNDY_BIN is not set")
def test_values_freed_by_the_program_are_refused_and_others_read(tmp_path):
    program, path = os.environ["GRUNDY_BIN"], str(tmp_path / "kept")
    run = [program, "run", ".106", "--dir", path, "-q"]
    subprocess.run([*run, "--to", "84100000", "--keep", "140000"], check=True)
    subprocess.run([*run, "--to", "84200000"], check=True)
    run = grundy_table.open_run(path)
    head, start = 1 << 26, 5 << 24  # end of the retained head, and end of the only segment that is freed
    assert run.kept == [(0, head), (start, 84200000)]
    for a, b in [(head - 5, head), (start, start + 5)]:
        printed = subprocess.run(
            [program, "values", path, f"{a}..{b}"], check=True, capture_output=True, text=True
        )
        assert [f"{n} {v}" for n, v in enumerate(run[a:b].tolist(), a)] == printed.stdout.splitlines()
    for n in (head, start - 1):
        with pytest.raises(grundy_table.NotKept):
            run[n]
    assert json.loads(command(path, "--json").stdout)["searched"]["kept_from"] == start


@pytest.mark.skipif("GRUNDY_BIN" not in os.environ, reason="GRUNDY_BIN is not set")
def test_results_of_a_run_that_frees_values_equal_those_of_a_whole_run(tmp_path):
    program, texts = os.environ["GRUNDY_BIN"], []
    for name, keep in [("whole", []), ("kept", ["--keep", "140000"])]:
        path = str(tmp_path / name)
        subprocess.run([program, "run", ".106", "--to", "101000000", "--dir", path, "-q", *keep], check=True)
        done = subprocess.run(
            [sys.executable, os.path.join(SCRIPTS, "results.py"), path], check=True, capture_output=True, text=True
        )
        other = ("- kept", "- checks", "- time", "- seconds")
        texts.append([line for line in done.stdout.splitlines() if not line.startswith(other)])
    assert texts[0] == texts[1]
    run = grundy_table.open_run(str(tmp_path / "whole"))
    values = run[: 1 << 20]
    running = np.maximum.accumulate(values)
    at = [0, *(np.flatnonzero(np.diff(running)) + 1).tolist()]
    rows = [f"| {n} | {values[n]} |" for n in at]
    assert rows == [row for row in texts[0] if row.startswith("| ") and row[2].isdigit()][: len(rows)]
    zeros = sum(int((block == 0).sum()) for _, block in run.chunks())
    assert any(line.startswith(f"- zeros: {zeros},") for line in texts[0])


@pytest.mark.skipif("GRUNDY_BIN" not in os.environ, reason="GRUNDY_BIN is not set")
def test_results_while_the_program_frees_values(tmp_path):
    program, whole, kept = os.environ["GRUNDY_BIN"], str(tmp_path / "whole"), str(tmp_path / "kept")
    command = [program, "run", ".106", "--to", "150000000", "--threads", "1", "-q", "--dir"]
    subprocess.run([*command, whole], check=True)
    child, texts = subprocess.Popen([*command, kept, "--keep", "140000"]), []
    try:
        while child.poll() is None:
            done = subprocess.run(
                [sys.executable, os.path.join(SCRIPTS, "results.py"), kept], capture_output=True, text=True
            )
            if "nothing has been committed" not in done.stderr and "no such directory" not in done.stderr:
                assert done.returncode == 0, done.stderr
                texts.append(done.stdout)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 0 and texts
    values = np.asarray(grundy_table.open_run(whole))
    running = np.maximum.accumulate(values)
    maxima = [0, *(np.flatnonzero(running[1:] > running[:-1]) + 1).tolist()]
    for text in texts:
        count = int(text.split("- count: ")[1].split()[0])
        print(count, "values, kept", text.split("- kept: ")[1].split("\n")[0])
        assert f"- zeros: {count - np.count_nonzero(values[:count])}, " in text
        rows = [f"| {n} | {values[n]} |" for n in maxima if n < count]
        assert rows == [line for line in text.splitlines() if line.startswith("| ") and line[2].isdigit()]


@pytest.mark.skipif("GRUNDY_BIN" not in os.environ, reason="GRUNDY_BIN is not set")
@pytest.mark.parametrize(
    ("game", "count"),
    [("kayles", 400), (".07", 4096), (".45", 5000), (".055", 3000), (".156", 20000), (".116", 999), ("4.3", 64), (".007", 8000), ("grundy", 30000)],
)
def test_script_and_program_find_the_same_period(tmp_path, game, count):
    program, path = os.environ["GRUNDY_BIN"], str(tmp_path / "run")
    subprocess.run([program, "run", game, "--to", str(count), "--dir", path, "-q"], check=True)
    theirs = subprocess.run([program, "period", path, "--json"], check=True, capture_output=True, text=True)
    theirs, ours = json.loads(theirs.stdout), json.loads(command(path, "--json").stdout)
    for key in ("game", "period", "preperiod", "max_value", "checked_through"):
        assert ours[key] == theirs[key], key
    # The script proves nothing. It reports that the bound is reached where the program proves the period.
    assert ours["status"] == ("none" if theirs["status"] == "none" else "observed")
    if theirs["theorem"] == "P1":
        assert "reached" in command(path).stdout
