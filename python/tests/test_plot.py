"""Tests of grundy.plot.

Counts are compared with plain loops over random values, whose seeds are printed. fake_run.py writes
the run directories. GRUNDY_BIN or GRUNDY names a program for the test that computes a game.
"""

from __future__ import annotations

import mmap
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "scripts", "plot.py")
sys.path[:0] = [os.path.join(ROOT, "python"), os.path.join(ROOT, "python", "tests")]

np = pytest.importorskip("numpy")
matplotlib = pytest.importorskip("matplotlib")

from fake_run import Writer, append, is_rare, next_line, random_values, write_run  # noqa: E402
from grundy.plot import arguments, axis, counting, main, segments, source, style, texts  # noqa: E402
from grundy.plot.kinds import (  # noqa: E402
    bursts,
    density,
    first,
    histogram,
    lengths,
    periods,
    rares,
    rate,
    records,
)
from grundy.plot.kinds import values as values_kind  # noqa: E402
from grundy.plot.reader import open_run  # noqa: E402

PROGRAM = os.environ.get("GRUNDY_BIN") or os.environ.get("GRUNDY")
SMALL = ["--width", "700", "--height", "500"]
SURVEY = os.path.join(ROOT, "data", "results", "octal3.csv")


def chunks(values, size, start=0):
    for i in range(0, len(values), size):
        yield start + i, values[i : i + size]


def plot(capsys, *argv):
    status = main([str(a) for a in argv])
    said = capsys.readouterr()
    return status, said.out, said.err


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    return write_run(path, random_values(1, 9000, 400), mask=6, position=1)


# Counting


@pytest.mark.parametrize("size", [1, 7, 1000, 5000])
@pytest.mark.parametrize("group", [1, 3])
def test_by_column_counts_every_value_of_the_columns(size, group):
    values = random_values(size + group, 1000, 50)
    for edges in ([100, 101, 1100], [150, 350, 351, 900], [0, 5000], [99, 100, 400]):
        rows = -(-50 // group)
        expected = np.zeros((len(edges) - 1, rows), int)
        for n, v in enumerate(values.tolist(), 100):
            for i in range(len(edges) - 1):
                expected[i, v // group] += edges[i] <= n < edges[i + 1]
        counts = counting.by_column(chunks(values, size, 100), np.array(edges), rows, group)
        assert np.array_equal(counts, expected)


@pytest.mark.parametrize("a, b, columns", [(0, 10, 3), (5, 6, 9), (3, 1000, 1000), (1, 10**9, 77)])
def test_edges_cover_the_range(a, b, columns):
    edges = counting.linear_edges(a, b, columns)
    assert edges[0] == a and edges[-1] == b and len(edges) <= columns + 1
    assert np.ptp(np.diff(edges)) <= 1 and np.diff(edges).min() >= 1
    if a:
        edges = counting.log_edges(a, b, columns)
        assert edges[0] == a and edges[-1] == b and np.diff(edges).min() >= 1


@pytest.mark.parametrize("size", [1, 13, 4000])
def test_records_are_those_of_the_definition(size):
    for seed, values in enumerate(
        [random_values(3, 3000, 60000), np.arange(300, dtype=np.uint16), np.zeros(5, np.uint16)]
    ):
        best, expected = -1, []
        for n, v in enumerate(values.tolist(), 10):
            if v > best:
                best = v
                expected.append([n, v])
        assert counting.records(chunks(values, size, 10)).tolist() == expected, seed
    assert counting.records(iter(())).shape == (0, 2)


@pytest.mark.parametrize("top", [4, 255, 256, 900])
def test_matches_are_those_of_the_definition(top):
    window = random_values(top, 400, top + 1) // np.uint16(2)
    expected = [sum(window[n] == window[n + p] for n in range(350)) for p in range(1, 51)]
    assert counting.matches(window, 50).tolist() == expected


# Segments


@pytest.mark.parametrize("seed", range(8))
def test_bursts_are_found_within_a_bin(seed):
    print("seed", seed)
    rng = np.random.default_rng(seed)
    planted = np.sort(rng.choice(np.arange(12, 190, 12), 4, replace=False)) * 512
    planted += rng.integers(0, 512, 4)
    n = np.arange(200 * 512)
    burst = np.searchsorted(planted, n, "right") % 2 == 1
    values = np.where(burst, rng.integers(0, 60, len(n)), rng.integers(0, 40, len(n)))
    edges = np.arange(0, len(n) + 1, 512)
    counts = counting.by_column(chunks(values.astype(np.uint16), 1 << 12), edges, 60)
    parts = segments.segments(segments.distances(counts))
    # The state that most bins have is the low one.
    typical = np.median(burst) == 1
    assert [part.high for part in parts] == [typical, not typical] * 2 + [typical]
    found = np.array([edges[part.start] for part in parts[1:]])
    assert (abs(found - planted) <= 512).all()
    lines = bursts.table(parts, edges).splitlines()
    assert [int(line.split()[1]) for line in lines[1:]] == found.tolist()
    assert [line.split()[2] for line in lines[1:]] == (
        ["ends", "begins"] if typical else ["begins", "ends"]
    ) * 2


def test_segments_have_the_greatest_sum():
    """Tries all sequences of states of a few bins."""
    rng = np.random.default_rng(7)
    for _ in range(50):
        x = rng.uniform(-2, 2, 9)
        best = max(
            sum(np.where(state, x, -x))
            - segments.EDGE_COST * np.count_nonzero(state[1:] != state[:-1])
            for state in (np.array([k >> i & 1 for i in range(9)], bool) for k in range(512))
        )
        state = segments._states(x)
        got = sum(np.where(state, x, -x)) - np.count_nonzero(state[1:] != state[:-1])
        assert got == pytest.approx(best)


def test_no_edges_in_values_of_one_distribution():
    counts = np.random.default_rng(3).multinomial(1000, [0.5, 0.3, 0.2], 300)
    assert len(segments.segments(segments.distances(counts))) == 1
    assert len(segments.segments(segments.distances(np.full((5, 3), 10)))) == 1
    assert bursts.table([segments.Segment(0, 5, False, 0.0)], np.arange(6)).startswith("no edges")


@pytest.mark.parametrize("size", [128, 256, 512])
def test_bins_are_joined_until_their_shares_tell_the_states_apart(size):
    """From 100,000 to 200,000 more values are large, but by chance the shares of bins vary more."""
    rng = np.random.default_rng(11)
    n = np.arange(1 << 19)
    is_large = rng.random(len(n)) < np.where((100_000 <= n) & (n < 200_000), 0.42, 0.5)
    edges = np.arange(0, len(n) + 1, size)
    before = counting.by_column([(0, is_large.astype(np.uint16))], edges, 2)
    counts, edges = segments.joined(before, edges)
    joined = len(before) // len(counts)
    bins = before.reshape(-1, joined, 2)
    assert joined > 1 and counts.tolist() == bins.sum(axis=1).tolist()
    assert edges.tolist() == list(range(0, len(n) + 1, size * joined))
    begin, end = (edges[part.start] for part in segments.segments(segments.distances(counts))[1:])
    assert max(abs(begin - 100_000), abs(end - 200_000)) <= 2 * size * joined
    half = segments.distances(bins.reshape(-1, joined // 2, 2).sum(axis=1))
    clear = [segments._two_means(each)[2] for each in (half, segments.distances(counts))]
    assert clear[0] < segments.CLEAR <= clear[1]


def test_bins_without_states_stay_as_they_are():
    counts = np.random.default_rng(3).multinomial(1000, [0.5, 0.3, 0.2], 601)
    found, edges = segments.joined(counts, np.arange(602))
    assert found is counts and edges.tolist() == list(range(602))


@pytest.mark.parametrize(
    "low, high, expected",
    [
        (1, 10**6, ["1", "10", "$10^{2}$", "$10^{3}$", "$10^{4}$", "$10^{5}$", "$10^{6}$"]),
        (15, 800, ["20", "50", "$10^{2}$", "200", "500"]),
        (1.5e6, 8e6, [r"$2{\cdot}10^{6}$", r"$5{\cdot}10^{6}$"]),
        (310, 390, ["320", "340", "360", "380"]),
    ],
)
def test_logarithmic_axes_have_at_least_two_labels(low, high, expected):
    axes = matplotlib.figure.Figure().add_subplot()
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axis.log_axis(axes.yaxis)
    ticks = [x for x in axes.yaxis.get_majorticklocs() if low <= x <= high]
    assert axes.yaxis.get_major_formatter().format_ticks(ticks) == expected


def test_default_bins():
    for count in (2, 255, 256, 9000, 1 << 20, (1 << 20) + 1, 10**9, 10**12):
        bins = count // bursts.default_bin(count)
        assert 2 <= bins <= bursts.BINS and (bins >= 256 or count < 256)
    assert bursts.default_bin(10**9) == 1 << 16 and bursts.default_bin(1 << 20) == 1 << 12


# The rate, and the table of a survey


def test_rates_leave_out_what_a_rollback_took_back():
    points = [(0, 0), (100, 9), (300, 20), (900, 40), (300, 45), (500, 65), (1000, 95), (1001, 96)]
    found = rate.rates({"count": n, "seconds": s} for n, s in points)
    assert found == [(0, 300, 20.0), (300, 500, 20.0), (500, 1001, 31.0)]
    assert found[0].rate == 15.0
    # Two rollbacks, the second beyond the first.
    points += [(500, 99), (700, 119), (300, 130), (400, 150)]
    found = rate.rates({"count": n, "seconds": s} for n, s in points)
    assert found == [(0, 300, 20.0), (300, 400, 20.0)]
    assert rate.rates([]) == rate.rates([{"count": 5, "seconds": 3}]) == []


def test_survey_is_read():
    status, games = periods.read(SURVEY)
    assert status["proved"] == sum(len(names) for names in games.values())
    assert "0.77" in games[12, 71]


# The command line


def test_picture_is_complete_before_its_text_is_printed(run, tmp_path):
    arguments = [sys.executable, "-m", "grundy.plot", "bursts", run, "-o", str(tmp_path / "x.png")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.path.join(ROOT, "python"),
        "PYTHONUNBUFFERED": "1",
    }
    with open("/dev/full", "w") as full:
        done = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, env=environment)
    said = done.stderr.decode()
    assert done.returncode == 1 and "stdout cannot be written" in said and "Traceback" not in said
    assert (tmp_path / "x.png").stat().st_size > 1000


def test_picture_replaces_the_file_of_a_link(run, capsys, tmp_path):
    (tmp_path / "old.png").write_text("old")
    os.symlink("old.png", tmp_path / "link.png")
    assert plot(capsys, "records", run, "-o", tmp_path / "link.png")[0] == 0
    assert (tmp_path / "link.png").is_symlink()
    assert (tmp_path / "old.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(os.listdir(tmp_path)) == ["link.png", "old.png"]


def test_tick_labels():
    labels = [texts.short_text(x) for x in (0, 500, 20000, 10**8, 5 * 10**8, 2.5e9)]
    assert labels == [
        "0", "500", "20,000", "$10^{8}$", r"$5{\cdot}10^{8}$", r"$2.5{\cdot}10^{9}$"
    ]  # fmt: skip
    assert texts.range_text(0, 10**9) == "n < $10^{9}$"
    assert texts.range_text(5, 1 << 20) == "5 ≤ n < $2^{20}$"


# Pictures


@pytest.mark.parametrize("kind", arguments.OF_VALUES)
@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_each_kind_is_drawn(tmp_path, capsys, run, kind, suffix):
    path = tmp_path / f"picture.{suffix}"
    assert plot(capsys, kind, run, "-o", path, *SMALL)[0] == 0
    check(path)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize(
    "options",
    [
        ["values", "--range", "100..300", "--period", "5"],
        ["values", "--range", "0..1"],
        ["values", "--log", "--title", "$ \\frac"],
        ["density", "--log"],
        ["density", "--log", "--range", "0..2"],
        ["density", "--range", "8999..9000"],
        ["density", "--width", "400", "--height", "400"],
        ["records", "--range", "17..9e3"],
        ["rares", "--range", "4096..8192"],
        ["histogram", "--range", "1..2"],
        ["first", "--range", "2^10..2^11"],
        ["match", "--lags", "2000"],
        ["match", "--range", "8000..9000", "--lags", "3"],
        ["bursts", "--bin", "1000"],
    ],
    ids=" ".join,
)
def test_options_are_drawn(tmp_path, capsys, run, options):
    path = tmp_path / "picture.png"
    status, _, said = plot(capsys, options[0], run, *SMALL, *options[1:], "-o", path)
    assert (status, said) == (0, "")
    check(path)


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_values_up_to_65535_and_many_values_are_drawn(tmp_path, capsys, suffix):
    values = random_values(2, 70_000, 65536)
    path = write_run(tmp_path / "run", values, "u16", mask=0)
    for kind in ("values", "density", "histogram", "first", "bursts"):
        assert plot(capsys, kind, path, "-o", tmp_path / f"x.{suffix}")[0] == 0
        check(tmp_path / f"x.{suffix}")


def test_late_group_of_rare_positions_follows_the_last_long_gap():
    def group(*n):
        return rares.late_group(np.array(n, np.int64)).tolist()

    assert group(0, 1, 20, 900, 82_860, 47_461_861, 48_399_022) == [47_461_861, 48_399_022]
    assert group(0, 1, 20, 999, 9989, 99_889) == group(0, 1, 20) == group(5) == []
    assert group(1, 1000, 10_000, 200_000) == [200_000]


def test_distance_of_lengths_from_the_exponential_distribution():
    # One length at each quantile i / 1000, i from 0 on: the distance is 1 / 1000 but for the mean.
    quantiles = (-1e9 * np.log1p(-np.arange(1000) / 1000)).astype(np.int64)
    assert lengths.distance(quantiles) < 0.003
    assert lengths.distance(np.array([5, 5, 5, 5, 13])) == pytest.approx(4 / 5)
    assert lengths.distance(np.array([0, 2])) == pytest.approx(1 / 2)


def test_correlations_of_bursts_with_the_stretches_around_them():
    # Lengths 1, 2, 4, 3 with 20, 40, 30 between them: the same order as 2, 4, 3.
    begin, end = np.array([0, 21, 63, 97]), np.array([1, 23, 67, 100])
    before, after = lengths.correlations(begin, end)
    assert before == pytest.approx(1)
    assert after == pytest.approx(np.corrcoef([1, 2, 4], [20, 40, 30])[0, 1])


def test_names_of_games_keep_clear_of_other_points():
    options = arguments.parse(["periods", SURVEY, "-o", "x.png"], "plot")
    axes = periods.draw(options).axes[0]
    named = {text.get_text(): text.get_window_extent() for text in axes.texts}
    assert {"0.16", "0.354"} <= set(named)
    [dot] = axes.transData.transform([(149_459, 105_351)])  # .16, data/periods.csv
    for name, box in named.items():
        assert name == "0.16" or not box.padded(periods.CLEAR).contains(*dot), name


def test_survey_rate_and_lengths_are_drawn(tmp_path, capsys):
    path = write_run(tmp_path / "run", random_values(4, 500, 9), seconds=0, count=0, kept=[[0, 0]])
    values = random_values(4, 500, 9)
    append(path, "journal.jsonl", next_line(path, values, seconds=50))
    table = tmp_path / "bursts.csv"
    bursts = [
        (0, 4096),
        (10**7, 12 * 10**6),
        (2 * 10**7, 3 * 10**7),
        (5 * 10**7, 52 * 10**6),
        (7 * 10**7, 8 * 10**7),
        (9 * 10**7, 95 * 10**6),
    ]
    rows = [f"{a},{b},{b - a},9,1,0,{int(b < 9 * 10**7)}\n" for a, b in bursts]
    table.write_text("begin,end,length,large,loud,rares,complete\n" + "".join(rows))
    for kind, what in (("rate", path), ("periods", SURVEY), ("lengths", table)):
        for suffix in ("png", "svg"):
            assert plot(capsys, kind, what, "-o", tmp_path / f"{kind}.{suffix}")[0] == 0
            check(tmp_path / f"{kind}.{suffix}")


def test_picture_is_the_same_twice_and_has_the_size(tmp_path, capsys, run):
    for suffix in ("png", "svg", "pdf"):
        files = [tmp_path / f"{i}.{suffix}" for i in range(2)]
        for path in files:
            plot(capsys, "density", run, "-o", path, "--width", "900", "--height", "500")
        assert files[0].read_bytes() == files[1].read_bytes()
    assert check(tmp_path / "0.png") == (900, 500)


def test_the_first_column_of_cells_is_visible(tmp_path, capsys):
    """The value 1 occurs at n < 100 only, in the first column of cells."""
    from PIL import Image

    path = write_run(tmp_path / "run", np.where(np.arange(200_000) < 100, 1, 0))
    for kind in ("values", "density"):
        assert plot(capsys, kind, path, "-o", tmp_path / "x.png")[0] == 0
        with Image.open(tmp_path / "x.png") as image:
            pixels = np.asarray(image.convert("RGB"), int)
        # The upper half of the axes is the row of the value 1.
        row = pixels[pixels.shape[0] // 4, :400]
        is_coloured = row.max(axis=1) - row.min(axis=1) > 40
        assert is_coloured.any(), kind


def drawn(kind, *argv):
    """Returns the figure of a kind."""
    options = arguments.parse([kind.__name__.rpartition(".")[2], *map(str, argv)], "plot")
    with matplotlib.rc_context(style.RC):
        figure = kind.draw(options)
    return figure[0] if isinstance(figure, tuple) else figure


def test_n_without_a_known_later_value_is_a_class_of_its_own(tmp_path):
    """Of 100 values the first 70 are compared with those 30 later, and 20 of them differ."""
    values = np.arange(100) % 30
    values[40:60] += 100
    run = open_run(write_run(tmp_path / "run", values))
    part = source.Source(run, 0, 100)
    equal, other, unknown = values_kind.compared(part, part.values(0, 100), 30)
    assert [label for label, _, _ in (equal, other, unknown)] == [
        "G(n + 30) = G(n)",
        "G(n + 30) ≠ G(n), the last at n = 59",
        "G(n + 30) not computed",
    ]
    expected = [n for n in range(70) if values[n] != values[n + 30]]
    assert np.flatnonzero(other[2]).tolist() == expected
    assert np.flatnonzero(unknown[2]).tolist() == list(range(70, 100))
    assert (equal[2] | other[2] | unknown[2]).all()
    whole = source.Source(run, 0, 70)
    assert len(values_kind.compared(whole, whole.values(0, 70), 30)) == 2


def test_period_is_refused_if_no_later_value_is_known(tmp_path, capsys, run):
    argv = ["values", run, "--range", "8990..9000", "--period", "10", "-o", tmp_path / "x.png"]
    status, _, said = plot(capsys, *argv)
    assert status == 2 and "not computed for any n of 8990..9000" in said


@pytest.mark.parametrize(
    ("range_", "scale", "label"),
    [("0..9000", "log", "n (n = 0 is drawn at n = 1)"), ("1..9000", "log", "n"),
     ("2000..6000", "linear", "n"), ("0..9", "linear", "n"), ("500..1001", "linear", "n")],
)  # fmt: skip
def test_axis_of_n_is_linear_without_two_powers_of_10(run, range_, scale, label):
    for kind in (records, rares):
        axes = drawn(kind, run, "--range", range_, "-o", "x.png").axes[0]
        assert (axes.get_xscale(), axes.get_xlabel()) == (scale, label)
        low, high = axes.get_xlim()
        ticks = [x for x in axes.xaxis.get_majorticklocs() if low <= x <= high]
        assert len(ticks) >= 2
    if not range_.startswith("0"):
        for kind in (density, values_kind):
            axes = drawn(kind, run, "--log", "--range", range_, "-o", "x.png").axes[0]
            assert axes.get_xscale() == scale


def test_axis_says_where_n_0_is_drawn(run):
    for range_, expected in [("0..9000", True), ("1..9000", False)]:
        axes = drawn(first, run, "--range", range_, "-o", "x.png").axes[0]
        assert ("n = 0 is drawn at n = 1" in axes.get_ylabel()) == expected


# Mask, position term, and h, which depends on the rule.
@pytest.mark.parametrize("space", [(510, 0, 0), (13, 1, 0), (510, 0, 1), (13, 1, 1)])
@pytest.mark.parametrize("a, b", [(0, 3000), (0, 1), (1, 2000), (1500, 2999)])
def test_common_and_rare_positions_are_those_of_the_definition(tmp_path, space, a, b):
    mask, position, parity = space
    values = random_values(mask, 3000, 500)
    path = write_run(tmp_path / "run", values, mask=mask, position=position, parity=parity)
    rare = [n for n in range(a, b) if is_rare(n, int(values[n]), *space)]
    common = sorted(set(range(a, b)) - set(rare))

    argv = [path, "--range", f"{a}..{b}", "-o", "x.png"]
    if rare:
        points = drawn(rares, *argv).axes[0].lines[0]
        assert np.maximum(points.get_xdata(), 1).tolist() == np.maximum(rare, 1).tolist()
        assert points.get_ydata().tolist() == values[rare].tolist()
    labels = [text.get_text() for text in drawn(histogram, *argv).axes[0].get_legend().get_texts()]
    counts = [("common", len(common)), ("rare", len(rare))]
    assert labels == [f"{name} positions: {texts.number_text(n)}" for name, n in counts if n]
    labels = [text.get_text() for text in drawn(first, *argv).axes[0].get_legend().get_texts()]
    of_common = len(set(values[common].tolist()))
    only_rare = len(set(values[rare].tolist()) - set(values[common].tolist()))
    counts = [("common", of_common), ("rare", only_rare)]
    assert [label for label in labels if "occur" not in label] == [
        f"{name}: {n}" for name, n in counts if n
    ]


@pytest.mark.skipif(PROGRAM is None, reason="neither GRUNDY_BIN nor GRUNDY names a program")
@pytest.mark.parametrize("game", [".106", ".005", "grundy"])  # h = 1, 1, 0
def test_rare_positions_are_those_of_the_program(tmp_path, game):
    path = str(tmp_path / "run")
    subprocess.run([PROGRAM, "run", game, "--to", "1e5", "--dir", path, "-q"], check=True)
    found = subprocess.run(
        [PROGRAM, "find", path, "--rares", "--format", "csv", "-q"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    number = len(found.stdout.splitlines()) - 1
    legend = drawn(histogram, path, "-o", "x.png").axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [
        f"common positions: {100_000 - number:,}", f"rare positions: {number:,}"
    ]  # fmt: skip


def test_one_record_and_one_rare_position_are_singular(tmp_path):
    path = write_run(tmp_path / "run", [3, 1, 1, 1], mask=15)  # of 3 and n = 0 the rare
    for kind, title in [(records, "n < 4: 1 record"), (rares, "n < 4: 1 rare position")]:
        figure = drawn(kind, path, "-o", "x.png")
        assert figure.axes[-1].get_title("left").endswith(title)
    assert texts.count_text(2000, "record") == "2,000 records"


def test_bars_of_groups_are_labelled_as_such(tmp_path, run):
    label = drawn(histogram, run, "-o", "x.png").axes[0].get_ylabel()
    assert label == "number of n with this value"
    path = write_run(tmp_path / "run", random_values(9, 2000, 5000), "u16")
    label = drawn(histogram, path, "-o", "x.png").axes[0].get_ylabel()
    assert label == "number of n with a value of the group"


def test_legend_of_periods_ends_with_the_largest_disc():
    assert periods.sizes(1) == [1] and periods.sizes(7) == [1, 7]
    assert periods.sizes(104) == [1, 10, 104] and periods.sizes(150) == [1, 10, 50, 150]
    axes = drawn(periods, SURVEY, "-o", "x.png").axes[0]
    _, games = periods.read(SURVEY)
    last = axes.get_legend().get_texts()[-1].get_text()
    assert last == f"{max(len(names) for names in games.values())} games"


@pytest.mark.parametrize("size", [(400, 400), (700, 500), (1760, 990), (3000, 400)])
@pytest.mark.parametrize("words", [1, 10, 20, 40, 200])
def test_title_is_within_the_picture(run, size, words):
    width, height = size
    argv = ["-o", "x.png", "--width", width, "--height", height]
    for title in ["lengthy " * words, "x" * 8 * words]:
        figure = drawn(values_kind, run, *argv, "--title", title)
        figure.canvas.draw()
        text = figure.axes[0]._left_title
        box = text.get_window_extent()
        assert box.x1 <= width and box.y1 <= height and text.get_text().count("\n") <= 1
        assert box.y0 >= figure.axes[0].get_window_extent().y1
        if words < 20:
            assert "".join(text.get_text().split()) == "".join(title.split())


@pytest.mark.parametrize("kind", arguments.OF_VALUES)
@pytest.mark.parametrize("size", [(400, 400), (900, 560), (1760, 400)])
def test_texts_of_small_pictures_are_within_them(run, kind, size):
    import importlib

    width, height = size
    draw = importlib.import_module(f"grundy.plot.kinds.{kind}")
    options = ["--period", "12"] if kind == "values" else []
    figure = drawn(draw, run, "-o", "x.png", "--width", width, "--height", height, *options)
    figure.canvas.draw()
    box = figure.get_tightbbox().transformed(figure.dpi_scale_trans)
    assert 0 <= box.x0 and box.x1 <= width and 0 <= box.y0 and box.y1 <= height


@pytest.mark.parametrize("size", [(400, 400), (900, 420), (1760, 990)])
def test_labels_of_small_distances_are_within_the_picture(tmp_path, size):
    values = np.tile([0, 1], 1 << 15)
    values[np.random.default_rng(1).integers(0, values.size, 20)] = 2
    path = write_run(tmp_path / "run", values)
    width, height = size
    figure = drawn(bursts, path, "-o", "x.png", "--bin", 8192, "--width", width, "--height", height)
    figure.canvas.draw()
    ticks = [tick.get_text() for tick in figure.axes[1].get_yticklabels()]
    assert max(map(len, ticks)) >= 6, ticks
    box = figure.get_tightbbox().transformed(figure.dpi_scale_trans)
    assert 0 <= box.x0 and box.x1 <= width and 0 <= box.y0 and box.y1 <= height


def test_long_names_of_games_are_cut_visibly(tmp_path):
    path = write_run(tmp_path / "run", range(50), game="sub:" + ",".join(map(str, range(1, 200))))
    name = source.name_of(open_run(path))
    assert len(name) == source.LONGEST_NAME and name.endswith("…")


def check(path):
    """Checks that the file is a whole picture; returns the size of a PNG in pixels."""
    data = path.read_bytes()
    if path.suffix == ".svg":
        assert data.rstrip().endswith(b"</svg>")
        return None
    if path.suffix == ".pdf":
        assert data.startswith(b"%PDF-") and data.rstrip().endswith(b"%%EOF")
        return None
    from PIL import Image

    with Image.open(path) as image:
        image.load()
        assert image.format == "PNG" and len(image.getcolors()) > 2
        return image.size


# Errors


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["pie", "RUN", "-o", "x.png"],
        ["values", "RUN"],
        ["values", "-o", "x.png"],
        ["values", "RUN", "-o", "x.gif"],
        ["values", "RUN", "-o", "x"],
        ["values", "RUN", "-o", "x.png", "--range", "5..5"],
        ["values", "RUN", "-o", "x.png", "--range", "5"],
        ["values", "RUN", "-o", "x.png", "--width", "10"],
        ["records", "RUN", "-o", "x.png", "--period", "3"],
        ["values", "RUN", "-o", "RUN/x.png"],
        ["values", "RUN", "-o", "RUN/sub/x.png"],
        ["match", "RUN", "-o", "x.png", "--lags", "9000"],
        ["match", "RUN", "-o", "x.png", "--lags", "1e9"],
        ["bursts", "RUN", "-o", "x.png", "--bin", "9000"],
        ["bursts", "RUN", "-o", "x.png", "--bin", "0"],
        ["density", "RUN", "-o", "x.png", "--log", "--range", "0..1"],
    ],
    ids=" ".join,
)
def test_usage_errors(tmp_path, capsys, monkeypatch, run, argv):
    monkeypatch.chdir(tmp_path)
    before = sorted(os.listdir(run))
    status, out, said = plot(capsys, *[a.replace("RUN", run) for a in argv])
    assert status == 2 and out == "" and said.startswith("plot: ") and "\n" not in said.strip()
    assert os.listdir(tmp_path) == [] and sorted(os.listdir(run)) == before


def test_too_few_values_to_compare(tmp_path, capsys, run):
    argv = ["match", run, "--range", "0..1", "-o", tmp_path / "x.png"]
    status, _, said = plot(capsys, *argv)
    assert status == 2 and "the range has 1 value; give a --range of at least 16" in said
    argv = ["match", run, "--range", "8900..9000", "-o", tmp_path / "x.png"]
    status, _, said = plot(capsys, *argv)
    assert status == 2 and "the run has 9000 values" in said and "smaller --lags" in said


def test_files_in_run_directories_are_refused_through_links(tmp_path, capsys, run):
    os.symlink(run, tmp_path / "link")
    status, _, said = plot(capsys, "values", run, "-o", tmp_path / "link" / "x.png")
    assert status == 2 and "run directory" in said


@pytest.mark.parametrize(
    "argv, words",
    [
        (["values", "./none"], "no such directory"),
        (["values", "RUN", "--range", "0..9001"], "beyond the 9000 committed values"),
        (["rate", "RUN"], "less than 10 seconds"),
        (["periods", "RUN/journal.jsonl"], "survey.csv"),
        (["periods", "none.csv"], "none.csv"),
        (["lengths", SURVEY], "output of bursts.py"),
        (["lengths", "none.csv"], "none.csv"),
        (["values", "nogame", "--program", "/bin/true"], "may be another program"),
        (["values", "nogame", "--program", "/bin/ls"], "may be another program"),
    ],
)
def test_errors_say_what_to_do(tmp_path, capsys, run, argv, words):
    argv = [a.replace("RUN", run) for a in argv]
    status, _, said = plot(capsys, *argv, "-o", tmp_path / "x.png")
    assert status == 1 and words in said and ";" in said
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "kind, rows, words",
    [
        ("lengths", ["0,9,1", "5,12,1"], "line 3: the burst 5..12 does not follow the one before"),
        ("lengths", ["9,9,1"], "line 2: the burst 9..9 does not follow"),
        ("lengths", ["-4,9,1"], "line 2: the burst -4..9 does not follow"),
        ("lengths", ["0," + "9" * 140_000 + ",1"], "line 2: field larger than field limit"),
        ("lengths", ["0,99999999999999999999,1"], "line 2: the burst 0..99999999999999999999"),
        ("lengths", ["0,9,"], "line 2: 'complete' is '' and not a whole number"),
        ("periods", ["0.1,proved,0,0"], "line 2: no game has period 0 and preperiod 0"),
        ("periods", ["0.1,proved,-3,0"], "line 2: no game has period -3"),
        ("periods", ["0.1,proved,3,-1"], "line 2: no game has period 3 and preperiod -1"),
        ("periods", ["0.1,proved,1" + "0" * 23 + ",0"], "line 2: no game has period 1000"),
        ("periods", ["0.1,none,,", "0.2,proved,3,"], "line 3: 'preperiod' is '' and not a whole"),
        ("periods", ["0.1,none"], "line 2: a row without the column 'period'"),
    ],
)
def test_bad_rows_are_refused_with_file_and_line(tmp_path, capsys, kind, rows, words):
    columns = {"lengths": "begin,end,complete", "periods": "game,status,period,preperiod"}
    (tmp_path / "table").write_text("\n".join([columns[kind], *rows]) + "\n")
    status, _, said = plot(capsys, kind, tmp_path / "table", "-o", tmp_path / "x.png")
    assert status == 1 and said.startswith(f"plot: '{tmp_path / 'table'}': {words}")
    assert "; give the " in said and said.count("\n") == 1


def test_unwritable_file_is_an_error(tmp_path, capsys, run):
    status, _, said = plot(capsys, "values", run, "-o", tmp_path / "none" / "x.png")
    assert status == 1 and "No such file" in said


def test_freed_values_are_not_drawn(tmp_path, capsys):
    values = random_values(6, 3000, 200)
    path = write_run(tmp_path / "run", values, kept=[[0, 1000], [2000, 3000]], mask=6)
    status, _, said = plot(capsys, "histogram", path, "-o", tmp_path / "x.png")
    assert status == 1 and "G(1000)" in said and "0..1000, 2000..3000" in said
    argv = ["histogram", path, "--range", "2000..3000", "-o", tmp_path / "x.png"]
    assert plot(capsys, *argv)[0] == 0


def test_run_without_a_space_has_no_rare_positions(tmp_path, capsys):
    path = write_run(tmp_path / "run", [0, 1, 2, 3], mask=0)
    status, _, said = plot(capsys, "rares", path, "-o", tmp_path / "x.png")
    assert status == 1 and "no sparse space" in said


def test_damage_has_status_3(tmp_path, capsys):
    path = write_run(tmp_path / "run", [0, 1, 300, 3], entries=[])
    status, _, said = plot(capsys, "values", path, "-o", tmp_path / "x.png")
    assert status == 3 and "G(2)" in said


# The source


@pytest.fixture(scope="module", params=[0, 1], ids=["h=0", "h=1"])
def keeping(request, tmp_path_factory):
    """A run of 5000 values of which 512..4096 are discarded, in blocks of 64.

    Its path, its values, and which positions are rare.
    """
    values = random_values(11, 5000, 400)
    place = tmp_path_factory.mktemp("runs") / "run"
    writer = Writer(place, values, segment=256, head=512, keep=900, parity=request.param)
    while writer.count < 5000:
        writer.step(300)
    assert open_run(writer.path).kept == [(0, 512), (4096, 5000)]
    pairs = enumerate(values.tolist())
    rare = np.array([is_rare(n, v, parity=request.param) for n, v in pairs])
    return writer.path, values, rare


def keeping_source(path, *range_, known="counts"):
    options = arguments.parse(["density", path, "-o", "x.png", *range_], "plot")
    return source.open_source(options, known=known)


def test_discarded_values_are_counted_by_block(keeping):
    path, values, _ = keeping
    with keeping_source(path) as part:
        assert part.unit == 64
        for columns in (1, 7, 50, 5000):
            for edges in (
                counting.linear_edges(0, 5000, columns, part.unit),
                part.snapped(counting.log_edges(1, 5000, columns)),
            ):
                a, b = int(edges[0]), int(edges[-1])
                found = part.count(edges, 134, 3)
                expected = counting.by_column([(a, values[a:b])], edges, 134, 3)
                assert np.array_equal(found, expected)


@pytest.mark.parametrize("range_", [(0, 5000), (100, 3000), (0, 700), (512, 5000)])
def test_maxima_and_rares_of_discarded_values_come_from_the_summary(keeping, range_):
    path, values, rare = keeping
    a, b = range_
    option = ["--range", f"{a}..{b}"]
    with keeping_source(path, *option, known="maxima") as part:
        found = counting.records(part.chunks(maxima=True))
        assert np.array_equal(found, counting.records([(a, values[a:b])]))
    with keeping_source(path, *option, known="rares") as part:
        assert part.rares()["n"].tolist() == (a + np.flatnonzero(rare[a:b])).tolist()


def test_histogram_of_discarded_values_has_common_and_rare_values(keeping):
    path, values, is_rare_at = keeping
    with keeping_source(path) as part:
        common, rare = histogram.classes(part)
    assert common.tolist() == np.bincount(values[~is_rare_at], minlength=400).tolist()
    assert rare.tolist() == np.bincount(values[is_rare_at], minlength=400).tolist()


def test_first_positions_are_drawn_if_each_value_occurs_before_the_discarded_ones(tmp_path, capsys):
    writer = Writer(tmp_path / "run", random_values(5, 3000, 9), segment=256, head=512, keep=900)
    while writer.count < 3000:
        writer.step(300)
    assert len(open_run(writer.path).kept) == 2
    status, _, said = plot(capsys, "first", writer.path, "-o", tmp_path / "x.png", *SMALL)
    assert (status, said) == (0, "")
    check(tmp_path / "x.png")


def test_kinds_of_a_run_that_discards_values(tmp_path, capsys, keeping):
    path, _, _ = keeping
    drawn = [["density"], ["density", "--log"], ["density", "--range", "1024..2048"]]
    drawn += [["histogram"], ["bursts"], ["bursts", "--bin", "128"], ["records"], ["rares"]]
    for kind, *options in drawn:
        status, _, said = plot(capsys, kind, path, *options, "-o", tmp_path / "x.png", *SMALL)
        assert (status, said) == (0, ""), kind
        check(tmp_path / "x.png")
    for kind, *options in [["density", "--range", "513..5000"], ["density", "--range", "0..2000"]]:
        status, _, said = plot(capsys, kind, path, *options, "-o", tmp_path / "x.png")
        assert status == 1 and "multiple of 64, or within 0..512, 4096..5000" in said
    for kind, *options in [["values"], ["first"], ["match"], ["records", "--range", "600..5000"]]:
        status, _, said = plot(capsys, kind, path, *options, "-o", tmp_path / "x.png")
        assert status == 1 and "the run has discarded G(" in said
    for option in (["--bin", "100"], ["--range", "32..5000"]):
        status, _, said = plot(capsys, "bursts", path, *option, "-o", tmp_path / "x.png")
        assert status == 2 and "blocks of 64" in said


def test_missing_and_altered_counts_are_errors(tmp_path, capsys, keeping):
    path = shutil.copytree(keeping[0], tmp_path / "run")
    counts, argv = path / "counts.jsonl", ["density", path, "-o", tmp_path / "x.png"]
    lines = counts.read_bytes().splitlines(keepends=True)
    other = lines[9].replace(b"0, 1, ", b"1, 0, ", 1)
    for data, expected, words in [
        (b"".join(lines[:-1]), 1, "lacks 64 of the discarded values"),
        (b"".join(lines[:9] + lines[10:]), 1, "lacks 64 of the discarded values"),
        (b"".join(lines[:9] + [lines[9][:50]]), 1, "lacks 3008 of the discarded values"),
        (b"", 1, "has no counts of discarded values"),
        (b"[]\n", 1, "has no counts of discarded values"),
        (b"".join([*lines[:9], other, *lines[10:]]), 3, "add up"),
        (b"".join(lines[:9] + lines[8:]), 3, "is not right"),
    ]:
        assert data != b"".join(lines)
        counts.write_bytes(data)
        status, _, said = plot(capsys, *argv)
        assert (status, words in said) == (expected, True), said
    counts.unlink()
    assert plot(capsys, *argv)[0] == 1


def test_pages_are_released_and_read_again(tmp_path, monkeypatch):
    values = random_values(8, 10_000, 300)
    monkeypatch.setattr(source, "RELEASE", 1000)
    part = source.Source(open_run(write_run(tmp_path / "run", values)), 5, 9995)
    found = np.concatenate([chunk for _, chunk in part.chunks(size=300)])
    assert np.array_equal(found, values[5:9995])


def resident_pages() -> int:
    """Number of pages of this process that are in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_released_pages_leave_the_memory_of_the_process(tmp_path):
    size = 1 << 24
    run = open_run(write_run(tmp_path / "run", np.zeros(size, np.uint8)))
    part = source.Source(run, 0, size)
    assert run.mmap().sum() == 0
    before = resident_pages()
    part.release()
    released = (before - resident_pages()) * mmap.PAGESIZE
    assert released > size * 0.9, released


def test_game_is_computed_by_the_program(tmp_path, capsys, monkeypatch):
    program = tmp_path / "fake"
    program.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "import numpy as np\n"
        "from fake_run import write_run\n"
        "_, run, game, to, count, dir, path, quiet = sys.argv\n"
        "assert (run, to, dir, quiet) == ('run', '--to', '--dir', '--quiet')\n"
        "if game == 'bad':\n"
        "    sys.exit('bad is not a game')\n"
        "write_run(path, np.arange(int(count)) % 5, game=game)\n"
    )
    program.chmod(0o755)
    picture = tmp_path / "x.png"
    argv = ["values", "0.77", "-o", picture, "--range", "3..90", "--period", "5"]
    assert plot(capsys, *argv, "--program", program)[0] == 0
    monkeypatch.setenv("GRUNDY", str(program))
    assert plot(capsys, *argv)[0] == 0
    status, _, said = plot(capsys, "values", "bad", "-o", picture)
    assert status == 1 and "bad is not a game" in said
    assert plot(capsys, *argv, "--program", tmp_path / "none")[0] == 1
    monkeypatch.delenv("GRUNDY")
    monkeypatch.setenv("PATH", str(tmp_path))
    status, _, said = plot(capsys, *argv)
    assert status == 1 and "--program" in said


@pytest.mark.skipif(PROGRAM is None, reason="neither GRUNDY_BIN nor GRUNDY names a program")
def test_kayles_repeats_with_period_12_from_71(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("GRUNDY", PROGRAM)
    argv = ["values", "kayles", "--range", "0..240", "--period", "12", "-o", tmp_path / "k.svg"]
    assert plot(capsys, *argv) == (0, "", "")
    check(tmp_path / "k.svg")
    status, _, said = plot(capsys, "values", "no-game", "-o", tmp_path / "x.png")
    assert status == 2 and "neither a run directory nor a game" in said
    monkeypatch.chdir(tmp_path)
    os.mkdir("plain")
    status, _, said = plot(capsys, "values", "plain", "-o", tmp_path / "x.png")
    assert status == 2 and "the directory has no journal.jsonl" in said and "--range" not in said


def pretended(tmp_path, code):
    """Returns the path of a program that states the version of grundy and runs `code`."""
    program = tmp_path / "grundy"
    version = 'if [ "$1" = --version ]; then echo "grundy 0.1.0 (x)"; exit; fi\n'
    program.write_text(f"#!/bin/sh\n{version}{code}\n")
    program.chmod(0o755)
    return program


def test_advice_of_the_program_becomes_advice_on_the_range(tmp_path, capsys):
    for words, advice in [
        ("at most --to 5000 fits; with --keep 4000 the run would fit",
         "no room; give a --range that ends at 4988 at most"),
        ("choose a directory on another file system with --dir", "no room; give another --range"),
        ("wait", "no room; wait"),
    ]:  # fmt: skip
        program = pretended(tmp_path, f'echo "grundy: error: $6: no room; {words}" >&2; exit 1')
        argv = ["values", "kayles", "--range", "0..90", "--period", "12", "--program", program]
        status, _, said = plot(capsys, *argv, "-o", tmp_path / "x.png")
        assert (status, said) == (1, f"plot: computing 'kayles': {advice}\n")


def test_a_long_computation_is_announced(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(source, "SILENT", 0.01)
    program = pretended(tmp_path, "sleep 0.5; exit 1")
    argv = ["values", "kayles", "--range", "0..90", "--program", program]
    _, _, said = plot(capsys, *argv, "-o", tmp_path / "x.png")
    assert said.startswith("computing ") and " values of kayles …\n" in said


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_signal_ends_the_program_and_removes_its_files(tmp_path, name):
    started = tmp_path / "started"
    program = pretended(tmp_path, f"echo $$ > {started}.new; mv {started}.new {started}; sleep 60")
    place = tmp_path / "temporary"
    place.mkdir()
    # A background process may ignore the signal.
    lines = [
        f"import signal, sys; sys.path = {sys.path!r}",
        f"signal.signal(signal.{name}, signal.SIG_DFL)",
        "signal.signal(signal.SIGINT, signal.default_int_handler)",
        "from grundy.plot import main; sys.exit(main())",
    ]
    code = "\n".join(lines)
    argv = ["values", "kayles", "-o", tmp_path / "x.png", "--program", program]
    with subprocess.Popen(
        [sys.executable, "-c", code, *map(str, argv)],
        env={**os.environ, "TMPDIR": str(place)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = time.monotonic() + 60
        while not started.exists() and time.monotonic() < deadline:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.01)
        child = int(started.read_text())
        assert len(os.listdir(place)) == 1
        process.send_signal(getattr(signal, name))
        said = process.stderr.read()
    assert process.returncode == 128 + getattr(signal, name)
    assert said == "plot: stopped; no file was written\n"
    assert os.listdir(place) == [] and not (tmp_path / "x.png").exists()
    # The program has received SIGKILL. It is gone when its new parent has waited for it.
    while is_process(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_process(child)


def is_process(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def test_signals_are_handled_as_before_after_a_picture(tmp_path, capsys, run):
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]
    assert plot(capsys, "records", run, "-o", tmp_path / "x.png", *SMALL)[0] == 0
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)] == before


# The script


def test_usage_and_example_are_commands_that_can_be_typed(capsys):
    for argv in (["--help"], ["density", "--help"]):
        with pytest.raises(SystemExit) as ended:
            main(argv)
        text = capsys.readouterr().out
        assert ended.value.code == 0 and text.startswith("usage: python3 -m grundy plot")
        assert "Example: python3 -m grundy plot density runs/grundy -o density.png" in text


def test_help_needs_neither_numpy_nor_matplotlib():
    for argv in (["--help"], ["density", "--help"]):
        done = subprocess.run(
            [sys.executable, "-I", "-S", SCRIPT, *argv], capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith("usage: scripts/plot.py") and "exit status" in done.stdout
    done = subprocess.run(
        [sys.executable, "-I", "-S", SCRIPT, "values", "x", "-o", "x.png"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "pip install" in done.stderr
