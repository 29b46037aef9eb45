"""Tests of zeros, records, first positions, counts and rare positions.

The expected answers follow the definitions in plain Python, value by value.
"""

import tracemalloc

import grundy.run
import numpy as np
import pytest
from fake_run import Writer, append, is_rare, next_line, random_values, write_run

QUESTIONS = ["zeros", "records", "first", "histogram", "rares"]


def expected(question, values, start, stop, space=(15, 0, 0)):
    pairs = [(n, int(values[n])) for n in range(start, stop)]
    largest = max((v for _, v in pairs), default=-1)
    if question == "zeros":
        return [n for n, v in pairs if v == 0]
    if question == "records":
        return [(n, v) for n, v in pairs if all(u < v for _, u in pairs[: n - start])]
    if question == "first":
        return [min((n for n, u in pairs if u == v), default=-1) for v in range(largest + 1)]
    if question == "histogram":
        return [sum(u == v for _, u in pairs) for v in range(largest + 1)]
    return [(n, v) for n, v in pairs if is_rare(n, v, *space)]


@pytest.mark.parametrize("block", [1, 7, 100, 1 << 20])
@pytest.mark.parametrize("top", [1, 3, 40, 700])
@pytest.mark.parametrize("width", ["u8", "u16"])
def test_answers_follow_the_definition(tmp_path, monkeypatch, block, top, width):
    monkeypatch.setattr(grundy.run, "CHUNK", block)
    values = random_values(31, 300, top)
    run = grundy.open_run(write_run(tmp_path / "r", values, width))
    for question in QUESTIONS:
        for start, stop in [(0, 300), (0, 0), (300, 300), (17, 18), (1, 222), (150, 300)]:
            found = getattr(run, question)(start, stop)
            assert found.tolist() == expected(question, values, start, stop), (question, start)
        assert getattr(run, question)().tolist() == expected(question, values, 0, 300)
        assert getattr(run, question)(290).tolist() == expected(question, values, 290, 300)


def test_types_of_the_answers(tmp_path):
    for values in [[], [0, 1, 300]]:
        run = grundy.open_run(write_run(tmp_path / str(len(values)), values))
        for found in [run.zeros(), run.first(), run.histogram()]:
            assert found.dtype == np.int64 and found.ndim == 1
        for found in [run.records(), run.rares(), run.positions(0), run.positions(5, end=400)]:
            assert found["n"].dtype == np.int64 and found["value"].dtype == np.uint16


@pytest.mark.parametrize("first", [0, 1, 254, 255, 256, 65535])
def test_positions_of_values(tmp_path, first):
    values = random_values(32, 2000, 300)
    values[[3, 77]] = [65535, 65535]
    run = grundy.open_run(write_run(tmp_path / "r", values))
    for end in [None, first + 1, first + 3, 256, 65536]:
        last = first + 1 if end is None else end
        if not first < last <= 65536:
            with pytest.raises(ValueError, match="values are 0 to 65535"):
                run.positions(first, end=end)
            continue
        pairs = [(n, v) for n, v in enumerate(values.tolist()) if first <= v < last]
        assert run.positions(first, end=end).tolist() == pairs
        inner = [(n, v) for n, v in pairs if 50 <= n < 1000]
        assert run.positions(first, end=end, start=50, stop=1000).tolist() == inner
    for wrong, words in [
        ((-1,), "-1 is no nim-value"),
        ((65536,), "65536 is no nim-value"),
        ((0, 65537), "65536 is no nim-value"),
        ((5, 5), "at least 5 and below 5"),
        ((5, 0), "at least 5 and below 0"),
    ]:
        with pytest.raises(ValueError, match=f"{words}.*values are 0 to 65535"):
            run.positions(wrong[0], end=wrong[1] if wrong[1:] else None)


def test_range_of_values_that_ends_before_it_begins_is_named(tmp_path):
    run = grundy.open_run(write_run(tmp_path / "r", range(9)))
    with pytest.raises(ValueError, match="at least 5 and below 3; give an `end` greater"):
        run.positions(5, end=3)


@pytest.mark.parametrize("space", [(15, 0, 0), (15, 0, 1), (510, 1, 0), (510, 1, 1), (1, 1, 0)])
@pytest.mark.parametrize("block", [1, 6, 1000])
def test_rare_positions_of_every_kind_of_space(tmp_path, monkeypatch, space, block):
    monkeypatch.setattr(grundy.run, "CHUNK", block)
    mask, position, parity = space
    values = random_values(33, 400, 600)
    path = write_run(tmp_path / "r", values, mask=mask, position=position, parity=parity)
    run = grundy.open_run(path)
    for start, stop in [(0, 400), (1, 400), (7, 8), (250, 399)]:
        found = run.rares(start, stop).tolist()
        assert found == expected("rares", values, start, stop, space)


def test_space_without_rare_positions(tmp_path):
    values = [v for v in random_values(34, 4000, 600).tolist() if not is_rare(1, v)]
    run = grundy.open_run(write_run(tmp_path / "r", [7, *values]))
    assert run.rares().tolist() == [(0, 7)]
    assert grundy.open_run(write_run(tmp_path / "one", [0])).rares().tolist() == [(0, 0)]
    assert grundy.open_run(write_run(tmp_path / "none", [])).rares().tolist() == []


def test_rare_positions_that_contradict_the_record_are_damage(tmp_path):
    values = random_values(38, 500, 300)
    common = next(n for n in range(1, 500) if not is_rare(n, int(values[n])))
    for name, change in [("number", {"rares": 7}), ("last", {"last_rare": common})]:
        run = grundy.open_run(write_run(tmp_path / name, values, **change))
        with pytest.raises(grundy.Damage, match="rare positions"):
            run.rares()


def test_rares_need_twice_their_size(tmp_path, monkeypatch):
    monkeypatch.setattr(grundy.run, "CHUNK", 1 << 14)
    run = grundy.open_run(write_run(tmp_path / "r", np.zeros(500_000)))
    run.rares(0, 9)  # loads and caches
    tracemalloc.start()
    try:
        found = run.rares()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found) == 500_000 and peak < 2.5 * found.nbytes


def test_run_without_a_space_has_no_rare_positions(tmp_path):
    run = grundy.open_run(write_run(tmp_path / "r", range(9), mask=0))
    with pytest.raises(ValueError, match="no sparse space"):
        run.rares()


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("bounds", [(-1, 5), (5, 4), (0, 101), (101, 101), (101, None)])
def test_range_outside_the_run_is_an_index_error(tmp_path, question, bounds):
    run = grundy.open_run(write_run(tmp_path / "r", range(100)))
    with pytest.raises(IndexError, match="100 committed values"):
        getattr(run, question)(*bounds)
    with pytest.raises(TypeError, match=r"5\.0 is not an integer; int\(x\) converts a float"):
        getattr(run, question)(0, 5.0)


def discarding(path, values, parity=0):
    """Returns a run of 3000 values, and the bounds of the discarded ones."""
    writer = Writer(path, values, segment=64, head=256, keep=200, parity=parity)
    while writer.count < 3000:
        writer.step(100)
    run = grundy.open_run(writer.path)
    (_, a), (b, _) = run.kept
    assert b - a > 2000
    return run, a, b


@pytest.mark.parametrize("parity", [0, 1])
def test_rares_of_discarded_values_come_from_the_summary(tmp_path, parity):
    values = random_values(35, 3000, 300)
    run, a, b = discarding(tmp_path / "r", values, parity)
    for start, stop in [(0, 3000), (0, a), (a, b), (a + 5, b - 5), (100, b + 1), (b, 3000), (9, 9)]:
        found = run.rares(start, stop).tolist()
        assert found == expected("rares", values, start, stop, (15, 0, parity))
    for question in QUESTIONS[:-1]:
        assert getattr(run, question)(0, a).tolist() == expected(question, values, 0, a)
        assert getattr(run, question)(b).tolist() == expected(question, values, b, 3000)


def test_summary_stands_for_discarded_values_where_it_suffices(tmp_path):
    # Values below 8 occur in the first range only, and 333 among discarded values only.
    values = random_values(39, 3000, 300)
    values[8:] = np.maximum(values[8:], 8)
    values[:100] = np.arange(100)
    values[1000] = 333
    values[2950] = 444
    run, a, b = discarding(tmp_path / "r", values)
    for start, stop in [(0, 3000), (3, 3000), (a, b), (a, 2960), (20, b)]:
        for question in ["histogram", "records"]:
            found = getattr(run, question)(start, stop).tolist()
            assert found == expected(question, values, start, stop), (question, start, stop)
    for start, stop in [(0, 3000), (a + 5, b - 5), (2, b - 1), (b - 1, 3000)]:
        assert run.zeros(start, stop).tolist() == expected("zeros", values, start, stop)
        found = run.positions(2, end=5, start=start, stop=stop).tolist()
        assert found == [(n, int(values[n])) for n in range(start, stop) if 2 <= values[n] < 5]
        with pytest.raises(grundy.Discarded):
            run.positions(333, start=start, stop=stop)
        with pytest.raises(grundy.Discarded):
            run.positions(5, end=9, start=start, stop=stop)
    assert [v for v in range(500) if v in run] == sorted(set(values.tolist()))
    for question in ["histogram", "records", "first"]:
        for start, stop in [(0, b - 1), (a + 1, 3000)]:
            with pytest.raises(grundy.Discarded):
                getattr(run, question)(start, stop)
    with pytest.raises(grundy.Discarded):
        run.first()  # 333 occurs among discarded values only


def test_first_positions_are_known_if_no_value_is_new_among_discarded_ones(tmp_path):
    values = random_values(40, 3000, 30)
    values[2950] = 44
    run, a, b = discarding(tmp_path / "r", values)
    assert run.first().tolist() == expected("first", values, 0, 3000)
    assert run.first(5, b).tolist() == expected("first", values, 5, b)
    with pytest.raises(grundy.Discarded):
        run.first(a)


def test_values_discarded_between_two_blocks_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(grundy.run, "CHUNK", 500)
    path = write_run(tmp_path / "r", random_values(36, 2000, 9))
    run = grundy.open_run(path)
    blocks = run.chunks(500)
    next(blocks)
    append(path, "journal.jsonl", next_line(path, range(2000), kept=[[0, 500], [1500, 2000]]))
    with pytest.raises(grundy.Discarded):
        next(blocks)
    with pytest.raises(grundy.Discarded):
        run.zeros()
    assert len(run.zeros(1500)) == np.count_nonzero(run[1500:] == 0)


def test_chunks_have_the_size_and_the_range(tmp_path):
    values = random_values(37, 1000, 300)
    run = grundy.open_run(write_run(tmp_path / "r", values))
    for size, start, stop in [(1, 0, 9), (300, 0, None), (1000, 5, 999), (10**9, 0, None)]:
        blocks = list(run.chunks(size, start, stop))
        last = 1000 if stop is None else stop
        assert [n for n, _ in blocks] == list(range(start, last, size))
        assert {len(block) for _, block in blocks[:-1]} <= {size}
        assert np.array_equal(np.concatenate([b for _, b in blocks]), values[start:last])
    for size in [np.uint8(200), np.int16(300)]:  # 200 + 200 is more than a uint8 holds
        assert [n for n, _ in run.chunks(size)] == list(range(0, 1000, int(size)))
    for size in [0, -1]:
        with pytest.raises(ValueError, match="least size"):
            list(run.chunks(size))
