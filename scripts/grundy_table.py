"""Reads the value table of a `grundy` run directory (format 1), also while the run goes on.

    import grundy_table
    run = grundy_table.open_run("runs/grundy")
    run.game, run.count, len(run)      # name, number of committed values, the same
    run[7250049]                       # one value, an int
    run.values(10**6, 2 * 10**6)       # uint16 array of G(10**6) ... G(2*10**6 - 1)
    for start, block in run.chunks():  # the whole table in bounded memory
        ...

Three files make a run:

values.npy     NumPy format 1.0, header of exactly 4096 bytes, then one unit per n = 0, 1, ...:
               |u1 (the low byte of G(n)) or <u2 (all of it).
escapes.npy    with |u1 only: every n with G(n) > 255 and its value, ascending, as
               [('n', '<u8'), ('v', '<u2')] after the same kind of header.
journal.jsonl  records of exactly 4096 bytes: a JSON object, spaces, a newline. The last good one
               says how far the other files hold (`count`, `escapes`) and what is kept (`kept`).

The shapes in the two headers are a convenience and may lag behind the journal; a file may be longer
than the journal says. Both are normal while a run goes on and after a kill, so neither is used here.
"""

from __future__ import annotations

import json
import os

import numpy as np

try:  # optional: without it the records' own digests are not checked
    from blake3 import blake3
except ImportError:
    blake3 = None

FORMAT = 1
HEADER = 4096  # bytes before the data in both .npy files
MAGIC = b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little")
RECORD = 4096  # bytes of one journal line
CHUNK = 1 << 20  # values read at a time
WIDTHS = {"u8": np.dtype("|u1"), "u16": np.dtype("<u2")}
ESCAPE = np.dtype([("n", "<u8"), ("v", "<u2")])


class RunError(Exception):
    """The run cannot be read: not there, not a run, another format, or changed while it was read."""


class Damage(RunError):
    """A file contradicts the journal or itself."""


class NotKept(RunError):
    """Values that the run has freed. (No IndexError: that would end a `for` loop in silence.)"""


def open_run(path) -> Run:
    """Opens the run directory `path` read-only, as of its last good journal record.

    Needs no lock and no write permission. Raises RunError if there is no readable run of format 1
    and Damage if the files do not bear out the journal; OSError does not escape.
    """
    return Run(path)


class Run:
    """The committed part of a run: a sequence of `count` nim-values, 0 <= G(n) <= 65535.

    path     the directory
    record   dict, the last good journal record when the run was opened
    game     name of the game
    count    number of committed values, G(0) ... G(count - 1); later commits are not seen
    escapes  number of values above 255 stored in escapes.npy (0 with width "u16")
    kept     list of (from, to), ascending and half open: what can be read
    """

    def __init__(self, path):
        self.path = os.fspath(path)
        if not os.path.isdir(self.path):
            raise RunError(f"{self.path!r}: no such directory; give the directory of a run")
        self._journal = os.path.join(self.path, "journal.jsonl")
        self.record, self._journal_end = _last_record(self._journal)
        self.game, self.count = self.record["game"], self.record["count"]
        self.kept = self._kept_now = [tuple(pair) for pair in self.record["kept"]]

        width = self.record["width"]
        self._values = _map(os.path.join(self.path, "values.npy"), WIDTHS[width], self.count)
        self._escapes, self.escapes = None, 0
        if width == "u8":
            self.escapes = self.record["escapes"]
            self._escapes = _map(os.path.join(self.path, "escapes.npy"), ESCAPE, self.escapes)

    def __len__(self):
        return self.count

    def __repr__(self):
        return f"<Run {self.path!r}: {self.game!r}, {self.count} values>"

    def __getitem__(self, key):
        """run[n]: an int; run[a:b]: as values(a, b). Negative indices count from the end.

        Unlike a list's, a slice that reaches beyond the table is an error.
        """
        if isinstance(key, slice):
            if key.step not in (None, 1):
                raise ValueError("a slice of a run has step 1; apply the step to the result")
            a = 0 if key.start is None else self._index(key.start)
            b = self.count if key.stop is None else self._index(key.stop)
            return self.values(a, max(a, b))
        n = self._index(key)
        return int(self.values(n, n + 1)[0])

    def _index(self, n):
        n = n.__index__()
        return n + self.count if n < 0 else n

    def values(self, a, b):
        """G(a) ... G(b - 1) as a new uint16 array of b - a elements, 0 <= a <= b <= count.

        Raises IndexError outside 0 ... count, NotKept if any of them has been freed, Damage if
        escapes.npy contradicts values.npy there.
        """
        a, b = a.__index__(), b.__index__()
        if not 0 <= a <= b <= self.count:
            raise IndexError(
                f"{self.path!r}: [{a}, {b}) is not within the {self.count} committed values;"
                " let the run go on, or open it again if it has"
            )
        # Before as well: on a full tmpfs, to read a hole through a map is to die of it (SIGBUS).
        self._follow()
        self._require_kept(a, b)
        out = self._values[a:b].astype(np.uint16)
        try:
            if self._escapes is not None:
                self._merge(out, a, b)
        finally:
            # And now, before damage is believed: what was freed before it was copied shows in the
            # journal by now.
            self._follow()
            self._require_kept(a, b)
        return out

    def chunks(self, a=0, b=None, size=CHUNK):
        """Yields (start, values(start, stop)) over [a, b) (default: all) in steps of `size`."""
        b = self.count if b is None else b
        for start in range(a, b, size):
            yield start, self.values(start, min(start + size, b))

    def _merge(self, out, a, b):
        """Puts the escapes of [a, b) over their low bytes in `out`."""
        i, j = self._first_escape(a), self._first_escape(b)
        n, v = np.array(self._escapes["n"][i:j]), np.array(self._escapes["v"][i:j])
        wrong = (v <= 255) | (n < a) | (n >= b)
        wrong[1:] |= n[1:] <= n[:-1]
        wrong[~wrong] = out[(n[~wrong] - a).astype(np.intp)] != v[~wrong] & 0xFF
        if wrong.any():
            k = int(np.argmax(wrong))
            raise self._bad_escape(i + k)
        out[(n - a).astype(np.intp)] = v

    def _first_escape(self, n):
        """The index of the first escape at n or later, by bisection.

        Not np.searchsorted: it would copy the whole (unaligned) column, and find its way through
        a stretch of zeros without a word.
        """
        lo, hi = 0, self.escapes
        while lo < hi:
            middle = (lo + hi) // 2
            if self._escapes["v"][middle] <= 255:
                raise self._bad_escape(middle)
            if self._escapes["n"][middle] < n:
                lo = middle + 1
            else:
                hi = middle
        return lo

    def _bad_escape(self, i):
        n, v = self._escapes[i].tolist()
        return Damage(
            f"{os.path.join(self.path, 'escapes.npy')!r}, offset {HEADER + ESCAPE.itemsize * i}:"
            f" entry n = {n}, value {v} is out of order, not above 255, or not what the low byte"
            " in values.npy says; run `grundy verify`"
        )

    def _require_kept(self, a, b):
        # touching ranges are one range
        for lo, hi in self._kept_now:
            if lo <= a < hi:
                a = min(b, hi)
        if a < b:
            raise NotKept(
                f"{os.path.join(self.path, 'values.npy')!r}: G({a}) is no longer kept (kept:"
                f" {', '.join(f'[{lo}, {hi})' for lo, hi in self._kept_now)}); read within these ranges,"
                " or run again without --keep"
            )

    def _follow(self):
        """Reads what was added to the journal since: the run may have freed values or gone back."""
        try:
            if os.stat(self._journal).st_size < self._journal_end + RECORD:
                return
            with open(self._journal, "rb") as file:
                file.seek(self._journal_end)
                while len(line := file.read(RECORD)) == RECORD:
                    record = _parse(line, self._journal)
                    if record is None:  # torn, or being written
                        continue
                    if record["count"] < self.count:
                        raise RunError(
                            f"{self.path!r}: the run went back to {record['count']} values"
                            " while it was read; open it again"
                        )
                    self._kept_now = [tuple(pair) for pair in record["kept"]]
                    self._journal_end = file.tell()
        except OSError as e:
            raise RunError(f"{self._journal!r}: {e.strerror}; the run cannot be followed") from e


def _last_record(path):
    """The last good record and the offset after it; what a kill left behind it is passed over."""
    try:
        with open(path, "rb") as file:
            end = file.seek(0, os.SEEK_END) // RECORD * RECORD
            while end > 0:
                file.seek(end - RECORD)
                record = _parse(file.read(RECORD), path)
                if record is not None:
                    return record, end
                end -= RECORD
            size = file.seek(0, os.SEEK_END)
    except OSError as e:
        raise RunError(f"{path!r}: {e.strerror}; give the directory of a run") from e
    message = f"{path!r}: no good record of format {FORMAT} in {size} bytes"
    if size < 2 * RECORD:  # killed before or within its first commit
        raise RunError(message + "; nothing has been committed yet")
    raise Damage(message + "; run `grundy verify`")


def _parse(line, path):
    """The record in the 4096 bytes `line`, None if they are not a whole good record.

    Raises RunError for another format, Damage for a whole record that makes no sense.
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
            f"{path!r}: format {record['format']!r}, this reader knows {FORMAT} only;"
            " use the scripts that came with the program that wrote it"
        )
    if blake3 is not None and not _digest_holds(line, record):
        return None
    if not _sensible(record):
        raise Damage(
            f"{path!r}: record {record.get('sequence')!r} has fields that make no sense;"
            " run `grundy verify`"
        )
    return record


def _digest_holds(line, record):
    digest = record.get("blake3")
    if not isinstance(digest, str) or len(digest) != 64 or not digest.isascii():
        return False
    head, _, tail = line.rpartition(digest.encode())
    return blake3(head + b" " * 64 + tail).hexdigest() == digest


def _sensible(record):
    def natural(x):
        return type(x) is int and 0 <= x < 1 << 63

    if not (natural(record.get("count")) and natural(record.get("escapes"))):
        return False
    if not isinstance(record.get("game"), str) or record.get("width") not in ("u8", "u16"):
        return False
    end, kept = 0, record.get("kept")
    if not isinstance(kept, list):
        return False
    for pair in kept:
        if not (isinstance(pair, list) and len(pair) == 2 and all(map(natural, pair))):
            return False
        if not end <= pair[0] <= pair[1] <= record["count"]:
            return False
        end = pair[1]
    return True


def _map(path, dtype, count):
    """The first `count` entries of the .npy file as a read-only map; its shape is not trusted."""
    try:
        with open(path, "rb") as file:
            # Not np.load: it trusts the shape. 'descr' is all that is needed from the header.
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
                    " as the journal has it; run `grundy verify`"
                )
            size, need = os.fstat(file.fileno()).st_size, HEADER + count * dtype.itemsize
            if size < need:
                raise Damage(
                    f"{path!r}, offset {size}: the file ends here, the journal says {count} entries,"
                    f" {need} bytes; copy the file again or run `grundy verify`"
                )
            if count == 0:  # nothing can be mapped
                return np.empty(0, dtype)
            return np.memmap(file, dtype, "r", HEADER, (count,)).view(np.ndarray)
    except OSError as e:
        raise RunError(
            f"{path!r}: {e.strerror}; check that the run is complete and readable"
        ) from e
