"""The errors that end the program with a message. This module imports no other."""

from __future__ import annotations


class PlotError(Exception):
    """Nothing can be drawn. The text says what happened, where, and what to do."""


class UsageError(PlotError):
    """The command line asks for something that is not possible."""
