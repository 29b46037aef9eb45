"""Tests of the numbers, parts and ranges of command lines. GRUNDY_BIN names the program."""

import os
import subprocess
from fractions import Fraction

import pytest
from grundy import notation

NUMBERS = [
    ("0", 0),
    ("7", 7),
    ("1.0", 1),
    ("10_000", 10**4),
    ("1e3", 1000),
    ("1E3", 1000),
    ("1.5e3", 1500),
    ("1.5k", 1500),
    ("2.50K", 2500),
    ("2^11", 2048),
    ("3*2^10", 3072),
    ("2*3*1e1", 60),
    ("0e99", 0),
    ("1^99", 1),
]
LARGE_NUMBERS = [
    ("1e9", 10**9),
    ("2^35", 2**35),
    ("10M", 10**7),
    ("3G", 3 * 10**9),
    ("1T", 10**12),
    ("18446744073709551615", 2**64 - 1),
]
NO_NUMBERS = [
    "x",
    "1.5",
    "1.5*2",
    "1e",
    "e9",
    "2^64",
    "1e20",
    "1.55e1",
    "2^",
    ".5k",
    "1.",
    "9^99999",
]


@pytest.mark.parametrize("text, value", NUMBERS + LARGE_NUMBERS)
def test_numbers_are_exact(text, value):
    assert notation.number(text) == value


@pytest.mark.parametrize("text", [*NO_NUMBERS, "", "-1", "1..2", "٣"])
def test_bad_numbers_are_refused(text):
    with pytest.raises(ValueError):
        notation.number(text)


@pytest.mark.skipif("GRUNDY_BIN" not in os.environ, reason="GRUNDY_BIN is not set")
def test_numbers_are_those_of_the_program():
    for text, value in [*NUMBERS, *((text, None) for text in NO_NUMBERS)]:
        command = [os.environ["GRUNDY_BIN"], "-q", "values", "kayles", text]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode == 2) == (value is None), text
        if value is not None:
            assert done.stdout.split()[0] == str(value), text


def test_positive_numbers():
    assert notation.positive("1") == 1
    with pytest.raises(ValueError, match="at least 1"):
        notation.positive("0")


@pytest.mark.parametrize(
    "text, value",
    [
        ("0.5", "1/2"),
        ("1/3", "1/3"),
        (".07", "7/100"),
        ("1", "1"),
        ("1e-2", "1/100"),
        ("5E-1", "1/2"),
    ],
)
def test_parts_are_exact(text, value):
    assert notation.part(text) == Fraction(value)


@pytest.mark.parametrize(
    "text", ["", "x", "1/0", "-1", "nan", "inf", "1/2/3", "1e-99999999", "1e999999", "9" * 65, "٣"]
)
def test_bad_parts_are_refused_at_once(text):
    with pytest.raises(ValueError, match="is not a number such as 0.5 or 1/3"):
        notation.part(text)


def test_ranges_are_half_open():
    assert notation.half_open("1e3..2^11") == (1000, 2048)
    for text, words in [
        ("5", "is not a range"),
        ("5..5", "is empty"),
        ("6..5", "begins after its end"),
        ("..5", "does not say where the range begins"),
        ("5..", "does not say where the range ends"),
        ("-5..10", "must not be negative"),
        ("5..-10", "must not be negative"),
    ]:
        with pytest.raises(ValueError, match=words):
            notation.half_open(text)
