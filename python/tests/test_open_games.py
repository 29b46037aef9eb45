"""Tests of the table of open games. GRUNDY_BIN names the program, which knows the equal games."""

import json
import os
import subprocess
import sys

import pytest

SCRIPTS = os.path.join(os.path.dirname(__file__), "..", "..", "scripts")
COLUMNS = (
    "game,status,period,preperiod,max_value,max_at,rares,last_rare,mask,position,theorem,saltus,"
    "checked_through,digest"
)

pytestmark = pytest.mark.skipif("GRUNDY_BIN" not in os.environ, reason="GRUNDY_BIN is not set")


def surveyed(game, values, digest, status="none"):
    return f"{game},{status},,,9,5,3,4,0x7,1,,0,{values},{digest}"


def run(game, values, digest, mask=7):
    found = {"max_value": 11, "max_at": 6, "mask": mask, "position": 0, "rares": 8, "last_rare": 2}
    found.update(errors=0, suspect=None)
    return json.dumps({"game": game, "count": values, "digest": digest, "seconds": 77, **found})


def call(directory, survey, runs=(), frontiers=(), options=(), oeis=()):
    lines = {
        "survey": [COLUMNS, *survey],
        "runs": runs,
        "frontiers": ["game;values;source", *(frontiers or ["0.123;1;a book"])],
        "oeis": [
            "sequence;game;shift;stated;terms",
            "A1;0.007;2;;1,1",
            "A2;0.126;0;67108864;1,0",
            *oeis,
        ],
    }
    for name, content in lines.items():
        text = "\n".join(content) + "\n"
        (directory / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    arguments = [directory / "survey", "--runs", directory / "runs"]
    arguments += ["--frontiers", directory / "frontiers", "--program", os.environ["GRUNDY_BIN"]]
    arguments += ["--oeis", directory / "oeis", *options]
    script = os.path.join(SCRIPTS, "open_games.py")
    return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True)


def rows_of(done):
    return [line for line in done.stdout.splitlines() if line.startswith("| 0.")]


def test_equal_games_share_a_row_of_the_furthest(tmp_path):
    survey = [
        surveyed("0.007", 1000, "a"),
        surveyed("0.04", 3000, "b"),
        surveyed("0.077", 99, "c", "proved"),
        surveyed("0.6", 2000, "d"),
    ]
    done = call(tmp_path, survey)
    rows = rows_of(done)
    assert (done.returncode, done.stderr) == (0, "")
    assert rows == [
        "| 0.04 | A1 | 1 | 3,000 | 3 | 4 | 0x7, n | 9 | 5 |  | b |  |  |",
        "| 0.6 |  | 0 | 2,000 | 3 | 4 | 0x7, n | 9 | 5 |  | d |  |  |",
    ]


def test_games_with_a_known_period_are_left_out(tmp_path):
    # Published: .106 has period 328226140474 (A. Flammenkamp, 2002).
    rows = rows_of(call(tmp_path, [surveyed("0.106", 1000, "a"), surveyed("0.6", 2000, "d")]))
    assert rows == ["| 0.6 |  | 0 | 2,000 | 3 | 4 | 0x7, n | 9 | 5 |  | d |  |  |"]


def test_runs_extend_the_survey_and_frontiers_stand_beside(tmp_path):
    survey = [surveyed("0.007", 1000, "a"), surveyed("0.6", 2000, "d"), surveyed("0.14", 10, "e")]
    runs = [run("0.007", 5000, "f" * 64), run("0.6", 1500, "g"), run("0.14", 20, "h", mask=0)]
    frontiers = ["0.04;4000;a book", "0.6;8000;this program, elsewhere", "0.6;7000;a thesis"]
    rows = rows_of(call(tmp_path, survey, runs, frontiers))
    assert rows == [
        f"| 0.007 | A1 | 0 | 5,000 | 8 | 2 | 0x7 | 11 | 6 | 77 | {16 * 'f'} | 4,000 | a book |",
        "| 0.6 |  | 0 | 2,000 | 3 | 4 | 0x7, n | 9 | 5 |  | d | 7,000 | a thesis |",
        "| 0.14 |  | 0 | 20 |  |  |  | 11 | 6 | 77 | h |  |  |",
    ]


def test_comments_state_what_a_sequence_does_not(tmp_path):
    survey = [surveyed("0.007", 1000, "a"), surveyed("0.126", 10, "b"), surveyed("0.6", 1, "c")]
    runs = [run("0.007", 2**26, "d"), run("0.126", 2**26, "e"), run("0.6", 2**30, "f")]
    done = call(tmp_path, survey, runs, options=["--comments"])
    assert done.returncode == 0 and done.stdout.count("\n## ") == 1
    assert "## A1, .007\n\n> Let G(n) = a(n-2) be the nim-value of" in done.stdout
    # The mask is 7, and the space has no position term.
    assert "(G(n) AND 7) has an even number of ones. There are 7 rare n > 0," in done.stdout
    assert "computed for n < 67108864. The largest value is 11, first at n = 6." in done.stdout


def test_comments_leave_out_what_others_computed_further(tmp_path):
    survey, runs = [surveyed("0.007", 1000, "a")], [run("0.007", 2**26, "d")]
    for frontier, count in [(2**26 - 1, 1), (2**26, 0)]:
        done = call(tmp_path, survey, runs, [f"0.04;{frontier};a book"], ["--comments"])
        assert done.stdout.count("\n## ") == count


def test_comments_name_the_parity_of_a_position_term(tmp_path):
    survey = [surveyed("0.126", 2**26 + 1, "a"), surveyed("0.007", 10, "b")]
    done = call(tmp_path, survey, [run("0.6", 1, "c")], options=["--comments"])
    # In .126 three tokens are removed before a heap is split, so 0 is rare at odd n.
    assert "has an odd number of ones for even n, an even number for odd n" in done.stdout


def test_two_digests_of_the_same_values_are_refused(tmp_path):
    done = call(tmp_path, [surveyed("0.6", 1000, "a")], [run("0.6", 1000, "b")])
    assert done.returncode == 1
    assert done.stderr == "open_games.py: 0.6: two digests of the first 1000 values\n"


def test_a_digest_that_an_earlier_result_contradicts_is_refused(tmp_path):
    runs = [run("0.6", 1000, "a"), run("0.6", 2000, "b"), run("0.6", 1000, "c")]
    assert call(tmp_path, [surveyed("0.6", 10, "d")], runs).returncode == 1


SOUND = run("0.6", 3000, "b")
SURVEY = "give the CSV of 'grundy merge'"
RUNS = "give the output of 'grundy status --json' for sound runs"
FRONTIERS = "give a file of lines 'game;values;source'"
OEIS = "give a file of lines 'sequence;game;shift;stated;terms'"


@pytest.mark.parametrize(
    "name, lines, message",
    [
        ("survey", [], f"no rows; {SURVEY}"),
        ("survey", ["0.6,none"], f"line 2: a row without the column 'checked_through'; {SURVEY}"),
        ("survey", ["# a", surveyed("0.6", "x", "a")], "line 3: 'checked_through' is 'x' and not"),
        (
            "survey",
            [surveyed("0.6", 5, "a"), surveyed("0.7", 5, "\udcff")],
            "line 3: 'utf-8' codec",
        ),
        ("survey", [surveyed("0.6", 5, "a" * 140_000)], "line 2: field larger than field limit"),
        ("survey", [surveyed("0.6", 5, "a\rb")], "line 2: new-line character"),
        ("runs", ["", "[]"], f"line 2: no JSON object; {RUNS}"),
        ("runs", [SOUND, "{}"], f"line 2: 'game' is not a text; {RUNS}"),
        ("runs", [SOUND, "{"], "line 2: no JSON: Expecting property name"),
        ("runs", ["[" * 100_000], "line 1: "),
        ("runs", [SOUND.replace("3000", "null")], "line 1: 'count' is not a whole number"),
        ("runs", [SOUND.replace("3000", '"3000"')], "line 1: 'count' is not a whole number"),
        ("runs", [SOUND.replace('"0.6"', "6")], "line 1: 'game' is not a text"),
        ("runs", [SOUND.replace("max_at", "x")], "line 1: 'max_at' is not a whole number"),
        ("runs", [SOUND.replace('"errors": 0', '"errors": 1')], "has failed checks"),
        (
            "runs",
            [SOUND.replace("null", "17")],
            f"line 1: the run of 0.6 has failed checks; {RUNS}",
        ),
        ("frontiers", ["0.6;1"], f"line 2: a row without the column 'source'; {FRONTIERS}"),
        ("frontiers", ["# a", "0.6;many;a"], f"'many' and not a whole number; {FRONTIERS}"),
        ("oeis", ["A3;0.6;one;;1"], f"line 4: 'shift' is 'one' and not a whole number; {OEIS}"),
    ],
    ids=range(19),
)
def test_unsound_inputs_are_refused_with_file_and_line(tmp_path, name, lines, message):
    inputs = {"survey": [surveyed("0.6", 1000, "a")], name: lines}
    done = call(tmp_path, **inputs)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"open_games.py: '{tmp_path / name}': ")
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_missing_files_are_named(tmp_path):
    script = os.path.join(SCRIPTS, "open_games.py")
    arguments = [tmp_path / "none.csv", "--program", os.environ["GRUNDY_BIN"]]
    done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True)
    assert done.returncode == 1 and "none.csv" in done.stderr
