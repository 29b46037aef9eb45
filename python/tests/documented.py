"""The runs that the examples of the documentation read, in the directory `runs`.

They have the values, the space and the events of the runs that the commands of docs/PYTHON.md make.
"""

from functools import lru_cache

import numpy as np
from fake_run import append, is_rare, next_line, write_run


@lru_cache
def kayles(count):
    """Kayles by definition: a move takes one or two tokens of a heap and may split the rest."""
    values = np.zeros(count, np.uint16)
    for n in range(1, count):
        options = []
        for left in range(max(n - 2, 0), n):
            options.append(values[: left + 1] ^ values[left::-1])
        values[n] = first_missing(np.concatenate(options))
    return values


@lru_cache
def grundys_game(count):
    """Grundy's game by definition: a move splits a heap into two unequal heaps."""
    values = np.zeros(count, np.uint16)
    for n in range(3, count):
        smaller = (n + 1) // 2
        values[n] = first_missing(values[1:smaller] ^ values[n - 1 : n - smaller : -1])
    return values


def first_missing(options):
    present = np.bincount(options, minlength=1) > 0
    return len(present) if present.all() else int(np.argmin(present))


def write(directory, values, **state):
    """Writes a run with the events of one call of the program: open, commit, close."""
    none = {"count": 0, "escapes": 0, "kept": [[0, 0]], "mask": 0, "rares": 0, "last_rare": 0}
    path = write_run(directory, values, event="open", max_value=0, max_at=0, **{**state, **none})
    for event in ["commit", "close"]:
        append(path, "journal.jsonl", next_line(path, values, event=event, **state))


def write_runs(directory):
    """Writes runs/kayles (1000 values), runs/grundy (10,000), and runs/big, Nim with 300 values."""
    values = kayles(1000)
    write(directory / "runs" / "kayles", values, game="0.77", mask=0, rares=1000, last_rare=999)
    values = grundys_game(10_000)
    rares = [n for n, v in enumerate(values.tolist()) if is_rare(n, v, 510)]
    state = {"game": "grundy", "mask": 510, "rares": len(rares), "last_rare": rares[-1]}
    write(directory / "runs" / "grundy", values, **state)
    write(directory / "runs" / "big", np.arange(300), game="nim", mask=0, rares=300, last_rare=299)
