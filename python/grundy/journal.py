"""The journal of a run, `journal.jsonl`: which values are committed and which are discarded.

The file consists of records of exactly 4096 bytes: a JSON object, spaces, a newline. The last good
record decides. A torn tail may follow it. docs/FORMAT.md describes every field.

Invariant: a record that this module returns is whole, has the right digest (if the package blake3
is installed), follows the record before it, and has fields of the right types.
"""

from __future__ import annotations

import json
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Any, BinaryIO

from .errors import Damage, RunError
from .files import failure, open_regular

try:  # optional: without it, the digests of records and summaries are not checked
    from blake3 import blake3
except ImportError:
    blake3 = None  # type: ignore[assignment, misc, unused-ignore]

Record = dict[str, Any]

FORMAT = 2
RECORD_BYTES = 4096
TORN_LIMIT = 1 << 20  # maximum number of bytes behind the last good record


class Journal:
    """The records of a journal, as of the time of opening and as of the last call of `follow`.

    path    path of `journal.jsonl`
    opened  the last good record at the time of opening
    latest  the last good record that `follow` has read
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.opened, self._opened_end, self._seen = _last_record(path)
        # `latest` and the offset after it. One assignment sets both, because a fork may come
        # between two.
        self._read = self.opened, self._opened_end
        self._following = threading.Lock()
        _journals.add(self)

    @property
    def latest(self) -> Record:
        return self._read[0]

    @property
    def has_continued(self) -> bool:
        """Whether `follow` has read a record after `opened`."""
        return self._read[1] != self._opened_end

    def records(self) -> Iterator[Record]:
        """Yields the records from the first to `opened`.

        Raises Damage at a record that is broken or does not follow the record before it.
        """
        before = None
        try:
            with open_regular(self.path) as file:
                for offset in range(0, self._opened_end, RECORD_BYTES):
                    record = _next(file.read(RECORD_BYTES), before, self.path, offset)
                    if record is None or record["run"] != self.opened["run"]:
                        raise _broken(self.path, offset)
                    yield record
                    before = record
        except OSError as e:
            raise failure(self.path, e, "check the file and try again") from e

    def follow(self) -> None:
        """Reads the records that the run has added since the last call into `latest`.

        Several threads may call it at the same time. Raises RunError if the run has rolled back
        below the values of `opened`.
        """
        with self._following:
            self._follow()

    def _follow(self) -> None:
        try:
            now = _state(os.stat(self.path))
            if now == self._seen:
                return
            latest, end = self._read
            with open_regular(self.path) as file:
                # If the last record that was read has changed, the run has rolled back.
                file.seek(end - RECORD_BYTES)
                again = _parse(file.read(RECORD_BYTES), self.path)
                if again is not None and again["run"] != latest["run"]:
                    raise RunError(
                        f"{os.path.dirname(self.path)!r}: the directory holds another run since it"
                        " was opened; open it again"
                    )
                if again is None or again != latest:
                    raise self._went_back("an earlier record")
                size = os.fstat(file.fileno()).st_size
                while end + RECORD_BYTES <= size:
                    record = _next(file.read(RECORD_BYTES), latest, self.path, end)
                    if record is None:  # torn, or incomplete
                        break
                    if record["count"] < self.opened["count"]:
                        raise self._went_back(f"{record['count']} values")
                    latest, end = record, end + RECORD_BYTES
                    self._read = latest, end
                _check_tail(file, self.path, end, size)
                self._seen = now
        except OSError as e:
            advice = "check the file and open the run again"
            if isinstance(e, FileNotFoundError):
                advice = "the run was removed or moved since it was opened; open it where it is now"
            raise failure(self.path, e, advice) from e

    def _went_back(self, where: str) -> RunError:
        directory = os.path.dirname(self.path)
        return RunError(
            f"{directory!r}: the run went back to {where} while it was read; open it again"
        )


_journals: weakref.WeakSet[Journal] = weakref.WeakSet()


def _unlock_all() -> None:
    """Gives each journal a new lock: a thread that a forked child lacks may have held the old."""
    for journal in _journals:
        journal._following = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_all)


def is_natural(x: object) -> bool:
    """Whether `x` is an int from 0 to 2^63 - 1, and no bool."""
    return type(x) is int and 0 <= x < 1 << 63


def digest_holds(data: bytes, digest: str) -> bool:
    """Whether `digest` is the BLAKE3 of `data`; true if the package blake3 is not installed."""
    return blake3 is None or bool(blake3(data).hexdigest() == digest)


def _last_record(path: str) -> tuple[Record, int, tuple[int, int, int, int]]:
    """Returns the last good record, the offset after it, and the state of the journal.

    Reads all records from the first on, and accepts a torn tail behind the last good one.
    """
    last, end = None, 0
    try:
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            while end + RECORD_BYTES <= status.st_size:
                record = _next(file.read(RECORD_BYTES), last, path, end)
                if record is None:
                    break
                last, end = record, end + RECORD_BYTES
            _check_tail(file, path, end, status.st_size)
    except OSError as e:
        raise failure(path, e, "give the directory of a run") from e
    if last is not None:
        return last, end, _state(status)
    message = f"{path!r}: no good record in {status.st_size} bytes"
    if status.st_size < 2 * RECORD_BYTES:  # killed before or during its first commit
        raise RunError(message + "; nothing has been committed yet")
    raise Damage(message + "; run `grundy verify`")


def _next(line: bytes, last: Record | None, path: str, offset: int) -> Record | None:
    """Returns the record in `line` at `offset`, which must follow `last`; None if it is broken."""
    record = _parse(line, path)
    if record is not None and not _follows(record, last):
        raise _broken(path, offset)
    return record


def _follows(record: Record, before: Record | None) -> bool:
    if before is None:
        return bool(record["sequence"] == 0 and record["previous"] == "0" * 64)
    return bool(
        record["sequence"] == before["sequence"] + 1
        and record["previous"] == before["blake3"]
        and record["run"] == before["run"]
    )


def _broken(path: str, offset: int, more: str = "") -> Damage:
    return Damage(
        f"{path!r}, offset {offset}: the record is broken or does not follow the record before it"
        f"{more}; run `grundy verify`"
    )


def _check_tail(file: BinaryIO, path: str, end: int, size: int) -> None:
    """Raises Damage unless the bytes from `end`, behind the last good record, are a torn tail."""
    if size - end > TORN_LIMIT:
        raise Damage(
            f"{path!r}, offset {end}: no good record from here on, although at most {TORN_LIMIT}"
            " bytes may follow the last good record; run `grundy verify`"
        )
    file.seek(end)
    broken = 0
    for offset in range(end, size - RECORD_BYTES + 1, RECORD_BYTES):
        line = file.read(RECORD_BYTES)
        broken += any(line)
        if _parse(line, path) is not None or broken > 1:
            raise _broken(path, end, f", and the record at offset {offset} follows")


def _state(status: os.stat_result) -> tuple[int, int, int, int]:
    """Returns what changes whenever the file is replaced or written to."""
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _parse(line: bytes, path: str) -> Record | None:
    """Returns the record in the 4096 bytes `line`, or None if they are not a whole good record.

    Raises RunError for another format, and Damage for a whole record with invalid fields.
    """
    if len(line) != RECORD_BYTES or not line.endswith(b"\n"):
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
            f" {FORMAT} only; use `grundy export` of the program that wrote it, or compute the"
            " run again in another directory"
        )
    if not _hash_holds(line, record.get("blake3")):
        return None
    if not _is_sensible(record):
        raise Damage(
            f"{path!r}: record {record.get('sequence')!r} has invalid fields; run `grundy verify`"
        )
    return record


def _hash_holds(line: bytes, digest: object) -> bool:
    if blake3 is None:
        return True
    if not isinstance(digest, str) or len(digest) != 64 or not digest.isascii():
        return False
    head, _, tail = line.rpartition(digest.encode())
    return digest_holds(head + b" " * 64 + tail, digest)


def _is_sensible(record: Record) -> bool:
    naturals = [
        *("sequence", "count", "escapes", "seconds", "mask", "position"),
        *("rares", "last_rare", "max_value", "max_at"),
    ]
    texts = ["run", "game", "event", "digest", "time", "program", "previous", "blake3"]
    suspect, named = record.get("suspect"), record.get("snapshot")
    return (
        all(is_natural(record.get(key)) for key in naturals)
        and all(isinstance(record.get(key), str) for key in texts)
        and (suspect is None or is_natural(suspect))
        and record.get("width") in ("u8", "u16")
        and record["mask"] < 1 << 16
        and record["position"] <= 1
        and _is_sensible_kept(record.get("kept"), record["count"])
        and (named is None or (_is_sensible_name(named) and len(record["kept"]) == 2))
    )


def _is_sensible_kept(kept: object, count: int) -> bool:
    if not isinstance(kept, list):
        return False
    end = 0
    for pair in kept:
        if not (isinstance(pair, list) and len(pair) == 2 and all(map(is_natural, pair))):
            return False
        if not end <= pair[0] <= pair[1] <= count:
            return False
        end = pair[1]
    return True


def _is_sensible_name(named: object) -> bool:
    keys = ("name", "blake3")
    return isinstance(named, dict) and all(isinstance(named.get(key), str) for key in keys)
