#!/usr/bin/env python3
# /// script
# requires-python = ">=3.9"
# dependencies = ["numpy"]
# ///
"""Prints the results of a run as Markdown: state, new maxima, zeros, digests (grundy.report)."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

from grundy.commands import exit_status  # noqa: E402
from grundy.commands.results import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(exit_status(main))
