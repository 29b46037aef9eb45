"""Tests of results.py, also on runs that continue and discard values while it reads.

fake_run.Writer commits values between two reads. The tests compute the expected maxima, zeros and
digests from the planted values, in plain Python.
"""

import json
import os
import subprocess
import sys

import grundy.run
import numpy as np
import pytest
from fake_run import Writer, append, blake3, write_run
from grundy import report
from grundy.commands import results

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.join(HERE, "..", "..", "scripts")

SEGMENT, HEAD, KEEP, BLOCK = 64, 256, 200, 15


def planted(count):
    """Returns values with new maxima and zeros in every part, some of them above 255."""
    values = np.random.default_rng(21).integers(0, 5, count).astype(np.uint16)
    values[::101] = np.arange(len(values[::101])) + 6
    values[1::150] = 300 + np.arange(len(values[1::150]))
    return values


def maxima(values):
    found = []
    for n, value in enumerate(values.tolist()):
        if not found or value > found[-1][1]:
            found.append((n, value))
    return found


@pytest.fixture
def small(monkeypatch):
    """Makes segments and blocks a few values long."""
    monkeypatch.setattr(report, "SEGMENT", SEGMENT)
    monkeypatch.setattr(grundy.run, "CHUNK", BLOCK)
    monkeypatch.setattr(grundy.Run.chunks, "__defaults__", (BLOCK, 0, None))


def going_on(monkeypatch, writer, every, values):
    """Makes the writer commit `values` more at each `every`-th read. Returns the reads."""
    reads, read = [], grundy.Run.values

    def slowly(run, a, b):
        reads.append((a, b))
        if len(reads) % every == 0:
            writer.step(values)
        return read(run, a, b)

    monkeypatch.setattr(grundy.Run, "values", slowly)
    return reads


def written(path, capsys, *options):
    """Runs results.py. Returns exit status, state as {key: text}, rows of maxima and digests."""
    status = results.main([str(path), *options])
    out, err = capsys.readouterr()
    if status != 0:
        return status, err, None, None
    lines = out.splitlines()
    state = dict(line[2:].split(": ", 1) for line in lines if line.startswith("- "))
    rows = [line for line in lines if line.startswith("| ") and line[2].isdigit()]
    begin = lines.index("```text")
    digests = [tuple(line.split()) for line in lines[begin + 1 : lines.index("```", begin + 1)]]
    return status, state, [tuple(map(int, row.strip("| ").split(" | "))) for row in rows], digests


def expect_all(values, writer, state, rows, digests):
    """Checks that the text describes exactly the first `count` values."""
    count = int(state["count"])
    values = values[:count]
    assert rows == maxima(values)
    zeros = np.flatnonzero(values == 0)
    assert int(state["zeros"].split(",")[0]) == len(zeros)
    assert state["zeros"].endswith(f" {zeros[-1]}")
    ends = [record["count"] for record in writer.records if record["count"] <= count]
    ends = sorted({end for end in ends if end and end % SEGMENT == 0})
    assert digests == [(str(end), f"{end:064x}") for end in ends] and ends
    (record,) = [record for record in writer.records if record["count"] == count][-1:]
    assert json.loads(state["digest"]) == record["digest"]
    assert json.loads(state["kept"]) == record["kept"]


@pytest.mark.parametrize("step", [32, 64, 100, 128])
def test_stopped_run_is_described_exactly(tmp_path, small, capsys, step):
    values = planted(3000)
    writer = Writer(tmp_path / "r", values, SEGMENT, HEAD, KEEP)
    while writer.count < len(values):
        writer.step(step)
    status, state, rows, digests = written(writer.path, capsys)
    assert status == 0 and len(json.loads(state["kept"])) == 2
    expect_all(values, writer, state, rows, digests)


@pytest.mark.parametrize("every", [1, 4, 6, 8, 20])
def test_values_discarded_during_reading(tmp_path, small, capsys, monkeypatch, every):
    values = planted(20_000)
    writer = Writer(tmp_path / "r", values, SEGMENT, HEAD, KEEP)
    for _ in range(20):
        writer.step(64)
    begun = writer.count
    opened, open_run = [], grundy.open_run

    def counted(path):
        opened.append(path)
        return open_run(path)

    monkeypatch.setattr(report, "open_run", counted)
    reads = going_on(monkeypatch, writer, every, 64)
    status, state, rows, digests = written(writer.path, capsys)
    assert writer.count > begun
    if every * BLOCK < SEGMENT:  # the run discards values faster than the reader reads them
        assert status == 1 and "stop it" in state and len(opened) == 2 * report.ATTEMPTS
        assert len(reads) < 100
    else:
        assert status == 0
        monkeypatch.undo()
        expect_all(values, writer, state, rows, digests)


def test_retry_after_a_burst_gives_correct_results(tmp_path, small, capsys, monkeypatch):
    values = planted(20_000)
    writer = Writer(tmp_path / "r", values, SEGMENT, HEAD, KEEP)
    for _ in range(20):
        writer.step(64)
    read, bursts = grundy.Run.values, [5, 1, 3, 9, 2]

    def burst(run, a, b):
        if bursts and a >= HEAD:
            for _ in range(bursts.pop()):
                writer.step(64)
        return read(run, a, b)

    monkeypatch.setattr(grundy.Run, "values", burst)
    status, state, rows, digests = written(writer.path, capsys)
    assert (status, bursts) == (0, [])
    monkeypatch.setattr(grundy.Run, "values", read)
    expect_all(values, writer, state, rows, digests)


def test_snapshot_replaced_between_journal_and_snapshot(tmp_path, small, capsys, monkeypatch):
    values = planted(20_000)
    writer = Writer(tmp_path / "r", values, SEGMENT, HEAD, KEEP)
    for _ in range(20):
        writer.step(64)
    snapshot, late = grundy.Run.summary, [3, 3]

    def replaced(run):
        if late:
            for _ in range(late.pop()):
                writer.step(64)
            with pytest.raises(grundy.Discarded, match="snapshot-"):
                snapshot(run)
        return snapshot(run)

    monkeypatch.setattr(grundy.Run, "summary", replaced)
    status, state, rows, digests = written(writer.path, capsys)
    assert (status, late) == (0, [])
    expect_all(values, writer, state, rows, digests)


def test_data_is_read_in_the_order_of_its_removal(tmp_path, small, capsys, monkeypatch):
    writer = Writer(tmp_path / "r", planted(2000), SEGMENT, HEAD, KEEP)
    for _ in range(20):
        writer.step(64)
    reads = going_on(monkeypatch, writer, 10**9, 0)
    assert written(writer.path, capsys)[0] == 0
    starts = [a for a, _ in reads]
    tail = [a for a in starts if a >= writer.discarded]
    assert (
        starts == tail + list(range(0, HEAD, BLOCK))
        and tail == sorted(tail)
        and tail[0] == writer.discarded
    )


def test_digests_after_a_rollback_are_the_valid_ones(tmp_path, small, capsys):
    values = planted(2000)
    writer = Writer(tmp_path / "r", values, SEGMENT, HEAD, 10**6)
    for _ in range(5):
        writer.step(64)
    writer.count = 100
    writer.commit(event="rollback")
    for name, length in [("values.npy", 4096 + 100), ("escapes.npy", None)]:
        if length is None:
            length = 4096 + 10 * int((values[:100] >= 255).sum())
        os.truncate(os.path.join(writer.path, name), length)
    writer.step(28)
    writer.step(10)
    status, state, rows, digests = written(writer.path, capsys)
    assert status == 0 and state["count"] == "138"
    assert digests == [("64", f"{64:064x}"), ("128", f"{128:064x}")]
    assert rows == maxima(values[:138])


def test_fields_of_the_record_are_written_exactly(tmp_path, capsys):
    changes = {
        "seconds": 2**53 + 1,
        "suspect": 2**60 + 1,
        "time": "2026-11-22T20:49:00Z",
        "errors": 10**17 + 1,
    }
    path = write_run(tmp_path / "r", [1, 0, 2], **changes)
    status, state, rows, _ = written(path, capsys, "--note", "wall time: 3 s", "--command", "x")
    assert status == 0 and rows == [(0, 1), (2, 2)]
    assert state["seconds"] == "9007199254740993" and state["suspect"] == "1152921504606846977"
    assert state["errors"] == "100000000000000001" and state["time"] == '"2026-11-22T20:49:00Z"'
    assert state["program"] == '"grundy 0.1.0 (0123456789ab, x86_64-unknown-linux-gnu)"'
    assert (
        state["wall time"] == "3 s" and state["zeros"] == "1, the last among the kept values at 1"
    )
    write_run(tmp_path / "s", [1, 2, 3])
    state = written(tmp_path / "s", capsys)[1]
    assert state["suspect"] == "null" and state["zeros"] == "0, none among the kept values"


def test_empty_run_and_torn_tail(tmp_path, capsys):
    path = write_run(tmp_path / "r", [], kept=[[0, 0]])
    append(path, "journal.jsonl", b'{"format": 2, "torn')
    status, state, rows, digests = written(path, capsys)
    assert (status, state["count"], rows, digests) == (0, "0", [], [])


def a_run(path):
    writer = Writer(path, planted(2000), SEGMENT, HEAD, KEEP)
    for _ in range(20):
        writer.step(64)
    return writer, os.path.join(writer.path, f"snapshot-{writer.discarded}.json")


def test_missing_snapshot_of_a_run_at_rest_is_damage(tmp_path, small, capsys):
    writer, snapshot = a_run(tmp_path / "r")
    os.remove(snapshot)
    status, message, _, _ = written(writer.path, capsys)
    assert status == 3 and snapshot in message and "missing" in message


def test_fifo_in_place_of_the_snapshot_does_not_hang(tmp_path, small):
    writer, snapshot = a_run(tmp_path / "r")
    os.remove(snapshot)
    os.mkfifo(snapshot)
    done = subprocess.run(
        [sys.executable, os.path.join(SCRIPTS, "results.py"), writer.path],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 1 and snapshot in done.stderr and "not a regular file" in done.stderr


@pytest.mark.parametrize(
    "change",
    [
        lambda snapshot: snapshot["histogram"].append(2**64),
        lambda snapshot: snapshot["histogram"].__setitem__(0, 0),
        lambda snapshot: snapshot["histogram"].__setitem__(0, -1),
        lambda snapshot: snapshot["histogram"].__setitem__(0, 1.0),
        lambda snapshot: (
            snapshot["histogram"].append(0)
            or snapshot["maxima"].append([1000, len(snapshot["histogram"]) - 1])
        ),
        lambda snapshot: snapshot["maxima"].pop(),
        lambda snapshot: snapshot["maxima"].pop(0),
        lambda snapshot: snapshot["maxima"].clear(),
        lambda snapshot: snapshot["maxima"].reverse(),
        lambda snapshot: snapshot["maxima"].append([10**6, 60_000]),
        lambda snapshot: snapshot.update(run="another"),
        lambda snapshot: snapshot.update({"from": 0}),
        lambda snapshot: snapshot.update(maxima=7),
        lambda snapshot: snapshot.update(mask=7),
        lambda snapshot: snapshot.update(position=1),
        lambda snapshot: snapshot.pop("rares"),
        lambda snapshot: snapshot["rares"].reverse(),
        lambda snapshot: snapshot["rares"].append([0, 3]),
        lambda snapshot: snapshot["rares"].append([10**6, 3]),
        lambda snapshot: snapshot["rares"][0].__setitem__(1, 60_000),
    ],
)
def test_forged_snapshot_is_damage_with_either_hash(tmp_path, small, capsys, change):
    writer, path = a_run(tmp_path / "r")
    with open(path, "rb") as file:
        snapshot = json.loads(file.read())
    change(snapshot)
    data = json.dumps(snapshot).encode()
    with open(path, "wb") as file:
        file.write(data)
    if blake3:
        assert written(writer.path, capsys)[0] == 3
        writer.named[-1]["blake3"] = blake3(data).hexdigest()
        writer.commit()
    status, message, _, _ = written(writer.path, capsys)
    assert status == 3 and path in message and "not the discard summary" in message


def test_snapshot_named_elsewhere_is_damage_and_not_opened(tmp_path, small, capsys):
    writer, path = a_run(tmp_path / "r")
    writer.named[-1]["name"] = "../" + os.path.basename(path)
    os.rename(path, tmp_path / os.path.basename(path))
    writer.commit()
    status, message, _, _ = written(writer.path, capsys)
    assert status == 3 and "missing" in message  # the name is looked up in the run directory only
    os.rename(tmp_path / os.path.basename(path), path)
    status, message, _, _ = written(writer.path, capsys)
    assert status == 3 and "not the discard summary" in message


def test_control_characters_of_a_hostile_run_are_escaped(tmp_path, capsys):
    path = write_run(tmp_path / "r", [0] * 9, game="\x1b[2Jnim\n", kernel="\x1b[1m")
    assert results.main([path]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\\x1b[2Jnim\\n" in out


def test_exit_status_distinguishes_missing_usage_and_damage(tmp_path, capsys):
    assert written(tmp_path, capsys)[0] == 1
    path = write_run(tmp_path / "r", range(9))
    os.truncate(os.path.join(path, "values.npy"), 4100)
    status, message, _, _ = written(path, capsys)
    assert status == 3 and "values.npy" in message
    with pytest.raises(SystemExit) as usage:
        results.main([])
    assert usage.value.code == 2


def without_numpy(tmp_path, script, *arguments):
    """Starts a script in a Python that has no NumPy."""
    (tmp_path / "numpy.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'numpy'\", name='numpy')\n"
    )
    return subprocess.run(
        [sys.executable, os.path.join(SCRIPTS, script), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
    )


@pytest.mark.parametrize("script", ["find_period.py", "results.py"])
def test_help_needs_no_numpy_and_missing_numpy_is_reported(tmp_path, script):
    done = without_numpy(tmp_path, script, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage" in done.stdout and "example: " + script in done.stdout
    done = without_numpy(tmp_path, script, write_run(tmp_path / "r", range(9)))
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    for part in ["No module named 'numpy'", "python3 -m pip install numpy", "uv run"]:
        assert part in done.stderr
    assert without_numpy(tmp_path, script, "--nonsense").returncode == 2
