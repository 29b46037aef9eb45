"""The table of a run: `values.npy` and, in a table of bytes, `escapes.npy`.

`values.npy` holds min(G(n), 255) as bytes, or G(n) as little-endian uint16. The byte 255 means "255
or more": `escapes.npy` then has an entry (n, G(n)). The entries ascend in n.

The journal states how many values and entries are valid. This module ignores the shapes in the
headers and everything in a file beyond these numbers: outdated shapes and extra bytes are normal
while a run continues and after a kill.

This module knows nothing of discarded values, which read as 0; see run.py.
"""

from __future__ import annotations

import mmap
import os
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import Damage
from .files import failure, open_regular
from .journal import Record

HEADER_BYTES = 4096
MAGIC = b"\x93NUMPY\x01\x00" + (HEADER_BYTES - 10).to_bytes(2, "little")
SATURATED = 255  # byte that represents this value and all larger ones
DENSE = 16  # maximum number of escapes read for each value of an index array
MANY = 1 << 16  # number of positions from which a read of an index array releases its pages
AROUND = 1 << 21  # maximum number of bytes that Linux maps when one of them is read: a huge page
MAPPED = 1 << 26  # number of mapped bytes at which a read releases them
WIDTHS: dict[str, np.dtype[Any]] = {"u8": np.dtype("|u1"), "u16": np.dtype("<u2")}
ESCAPE: np.dtype[np.void] = np.dtype([("n", "<u8"), ("v", "<u2")])


class Table:
    """The committed values of a run, on read-only memory maps.

    units    uint8 or uint16 array, one unit for each n
    escapes  structured array with the fields n and v; empty in a table of uint16
    """

    def __init__(self, directory: str, record: Record) -> None:
        self._values_path = os.path.join(directory, "values.npy")
        self._escapes_path = os.path.join(directory, "escapes.npy")
        dtype = WIDTHS[record["width"]]
        values, self.units = _map(self._values_path, dtype, record["count"])
        self.saturates = record["width"] == "u8"
        if self.saturates:
            escapes, self.escapes = _map(self._escapes_path, ESCAPE, record["escapes"])
        else:
            escapes, self.escapes = None, _read_only(np.empty(0, ESCAPE))
        maps = [(self._values_path, values), (self._escapes_path, escapes)]
        self._maps = [(path, pages) for path, pages in maps if pages is not None]
        self._needs_release = sum(len(pages) for _, pages in self._maps) > MAPPED
        self._mapped = 0  # about the number of bytes mapped since the last release
        # The same for one bisection of the escapes.
        self._search = (self.escapes.nbytes // AROUND).bit_length() * AROUND

    def copy(self, out: NDArray[np.uint16], a: int, b: int) -> None:
        """Copies G(a) ... G(b - 1) to `out`. Raises Damage if the escapes contradict the bytes."""
        self.require_whole()
        out[:] = self.units[a:b]
        self._release((b - a) * self.units.itemsize)
        if not self.saturates:
            return
        i, j = self._first_escape(a), self._first_escape(b)
        # There are at most as many entries as values. One more suffices to find a wrong entry.
        entries = np.array(self.escapes[i : min(j, i + len(out) + 1)])
        self._release(entries.nbytes + self._search)
        at = np.flatnonzero(out == SATURATED)
        wanted = at.astype(np.uint64) + np.uint64(a)
        n, v = entries["n"], entries["v"]
        if np.array_equal(n, wanted) and (v >= SATURATED).all():
            out[at] = v
            return
        wrong = (v < SATURATED) | ~np.isin(n, wanted)
        wrong[1:] |= n[1:] <= n[:-1]
        if wrong.any():
            raise self._bad_escape(i + int(np.argmax(wrong)))
        raise self._no_escape(a + int(at[~np.isin(wanted, n)][0]))

    def copy_each(self, out: NDArray[np.uint16], positions: NDArray[np.int64]) -> None:
        """Copies G(n) for each n of the nonempty `positions` to `out`. Raises Damage as `copy`.

        The pages of fewer than MANY positions are neither counted nor released, because to map
        them again takes ten times as long as to read them.
        """
        self.require_whole()
        out[:] = self.units[positions]
        if len(positions) >= MANY:
            self._release(min(len(positions) * AROUND, self.units.nbytes))
        if not self.saturates:
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
        v = self.escapes["v"][index[found]]
        if (v < SATURATED).any():
            raise self._bad_escape(int(index[found][np.argmax(v < SATURATED)]))
        out[found] = v
        if len(positions) >= MANY:
            self._release(min(len(n) * self._search, self.escapes.nbytes))

    def check_no_escapes(self, a: int, b: int) -> None:
        """Raises Damage if a byte of [a, b) is 255, in a table without escapes."""
        if self.saturates and a < b:
            self.require_whole()
            if self.units[a:b].max() == SATURATED:
                raise self._no_escape(a + int(np.argmax(self.units[a:b])))
            self._release(b - a)

    def require_whole(self) -> None:
        """Raises Damage if a file has become shorter than its map.

        Reading a map beyond the end of its file would end the process with SIGBUS.
        """
        for path, pages in self._maps:
            size = pages.size()
            if size < len(pages):
                raise Damage(
                    f"{path!r}, offset {size}: the file ends here, but had {len(pages)} bytes when"
                    " the run was opened; another program has shortened it: copy the file again,"
                    " and open the run again"
                )

    def _release(self, mapped: int) -> None:
        """Counts the bytes that a read has mapped; removes all pages when they may exceed MAPPED.

        So the memory of this process stays small: batch systems count mapped pages as memory of a
        job. The pages stay in the cache of the system.
        """
        self._mapped += mapped + AROUND  # the range may begin and end within a mapped one
        if self._needs_release and self._mapped >= MAPPED and hasattr(mmap, "MADV_DONTNEED"):
            self._mapped = 0
            for _, pages in self._maps:
                pages.madvise(mmap.MADV_DONTNEED)

    def _are_entries(self, index: NDArray[np.int64], n: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Returns, for each pair, whether the entry with this index exists and is of this n."""
        found = index < len(self.escapes)
        found[found] = self.escapes["n"][index[found]] == n[found]
        return found

    def _first_escape(self, n: int) -> int:
        """Returns the index of the first escape at n or later, by bisection.

        np.searchsorted would copy the whole (unaligned) column, and would not detect a stretch of
        zeros.
        """
        lo, hi = 0, len(self.escapes)
        while lo < hi:
            middle = (lo + hi) // 2
            at, value = self.escapes[middle].item()
            if value < SATURATED:
                raise self._bad_escape(middle)
            if at < n:
                lo = middle + 1
            else:
                hi = middle
        return lo

    def _first_escapes(self, n: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Returns the index of the first escape at each n or later. `n` is not empty."""
        i, j = self._first_escape(int(n.min())), self._first_escape(int(n.max()))
        if i <= j <= i + DENSE * len(n):
            column = np.array(self.escapes["n"][i:j])
            wrong = self.escapes["v"][i:j] < SATURATED
            wrong[1:] |= column[1:] <= column[:-1]
            if wrong.any():
                raise self._bad_escape(i + int(np.argmax(wrong)))
            return (i + np.searchsorted(column, n)).astype(np.int64)
        # Bisects for all of `n` together, because copying the entries between them takes longer.
        lo, hi = np.zeros(len(n), np.int64), np.full(len(n), len(self.escapes), np.int64)
        for _ in range(len(self.escapes).bit_length()):
            active = np.flatnonzero(lo < hi)
            middle = (lo[active] + hi[active]) // 2
            entries = self.escapes[middle]
            if (entries["v"] < SATURATED).any():
                raise self._bad_escape(int(middle[np.argmax(entries["v"] < SATURATED)]))
            before = entries["n"] < n[active]
            lo[active[before]] = middle[before] + 1
            hi[active[~before]] = middle[~before]
        return lo

    def _bad_escape(self, i: int) -> Damage:
        n, v = self.escapes[i].tolist()
        return Damage(
            f"{self._escapes_path!r}, offset {HEADER_BYTES + ESCAPE.itemsize * i}: the entry"
            f" n = {n}, value {v} is out of order, is below {SATURATED}, or belongs to a byte in"
            f" values.npy other than {SATURATED}; run `grundy verify`"
        )

    def _no_escape(self, n: int) -> Damage:
        return Damage(
            f"{self._values_path!r}, offset {HEADER_BYTES + n}: the byte of G({n}) is {SATURATED},"
            " but escapes.npy has no entry for it; run `grundy verify`"
        )


def _map(path: str, dtype: np.dtype[Any], count: int) -> tuple[mmap.mmap | None, NDArray[Any]]:
    """Maps the first `count` entries of the .npy file read-only. Ignores its shape.

    Returns the map, which is None without entries, and the array on it.
    """
    try:
        with open_regular(path) as file:
            # np.load would rely on the shape, which may be outdated.
            header = file.read(HEADER_BYTES)
            descr = str(np.lib.format.dtype_to_descr(dtype))
            if not _is_header(header, descr if dtype.names else repr(descr)):
                raise Damage(
                    f"{path!r}, offset 0: not a .npy header of {HEADER_BYTES} bytes with dtype"
                    f" {descr}, which the journal states; run `grundy verify`"
                )
            size, need = os.fstat(file.fileno()).st_size, HEADER_BYTES + count * dtype.itemsize
            if size < need:
                raise Damage(
                    f"{path!r}, offset {size}: the file ends here, but the journal states {count}"
                    f" entries, {need} bytes; copy the file again or run `grundy verify`"
                )
            if count == 0:  # an empty file range cannot be mapped
                return None, _read_only(np.empty(0, dtype))
            pages = mmap.mmap(file.fileno(), need, access=mmap.ACCESS_READ)
            return pages, np.frombuffer(pages, dtype, count, HEADER_BYTES)
    except OSError as e:
        raise failure(path, e, "check that the run is complete and readable") from e


def _is_header(header: bytes, descr: str) -> bool:
    """Whether these bytes are a header of a one-dimensional array, of any shape."""
    fields = f"{{'descr':{descr},'fortran_order':False,'shape':(".replace(" ", "")
    text = header[len(MAGIC) :].replace(b" ", b"")
    return (
        len(header) == HEADER_BYTES
        and header.startswith(MAGIC)
        and re.fullmatch(re.escape(fields.encode()) + rb"[0-9]+,\),?\}\n", text) is not None
    )


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
