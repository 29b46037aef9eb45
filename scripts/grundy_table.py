"""Reads the value table of a `grundy` run directory (format 2), also while the run continues.

    import grundy_table
    run = grundy_table.open_run("runs/grundy")
    run.game, run.count, len(run)      # name, number of committed values, the same number
    run[7250049]                       # one value, an int
    run[[5, 3, -1]], run[100:0:-7]     # uint16 arrays
    run.values(10**6, 2 * 10**6)       # uint16 array of G(10**6) ... G(2*10**6 - 1)
    np.asarray(run)                    # the whole table as a uint16 array, up to 1 GB
    for start, block in run.chunks():  # the whole table in bounded memory
        ...

A run consists of three files:

values.npy     NumPy format 1.0, header of exactly 4096 bytes, then one unit for each n = 0, 1, ...:
               |u1, which holds min(G(n), 255), or <u2, which holds G(n). The byte 255 means
               "255 or more: the value is in escapes.npy".
escapes.npy    with |u1 only: every n with G(n) >= 255 and its value, ascending in n, as
               [('n', '<u8'), ('v', '<u2')] after a header of the same kind.
journal.jsonl  records of exactly 4096 bytes: a JSON object, spaces, a newline. The last good record
               states how many entries of the other files are valid (`count`, `escapes`) and which
               values the run has kept (`kept`). A torn tail may follow it (docs/FORMAT.md).

This module ignores the shapes in the two headers, because they may lag behind the journal. It also
ignores everything in a file beyond what the journal states. Outdated shapes and extra bytes are
normal while a run continues and after a kill.
"""

from __future__ import annotations

import json
import operator
import os
import stat

import numpy as np

try:  # optional: without it, the digests of records and snapshots are not checked
    from blake3 import blake3
except ImportError:
    blake3 = None

FORMAT = 2
HEADER = 4096  # bytes before the data in both .npy files
MAGIC = b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little")
RECORD = 4096  # bytes of one journal record
TORN_LIMIT = 1 << 20  # maximum number of bytes behind the last good record of a journal
SATURATED = 255  # byte that represents this value and all larger ones
SNAPSHOT_LIMIT = 1 << 30  # maximum number of bytes of a snapshot
CHUNK = 1 << 20  # number of values read at a time
ITERATED = 1 << 16  # number of values converted to Python integers at a time
STRIDE = 64  # least step of a slice for which only the selected values are read
DENSE = 16  # maximum number of escapes read for each value of an index array
ARRAY_LIMIT = 10**9  # maximum number of bytes of `np.asarray(run)`
WIDTHS = {"u8": np.dtype("|u1"), "u16": np.dtype("<u2")}
ESCAPE = np.dtype([("n", "<u8"), ("v", "<u2")])


class RunError(Exception):
    """The run cannot be read: the directory holds no run, its format differs, or it rolled back."""


class Damage(RunError):
    """A file contradicts the journal or itself."""


class NotKept(RunError):
    """The run has freed these values. (This is no IndexError, which would silently end a `for` loop.)"""


def open_run(path) -> Run:
    """Opens the run directory `path` read-only, as of the last good record of its journal.

    Takes no lock and needs no write permission. Raises RunError if the directory holds no readable
    run of format 2, and Damage if its files contradict the journal. Never raises OSError.
    """
    return Run(path)


class Run:
    """The committed part of a run: a sequence of `count` nim-values, 0 <= G(n) <= 65535.

    path     the directory
    record   dict, the last good journal record at the time of opening
    game     name of the game
    count    number of committed values, G(0) ... G(count - 1); later commits are not visible
    escapes  number of entries of escapes.npy: values of 255 and more (0 with width "u16")
    kept     list of (from, to), half open, ascending: the values that can be read
    """

    def __init__(self, path):
        self.path = os.fspath(path)
        if not os.path.isdir(self.path):
            raise RunError(f"{self.path!r}: no such directory; give the directory of a run")
        self._journal = os.path.join(self.path, "journal.jsonl")
        self.record, self._opened_end, self._journal_file = _last_record(self._journal)
        self._latest, self._latest_end = self.record, self._opened_end
        self.game, self.count = self.record["game"], self.record["count"]
        self.kept = self._kept_now = [tuple(pair) for pair in self.record["kept"]]

        self._values_path = os.path.join(self.path, "values.npy")
        self._escapes_path = os.path.join(self.path, "escapes.npy")
        width = self.record["width"]
        self._values = _map(self._values_path, WIDTHS[width], self.count)
        self._escapes, self.escapes = None, 0
        if width == "u8":
            self.escapes = self.record["escapes"]
            self._escapes = _map(self._escapes_path, ESCAPE, self.escapes)

    def __len__(self):
        return self.count

    def __repr__(self):
        return f"<Run {self.path!r}: {self.game!r}, {self.count} values>"

    def __iter__(self):
        """Yields G(0), G(1), ... as ints. Reads a block at a time."""
        for _, block in self.chunks(size=ITERATED):
            yield from block.tolist()

    def __array__(self, dtype=None, copy=None):
        """Returns the whole table as a new array, uint16 unless `dtype` names another numeric type.

        Raises ValueError if the array would exceed 1 GB, if a value does not fit `dtype`, or if
        `copy` is False, because values and escapes must be combined in new memory.
        """
        dtype = np.dtype(np.uint16 if dtype is None else dtype)
        if dtype.kind not in "biufcO":
            raise TypeError(f"nim-values cannot be converted to {dtype}; use a numeric type")
        if copy is False:
            raise ValueError("an array of a run is always a copy; run.mmap() gives the raw table")
        if self.count * dtype.itemsize > ARRAY_LIMIT:
            raise ValueError(
                f"{self.path!r}: {self.count} values as {dtype} take more than {ARRAY_LIMIT} bytes; read"
                " a part with run.values(a, b), or all of them block by block with run.chunks()"
            )
        out = self.values(0, self.count)
        if dtype == out.dtype:
            return out
        with np.errstate(all="ignore"):  # the comparison below detects overflow
            converted = out.astype(dtype)
        wrong = np.flatnonzero(converted != out)
        if len(wrong):
            n = int(wrong[0])
            raise ValueError(f"{self.path!r}: G({n}) = {out[n]} does not fit {dtype}; use uint16")
        return converted

    def __getitem__(self, key):
        """run[n] is an int; a slice, or a list or array of integers, gives a new uint16 array.

        Negative indices count from the end. Raises IndexError for every index outside the table,
        including, unlike a list, the ends of a slice. Raises TypeError for any other key.
        """
        if isinstance(key, slice):
            return self._slice(key)
        if isinstance(key, (bool, np.bool_)):
            raise self._no_index(key)
        try:
            n = operator.index(key)
        except TypeError:
            return self._take(self._positions(key))
        if not -self.count <= n < self.count:
            raise self._outside(n)
        n = n + self.count if n < 0 else n
        return int(self.values(n, n + 1)[0])

    def values(self, a, b):
        """Returns G(a) ... G(b - 1) as a new uint16 array of b - a elements, 0 <= a <= b <= count.

        Raises IndexError outside 0 ... count, NotKept if the run has freed any of these values,
        Damage if escapes.npy contradicts values.npy in this range.
        """
        a, b = _whole(a), _whole(b)
        if not 0 <= a <= b <= self.count:
            raise IndexError(
                f"{self.path!r}: [{a}, {b}) is not within the {self.count} committed values;"
                " continue the run, or open it again if it has continued"
            )
        out = np.empty(b - a, np.uint16)
        try:
            for lo in range(a, b, CHUNK):
                # Checked before reading, because on a full tmpfs reading a hole through a map
                # raises SIGBUS.
                self._require_kept(a, b)
                self._copy(out[lo - a : lo - a + CHUNK], lo, min(lo + CHUNK, b))
        finally:
            # Checked again after reading, and before damage is reported: if a value was freed before
            # it was copied, the journal states so by now.
            self._require_kept(a, b)
        return out

    def chunks(self, a=0, b=None, size=CHUNK):
        """Yields (start, values(start, stop)) over [a, b) (default: all) in steps of `size`."""
        b = self.count if b is None else b
        for start in range(a, b, size):
            yield start, self.values(start, min(start + size, b))

    def mmap(self):
        """Returns the raw table: a read-only memory map of values.npy, uint8 or uint16 by the width.

        In a uint8 map the byte 255 means "255 or more": the value is in escape_entries(). Values
        outside the ranges in `kept` have been freed and read as 0, although 0 is a legal value. A
        run with --keep that continues frees more of them. values(), chunks() and indexing handle
        escapes and freed values.
        """
        return self._values

    def escape_entries(self):
        """Returns the entries of escapes.npy as a read-only memory map with the fields n and v.

        One entry for each n with G(n) = v >= 255, ascending in n, freed values included. Empty with
        width "u16". The entries are not checked here; values() checks those that it uses.
        """
        if self._escapes is None:
            return _read_only(np.empty(0, ESCAPE))
        return self._escapes

    def records(self):
        """Yields the records of the journal as dicts, from the first to `record`.

        Raises Damage at a record that is broken or does not follow the record before it.
        """
        before = {"sequence": -1, "blake3": "0" * 64, "run": self.record["run"]}
        try:
            with open_regular(self._journal) as file:
                for offset in range(0, self._opened_end, RECORD):
                    record = _parse(file.read(RECORD), self._journal)
                    if record is None or not _follows(record, before):
                        raise Damage(
                            f"{self._journal!r}, offset {offset}: the record is broken or does not"
                            " follow the record before it; run `grundy verify`"
                        )
                    yield record
                    before = record
        except OSError as e:
            raise RunError(f"{self._journal!r}: {e.strerror}; check the file and try again") from e

    def snapshot(self):
        """Returns the summary of the values that are freed as of `record`, or None if there are none.

        The summary is a dict with these keys, among others:

        from, to   the freed values, half open
        maxima     [n, value] of every freed value that exceeds all freed values before it
        histogram  number of freed values equal to 0, 1, 2, ...

        Raises NotKept if the run has since freed more values and removed the file. Raises Damage if
        the file is missing otherwise, or is not the snapshot that the journal describes.
        """
        named = self.record.get("snapshot")
        if named is None:
            return None
        (_, start), (stop, _) = self.kept
        path = os.path.join(self.path, f"snapshot-{stop}.json")
        try:
            with open_regular(path) as file:
                data = file.read(SNAPSHOT_LIMIT + 1)
        except FileNotFoundError as e:
            self._follow()
            if self._latest_end == self._opened_end:
                raise Damage(
                    f"{path!r}: the snapshot that the journal names is missing; run `grundy verify`"
                ) from e
            raise NotKept(f"{path!r}: the run has replaced this snapshot; open it again") from e
        except OSError as e:
            raise RunError(f"{path!r}: {e.strerror}; check the file and try again") from e
        if blake3 is None or blake3(data).hexdigest() == named["blake3"]:
            snapshot = _parse_snapshot(data, self.record["run"], start, stop)
            if snapshot is not None and named["name"] == os.path.basename(path):
                return snapshot
        raise Damage(f"{path!r}: not the snapshot that the journal describes; run `grundy verify`")

    def _slice(self, key):
        step = 1 if key.step is None else _whole(key.step)
        if step == 0:
            raise ValueError("the step of a slice of a run is 0; use a positive or a negative step")
        # Valid ends of a slice. A descending slice may end before G(0).
        low, high = (0, self.count) if step > 0 else (-1, self.count - 1)
        first, last = (low, high) if step > 0 else (high, low)
        start = first if key.start is None else self._slice_end(key.start, low, high)
        stop = last if key.stop is None else self._slice_end(key.stop, low, high)
        if step == 1:
            return self.values(start, max(start, stop))
        if abs(step) >= STRIDE:
            return self._take(np.arange(start, stop, step, dtype=np.int64))
        wanted = range(start, stop, step)
        ascending = wanted if step > 0 else wanted[::-1]
        out = np.empty(len(wanted), np.uint16)
        size = CHUNK // STRIDE
        for i in range(0, len(ascending), size):
            part = ascending[i : i + size]
            out[i : i + size] = self.values(part[0], part[-1] + 1)[:: abs(step)]
        return out if step > 0 else out[::-1].copy()

    def _slice_end(self, end, low, high):
        n = _whole(end)
        n = n + self.count if n < 0 else n
        if not low <= n <= high:
            raise self._outside(end)
        return n

    def _positions(self, key):
        """The index array `key` as int64 within 0 ... count - 1."""
        try:
            array = None if isinstance(key, tuple) else np.asarray(key)
        except ValueError:  # a list of lists of different lengths
            array = None
        if array is not None and array.size == 0 and isinstance(key, list):
            array = array.astype(np.int64)
        if array is None or array.dtype.kind not in "iu" or array.ndim == 0:
            if isinstance(key, list) and all(type(n) is int for n in key):  # beyond int64
                raise self._outside(max(key, key=abs))
            raise self._no_index(key)
        wrong = array >= self.count
        if array.dtype.kind == "i":
            wrong |= array < -self.count
        if wrong.any():
            raise self._outside(array[wrong].flat[0])
        positions = array.astype(np.int64)
        positions[positions < 0] += self.count
        return positions

    def _outside(self, n):
        return IndexError(
            f"{self.path!r}: index {n} is not within the {self.count} committed values;"
            " continue the run, or open it again if it has continued"
        )

    def _no_index(self, key):
        kind = type(key).__name__
        if isinstance(key, (list, np.ndarray)):
            kind += " with other elements"
        return TypeError(
            f"index a run with an integer, a slice, or a list or array of integers, not with {kind}"
            " (int(x) converts a float, np.flatnonzero(mask) converts a mask)"
        )

    def _take(self, positions):
        """Returns the values at `positions`, all within the table, in an array of the same shape."""
        flat = positions.reshape(-1)
        out = np.empty(len(flat), np.uint16)
        try:
            for i in range(0, len(flat), CHUNK):
                part = flat[i : i + CHUNK]
                self._require_kept_each(part)
                self._copy_each(out[i : i + CHUNK], part)
        finally:
            self._require_kept_each(flat)
        return out.reshape(positions.shape)

    def _copy(self, out, a, b):
        """Copies G(a) ... G(b - 1) to `out`."""
        out[:] = self._values[a:b]
        if self._escapes is None:
            return
        i, j = self._first_escape(a), self._first_escape(b)
        # There are at most as many entries as values. One more suffices to find a wrong entry.
        entries = np.array(self._escapes[i : min(j, i + len(out) + 1)])
        at = np.flatnonzero(out == SATURATED)
        n, v = entries["n"], entries["v"]
        if np.array_equal(n, at.astype(np.uint64) + np.uint64(a)) and (v >= SATURATED).all():
            out[at] = v
            return
        wrong = (v < SATURATED) | ~np.isin(n, at.astype(np.uint64) + np.uint64(a))
        wrong[1:] |= n[1:] <= n[:-1]
        if wrong.any():
            raise self._bad_escape(i + int(np.argmax(wrong)))
        lost = at[~np.isin(at.astype(np.uint64) + np.uint64(a), n)]
        raise self._no_escape(a + int(lost[0]))

    def _copy_each(self, out, positions):
        """Copies G(n) for each n of `positions` to `out`."""
        out[:] = self._values[positions]
        if self._escapes is None:
            return
        n = positions.astype(np.uint64)
        index = self._first_escapes(n)
        found = self._are_entries(index, n)
        twice = found & self._are_entries(index + 1, n)
        if twice.any():
            raise self._bad_escape(int(index[np.argmax(twice)]) + 1)
        escaped = out == SATURATED
        if (found & ~escaped).any():
            raise self._bad_escape(int(index[np.argmax(found & ~escaped)]))
        if (escaped & ~found).any():
            raise self._no_escape(int(n[np.argmax(escaped & ~found)]))
        v = self._escapes["v"][index[found]]
        if (v < SATURATED).any():
            raise self._bad_escape(int(index[found][np.argmax(v < SATURATED)]))
        out[found] = v

    def _are_entries(self, index, n):
        """Returns, for each pair, whether the entry with this index exists and belongs to this n."""
        found = index < self.escapes
        found[found] = self._escapes["n"][index[found]] == n[found]
        return found

    def _first_escape(self, n):
        """Returns the index of the first escape at n or later, by bisection.

        np.searchsorted would copy the whole (unaligned) column, and would not detect a stretch of
        zeros.
        """
        lo, hi = 0, self.escapes
        while lo < hi:
            middle = (lo + hi) // 2
            if self._escapes["v"][middle] < SATURATED:
                raise self._bad_escape(middle)
            if self._escapes["n"][middle] < n:
                lo = middle + 1
            else:
                hi = middle
        return lo

    def _first_escapes(self, n):
        """Returns the index of the first escape at each n or later. `n` is a nonempty uint64 array."""
        i, j = self._first_escape(int(n.min())), self._first_escape(int(n.max()))
        if i <= j <= i + DENSE * len(n):
            column = np.array(self._escapes["n"][i:j])
            wrong = self._escapes["v"][i:j] < SATURATED
            wrong[1:] |= column[1:] <= column[:-1]
            if wrong.any():
                raise self._bad_escape(i + int(np.argmax(wrong)))
            return i + np.searchsorted(column, n)
        # Bisects for all of `n` together, because copying the entries between them would take longer.
        lo, hi = np.zeros(len(n), np.int64), np.full(len(n), self.escapes, np.int64)
        for _ in range(self.escapes.bit_length()):
            active = np.flatnonzero(lo < hi)
            middle = (lo[active] + hi[active]) // 2
            entries = self._escapes[middle]
            if (entries["v"] < SATURATED).any():
                raise self._bad_escape(int(middle[np.argmax(entries["v"] < SATURATED)]))
            before = entries["n"] < n[active]
            lo[active[before]] = middle[before] + 1
            hi[active[~before]] = middle[~before]
        return lo

    def _bad_escape(self, i):
        n, v = self._escapes[i].tolist()
        return Damage(
            f"{self._escapes_path!r}, offset {HEADER + ESCAPE.itemsize * i}: the entry n = {n},"
            f" value {v} is out of order, is below {SATURATED}, or belongs to a byte in values.npy"
            f" other than {SATURATED}; run `grundy verify`"
        )

    def _no_escape(self, n):
        return Damage(
            f"{self._values_path!r}, offset {HEADER + n}: the byte of G({n}) is {SATURATED}, but"
            " escapes.npy has no entry for it; run `grundy verify`"
        )

    def _require_kept(self, a, b):
        """Raises NotKept if any of G(a) ... G(b - 1) has been freed."""
        self._follow()
        for lo, hi in self._kept_now:  # adjacent ranges count as one
            if lo <= a < hi:
                a = min(b, hi)
        if a < b:
            raise self._freed(a)

    def _require_kept_each(self, positions):
        """Raises NotKept if any of the values at `positions` has been freed."""
        self._follow()
        freed = np.ones(len(positions), bool)
        for lo, hi in self._kept_now:
            freed &= (positions < lo) | (positions >= hi)
        if freed.any():
            raise self._freed(int(positions[np.argmax(freed)]))

    def _freed(self, n):
        kept = ", ".join(f"[{lo}, {hi})" for lo, hi in self._kept_now)
        return NotKept(
            f"{self._values_path!r}: G({n}) is no longer kept (kept: {kept}); read within these"
            " ranges, or compute the run again without --keep"
        )

    def _follow(self):
        """Reads the records added since the last call: the run may have freed values or rolled back."""
        try:
            now = os.stat(self._journal)
            if _identity(now) == self._journal_file and now.st_size == self._latest_end:
                return
            with open_regular(self._journal) as file:
                # If the last record that was read has changed, the run has rolled back.
                file.seek(self._latest_end - RECORD)
                again = _parse(file.read(RECORD), self._journal)
                if again is None or again != self._latest:
                    raise self._went_back("an earlier record")
                end, size = self._latest_end, os.fstat(file.fileno()).st_size
                while end + RECORD <= size:
                    record = _next(file.read(RECORD), self._latest, self._journal, end)
                    if record is None:  # torn, or incomplete
                        break
                    if record["count"] < self.count:
                        raise self._went_back(f"{record['count']} values")
                    end += RECORD
                    self._kept_now = [tuple(pair) for pair in record["kept"]]
                    self._latest, self._latest_end = record, end
                _check_tail(file, self._journal, end, size)
                self._journal_file = _identity(now)
        except OSError as e:
            raise RunError(f"{self._journal!r}: {e.strerror}; the run cannot be followed") from e

    def _went_back(self, where):
        return RunError(
            f"{self.path!r}: the run went back to {where} while it was read; open it again"
        )


def open_regular(path):
    """Opens a regular file for reading in binary. Does not wait, as opening a FIFO does.

    Raises RunError for anything but a regular file, and OSError.
    """

    def opener(name, flags):
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))

    file = open(path, "rb", opener=opener)
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise RunError(f"{path!r}: not a regular file; restore the file of the run")


def _whole(x):
    """Returns `x` as an int. Raises TypeError unless it is an integer and no bool."""
    if not isinstance(x, (bool, np.bool_)):
        try:
            return operator.index(x)
        except TypeError:
            pass
    raise TypeError(f"{x!r} is not an integer; the bounds of a range are integers such as 10**6")


def _last_record(path):
    """Returns the last good record, the offset after it, and the identity of the journal.

    Reads all records from the first on, and accepts a torn tail behind the last good one.
    """
    last, end = None, 0
    try:
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            while end + RECORD <= status.st_size:
                record = _next(file.read(RECORD), last, path, end)
                if record is None:
                    break
                last, end = record, end + RECORD
            _check_tail(file, path, end, status.st_size)
    except OSError as e:
        raise RunError(f"{path!r}: {e.strerror}; give the directory of a run") from e
    if last is not None:
        return last, end, _identity(status)
    message = f"{path!r}: no good record in {status.st_size} bytes"
    if status.st_size < 2 * RECORD:  # killed before or during its first commit
        raise RunError(message + "; nothing has been committed yet")
    raise Damage(message + "; run `grundy verify`")


def _next(line, last, path, offset):
    """Returns the record in `line` at `offset`, which must follow the record `last`; None if it is not good."""
    record = _parse(line, path)
    before = last or {"sequence": -1, "blake3": "0" * 64, "run": record and record["run"]}
    if record is not None and not _follows(record, before):
        raise Damage(
            f"{path!r}, offset {offset}: the record is broken or does not follow the record before it;"
            " run `grundy verify`"
        )
    return record


def _check_tail(file, path, end, size):
    """Raises Damage unless the bytes from `end`, behind the last good record, to `size` are a torn tail."""
    if size - end > TORN_LIMIT:
        raise _too_much_behind(path, end)
    file.seek(end)
    broken = 0
    for offset in range(end, size - RECORD + 1, RECORD):
        line = file.read(RECORD)
        broken += any(line)
        if _parse(line, path) is not None or broken > 1:
            raise Damage(
                f"{path!r}, offset {end}: the record is broken or does not follow the record before it,"
                f" and the record at offset {offset} follows; run `grundy verify`"
            )


def _too_much_behind(path, offset):
    return Damage(
        f"{path!r}, offset {offset}: no good record from here on, although at most {TORN_LIMIT} bytes may"
        " follow the last good record; run `grundy verify`"
    )


def _identity(status):
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _follows(record, before):
    return (
        record["sequence"] == before["sequence"] + 1
        and record["previous"] == before["blake3"]
        and record["run"] == before["run"]
    )


def _parse(line, path):
    """Returns the record in the 4096 bytes `line`, or None if they are not a whole good record.

    Raises RunError for another format, and Damage for a whole record with invalid fields.
    """
    if len(line) != RECORD or not line.endswith(b"\n"):
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or "format" not in record:
        return None
    if type(record["format"]) is not int or record["format"] != FORMAT:
        raise RunError(
            f"{path!r}: the run has format {record['format']!r}, but this reader reads format"
            f" {FORMAT} only; use the scripts or `grundy export` of the program that wrote it, or"
            " compute the run again in another directory"
        )
    if blake3 is not None and not _digest_holds(line, record):
        return None
    if not _sensible(record):
        raise Damage(
            f"{path!r}: record {record.get('sequence')!r} has invalid fields;"
            " run `grundy verify`"
        )
    return record


def _digest_holds(line, record):
    digest = record.get("blake3")
    if not isinstance(digest, str) or len(digest) != 64 or not digest.isascii():
        return False
    head, _, tail = line.rpartition(digest.encode())
    return blake3(head + b" " * 64 + tail).hexdigest() == digest


def _natural(x):
    return type(x) is int and 0 <= x < 1 << 63


def _sensible(record):
    naturals = ["sequence", "count", "escapes", "seconds"]
    texts = ["run", "game", "event", "digest", "time", "program", "previous", "blake3"]
    suspect, named = record.get("suspect"), record.get("snapshot")
    return (
        all(_natural(record.get(key)) for key in naturals)
        and all(isinstance(record.get(key), str) for key in texts)
        and (suspect is None or _natural(suspect))
        and record.get("width") in ("u8", "u16")
        and _sensible_kept(record.get("kept"), record["count"])
        and (named is None or (_sensible_attachment(named) and len(record["kept"]) == 2))
    )


def _sensible_kept(kept, count):
    if not isinstance(kept, list):
        return False
    end = 0
    for pair in kept:
        if not (isinstance(pair, list) and len(pair) == 2 and all(map(_natural, pair))):
            return False
        if not end <= pair[0] <= pair[1] <= count:
            return False
        end = pair[1]
    return True


def _sensible_attachment(named):
    return isinstance(named, dict) and all(isinstance(named.get(k), str) for k in ("name", "blake3"))


def _parse_snapshot(data, run, start, stop):
    """Returns the snapshot in `data` if it describes the values [start, stop) of this run, else None."""
    try:
        snapshot = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(snapshot, dict) or snapshot.get("run") != run:
        return None
    if (snapshot.get("from"), snapshot.get("to")) != (start, stop):
        return None
    histogram, maxima = snapshot.get("histogram"), snapshot.get("maxima")
    if not (isinstance(histogram, list) and all(map(_natural, histogram))):
        return None
    if sum(histogram) != stop - start or not (isinstance(maxima, list) and maxima):
        return None
    n, value = start - 1, -1
    for pair in maxima:
        if not (isinstance(pair, list) and len(pair) == 2 and all(map(_natural, pair))):
            return None
        if not (n < pair[0] < stop and value < pair[1] < len(histogram) and histogram[pair[1]]):
            return None
        n, value = pair
    if maxima[0][0] != start or any(histogram[value + 1 :]):
        return None
    return snapshot


def _map(path, dtype, count):
    """Returns the first `count` entries of the .npy file as a read-only map. Ignores its shape."""
    try:
        with open_regular(path) as file:
            # np.load would rely on the shape. Only 'descr' is read from the header.
            header = file.read(HEADER)
            descr = str(np.lib.format.dtype_to_descr(dtype))
            wanted = f"'descr':{descr if dtype.names else repr(descr)},".replace(" ", "").encode()
            if (
                len(header) < HEADER
                or header[:10] != MAGIC
                or wanted not in header.replace(b" ", b"")
            ):
                raise Damage(
                    f"{path!r}, offset 0: not a .npy header of {HEADER} bytes with dtype {descr},"
                    " which the journal states; run `grundy verify`"
                )
            size, need = os.fstat(file.fileno()).st_size, HEADER + count * dtype.itemsize
            if size < need:
                raise Damage(
                    f"{path!r}, offset {size}: the file ends here, but the journal states {count} entries,"
                    f" {need} bytes; copy the file again or run `grundy verify`"
                )
            if count == 0:  # an empty file range cannot be mapped
                return _read_only(np.empty(0, dtype))
            return np.memmap(file, dtype, "r", HEADER, (count,)).view(np.ndarray)
    except OSError as e:
        raise RunError(
            f"{path!r}: {e.strerror}; check that the run is complete and readable"
        ) from e


def _read_only(array):
    array.flags.writeable = False
    return array
