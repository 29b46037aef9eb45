"""A run directory as a sequence of nim-values, also while the run continues.

Invariant: a value that a method of `Run` returns is the committed G(n). The journal is read before
and after the values: a value that the run discarded meanwhile, which may read as 0, is refused.
"""

from __future__ import annotations

import copy
import operator
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import find, index
from .counts import BlockCounts, read_counts
from .errors import Damage, Discarded, RunError
from .files import require_run_directory, text_of
from .journal import Journal, Record
from .summary import Summary, read_summary
from .table import Table

if TYPE_CHECKING:
    import pyarrow

CHUNK = 1 << 20  # number of values read at a time
ITERATED = 1 << 16  # number of values converted to Python integers at a time
STRIDE = 64  # least step of a slice for which only the selected values are read
ARRAY_LIMIT = 10**9  # maximum number of bytes that np.asarray(run) copies


def open_run(path: str | os.PathLike[str]) -> Run:
    """Opens the run directory `path` read-only, as of the last good record of its journal.

    Takes no lock and needs no write permission. Values that the run commits later are not visible:
    open it again. A later change of the working directory does not matter. Keeps up to two files
    open as long as the Run is referenced.

    Raises RunError if the directory holds no readable run of format 2, Damage if its files
    contradict the journal, and TypeError for a path that is neither a str nor a path object, such
    as bytes. Never raises OSError.

    >>> run = open_run("runs/kayles")
    >>> run
    <Run 'runs/kayles': '0.77', 1000 values>
    >>> run[:12]
    array([0, 1, 2, 3, 1, 4, 3, 2, 1, 4, 2, 6], dtype=uint16)
    """
    return Run(path)


class Run:
    """The committed values of a run: G(0) ... G(count - 1), each from 0 to 65535.

    Behaves as a one-dimensional read-only array:

    run[n]           one value as an int; run[-1] is the last
    run[a:b:step]    a new uint16 array; ends outside the run are clipped, as in NumPy
    run[[3, 1, -1]]  a new uint16 array of the shape of the index array
    run[mask]        the values where the bool array of len(run) elements is true
    np.asarray(run)  the whole run, see `__array__`
    polars.DataFrame(run), pyarrow.table(run)  the whole run, see `__arrow_c_stream__`
    value in run     whether an integer is a value; False for other types
    len(run), iteration, reversed(run)

    `run == v` is a TypeError, because it would read all values: `run[:] == v` does. A comparison
    whose left side is an array or a number of NumPy reads all values too.

    Indices outside the run, and masks of another length, are an IndexError. Floats and other keys
    are a TypeError. Discarded values (`grundy run --keep`) are the error Discarded.

    path         the directory, as given
    game         canonical name of the game, such as "grundy" or "0.77"
    count        number of committed values
    kept         list of (from, to), half open and ascending: the values that can be read
    last_record  dict, the last record of the journal when the run was opened (docs/FORMAT.md)

    These are read-only. A copy by `copy.copy` or `copy.deepcopy` is the run itself.

    The methods that take `start` and `stop` treat G(start) ... G(stop - 1), by default all values.
    They raise IndexError unless 0 <= start <= stop <= count, Discarded if the result depends on a
    discarded value, RunError if the run went back below `count` meanwhile, and Damage if the files
    contradict each other.
    """

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Run cannot be pickled; send run.path to the other process, and open it there (open"
            " the run with an absolute path if that process has another working directory)"
        )

    def __copy__(self) -> Run:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Run:
        return self

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = text_of(path)
        require_run_directory(self._path)
        self._directory = _absolute(self._path)
        self._journal = Journal(os.path.join(self._directory, "journal.jsonl"))
        self._table = Table(self._directory, self._journal.opened)
        self._has_no_escapes = False  # whether all bytes have been compared with 255

    @property
    def path(self) -> str:
        """The directory, as given.

        >>> open_run("runs/kayles").path
        'runs/kayles'
        """
        return self._path

    @property
    def game(self) -> str:
        """The canonical name of the game.

        >>> open_run("runs/kayles").game
        '0.77'
        """
        return str(self._journal.opened["game"])

    @property
    def count(self) -> int:
        """The number of committed values.

        >>> open_run("runs/kayles").count
        1000
        """
        return int(self._journal.opened["count"])

    @property
    def kept(self) -> list[tuple[int, int]]:
        """The values that can be read: a new list of (from, to), half open and ascending.

        >>> open_run("runs/kayles").kept
        [(0, 1000)]
        """
        return _ranges(self._journal.opened)

    @property
    def last_record(self) -> Record:
        """The last record of the journal when the run was opened: a new dict (docs/FORMAT.md).

        >>> open_run("runs/kayles").last_record["max_value"]
        8
        """
        return copy.deepcopy(self._journal.opened)

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"<Run {self.path!r}: {self.game!r}, {self.count} values>"

    # Comparisons

    def __eq__(self, other: object) -> bool:
        """Whether `other` is this object. Raises TypeError unless `other` is a Run or None.

        A run does not compare its values: they can be too many for an array.

        >>> run = open_run("runs/kayles")
        >>> run == run, run == open_run("runs/kayles")
        (True, False)
        >>> np.flatnonzero(run[:] == 0)
        array([0])
        """
        if other is None or isinstance(other, Run):
            return self is other
        raise self._no_comparison("==")

    __hash__ = object.__hash__

    def __lt__(self, other: object) -> bool:
        raise self._no_comparison("<")

    def __le__(self, other: object) -> bool:
        raise self._no_comparison("<=")

    def __gt__(self, other: object) -> bool:
        raise self._no_comparison(">")

    def __ge__(self, other: object) -> bool:
        raise self._no_comparison(">=")

    def _no_comparison(self, operator: str) -> TypeError:
        return TypeError(
            f"a run does not compare its {self.count} values; `run[:] {operator} v` reads and"
            " compares all of them, and run.chunks() reads a long run block by block"
        )

    # Iteration

    def __iter__(self) -> Iterator[int]:
        """Yields G(0), G(1), ... as ints. Reads a block at a time."""
        for _, block in self.chunks(ITERATED):
            yield from block.tolist()

    def __reversed__(self) -> Iterator[int]:
        """Yields G(count - 1), ..., G(0) as ints. Reads a block at a time."""
        for stop in range(self.count, 0, -ITERATED):
            yield from self.values(max(stop - ITERATED, 0), stop)[::-1].tolist()

    def __contains__(self, value: object) -> bool:
        """Whether a value is `value`, an integer. Reads up to the first block that contains it.

        Returns False for other types, such as floats and bools.
        """
        try:
            wanted = index.whole(value)
        except TypeError:
            return False
        if not 0 <= wanted <= self._journal.opened["max_value"]:
            return False
        if self.kept[1:]:
            gone = self.summary()
            if gone is not None and any(gone["histogram"][wanted : wanted + 1]):
                return True  # it is among the discarded values
        blocks = self._blocks_with(range(wanted, wanted + 1), 0, None)
        return any((block == wanted).any() for _, block in blocks)

    # Arrays

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """The run as an array of shape (count,): `np.asarray(run)`, `plt.plot(run)`.

        The array is a read-only memory map where the table holds the values as they are: uint16 in
        a table of uint16, uint8 in a table of bytes without a value of 255 or more. It costs no
        memory. Otherwise, and always for a run with `--keep`, it is a new uint16 array. If the run
        is later resumed with `--keep`, discarded values of a map read as 0: copy what must stay.

        The first call reads a table of bytes without escapes, to check that no byte is 255; later
        calls do not.

        np.array(run) is always a copy; np.asarray(run, dtype) is one if `dtype` is another type.

        Arithmetic on these types wraps, also in np.diff, np.dot and np.correlate: convert first, as
        in run[:].astype(int).

        Raises ValueError if a copy would exceed 1 GB, if a value does not fit `dtype`, or if `copy`
        is False and a copy is necessary. Raises TypeError for a type that is not numeric.

        >>> np.asarray(open_run("runs/kayles")).dtype, np.asarray(open_run("runs/big")).dtype
        (dtype('uint8'), dtype('uint16'))
        """
        wanted = None if dtype is None else np.dtype(dtype)
        if wanted is not None and wanted.kind not in "biufcO":
            raise TypeError(f"nim-values cannot be converted to {wanted}; use a numeric type")
        units = self._table.units
        is_map = self._holds_values_as_they_are()
        if is_map and not copy and wanted in (None, units.dtype):
            return units
        if copy is False:
            raise ValueError(
                f"{self.path!r}: this array must be a copy; run.mmap() gives the raw table"
            )
        usual = units.dtype if is_map else np.dtype(np.uint16)
        return self._converted(usual if wanted is None else wanted)

    def _holds_values_as_they_are(self) -> bool:
        """Whether the units are the values, and no later record can make them others."""
        self._require_kept(0, self.count)
        if len(self._table.escapes) or "keep" in self._journal.latest:
            return False
        if not self._has_no_escapes:
            for start in range(0, self.count, CHUNK):
                self._table.check_no_escapes(start, min(start + CHUNK, self.count))
            self._require_kept(0, self.count)
            # The bytes stay the same, because they are kept: _require_kept fails if the run has
            # discarded one of them, or has gone back below `count`.
            self._has_no_escapes = True
        return True

    def _converted(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Returns a new array of all values."""
        if self.count * dtype.itemsize > ARRAY_LIMIT:
            raise ValueError(
                f"{self.path!r}: {self.count} values as {dtype} take more than {ARRAY_LIMIT} bytes;"
                " read a part with run.values(a, b), or all of them block by block with"
                " run.chunks(); run.mmap() gives the raw table"
            )
        out = np.empty(self.count, dtype)
        fits = np.can_cast(np.uint16, dtype)
        for start, block in self.chunks():
            converted = out[start : start + len(block)]
            with np.errstate(all="ignore"):  # the comparison below detects overflow
                converted[:] = block
            if not fits and not np.array_equal(converted, block):
                i = int(np.argmax(converted != block))
                raise ValueError(
                    f"{self.path!r}: G({start + i}) = {block[i]} does not fit {dtype}; use uint16"
                )
        return out

    def values(
        self, start: SupportsIndex = 0, stop: SupportsIndex | None = None
    ) -> NDArray[np.uint16]:
        """Returns G(start) ... G(stop - 1) as a new uint16 array of shape (stop - start,).

        >>> open_run("runs/kayles").values(70, 76)
        array([6, 7, 4, 1, 2, 8], dtype=uint16)
        """
        a, b = self._range(start, stop)
        out = np.empty(b - a, np.uint16)
        try:
            for lo in range(a, b, CHUNK):
                # Checked before reading, because on a full tmpfs reading a hole through a map
                # raises SIGBUS.
                self._require_kept(a, b)
                self._table.copy(out[lo - a : lo - a + CHUNK], lo, min(lo + CHUNK, b))
        finally:
            # Checked again after reading, and before damage is reported: if a value was discarded
            # before it was copied, the journal states so by now.
            self._require_kept(a, b)
        return out

    def chunks(
        self,
        size: SupportsIndex = CHUNK,
        start: SupportsIndex = 0,
        stop: SupportsIndex | None = None,
    ) -> Iterator[tuple[int, NDArray[np.uint16]]]:
        """Yields the values in blocks: the position of the first, and a new uint16 array.

        Each block has `size` values, the last one may have fewer. Memory: one block.

        Raises when the first block is read: ValueError or TypeError unless `size` is a positive
        integer, IndexError unless 0 <= start <= stop <= count; the errors of `values` with each
        block.

        >>> [(first, len(block)) for first, block in open_run("runs/kayles").chunks(400)]
        [(0, 400), (400, 400), (800, 200)]
        """
        a, b = self._range(start, stop)
        size = index.whole(size)
        if size < 1:
            raise ValueError(f"a block of {size} values is empty; the least size is 1")
        for lo in range(a, b, size):
            yield lo, self.values(lo, min(lo + size, b))

    def mmap(self) -> NDArray[Any]:
        """Returns the raw table: a read-only memory map of values.npy, shape (count,).

        In a uint8 map the byte 255 means "255 or more": the value is in `escapes`. A uint16 map
        holds the values. Values outside the ranges in `kept` have been discarded and read as 0,
        although 0 is a legal value; a run with --keep that continues discards more of them. Nothing
        is checked here; `values`, `chunks` and indexing handle escapes and discarded values.

        >>> open_run("runs/big").mmap()[253:257]
        array([253, 254, 255, 255], dtype=uint8)
        """
        self._table.require_whole()
        return self._table.units

    @property
    def escapes(self) -> NDArray[np.void]:
        """The entries of escapes.npy: a read-only structured memory map with fields n and v.

        One entry for each n with G(n) = v >= 255, ascending in n, discarded values included. Empty
        in a table of uint16. The entries are not checked here; `values` checks those that it uses.

        n is uint64, as in the file, and v is uint16. The positions that methods return are int64,
        and NumPy turns uint64 and int64 together into float64: use `escapes["n"].astype(np.int64)`.

        >>> open_run("runs/big").escapes["n"][:3]
        array([255, 256, 257], dtype=uint64)
        """
        self._table.require_whole()
        return self._table.escapes

    # Indexing

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> int: ...

    @overload
    def __getitem__(self, key: slice | list[Any] | range | NDArray[Any]) -> NDArray[np.uint16]: ...

    def __getitem__(self, key: Any) -> int | NDArray[np.uint16]:
        """The value or values at `key`; see the class."""
        if isinstance(key, slice):
            return self._slice(index.range_of(key, self.count))
        if not isinstance(key, (bool, np.bool_)):
            try:
                n = index.position_in(operator.index(key), self.count)
            except TypeError:
                pass
            else:
                return int(self.values(n, n + 1)[0])
        return self._take(index.positions_of(key, self.count))

    def _slice(self, wanted: range) -> NDArray[np.uint16]:
        """Returns the values at the positions of a range within the run."""
        if wanted.step == 1:
            return self.values(wanted.start, max(wanted.start, wanted.stop))
        if abs(wanted.step) >= STRIDE:
            return self._take(np.arange(wanted.start, wanted.stop, wanted.step, dtype=np.int64))
        ascending = wanted if wanted.step > 0 else wanted[::-1]
        out = np.empty(len(wanted), np.uint16)
        size = CHUNK // STRIDE
        for i in range(0, len(ascending), size):
            part = ascending[i : i + size]
            out[i : i + size] = self.values(part[0], part[-1] + 1)[:: part.step]
        return out if wanted.step > 0 else out[::-1].copy()

    def _take(self, positions: NDArray[np.int64]) -> NDArray[np.uint16]:
        """Returns the values at `positions`, all within the run, in an array of the same shape."""
        flat = positions.reshape(-1)
        out = np.empty(len(flat), np.uint16)
        try:
            for i in range(0, len(flat), CHUNK):
                part = flat[i : i + CHUNK]
                self._require_kept_each(part)
                self._table.copy_each(out[i : i + CHUNK], part)
        finally:
            self._require_kept_each(flat)
        return out.reshape(positions.shape)

    # Facts; the definitions are in find.py. The discard summary stands for discarded values where
    # it suffices, as in `grundy find`; where it does not, the methods raise Discarded.

    def zeros(
        self, start: SupportsIndex = 0, stop: SupportsIndex | None = None
    ) -> NDArray[np.int64]:
        """Returns the positions with G(n) = 0, where the player to move loses: int64, ascending.

        As `grundy find DIR --zeros`.

        >>> open_run("runs/grundy").zeros()[-3:]
        array([ 929,  932, 1222])
        """
        return find.zeros(self._blocks_with(range(1), start, stop))

    def positions(
        self,
        value: SupportsIndex,
        *,
        end: SupportsIndex | None = None,
        start: SupportsIndex = 0,
        stop: SupportsIndex | None = None,
    ) -> NDArray[np.void]:
        """Returns the positions with this value, or with a value from `value` to `end` - 1.

        A structured array with the fields n (int64) and value (uint16), ascending in n. As
        `grundy find DIR --value V[..W]`. Raises ValueError unless
        0 <= value < end <= 65536.

        >>> open_run("runs/kayles").positions(9)["n"]
        array([], dtype=int64)
        >>> open_run("runs/kayles").positions(5, end=10)[:2]
        array([(11, 6), (15, 7)], dtype=[('n', '<i8'), ('value', '<u2')])
        """
        first = index.whole(value)
        last = first + 1 if end is None else index.whole(end)
        if first >= last:
            raise ValueError(
                f"no value is at least {first} and below {last}; give an `end` greater than `value`"
                " (values are 0 to 65535)"
            )
        for wrong in (first, last - 1):
            if not 0 <= wrong < find.VALUES:
                raise ValueError(f"{wrong} is no nim-value of a run; values are 0 to 65535")
        blocks = self._blocks_with(range(first, last), start, stop)
        return find.positions(blocks, first, last)

    def records(
        self, start: SupportsIndex = 0, stop: SupportsIndex | None = None
    ) -> NDArray[np.void]:
        """Returns the positions whose value is greater than all values before it in the range.

        A structured array with the fields n (int64) and value (uint16). As
        `grundy find DIR --records`.

        >>> open_run("runs/grundy").records()[:3].tolist()
        [(0, 0), (3, 1), (5, 2)]
        """
        a, b = self._range(start, stop)
        gone = self._summary_within(a, b)
        if gone is None:
            return find.records(self.chunks(CHUNK, a, b))
        maxima = [(n, np.array([value], np.uint16)) for n, value in gone["maxima"]]
        return find.records(self._blocks_around(gone, a, b, maxima))

    def first(
        self, start: SupportsIndex = 0, stop: SupportsIndex | None = None
    ) -> NDArray[np.int64]:
        """Returns the first position of each value: an int64 array, indexed by the value.

        It ends with the largest value; -1 stands for a value that does not occur. As
        `grundy find DIR --first`.

        >>> open_run("runs/grundy").first()[:5]
        array([ 0,  3,  5, 13, 18])
        """
        a, b = self._range(start, stop)
        gone = self._summary_within(a, b)
        if gone is not None:
            before = find.histogram(self.chunks(CHUNK, a, gone["from"]))
            if all(v < len(before) and before[v] for v in np.flatnonzero(gone["histogram"])):
                return find.first(self._blocks_around(gone, a, b))
        return find.first(self.chunks(CHUNK, a, b))

    def histogram(
        self, start: SupportsIndex = 0, stop: SupportsIndex | None = None
    ) -> NDArray[np.int64]:
        """Returns the number of positions of each value: an int64 array, indexed by the value.

        It ends with the largest value. As `grundy find DIR --histogram`.

        >>> open_run("runs/kayles").histogram()
        array([  1, 249, 247,   4, 169,   1,   4, 164, 161])
        """
        a, b = self._range(start, stop)
        gone = self._summary_within(a, b)
        if gone is None:
            return find.histogram(self.chunks(CHUNK, a, b))
        kept = find.histogram(self._blocks_around(gone, a, b))
        discarded = np.array(gone["histogram"], np.int64)
        counts = np.zeros(max(len(kept), len(discarded)), np.int64)
        counts[: len(kept)] += kept
        counts[: len(discarded)] += discarded
        return counts

    def rares(
        self, start: SupportsIndex = 0, stop: SupportsIndex | None = None
    ) -> NDArray[np.void]:
        """Returns the rare positions of the run's sparse space, discarded ones included.

        A structured array with the fields n (int64) and value (uint16), ascending in n. Position 0
        is always rare. As `grundy find DIR --rares`. Those among discarded values come from the
        discard summary.

        Raises ValueError if the run uses no sparse space (`mask` 0), as most runs of fewer than
        4096 values do.

        >>> rares = open_run("runs/grundy").rares()
        >>> len(rares), rares[-1].item()
        (873, (9981, 78))
        """
        a, b = self._range(start, stop)
        record = self._journal.opened
        mask, position = record["mask"], record["position"]
        if mask == 0:
            raise ValueError(
                f"{self.path!r}: the run uses no sparse space, so rare positions are not defined"
                " here; `grundy find` knows the space of some games"
            )
        # The order in which the run removes data: first the summary, then the values after the
        # discarded ones. The run never discards values of the first range.
        summary = self.summary()
        gone = [] if summary is None else summary["rares"]
        parity = self._parity(dict(gone))
        pairs = [tuple(pair) for pair in gone if a <= pair[0] < b]
        parts = [(0 if summary is None else summary["from"], np.array(pairs, find.ENTRY))]
        for lo, hi in [*self.kept[1:], *self.kept[:1]]:
            lo, hi = max(lo, a), min(hi, b)
            if lo < hi:
                blocks = self.chunks(CHUNK, lo, hi)
                parts.append((lo, find.rares(blocks, mask, position, parity)))
        parts.sort(key=lambda part: part[0])
        rares: NDArray[np.void] = np.concatenate([entries for _, entries in parts])
        number = record["rares"]
        if b - a == self.count and len(rares) != number:
            raise Damage(
                f"{self.path!r}: the run has {len(rares)} rare positions, but its journal states"
                f" {number}; run `grundy verify`"
            )
        return rares

    def _parity(self, discarded: dict[int, int]) -> int:
        """Returns the term h of the sparse space, from a position of known class.

        The record states the last rare position; if it is 0, all later positions are common.
        """
        record = self._journal.opened
        mask, position, last = record["mask"], record["position"], record["last_rare"]
        n = last or 1
        if n >= self.count:
            return 0  # without a position > 0, h has no effect
        value = discarded[n] if n in discarded else self[n]
        return find.parity_at(n, value, mask, position, is_rare=last > 0)

    # Journal and discard summary

    def journal(self) -> Iterator[Record]:
        """Yields the records of the journal as dicts, from the first to `last_record`.

        Raises Damage at a record that is broken or does not follow the record before it.

        >>> [record["count"] for record in open_run("runs/kayles").journal()]
        [0, 1000, 1000]
        """
        return self._journal.records()

    def summary(self) -> Summary | None:
        """Returns what is known of the discarded values, as of `last_record`; None if none are.

        A dict with these keys, among others (docs/FORMAT.md):

        from, to   the discarded values, half open
        rares      [n, value] of every discarded rare position
        maxima     [n, value] of every discarded value that exceeds all discarded values before it
        histogram  number of discarded values equal to 0, 1, 2, ...

        Raises Discarded if the run has since discarded more values and removed the file. Raises
        Damage if the file is missing otherwise, or is not the one that the journal describes.

        >>> open_run("runs/kayles").summary() is None
        True
        """
        return read_summary(self._journal)

    def counts(self) -> Iterator[BlockCounts]:
        """Yields how often each value occurs in each block of discarded values, ascending.

        A block has 2^22 values, and the fields start, stop and counts (an int64 array, indexed by
        the value). The blocks cover the discarded values, as of `last_record`, unless the file
        counts.jsonl was lost, or the run was made by an early version of the program, which did not
        write it.

        Raises the errors of `summary`, and Damage if the counts contradict the summary or
        themselves.

        >>> list(open_run("runs/kayles").counts())
        []
        """
        summary = self.summary()
        if summary is not None:
            yield from read_counts(self._directory, summary)

    # Arrow

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All values as a stream of the Arrow C interface: `polars.DataFrame(run)`.

        Libraries with the Arrow PyCapsule interface read a run as the table that `to_arrow`
        describes, 2^20 rows at a time, as often as they like, and without its limit of 1 GB. Needs
        pyarrow. Raises Discarded for a run with discarded values: use `to_batches` with a range.

        >>> import pyarrow
        >>> pyarrow.table(open_run("runs/kayles")).shape
        (1000, 2)
        """
        self._require_kept(0, self.count)
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def to_arrow(
        self, start: SupportsIndex = 0, stop: SupportsIndex | None = None
    ) -> pyarrow.Table:
        """Returns a pyarrow.Table with the columns n (uint64) and value (uint16), 10 bytes a row.

        Needs pyarrow. Raises ValueError if the table would exceed 1 GB: use `to_batches`.

        >>> open_run("runs/kayles").to_arrow(0, 100).num_rows
        100
        """
        from . import arrow

        return arrow.table(self, *self._range(start, stop))

    def to_batches(
        self, start: SupportsIndex = 0, stop: SupportsIndex | None = None
    ) -> pyarrow.RecordBatchReader:
        """Returns a pyarrow.RecordBatchReader with the columns of `to_arrow`, 2^20 rows a batch.

        DuckDB reads it in bounded memory; Polars loads all rows. It can be read once. Needs
        pyarrow.

        >>> sum(batch.num_rows for batch in open_run("runs/kayles").to_batches())
        1000
        """
        from . import arrow

        return arrow.batches(self, *self._range(start, stop))

    def to_parquet(
        self,
        path: str | os.PathLike[str],
        start: SupportsIndex = 0,
        stop: SupportsIndex | None = None,
    ) -> None:
        """Writes a Parquet file with the columns n (uint64) and value (uint16).

        The file has the row groups, encodings and metadata of `grundy export --format parquet`,
        with compression zstd. It is written under a temporary name and renamed when complete.
        A file that it replaces passes its permissions on. Needs pyarrow and bounded memory. Raises
        ValueError for a path inside a run directory, TypeError for a path that is neither a str nor
        a path object, and OSError if the file cannot be written.

        >>> open_run("runs/kayles").to_parquet("kayles.parquet")
        """
        from . import arrow

        arrow.write_parquet(self, text_of(path), *self._range(start, stop))

    # Ranges and discarded values

    def _range(self, start: SupportsIndex, stop: SupportsIndex | None) -> tuple[int, int]:
        return index.bounds(start, stop, self.count, self.path)

    def _summary_within(self, a: int, b: int) -> Summary | None:
        """Returns the discard summary if [a, b) contains all discarded values; else None."""
        summary = self.summary()
        if summary is None or not a <= summary["from"] < summary["to"] <= b:
            return None
        return summary

    def _blocks_around(
        self, gone: Summary, a: int, b: int, instead: Iterable[find.Block] = ()
    ) -> Iterator[find.Block]:
        """Yields the blocks of [a, b), with `instead` in place of the discarded values."""
        yield from self.chunks(CHUNK, a, max(a, gone["from"]))
        yield from instead
        yield from self.chunks(CHUNK, min(gone["to"], b), b)

    def _blocks_with(
        self, wanted: range, start: SupportsIndex, stop: SupportsIndex | None
    ) -> Iterator[find.Block]:
        """Returns the blocks of a range in which the values `wanted` are searched.

        Omits the discarded values if none of them is wanted.
        """
        a, b = self._range(start, stop)
        gone = self.summary()
        if gone is None or not (a < gone["to"] and gone["from"] < b):
            return self.chunks(CHUNK, a, b)
        if any(gone["histogram"][wanted.start : wanted.stop]):
            return self.chunks(CHUNK, a, b)  # raises Discarded
        return self._blocks_around(gone, a, b)

    def _require_kept(self, a: int, b: int) -> None:
        """Raises Discarded if any of G(a) ... G(b - 1) has been discarded."""
        for lo, hi in self._kept_now():  # adjacent ranges count as one
            if lo <= a < hi:
                a = min(b, hi)
        if a < b:
            raise self._discarded(a)

    def _require_kept_each(self, positions: NDArray[np.int64]) -> None:
        """Raises Discarded if any of the values at `positions` has been discarded."""
        gone = np.ones(len(positions), bool)
        for lo, hi in self._kept_now():
            gone &= (positions < lo) | (positions >= hi)
        if gone.any():
            raise self._discarded(int(positions[np.argmax(gone)]))

    def _kept_now(self) -> list[tuple[int, int]]:
        self._journal.follow()
        return _ranges(self._journal.latest)

    def _discarded(self, n: int) -> Discarded:
        kept = ", ".join(f"[{lo}, {hi})" for lo, hi in _ranges(self._journal.latest))
        return Discarded(
            f"{self.path!r}: the run has discarded G({n}); it retains {kept}; read within these"
            " ranges, open the run again if it has discarded values since it was opened, or"
            " compute it again without --keep"
        )


def _absolute(path: str) -> str:
    """Returns the path from the root. Keeps ".." as it is, which may follow a symbolic link."""
    try:
        return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
    except OSError as e:
        raise RunError(
            f"{path!r}: the working directory has been removed; give an absolute path"
        ) from e


def _ranges(record: Record) -> list[tuple[int, int]]:
    """Returns the retained ranges of a record."""
    return [(lo, hi) for lo, hi in record["kept"]]
