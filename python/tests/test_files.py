"""Tests of the files of a run: lengths, headers, escapes, torn and hostile files, discarded values.

fake_run.py writes the run directories.
"""

import os

import grundy.table
import numpy as np
import pytest
from fake_run import (
    ESCAPE,
    append,
    blake3,
    fields,
    next_line,
    punch,
    random_values,
    record_line,
    write_run,
)
from grundy.files import replacing

needs_blake3 = pytest.mark.skipif(blake3 is None, reason="the blake3 package is not installed")


@pytest.mark.parametrize("width", ["u8", "u16"])
def test_all_values_are_read_including_escapes(tmp_path, width):
    values = random_values(1, 5000, 65536)
    values[[0, 255, 256, 4999]] = [65535, 255, 256, 511]
    run = grundy.open_run(write_run(tmp_path / "r", values, width))
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
    run = grundy.open_run(path)
    run.values(0, 3)[:] = 9
    assert run.values(0, 3).tolist() == [1, 2, 3]
    assert open(os.path.join(path, "values.npy"), "rb").read() == before


@pytest.mark.parametrize("shape", [0, 7, 100, 10**15])
def test_journal_decides_the_length_not_the_header_shape(tmp_path, shape):
    values = random_values(2, 100)
    run = grundy.open_run(write_run(tmp_path / "r", values, shape=shape))
    assert np.array_equal(run.values(0, 100), values)


def test_bytes_and_escapes_beyond_the_journal_are_ignored(tmp_path):
    values = random_values(3, 100, 255)
    path = write_run(tmp_path / "r", values)
    append(path, "values.npy", b"\1" * 5000)
    append(path, "escapes.npy", np.array([(100, 257)], ESCAPE).tobytes() + b"torn")
    run = grundy.open_run(path)
    assert run.count == 100 and np.array_equal(run.values(0, 100), values)
    with pytest.raises(IndexError, match="100 committed values"):
        run[100]
    assert len(run[90:101]) == 10 and run[100:].tolist() == []  # as in NumPy
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
    assert grundy.open_run(path).count == 100


def test_last_record_decides_after_a_rollback(tmp_path):
    path = write_run(tmp_path / "r", range(100))
    append(path, "journal.jsonl", next_line(path, range(60), event="rollback"))
    run = grundy.open_run(path)
    assert run.count == 60 and run.last_record["event"] == "rollback"
    with pytest.raises(IndexError):
        run[60]


@needs_blake3
def test_altered_last_record_is_ignored(tmp_path):
    path = write_run(tmp_path / "r", range(100))
    line = next_line(path, range(90))
    append(path, "journal.jsonl", line.replace(b'"count": 90', b'"count": 91'))
    assert grundy.open_run(path).count == 100
    os.truncate(os.path.join(path, "journal.jsonl"), 4096)
    append(path, "journal.jsonl", line)
    assert grundy.open_run(path).count == 90


@needs_blake3
def test_record_with_altered_padding_is_ignored(tmp_path):
    path = write_run(tmp_path / "r", range(100))
    line = next_line(path, range(90))
    append(path, "journal.jsonl", line[:-2] + b"\t\n")
    assert grundy.open_run(path).count == 100


def test_hole_is_refused_and_not_read_as_zeros(tmp_path):
    values = random_values(4, 100)
    path = write_run(tmp_path / "r", values, kept=[[0, 20], [20, 30], [60, 100]])
    punch(path, 30, 60)
    run = grundy.open_run(path)
    assert np.array_equal(run.values(0, 30), values[:30])
    assert np.array_equal(run.values(60, 100), values[60:])
    assert len(run.values(40, 40)) == 0
    for a, b, where in [(29, 31, 30), (30, 31, 30), (0, 100, 30), (59, 100, 59), (35, 40, 35)]:
        with pytest.raises(grundy.Discarded, match=rf"G\({where}\)"):
            run.values(a, b)
    with pytest.raises(grundy.Discarded):  # a loop must not end silently at the hole
        list(run)


def test_hole_punched_after_opening_is_refused(tmp_path):
    values = random_values(5, 100)
    path = write_run(tmp_path / "r", values)
    run = grundy.open_run(path)
    append(
        path,
        "journal.jsonl",
        next_line(path, range(120), kept=[[0, 10], [50, 120]]),
    )
    assert np.array_equal(run.values(0, 10), values[:10])
    assert np.array_equal(run.values(50, 100), values[50:])
    for n in range(10, 50):
        with pytest.raises(grundy.Discarded):
            run[n]
    assert run.count == 100


def test_rollback_after_opening_is_noticed(tmp_path):
    path = write_run(tmp_path / "r", range(100))
    run = grundy.open_run(path)
    punch(path, 10, 50)
    append(path, "journal.jsonl", next_line(path, range(50), event="rollback"))
    append(path, "journal.jsonl", next_line(path, range(200)))
    for _ in range(2):
        with pytest.raises(grundy.RunError, match="went back to 50"):
            run[3]


def test_other_format_is_refused_and_not_skipped(tmp_path):
    path = write_run(tmp_path / "r", range(100))
    append(path, "journal.jsonl", record_line(**fields(range(100), format=3)))
    with pytest.raises(grundy.RunError, match="format 3"):
        grundy.open_run(path)


def test_format_1_is_refused_with_advice(tmp_path):
    path = write_run(tmp_path / "r", range(100), format=1)
    with pytest.raises(grundy.RunError) as refused:
        grundy.open_run(path)
    for part in ["has format 1", "format 2 only", "grundy export", "another directory"]:
        assert part in str(refused.value)
    assert not isinstance(refused.value, grundy.Damage)


@pytest.mark.parametrize("change", [{"format": True}, {"format": "2"}, {"format": 2.0}])
def test_format_2_of_another_type_is_refused(tmp_path, change):
    with pytest.raises(grundy.RunError, match="format"):
        grundy.open_run(write_run(tmp_path / "r", range(9), **change))


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
        {"mask": 1 << 16},
        {"position": 1.0},
        {"position": 2},
        {"rares": -1},
        {"last_rare": None},
        {"max_value": 1.5},
        {"escapes": -1},
        {"game": 7},
        {"time": None},
        {"seconds": 1.5},
        {"seconds": -1},
        {"suspect": "7"},
        {"program": 1},
        {
            "snapshot": {"name": "snapshot-50.json", "blake3": "0"}
        },  # a snapshot needs two kept ranges
        {"snapshot": "snapshot-50.json"},
    ],
    ids=str,
)
def test_hostile_record_is_damage_and_allocates_nothing(tmp_path, change):
    with pytest.raises(grundy.Damage, match="record 0"):
        grundy.open_run(write_run(tmp_path / "r", range(100), **change))


@pytest.mark.parametrize(
    "change", [{"count": 2**62}, {"count": 101}, {"escapes": 1}, {"escapes": 2**60}], ids=str
)
def test_file_shorter_than_the_journal_says_is_damage(tmp_path, change):
    with pytest.raises(grundy.Damage, match="the file ends here"):
        grundy.open_run(write_run(tmp_path / "r", range(100), **change))


def test_other_dtype_than_the_journal_says_is_damage(tmp_path):
    path = write_run(tmp_path / "r", range(100), "u16")
    os.remove(os.path.join(path, "journal.jsonl"))
    append(path, "journal.jsonl", record_line(**fields(range(100), "u8")))
    with pytest.raises(grundy.Damage, match="dtype"):
        grundy.open_run(path)


@pytest.mark.parametrize("name", ["values.npy", "escapes.npy"])
@pytest.mark.parametrize(
    "content", [b"", b"\x93NUMPY", b"x" * 5000, b"\x93NUMPY\x01\x00\xf6\x0f" + b"(" * 5000]
)
def test_broken_header_is_damage(tmp_path, name, content):
    path = write_run(tmp_path / "r", range(100))
    with open(os.path.join(path, name), "wb") as file:
        file.write(content)
    with pytest.raises(grundy.Damage, match=name):
        grundy.open_run(path)


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
def test_escapes_that_contradict_the_table_are_damage(
    tmp_path, monkeypatch, dense, entries, bytes255, offset
):
    monkeypatch.setattr(grundy.table, "DENSE", dense)
    values = np.zeros(100, np.uint16)
    values[bytes255] = 255
    run = grundy.open_run(write_run(tmp_path / "r", values, entries=entries))
    with pytest.raises(grundy.Damage, match=rf"escapes.npy', offset {offset}\b"):
        run.values(0, 100)
    with pytest.raises(grundy.Damage, match="escapes.npy"):
        [run[n] for n in range(11)]
    with pytest.raises(grundy.Damage, match="escapes.npy"):
        [run[[n]] for n in range(11)]


@pytest.mark.parametrize("entries", [[], [(3, 300)], [(3, 300), (9, 300)]], ids=str)
def test_byte_255_without_an_escape_is_damage_in_every_read(tmp_path, entries):
    values = np.zeros(100, np.uint16)
    values[[7, *(n for n, _ in entries)]] = 255
    run = grundy.open_run(write_run(tmp_path / "r", values, entries=entries))
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
        with pytest.raises(grundy.Damage, match=r"values.npy', offset 4103.*G\(7\)"):
            read()
    assert run.values(0, 7).tolist() == [0, 0, 0, 300 if entries else 0, 0, 0, 0]
    assert run[99::-70].tolist() == [0, 0]


def test_two_escapes_for_one_value_are_damage(tmp_path):
    entries = [(3, 300), (10, 301), (5, 302), (10, 303), (20, 304)]
    values = np.zeros(100, np.uint16)
    values[[3, 5, 10, 20]] = 255
    run = grundy.open_run(write_run(tmp_path / "r", values, entries=entries))
    for read in [lambda: run[[3, 10, 20]], lambda: run[[20, 3]], lambda: run[0:30]]:
        with pytest.raises(grundy.Damage, match=r"escapes.npy', offset 4116\b"):
            read()


def test_value_255_itself_is_an_escape(tmp_path):
    path = write_run(tmp_path / "r", [254, 255, 256])
    assert np.load(os.path.join(path, "values.npy")).tolist() == [254, 255, 255]
    assert np.load(os.path.join(path, "escapes.npy")).tolist() == [(1, 255), (2, 256)]
    run = grundy.open_run(path)
    assert len(run.escapes) == 2 and run[:].tolist() == [254, 255, 256]


def test_zeros_among_the_escapes_are_damage(tmp_path):
    entries = [(n, 256) for n in range(99)]
    entries[40:60] = [(0, 0)] * 20
    run = grundy.open_run(write_run(tmp_path / "r", [256] * 100, entries=entries))
    for key in [10, [10], [98, 10]]:
        with pytest.raises(grundy.Damage, match="offset 4586"):  # 4096 + 10 * 49
            run[key]


def test_one_small_escape_among_many_is_damage(tmp_path):
    entries = [(n, 256) for n in range(100)]
    entries[10] = (10, 0)
    run = grundy.open_run(write_run(tmp_path / "r", [256] * 100, entries=entries))
    with pytest.raises(grundy.Damage, match="offset 4196"):  # 4096 + 10 * 10
        run.values(0, 100)


def test_directory_without_a_run_is_a_run_error(tmp_path):
    with pytest.raises(grundy.RunError, match="no such directory"):
        grundy.open_run(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(grundy.RunError, match="not a directory"):
        grundy.open_run(tmp_path / "file")
    with pytest.raises(TypeError, match="open it with grundy.open_run"):
        grundy.find_period(str(tmp_path))
    with pytest.raises(grundy.RunError, match="journal.jsonl"):
        grundy.open_run(tmp_path)
    path = write_run(tmp_path / "r", range(9))
    os.remove(os.path.join(path, "escapes.npy"))
    with pytest.raises(grundy.RunError, match="escapes.npy"):
        grundy.open_run(path)


def test_empty_run_and_run_killed_before_the_first_commit(tmp_path):
    run = grundy.open_run(write_run(tmp_path / "r", [], kept=[]))
    assert len(run) == 0 and len(run.values(0, 0)) == 0 and list(run.chunks()) == []
    path = write_run(tmp_path / "s", range(9))
    with open(os.path.join(path, "journal.jsonl"), "wb") as file:
        file.write(b'{"format": 2')
    with pytest.raises(grundy.RunError, match="nothing has been committed"):
        grundy.open_run(path)


@pytest.mark.parametrize("method", ["copy", "copy_each"])
def test_values_discarded_while_they_are_read_are_refused(tmp_path, monkeypatch, method):
    """The run discards values after the first look at the journal, before they are copied."""
    values = random_values(51, 3000, 254)
    path = write_run(tmp_path / "r", values)
    run = grundy.open_run(path)
    copy = getattr(grundy.table.Table, method)

    def late(table, *arguments):
        append(path, "journal.jsonl", next_line(path, values, kept=[[0, 1000], [2000, 3000]]))
        punch(path, 1000, 2000)
        monkeypatch.undo()
        copy(table, *arguments)

    monkeypatch.setattr(grundy.table.Table, method, late)
    with pytest.raises(grundy.Discarded, match=r"G\(1500\)"):
        run[1500:1501] if method == "copy" else run[[1500]]


@pytest.mark.parametrize("width", ["u8", "u16"])
def test_reads_release_pages_at_any_position(tmp_path, monkeypatch, width):
    monkeypatch.setattr(grundy.table, "MAPPED", 1)
    monkeypatch.setattr(grundy.table, "MANY", 1)
    values = random_values(52, 20_000, 300)
    run = grundy.open_run(write_run(tmp_path / "r", values, width))
    for a, b in [(0, 20_000), (1, 2), (4095, 4097), (5000, 19_999), (8192, 8193)]:
        assert np.array_equal(run.values(a, b), values[a:b])
        assert np.array_equal(run[[a, b - 1]], values[[a, b - 1]])
    assert np.array_equal(run.mmap(), np.minimum(values, 255) if width == "u8" else values)


def mapped_kilobytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssFile"))


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="not Linux")
@pytest.mark.parametrize("width", ["u8", "u16"])
@pytest.mark.parametrize(
    "read",
    [
        lambda run: run.chunks(),
        lambda run: (run[n] for n in range(0, 20_000_000, 10_000)),
        lambda run: [run[np.arange(0, 20_000_000, 64)]],
    ],
    ids=["chunks", "values", "index array"],
)
def test_reads_keep_few_pages_mapped(tmp_path, monkeypatch, width, read):
    monkeypatch.setattr(grundy.table, "MAPPED", 1 << 24)
    count = 20_000_000
    path = write_run(tmp_path / "r", [255], width)
    with open(os.path.join(path, "values.npy"), "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (count if width == "u8" else 2 * count))
    if width == "u8":
        entries = np.zeros(count, ESCAPE)
        entries["n"], entries["v"] = np.arange(count), 255
        with open(os.path.join(path, "escapes.npy"), "r+b") as file:
            file.seek(4096)
            file.write(entries.tobytes())
    changes = {"count": count, "escapes": count, "kept": [[0, count]]}
    with open(os.path.join(path, "journal.jsonl"), "wb") as file:
        file.write(record_line(**fields([], width, **changes)))
    run = grundy.open_run(path)
    before = mapped_kilobytes()
    for _ in read(run):
        assert mapped_kilobytes() - before < 35_000


def test_directory_without_a_run_names_the_runs_in_it(tmp_path):
    runs = [write_run(tmp_path / "runs" / f"r{i:02}", range(9)) for i in range(12)]
    with pytest.raises(grundy.RunError) as error:
        grundy.open_run(tmp_path / "runs")
    listed = ", ".join(map(repr, runs[:10]))
    assert str(error.value) == (
        f"{str(tmp_path / 'runs')!r}: no run here (no journal.jsonl); give the directory of a run;"
        f" there are runs in {listed} and 2 more"
    )
    (tmp_path / "bare").mkdir()
    with pytest.raises(grundy.RunError, match="give the directory of a run$"):
        grundy.open_run(tmp_path / "bare")
    os.remove(os.path.join(runs[0], "journal.jsonl"))
    with pytest.raises(grundy.RunError, match=r"values\.npy exists, but journal\.jsonl is missing"):
        grundy.open_run(runs[0])


def test_too_many_open_files_are_named(tmp_path):
    resource = pytest.importorskip("resource")
    path = write_run(tmp_path / "r", range(9))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, limits[1]))
    try:
        with pytest.raises(grundy.RunError, match="Too many open files; keep fewer runs"):
            [grundy.open_run(path) for _ in range(100)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_new_file_follows_the_umask_and_a_replaced_one_keeps_its_mode(tmp_path, monkeypatch):
    def write():
        with replacing(str(tmp_path / "p")) as file:
            file.write(b"x")
            (part,) = tmp_path.glob(".grundy-*.part")
            modes = [part.stat().st_mode & 0o7777]
        assert os.listdir(tmp_path) == ["p"]
        return [*modes, (tmp_path / "p").stat().st_mode & 0o7777]

    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patched:
            # Another thread would create files with the umask of that moment.
            patched.setattr(os, "umask", lambda mask: pytest.fail("the umask is changed"))
            assert write() == [0o640, 0o640]
            for mode in [0o600, 0o604, 0o444]:
                (tmp_path / "p").chmod(mode)
                assert write() == [mode, mode]
    finally:
        os.umask(before)
