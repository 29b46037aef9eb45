"""`scripts/open_games.py`: prints the table of the octal games without a known period.

One row stands for all games with the same sequence up to a shift, as `grundy info` lists them. It
describes the game of them that was computed furthest; in a tie, the first by name. Games whose
period the program knows are left out.

With `--comments` it prints a comment for each sequence of the OEIS that this program has computed
further than the sequence states.

Exit status: 0 done, 1 an input cannot be read or is not sound, stdout cannot be written, or there
is no program, 2 usage, 130 stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..program import find_program
from ..rows import Row, field, parsed_lines, parsed_rows, whole

EPILOG = """\
SURVEY is the CSV of 'grundy merge', RUNS the output of 'grundy status --json DIR...', one JSON
object per line. FRONTIERS has one line 'game;values;source' per game, and OEIS one line
'sequence;game;shift;stated;terms' per sequence.

example: open_games.py data/results/octal3.csv --runs data/results/octal-runs.jsonl \\
             --frontiers data/frontiers.csv --oeis data/oeis-octal.csv > data/results/octal-open.md
"""

HEADER = (
    "# Octal games without a known period\n\n"
    "Each row stands for all games with the same sequence up to a shift, and describes the\n"
    "game of them that has the most values computed by this program. The rows are in the\n"
    "order of the standard forms of the games. *Equal games* counts the others in the survey.\n"
    "The *mask* selects bits of a value: n is rare if it is 0 or if G(n) AND mask has an even\n"
    "number of 1 bits; with ', n' after the mask, this holds for one parity of n, and for the\n"
    "other the number is odd (`grundy info GAME` tells which). Without a mask, no sparse\n"
    "space was found within these values, and all pairs of heaps were compared. *Seconds* is\n"
    "the time that a run took, on different machines, so do not compare them; games without\n"
    "it were part of a survey. *Digest* is the beginning of the digest of the values\n"
    "(`docs/FORMAT.md`); `octal-runs.jsonl` and `octal3.csv` contain the whole digests, and\n"
    "`README.md` states the commits and the machines. *Cited* is the largest number of values\n"
    "in a computation by others that `data/frontiers.csv` cites. An empty cell does not mean\n"
    "that nobody went further: the tables of A. Flammenkamp (octal.html) are not included;\n"
    "where comments in the OEIS quote them, they reach 2^26 to 2^29. *OEIS* is the sequence\n"
    "of the game in the On-Line Encyclopedia of Integer Sequences, perhaps shifted.\n\n"
    "| game | OEIS | equal games | values | rare positions | last rare | mask | largest value | at "
    "| seconds | digest | cited | source |\n"
    "|---|---|--:|--:|--:|--:|---|--:|--:|--:|---|--:|---|"
)

COMMENTS_HEADER = """\
# Comments for the OEIS: octal games

Each comment states what this program has computed of a sequence, where that is 2^26 values or more,
and more than the sequence or `data/frontiers.csv` states. The digest is that of the values
(`docs/FORMAT.md`), so that another computation can be compared.

Before you send a comment, compare it with the tables of A. Flammenkamp (octal.html). Where comments
in the OEIS quote them, they reach 2^26 to 2^29; they could not be read here. Send only what goes
further. Sign and date each comment."""

# Minimum number of computed values for a comment.
LEAST_COMMENTED = 1 << 26


class Result(NamedTuple):
    """How far one game was computed, and what was found."""

    game: str
    values: int
    digest: str
    max_value: int
    max_at: int
    mask: int
    position: int
    rares: int | None
    last_rare: int | None
    seconds: int | None


class OeisSequence(NamedTuple):
    """A sequence of the OEIS: a(n - shift) is the nim-value of a heap of n in the game."""

    name: str
    shift: int
    stated: int
    """Number of values that a comment in the sequence states as computed; 0 if none does."""


class Frontier(NamedTuple):
    """How far others computed a game."""

    values: int
    source: str


def of_survey(path: str) -> list[Result]:
    """The games without a known period in the CSV of a survey."""
    results = parsed_rows(path, "the CSV of 'grundy merge'", of_survey_row)
    return [result for result in results if result]


def of_survey_row(row: Row) -> Result | None:
    """The game of a row, or None if its period is known. Raises ValueError."""
    if field(row, "status") != "none":
        return None
    return Result(
        field(row, "game"),
        whole(row, "checked_through"),
        field(row, "digest"),
        whole(row, "max_value"),
        whole(row, "max_at"),
        whole(row, "mask", 16),
        whole(row, "position"),
        whole(row, "rares") if field(row, "rares") else None,
        whole(row, "last_rare") if field(row, "last_rare") else None,
        None,
    )


def of_runs(path: str) -> list[Result]:
    """The runs that `grundy status --json` describes. Raises ValueError for a damaged one."""
    kind = "the output of 'grundy status --json' for sound runs"
    return parsed_lines(path, kind, lambda lines: map(of_run, filter(str.strip, lines)))


def of_run(line: str) -> Result:
    """The run that a line of `grundy status --json` describes. Raises ValueError."""
    try:
        run = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error.msg} at character {error.colno}") from None
    if not isinstance(run, dict):
        raise ValueError("no JSON object")
    for key in ("game", "digest"):
        if not isinstance(run.get(key), str):
            raise ValueError(f"{key!r} is not a text")
    numbers = ("count", "max_value", "max_at", "mask", "position", "rares", "last_rare")
    for key in (*numbers, "seconds", "errors"):
        if type(run.get(key)) is not int:
            raise ValueError(f"{key!r} is not a whole number")
    if run["errors"] or run.get("suspect") is not None:
        raise ValueError(f"the run of {run['game']} has failed checks")
    return Result(
        run["game"],
        run["count"],
        run["digest"],
        run["max_value"],
        run["max_at"],
        run["mask"],
        run["position"],
        run["rares"] if run["mask"] else None,
        run["last_rare"] if run["mask"] else None,
        run["seconds"],
    )


def of_frontiers(path: str) -> dict[str, Frontier]:
    """The published frontiers of games; those of this program are left out."""

    def parse(row: Row) -> tuple[str, Frontier]:
        return field(row, "game"), Frontier(whole(row, "values"), field(row, "source"))

    frontiers: dict[str, Frontier] = {}
    for game, frontier in parsed_rows(path, "a file of lines 'game;values;source'", parse, ";"):
        if not frontier.source.startswith("this program"):
            frontiers[game] = max(frontier, frontiers.get(game, frontier))
    return frontiers


def of_oeis(path: str) -> dict[str, OeisSequence]:
    """The sequences of games in the OEIS."""

    def parse(row: Row) -> tuple[str, OeisSequence]:
        stated = whole(row, "stated") if field(row, "stated") else 0
        return field(row, "game"), OeisSequence(field(row, "sequence"), whole(row, "shift"), stated)

    kind = "a file of lines 'sequence;game;shift;stated;terms'"
    return dict(parsed_rows(path, kind, parse, ";"))


def furthest(results: Iterable[Result]) -> dict[str, Result]:
    """The furthest result of each game; in a tie, one with seconds.

    Raises ValueError for two digests of the same values.
    """
    best: dict[str, Result] = {}
    digests: dict[tuple[str, int], str] = {}
    for result in results:
        if digests.setdefault((result.game, result.values), result.digest) != result.digest:
            raise ValueError(f"{result.game}: two digests of the first {result.values} values")
        other = best.get(result.game, result)
        if (result.values, result.seconds or 0) >= (other.values, other.seconds or 0):
            best[result.game] = result
    return best


def equal_games(program: str, game: str) -> tuple[list[str], bool]:
    """The games with the same sequence up to a shift, the game itself among them, and whether a
    period of the game is known."""
    done = subprocess.run([program, "info", game, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        reason = done.stderr.strip() or f"exit status {done.returncode}"
        raise ValueError(f"{program} info {game}: {reason}")
    try:
        known = json.loads(done.stdout)
        others, is_known = known["equivalent"], known["period"] is not None
    except (json.JSONDecodeError, KeyError, TypeError):
        raise ValueError(f"{program} info {game} prints no equal games; is it grundy?") from None
    return sorted({game, *(other["game"] for other in others)}), is_known


class Group(NamedTuple):
    """The games with the same sequence up to a shift."""

    games: list[str]
    result: Result
    """What was found in the game that was computed furthest."""
    computed: int
    """Number of games that were computed."""


def row(group: Group, frontiers: dict[str, Frontier], oeis: dict[str, OeisSequence]) -> str:
    """The row of the games with the same sequence."""
    result = group.result
    frontier = max((frontiers[game] for game in group.games if game in frontiers), default=None)
    names = sorted({oeis[game].name for game in group.games if game in oeis})
    mask = f"{result.mask:#x}" + (", n" if result.position else "") if result.mask else ""
    cells = [
        result.game,
        " ".join(names),
        group.computed - 1,
        f"{result.values:,}",
        "" if result.rares is None else f"{result.rares:,}",
        "" if result.last_rare is None else f"{result.last_rare:,}",
        mask,
        result.max_value,
        f"{result.max_at:,}",
        "" if result.seconds is None else f"{result.seconds:,}",
        result.digest[:16],
        "" if frontier is None else f"{frontier.values:,}",
        "" if frontier is None else frontier.source,
    ]
    return f"| {' | '.join(map(str, cells))} |"


def which_are_rare(game: str, mask: int, position: int) -> str:
    """Which n are rare, in words.

    With a position term, the parity for even n is that of the number of tokens removed by a move
    that leaves two heaps; without one, it is even.
    """
    first, _, digits = game.partition(".")
    removals = enumerate([int(first), *map(int, digits)])
    odd = position * next(removed for removed, digit in removals if digit & 4) % 2
    even, other = ("odd", "even") if odd else ("even", "odd")
    if not position:
        return f"an {even} number of ones"
    return f"an {even} number of ones for even n, an {other} number for odd n"


def comment(result: Result, sequence: OeisSequence) -> str:
    """What the OEIS can state about a game with a sparse space."""
    assert result.rares is not None, "a result with a mask counts rare positions"
    index = f"n-{sequence.shift}" if sequence.shift else "n"
    name = result.game.removeprefix("0")
    return (
        f"## {sequence.name}, {name}\n\n"
        f"> Let G(n) = a({index}) be the nim-value of a heap of n in the octal game {name}. It was "
        f"computed for n < {result.values}. The largest value is {result.max_value}, first at n = "
        f"{result.max_at}. Call n rare if the binary number (G(n) AND {result.mask}) has "
        f"{which_are_rare(result.game, result.mask, result.position)}. There are "
        f"{result.rares - 1} rare n > 0, and the last is {result.last_rare}.\n\n"
        f"BLAKE3 digest: {result.digest}"
    )


def comments(
    groups: list[Group], frontiers: dict[str, Frontier], oeis: dict[str, OeisSequence]
) -> str:
    """The comments for all sequences that this program has computed further than they and all
    known computations by others."""
    texts = []
    for group in groups:
        result, sequence = group.result, oeis.get(group.result.game)
        if not sequence or not result.mask:
            continue
        known = max(
            (frontiers[game].values for game in group.games if game in frontiers), default=0
        )
        if result.values >= max(LEAST_COMMENTED, sequence.stated + 1, known + 1):
            texts.append(comment(result, sequence))
    return "\n\n".join([COMMENTS_HEADER, *texts])


def groups_of(program: str, surveyed: list[Result], runs: list[Result]) -> list[Group]:
    """The games in `surveyed`, extended by `runs`, with the same sequence together."""
    open_games = {result.game for result in surveyed}
    for run in runs:
        if run.game not in open_games:
            print(f"open_games.py: {run.game} is not open in the survey", file=sys.stderr)
    results = furthest([*surveyed, *(run for run in runs if run.game in open_games)])
    groups: list[Group] = []
    seen: set[str] = set()
    for game in results:
        if game in seen:
            continue
        equal, is_known = equal_games(program, game)
        seen.update(equal)
        if is_known:
            continue
        computed = [results[game] for game in equal if game in results]
        best = max(computed, key=lambda result: result.values)
        groups.append(Group(equal, best, len(computed)))
    return groups


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Print the octal games without a known period as a Markdown table.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("survey", metavar="SURVEY", help="CSV file of a survey")
    parser.add_argument("--runs", metavar="RUNS", help="runs that go further, as JSON Lines")
    parser.add_argument("--frontiers", metavar="FRONTIERS", help="published frontiers")
    parser.add_argument("--oeis", metavar="OEIS", help="sequences of the games in the OEIS")
    parser.add_argument("--comments", action="store_true", help="print comments for the OEIS")
    parser.add_argument(
        "--program",
        metavar="PATH",
        help="the program [default: that of GRUNDY, else grundy on PATH]",
    )
    options = parser.parse_args(arguments)
    program = os.path.abspath(options.program) if options.program else find_program()
    if program is None or not os.path.isfile(program):
        missing = options.program or "grundy"
        print(f"open_games.py: no program '{missing}'; give a path with --program", file=sys.stderr)
        return 1
    try:
        runs = of_runs(options.runs) if options.runs else []
        frontiers = of_frontiers(options.frontiers) if options.frontiers else {}
        oeis = of_oeis(options.oeis) if options.oeis else {}
        groups = groups_of(program, of_survey(options.survey), runs)
    except (OSError, ValueError) as error:
        print(f"open_games.py: {error}", file=sys.stderr)
        return 1
    if options.comments:
        print(comments(groups, frontiers, oeis))
    else:
        print("\n".join([HEADER, *(row(group, frontiers, oeis) for group in groups)]))
    return 0
