"""The discard summary of a run, `snapshot-COUNT.json`: what is known of the discarded values."""

from __future__ import annotations

import json
import os
from typing import Any

from .errors import Damage, Discarded
from .files import failure, open_regular
from .journal import Journal, digest_holds, is_natural

Summary = dict[str, Any]

SUMMARY_LIMIT = 1 << 30  # maximum number of bytes of a discard summary


def read_summary(journal: Journal) -> Summary | None:
    """Returns the discard summary that the record `journal.opened` names; None if it names none.

    Raises Discarded if the run has since discarded more values and removed the file. Raises Damage
    if the file is missing otherwise, or is not the summary that the journal describes.
    """
    record = journal.opened
    named = record.get("snapshot")
    if named is None:
        return None
    (_, start), (stop, _) = record["kept"]
    path = os.path.join(os.path.dirname(journal.path), f"snapshot-{stop}.json")
    try:
        with open_regular(path) as file:
            data = file.read(SUMMARY_LIMIT + 1)
    except FileNotFoundError as e:
        journal.follow()
        if not journal.has_continued:
            raise Damage(
                f"{path!r}: the discard summary that the journal names is missing; run"
                " `grundy verify`"
            ) from e
        raise Discarded(
            f"{path!r}: the run has replaced this discard summary; open it again"
        ) from e
    except OSError as e:
        raise failure(path, e, "check the file and try again") from e
    if named["name"] == os.path.basename(path) and digest_holds(data, named["blake3"]):
        summary = _parse(data)
        if summary is not None and _describes(summary, record, start, stop):
            return summary
    raise Damage(
        f"{path!r}: not the discard summary that the journal describes; run `grundy verify`"
    )


def _parse(data: bytes) -> Summary | None:
    try:
        summary = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return summary if isinstance(summary, dict) else None


def _describes(summary: Summary, record: dict[str, Any], start: int, stop: int) -> bool:
    """Whether the summary is of the values [start, stop) of this run and consistent."""
    if summary.get("run") != record["run"]:
        return False
    if (summary.get("from"), summary.get("to")) != (start, stop):
        return False
    if any(summary.get(key) != record[key] for key in ("mask", "position")):
        return False
    histogram, maxima, rares = (summary.get(key) for key in ("histogram", "maxima", "rares"))
    if not (isinstance(histogram, list) and all(map(is_natural, histogram))):
        return False
    if sum(histogram) != stop - start or len(histogram) > 1 << 16:
        return False

    def are_entries(pairs: object) -> bool:
        """Whether `pairs` are [n, G(n)], ascending in n, with values that occur."""
        if not isinstance(pairs, list):
            return False
        before = start - 1
        for pair in pairs:
            if not (isinstance(pair, list) and len(pair) == 2 and all(map(is_natural, pair))):
                return False
            if not (before < pair[0] < stop and pair[1] < len(histogram) and histogram[pair[1]]):
                return False
            before = pair[0]
        return True

    if not (are_entries(maxima) and are_entries(rares) and maxima and maxima[0][0] == start):
        return False
    values = [value for _, value in maxima]
    return all(a < b for a, b in zip(values, values[1:])) and not any(histogram[values[-1] + 1 :])
