"""The runs that the examples of the documentation read, in the directory `runs`."""

import numpy as np
from fake_run import is_rare, write_run


def kayles(count):
    """Kayles by definition: a move takes one or two tokens of a heap and may split the rest."""
    values = np.zeros(count, np.uint16)
    for n in range(1, count):
        options = []
        for left in range(max(n - 2, 0), n):
            options.append(values[: left + 1] ^ values[left::-1])
        values[n] = first_missing(np.concatenate(options))
    return values


def grundys_game(count):
    """Grundy's game by definition: a move splits a heap into two unequal heaps."""
    values = np.zeros(count, np.uint16)
    for n in range(3, count):
        smaller = (n + 1) // 2
        values[n] = first_missing(values[1:smaller] ^ values[n - 1 : n - smaller : -1])
    return values


def first_missing(options):
    present = np.unique(options)
    gaps = np.flatnonzero(present != np.arange(len(present)))
    return gaps[0] if len(gaps) else len(present)


def write_runs(directory):
    """Writes runs/kayles (1000 values), runs/grundy (2000), and runs/big with large values."""
    write_run(directory / "runs" / "kayles", kayles(1000))
    values = grundys_game(2000)
    rares = [n for n, v in enumerate(values.tolist()) if is_rare(n, v, 510)]
    state = {"game": "grundy", "mask": 510, "rares": len(rares), "last_rare": rares[-1]}
    write_run(directory / "runs" / "grundy", values, **state)
    big = [40, 300, 2, 255, 7, 65535, 0, 256, 90, 1]
    write_run(directory / "runs" / "big", big, game="0.00004")
