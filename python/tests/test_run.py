"""Tests of a run as a sequence: indexing, conversion to arrays, the journal of a run in progress.

fake_run.py writes the run directories. Plain NumPy arrays of the same values give the expectations.
"""

import copy
import os
import random
import signal
import socket
import threading
import time

import grundy.journal
import grundy.run
import grundy.table
import numpy as np
import pytest
from fake_run import (
    ESCAPE,
    Writer,
    append,
    fields,
    next_line,
    punch,
    random_values,
    record_line,
    write_run,
)

NUMPY_2 = int(np.__version__.split(".")[0]) >= 2


@pytest.fixture(params=["u8", "u16"])
def pair(request, tmp_path):
    """Returns a run and the array of its values, a third of which are 255 or more."""
    values = random_values(11, 3000, 400)
    values[[0, 7, 2999]] = [65535, 255, 256]
    return grundy.open_run(write_run(tmp_path / "r", values, request.param)), values


@pytest.fixture
def deadline():
    """Fails a test that hangs for 10 s."""

    def expired(number, frame):
        raise TimeoutError("the reader hangs")

    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# Indexing


@pytest.mark.parametrize(
    "key",
    [
        [1, 2, 3],
        [2999, 0, 7, 7, -1, -3000],
        [[1, 2], [3, -4]],
        [],
        [[]],
        range(10, 0, -3),
        np.array([5, 6], np.uint8),
        np.array([-5, 6], np.int8),
        np.array([2999], np.uint64),
        np.arange(2999, -1, -1).reshape(30, 100),
        np.empty((0, 4), np.int64),
    ],
    ids=repr,
)
def test_integer_arrays_index_as_in_numpy(pair, key):
    run, values = pair
    expected = values[np.asarray(key, np.intp)]
    found = run[key]
    assert type(found) is np.ndarray and found.dtype == np.uint16
    assert found.shape == expected.shape and np.array_equal(found, expected)
    found[...] = 1  # a copy


def test_integers_without_a_common_type_index_as_others(pair):
    run, values = pair
    found = run[[np.uint64(5), np.int64(-3), 7]]
    assert found.dtype == np.uint16 and found.tolist() == values[[5, -3, 7]].tolist()


@pytest.mark.parametrize("dense", [0, 16, 10**6])
def test_random_positions_of_all_blocks(pair, monkeypatch, dense):
    monkeypatch.setattr(grundy.run, "CHUNK", 7)
    monkeypatch.setattr(grundy.table, "DENSE", dense)
    run, values = pair
    positions = np.random.default_rng(12).integers(-3000, 3000, 500)
    assert np.array_equal(run[positions], values[positions])


@pytest.mark.parametrize(
    "key", [5, -1, -3000, 2999, np.int64(7), np.uint8(7), np.array(7)], ids=repr
)
def test_one_integer_gives_a_python_int(pair, key):
    run, values = pair
    assert type(run[key]) is int and run[key] == values[key]


@pytest.mark.parametrize(
    "key",
    [3000, -3001, 2**64, -(2**64), [3000], [-3001], [0, 2**63], [2**63, -1], [2**70], [[0, 3000]]]
    + [[np.uint64(3000), np.int64(3)], [np.uint64(5), -3001]]
    + [np.array([2**63], np.uint64), np.ones(2999, bool), np.ones((3000, 1), bool), [True, False]],
    ids=repr,
)
def test_index_outside_is_an_index_error(pair, key):
    with pytest.raises(IndexError, match="3000 committed values"):
        pair[0][key]


@pytest.mark.parametrize(
    "key",
    ["x", b"x", 1.5, 1e6, True, False, np.True_, None, ..., (), (1,), (1, 2), {}, {1}, 1j]
    + [[1.5], ["1"], [None], [[1], [2, 3]], [1, None], [2**70, "x"]]
    + [np.array([1.0]), np.array(True), np.array(1.5), np.float64(3)],
    ids=repr,
)
def test_other_keys_are_a_type_error(pair, key):
    with pytest.raises(TypeError, match="index a run with an integer, a slice, a mask, or a list"):
        pair[0][key]


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        (1.5, "int(x) converts a float"),
        (np.float32(2), "int(x) converts a float"),
        (np.array([1.0]), "x.astype(int) converts floats"),
        (..., "run[:] reads all values"),
        ("5", "not with str"),
        (True, "not with bool"),
    ],
    ids=repr,
)
def test_only_floats_get_the_advice_on_floats(pair, key, hint):
    with pytest.raises(TypeError) as error:
        pair[0][key]
    assert str(error.value).endswith(hint)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((900, 100), "begins at 900 and ends before it, at 100"),
        ((-5, 5), "the bound -5 is negative"),
        ((5, -5), "the bound -5 is negative"),
        ((0, 3001), "[0, 3001) is not within the 3000 committed values"),
        ((3001, 3000), "[3001, 3000) is not within the 3000 committed values"),
    ],
)
def test_each_wrong_bound_of_a_range_has_its_message(pair, bounds, words):
    with pytest.raises(IndexError) as error:
        pair[0].values(*bounds)
    assert words in str(error.value)


def test_comparison_with_values_is_refused_and_with_runs_is_identity(pair, tmp_path):
    run, values = pair
    other = grundy.open_run(run.path)
    assert run == run and run != other and not run != run and len({run, other, run}) == 2
    assert run is not None and run != None  # noqa: E711
    for compare in [
        lambda: run == 0,
        lambda: run != 0,
        lambda: 0 == run,
        lambda: run == values.tolist(),
        lambda: run == values,
        lambda: run < 5,
        lambda: run <= 5,
        lambda: run > 5,
        lambda: run >= 5,
    ]:
        with pytest.raises(TypeError, match=r"`run\[:\] [=<>]+ v` reads"):
            compare()
    assert np.array_equal(np.flatnonzero(run[:] == 0), run.zeros())


@pytest.mark.parametrize("share", [0, 0.3, 1])
def test_masks_select_as_in_numpy(pair, share):
    run, values = pair
    mask = np.random.default_rng(16).random(3000) < share
    for key in [mask, mask.tolist()]:
        assert run[key].dtype == np.uint16 and np.array_equal(run[key], values[mask])
    assert np.array_equal(run[np.asarray(run) > 200], values[values > 200])


@pytest.mark.parametrize(
    "key",
    [slice(1.0, 5), slice(0, "5"), slice(0, 5, 1.5), slice(True, 5), slice(0, 5, False)],
    ids=repr,
)
def test_slices_with_other_ends_are_a_type_error(pair, key):
    with pytest.raises(TypeError, match="is not an integer"):
        pair[0][key]


def test_values_takes_integers_only(pair):
    for a, b in [(0, 1e3), (None, 5), ("0", 5), (True, 5), (0, True)]:
        with pytest.raises(TypeError, match="is not an integer"):
            pair[0].values(a, b)


def test_slices_with_steps_agree_with_numpy(pair, monkeypatch):
    monkeypatch.setattr(grundy.run, "CHUNK", 256)
    run, values = pair
    seed = 13
    rng = random.Random(seed)
    for _ in range(500):
        step = rng.choice([1, -1, 2, -2, 3, 63, 64, -63, -64, 65, 1000, -1000, 5000, -5000])
        ends = [None, *range(-3000, 3000)] if step < 0 else [None, *range(-3000, 3001)]
        key = slice(rng.choice(ends), rng.choice(ends), step)
        found = run[key]
        assert found.dtype == np.uint16 and np.array_equal(found, values[key]), (
            f"seed {seed}: {key}"
        )
    assert np.array_equal(run[::-1], values[::-1])
    for key in [slice(10, -3001, -1), slice(0, 10**12), slice(-(2**70), 5), slice(4000, None, -64)]:
        assert np.array_equal(run[key], values[key]), key
    with pytest.raises(ValueError, match="step"):
        run[::0]


def test_every_kind_of_index_refuses_discarded_values(tmp_path):
    values = random_values(14, 3000, 254)
    path = write_run(tmp_path / "r", values, kept=[[0, 1000], [2000, 3000]])
    punch(path, 1000, 2000)
    run = grundy.open_run(path)
    assert run[[0, 999, 2000, -1]].tolist() == values[[0, 999, 2000, -1]].tolist()
    assert np.array_equal(run[500:2999:1500], values[500:2999:1500])  # past the hole
    for key in [
        [5, 1000],
        slice(0, 3000, 100),
        slice(None, None, -2),
        slice(999, 1001),
        1999,
        [1999],
    ]:
        with pytest.raises(grundy.Discarded, match=r"the run has discarded G\(1\d\d\d\)"):
            run[key]
    for read in [np.asarray, list]:
        with pytest.raises(grundy.Discarded):
            read(run)
    append(path, "journal.jsonl", next_line(path, values, kept=[[0, 500], [2500, 3000]]))
    for key in [[999], [2499], slice(400, 600, 64)]:
        with pytest.raises(grundy.Discarded):
            run[key]


# Arrays and iteration


def test_asarray_gives_all_values_in_bulk(pair, monkeypatch):
    monkeypatch.setattr(grundy.run, "CHUNK", 1000)
    run, values = pair
    for array in [np.asarray(run), np.array(run), run.__array__()]:
        assert array.dtype == np.uint16 and np.array_equal(array, values)
    np.array(run)[0] = 1  # a copy
    for dtype in [np.uint32, np.int64, ">u2", np.float32, np.complex64, object]:
        array = np.asarray(run, dtype)
        assert array.dtype == dtype and np.array_equal(array, values.astype(dtype))
        array[0] = 1
    assert (np.asarray(run) == values).all() and int(np.max(run)) == 65535


@pytest.mark.parametrize(
    ("width", "top", "is_map"), [("u8", 255, True), ("u8", 256, False), ("u16", 700, True)]
)
def test_asarray_is_a_map_where_the_table_holds_the_values(tmp_path, width, top, is_map):
    values = random_values(17, 3000, top)
    values[5] = top - 1
    run = grundy.open_run(write_run(tmp_path / "r", values, width))
    array = np.asarray(run)
    assert np.array_equal(array, values) and np.shares_memory(array, run.mmap()) == is_map
    assert array.dtype == (run.mmap().dtype if is_map else np.uint16)
    copy = np.array(run)
    assert np.array_equal(copy, values) and copy.dtype == array.dtype
    assert not np.shares_memory(copy, run.mmap())
    copy[0] = 1
    assert not np.shares_memory(np.asarray(run, np.int32), run.mmap())
    if is_map:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_asarray_of_a_run_that_may_discard_values_is_a_copy(tmp_path):
    path = write_run(tmp_path / "r", range(100))
    run = grundy.open_run(path)
    assert np.shares_memory(np.asarray(run), run.mmap())
    append(path, "journal.jsonl", next_line(path, range(100), keep=10))
    for again in [run, grundy.open_run(path)]:
        assert not np.shares_memory(np.asarray(again), again.mmap())
        assert np.asarray(again).tolist() == list(range(100))


def test_asarray_checks_the_bytes_once(tmp_path, monkeypatch):
    path = write_run(tmp_path / "r", range(100))
    run, checks = grundy.open_run(path), []
    check = run._table.check_no_escapes
    monkeypatch.setattr(
        run._table, "check_no_escapes", lambda a, b: checks.append(a) or check(a, b)
    )
    for count in [100, 100, 120]:
        append(path, "journal.jsonl", next_line(path, range(count)))
        assert np.shares_memory(np.asarray(run), run.mmap()) and checks == [0]
    append(path, "journal.jsonl", next_line(path, range(120), kept=[[0, 10], [50, 120]]))
    with pytest.raises(grundy.Discarded):
        np.asarray(run)
    append(path, "journal.jsonl", next_line(path, range(60), event="rollback"))
    with pytest.raises(grundy.RunError, match="went back to 60"):
        np.asarray(run)


def test_asarray_finds_a_byte_255_without_an_escape(tmp_path):
    run = grundy.open_run(write_run(tmp_path / "r", [0, 1, 255], entries=[]))
    with pytest.raises(grundy.Damage, match=r"G\(2\)"):
        np.asarray(run)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16, bool])
def test_values_are_never_truncated_to_a_smaller_type(pair, dtype):
    with pytest.raises(ValueError, match=r"G\(0\) = 65535 does not fit"):
        np.asarray(pair[0], dtype)


def test_values_that_fit_a_smaller_type_are_converted(tmp_path):
    run = grundy.open_run(write_run(tmp_path / "r", [1, 0, 1]))
    assert np.asarray(run, np.uint8).tolist() == [1, 0, 1]
    assert np.asarray(run, bool).tolist() == [True, False, True]


@pytest.mark.parametrize("dtype", ["U5", "S1", "V2", "M8[s]"])
def test_non_numeric_types_are_refused(pair, dtype):
    with pytest.raises(TypeError, match="numeric type"):
        np.asarray(pair[0], dtype)


@pytest.mark.skipif(not NUMPY_2, reason="NumPy 1 never passes copy")
def test_array_without_copy_is_a_map_or_refused(pair):
    run, _ = pair
    if run.last_record["width"] == "u16":
        assert np.shares_memory(np.asarray(run, copy=False), run.mmap())
    else:
        with pytest.raises(ValueError, match="mmap"):
            np.asarray(run, copy=False)
    with pytest.raises(ValueError, match="mmap"):
        np.asarray(run, np.int64, copy=False)
    assert np.asarray(run, copy=True).dtype == np.uint16


def test_array_above_the_limit_is_refused_before_allocation(tmp_path):
    count = grundy.run.ARRAY_LIMIT // 2 + 1
    path = write_run(tmp_path / "r", [0], entries=[(0, 300)])
    os.truncate(os.path.join(path, "values.npy"), 4096 + count)  # sparse
    for more, dtype in [(count, None), (count - 1, np.int64)]:
        with open(os.path.join(path, "journal.jsonl"), "wb") as file:
            file.write(record_line(**fields([], count=more, kept=[[0, more]], escapes=1)))
        run = grundy.open_run(path)
        with pytest.raises(ValueError, match=r"take more than .*run\.values\(a, b\).*run\.chunks"):
            np.asarray(run, dtype)


def test_a_million_values_are_read_in_bounded_time(tmp_path):
    values = random_values(15, 1_000_000, 300)
    run = grundy.open_run(write_run(tmp_path / "r", values))
    begun = time.monotonic()
    array = np.asarray(run)
    bulk = time.monotonic() - begun
    assert [*run] == array.tolist() == values.tolist()
    iterated = time.monotonic() - begun - bulk
    assert bulk < 1 and iterated < 5  # reading value by value exceeds this limit


def test_iteration_reads_bounded_blocks(pair, monkeypatch):
    run, values = pair
    monkeypatch.setattr(grundy.run, "ITERATED", 999)
    sizes = []
    read = run.values
    monkeypatch.setattr(run, "values", lambda a, b: sizes.append(b - a) or read(a, b))
    found = list(run)
    assert found == values.tolist() and {type(v) for v in found} == {int}
    assert sizes == [999, 999, 999, 3]
    assert list(reversed(run)) == values.tolist()[::-1]
    assert sizes[4:] == [999, 999, 999, 3]


def test_in_finds_integers_by_blocks(pair, monkeypatch):
    run, values = pair
    monkeypatch.setattr(grundy.run, "CHUNK", 1000)
    values = values.tolist()
    assert all((v in run) == (v in values) for v in [*range(500), 65535, 40000, -1, 65536, 2**70])
    assert np.uint16(values[5]) in run and np.int64(values[5]) in run
    for other in [float(values[5]), "1", None, True, [values[5]], np.float64(values[5])]:
        assert other not in run
    reads, read = [], run.values
    monkeypatch.setattr(run, "values", lambda a, b: reads.append((a, b)) or read(a, b))
    assert 65535 in run and reads == [(0, 1000)]  # G(0) is 65535
    assert 40000 not in run and len(reads) == 4


def test_in_needs_no_discarded_value_that_is_known_to_differ(tmp_path):
    values = [1] * 3000
    path = write_run(tmp_path / "r", values, kept=[[0, 1000], [2000, 3000]])
    punch(path, 1000, 2000)
    run = grundy.open_run(path)
    assert 2 not in run, "the largest value is 1"


def test_mmap_is_the_raw_table_and_is_read_only(pair):
    run, values = pair
    raw = run.mmap()
    if run.last_record["width"] == "u8":
        assert raw.dtype == np.uint8 and np.array_equal(raw, np.minimum(values, 255))
    else:
        assert raw.dtype == np.uint16 and np.array_equal(raw, values)
    with pytest.raises(ValueError):
        raw[0] = 1
    assert np.array_equal(np.asarray(run), values)


def test_escapes_are_the_values_of_255_and_more(pair):
    run, values = pair
    entries = run.escapes
    assert entries.dtype == np.dtype(ESCAPE)
    expected = (
        np.flatnonzero(values >= 255) if run.last_record["width"] == "u8" else np.empty(0, int)
    )
    assert np.array_equal(entries["n"], expected) and np.array_equal(entries["v"], values[expected])
    with pytest.raises(ValueError):
        entries["v"] = 1


def test_maps_of_an_empty_run_are_read_only(tmp_path):
    run = grundy.open_run(write_run(tmp_path / "r", [], kept=[]))
    assert len(run.mmap()) == len(run.escapes) == len(np.asarray(run)) == len(run[::-1]) == 0
    assert run[[]].tolist() == [] and list(run) == []
    assert not run.mmap().flags.writeable and not run.escapes.flags.writeable


# Hostile files


def fifo(path):
    os.mkfifo(path)


def device(path):
    os.symlink("/dev/zero", path)


def directory(path):
    os.mkdir(path)


def listener(path):
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(path)


@pytest.mark.parametrize("make", [fifo, device, directory, listener])
@pytest.mark.parametrize("name", ["values.npy", "escapes.npy", "journal.jsonl"])
def test_file_that_is_not_regular_is_refused_without_hanging(
    tmp_path, deadline, monkeypatch, name, make
):
    path = write_run(tmp_path / "r", range(100))
    monkeypatch.chdir(path)  # the address of a socket must be short
    os.remove(name)
    make(name)
    with pytest.raises(grundy.RunError, match=name):
        grundy.open_run(path)


def test_journal_that_becomes_a_fifo_does_not_hang_an_open_run(tmp_path, deadline):
    path = write_run(tmp_path / "r", range(100))
    run = grundy.open_run(path)
    os.remove(os.path.join(path, "journal.jsonl"))
    os.mkfifo(os.path.join(path, "journal.jsonl"))
    with pytest.raises(grundy.RunError, match="journal.jsonl.*not a regular file"):
        run[5]


def test_failed_opens_leak_no_file_descriptors(tmp_path):
    path = write_run(tmp_path / "r", range(100))
    os.remove(os.path.join(path, "values.npy"))
    os.mkfifo(os.path.join(path, "values.npy"))
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    for _ in range(50):
        with pytest.raises(grundy.RunError):
            grundy.open_run(path)
    if before is not None:
        assert len(os.listdir("/proc/self/fd")) <= before + 2


@pytest.mark.parametrize(
    ("behind", "good"), [(1, True), (1 << 20, True), ((1 << 20) + 1, False), (8 << 30, False)]
)
def test_at_most_a_mebibyte_may_follow_the_last_record(tmp_path, deadline, behind, good):
    path = write_run(tmp_path / "r", range(100))
    run = grundy.open_run(path)
    os.truncate(os.path.join(path, "journal.jsonl"), 4096 + behind)
    begun = time.monotonic()
    if good:
        assert grundy.open_run(path).count == 100 and run[5] == 5
    else:
        for read in [lambda: grundy.open_run(path), lambda: run[5]]:
            with pytest.raises(grundy.Damage, match="at most 1048576 bytes may follow"):
                read()
    assert time.monotonic() - begun < 2


def test_a_good_record_behind_a_broken_one_is_damage(tmp_path):
    path = write_run(tmp_path / "r", range(100))
    run = grundy.open_run(path)
    line = next_line(path, range(100))
    append(path, "journal.jsonl", bytes((1 << 20) - 4096))
    assert run[5] == 5 and grundy.open_run(path).last_record["sequence"] == 0
    append(path, "journal.jsonl", line)
    for read in [lambda: grundy.open_run(path), lambda: run[5]]:
        with pytest.raises(grundy.Damage, match="offset 4096: the record is broken"):
            read()


@pytest.mark.parametrize("zeros", [0, 1, 5])
def test_two_broken_records_are_damage_and_one_among_zeros_is_a_torn_tail(tmp_path, zeros):
    path = write_run(tmp_path / "r", range(100))
    run = grundy.open_run(path)
    append(path, "journal.jsonl", bytes(4096 * zeros) + b"x" * 4096 + b"torn")
    assert run[5] == 5 and grundy.open_run(path).count == 100
    append(path, "journal.jsonl", b"x" * 4096)
    for read in [lambda: grundy.open_run(path), lambda: run[5]]:
        with pytest.raises(grundy.Damage, match="offset 4096: the record is broken"):
            read()


def test_open_run_notices_a_cut_or_replaced_journal(tmp_path):
    path = write_run(tmp_path / "r", range(100))
    journal = os.path.join(path, "journal.jsonl")
    append(path, "journal.jsonl", next_line(path, range(100)))
    run = grundy.open_run(path)
    os.truncate(journal, 4096)
    with pytest.raises(grundy.RunError, match="went back"):
        run[5]
    append(path, "journal.jsonl", next_line(path, range(100), event="rollback"))
    with pytest.raises(grundy.RunError, match="went back"):
        run[5]
    run = grundy.open_run(path)
    os.rename(journal, journal + ".old")
    with pytest.raises(grundy.RunError, match="journal.jsonl"):
        run[5]
    with open(journal, "wb") as file, open(journal + ".old", "rb") as old:
        file.write(old.read())
    assert run[5] == 5  # the replaced file has the same records


def test_removed_and_replaced_directories_are_named(tmp_path):
    path = write_run(tmp_path / "r", range(100))
    run = grundy.open_run(path)
    os.rename(path, tmp_path / "elsewhere")
    with pytest.raises(grundy.RunError, match="removed or moved"):
        run[5]
    write_run(tmp_path / "r", range(200), run="0" * 32)
    with pytest.raises(grundy.RunError, match="holds another run"):
        run[5]


@pytest.mark.parametrize("name", ["values.npy", "escapes.npy"])
def test_file_cut_below_its_map_is_damage_and_no_signal(tmp_path, name):
    path = write_run(tmp_path / "r", range(20_000))
    run = grundy.open_run(path)
    assert run[19_999] == 19_999
    os.truncate(os.path.join(path, name), 4096)
    for read in [lambda: run[19_999], lambda: run[[5, 300]], lambda: np.asarray(run)]:
        with pytest.raises(grundy.Damage, match=f"{name}', offset 4096: the file ends here"):
            read()


def test_every_changed_bit_of_a_header_is_damage_or_another_shape(tmp_path):
    path = write_run(tmp_path / "r", range(200))
    table = os.path.join(path, "values.npy")
    with open(table, "rb") as file:
        bytes_ = bytearray(file.read())
    at = [*range(128), 1000, 4094, 4095]
    shape = bytes_.index(b"(200,)") + 1
    for i in at:
        for bit in range(8):
            bytes_[i] ^= 1 << bit
            with open(table, "wb") as file:
                file.write(bytes_)
            is_digit = shape <= i < shape + 3 and chr(bytes_[i]) in "0123456789 "
            if is_digit:
                assert grundy.open_run(path)[199] == 199
            else:
                with pytest.raises(grundy.Damage, match="offset 0: not a .npy header"):
                    grundy.open_run(path)
            bytes_[i] ^= 1 << bit


def test_threads_share_a_run_that_continues(tmp_path):
    path = write_run(tmp_path / "r", range(100))
    run = grundy.open_run(path)
    with open(os.path.join(path, "journal.jsonl"), "rb") as file:
        previous = file.read().rpartition(b'"')[0][-64:].decode()
    stop, failures = threading.Event(), []

    def read():
        try:
            while not stop.is_set():
                assert run[5] == 5
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for sequence in range(1, 300):
        line = record_line(**fields(range(100), sequence=sequence, previous=previous))
        append(path, "journal.jsonl", line)
        previous = line.rpartition(b'"')[0][-64:].decode()
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []


def test_records_end_at_the_opened_one(tmp_path):
    lines, previous = [], "0" * 64
    path = write_run(tmp_path / "r", range(100))
    for sequence in range(4):
        lines.append(record_line(**fields(range(100), sequence=sequence, previous=previous)))
        previous = lines[-1].rpartition(b'"')[0][-64:].decode()
    with open(os.path.join(path, "journal.jsonl"), "wb") as file:
        file.write(b"".join(lines[:3]))
    run = grundy.open_run(path)
    append(path, "journal.jsonl", lines[3] + b"torn")
    assert run[5] == 5
    assert [record["sequence"] for record in run.journal()] == [0, 1, 2]
    assert len(list(grundy.open_run(path).journal())) == 4
    for wrong in [[lines[0], lines[2]], [lines[1], lines[2]], [lines[0], bytes(4096), lines[1]]]:
        with open(os.path.join(path, "journal.jsonl"), "wb") as file:
            file.write(b"".join(wrong))
        with pytest.raises(grundy.Damage, match="does not follow"):
            grundy.open_run(path)
        with pytest.raises(grundy.Damage, match="does not follow"):
            list(run.journal())


def test_journal_behind_a_torn_tail_is_read_once(tmp_path, monkeypatch):
    path = write_run(tmp_path / "r", range(100))
    line = next_line(path, range(100), kept=[[0, 5], [6, 100]])
    before = grundy.open_run(path)
    append(path, "journal.jsonl", line[:1000])
    runs, opened = [before, grundy.open_run(path)], []
    read = grundy.journal.open_regular
    monkeypatch.setattr(
        grundy.journal, "open_regular", lambda name: opened.append(name) or read(name)
    )
    assert [run[5] for run in runs for _ in range(9)] == [5] * 18 and len(opened) == 1
    append(path, "journal.jsonl", line[1000:])
    for run in runs:
        with pytest.raises(grundy.Discarded):
            run[5]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_forked_child_reads_although_a_thread_held_the_lock(tmp_path):
    path = write_run(tmp_path / "r", range(100))
    run = grundy.open_run(path)
    append(path, "journal.jsonl", next_line(path, range(120)))
    with run._journal._following:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(10)
            os._exit(0 if run[5] == 5 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert run[5] == 5


def test_open_run_with_a_relative_path_survives_chdir(tmp_path, monkeypatch):
    values = random_values(18, 3000, 200)
    writer = Writer(tmp_path / "a" / "r", values, segment=64, head=256, keep=200)
    while writer.count < 3000:
        writer.step(500)
    os.mkdir(tmp_path / "b")
    os.symlink(tmp_path / "a" / "r", tmp_path / "b" / "link")
    monkeypatch.chdir(tmp_path / "b")
    for path in ["../a/r", os.path.join("link", "..", "r")]:
        run = grundy.open_run(path)
        monkeypatch.chdir("/")
        append(writer.path, "journal.jsonl", b"torn")
        assert run[5] == values[5] and run.path == path and repr(path) in repr(run)
        assert len(list(run.journal())) == len(writer.records)
        assert np.array_equal(run.histogram(), np.bincount(values))
        assert next(run.counts()).start == 256
        monkeypatch.chdir(tmp_path / "b")


def test_user_cannot_change_what_the_reader_knows(tmp_path):
    values = random_values(19, 3000, 200)
    run = grundy.open_run(write_run(tmp_path / "r", values))
    rares = run.rares()
    run.last_record["kept"][0][1] = 7
    run.last_record.clear()
    run.kept.clear()
    assert run.last_record["kept"] == [[0, 3000]] and run.kept == [(0, 3000)]
    assert run[2999] == values[2999] and np.array_equal(run.rares(), rares)
    for name in ["path", "game", "count", "kept", "last_record"]:
        with pytest.raises(AttributeError):
            setattr(run, name, None)


def test_path_of_another_type_is_refused(tmp_path):
    run = grundy.open_run(write_run(tmp_path / "r", range(9)))
    for path in [b"r", 5, None]:
        with pytest.raises(TypeError, match="is not a path; give a str or a Path"):
            grundy.open_run(path)
    pytest.importorskip("pyarrow", exc_type=ImportError)
    with pytest.raises(TypeError, match="is not a path; give a str or a Path"):
        run.to_parquet(b"x")


def test_run_is_not_pickled_and_modules_are_attributes(tmp_path):
    import pickle

    run = grundy.open_run(write_run(tmp_path / "r", [0, 1, 2]))
    with pytest.raises(TypeError, match="send run.path"):
        pickle.dumps(run)
    assert copy.copy(run) is run and copy.deepcopy([run])[0] is run
    assert grundy.period.Array is not None and grundy.bursts.Blocks is not None
