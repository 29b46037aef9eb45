"""Texts on stdout, whose reader may have gone and whose disk may be full."""

from __future__ import annotations

import os
import sys


def print_text(text: str) -> str | None:
    """Prints a text and flushes it. Returns why stdout cannot be written, or None.

    A closed pipe is no error: its reader, such as `head`, has read enough.
    """
    if sys.stdout is None:
        return None
    try:
        print(text)
        sys.stdout.flush()
    except BrokenPipeError:
        discard_rest()
    except OSError as e:
        discard_rest()
        return e.strerror or str(e)
    return None


def discard_rest() -> None:
    """Discards the rest of the output, because Python writes it at exit and would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
