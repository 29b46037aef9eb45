"""Reads text files with one entry per line. An error names the file and the line."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import Callable, TypeVar

T = TypeVar("T")
Row = dict[str, str]


def parsed_lines(path: str, kind: str, parse: Callable[[Iterator[str]], Iterable[T]]) -> list[T]:
    """Returns the entries that `parse` makes of the lines of a UTF-8 file.

    kind  which file is expected, such as "the output of bursts.py"

    Raises OSError, and ValueError if `parse` does or if a line cannot be decoded.
    """
    number = 0

    def lines() -> Iterator[str]:
        nonlocal number
        with open(path, "rb") as file:
            for line in file:
                number += 1
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")

    try:
        return list(parse(lines()))
    except (ValueError, csv.Error, RecursionError) as e:
        raise ValueError(f"{path!r}: line {number}: {e}; give {kind}") from e


def parsed_rows(path: str, kind: str, parse: Callable[[Row], T], delimiter: str = ",") -> list[T]:
    """Returns the entries that `parse` makes of the rows of a CSV file, without lines of comments.

    The other arguments and the errors are those of `parsed_lines`. A file without rows is an error.
    """

    def rows(lines: Iterator[str]) -> Iterator[T]:
        without_comments = (line for line in lines if not line.startswith("#"))
        return map(parse, csv.DictReader(without_comments, delimiter=delimiter))

    entries = parsed_lines(path, kind, rows)
    if not entries:
        raise ValueError(f"{path!r}: no rows; give {kind}")
    return entries


def field(row: Row, column: str) -> str:
    """Returns the text in a column. Raises ValueError without one."""
    text = row.get(column)
    if text is None:
        raise ValueError(f"a row without the column {column!r}")
    return text


def whole(row: Row, column: str, base: int = 10) -> int:
    """Returns the whole number in a column. Raises ValueError if there is none."""
    text = field(row, column)
    try:
        return int(text, base)
    except ValueError:
        raise ValueError(f"{column!r} is {text[:40]!r} and not a whole number") from None
