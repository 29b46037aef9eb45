#!/usr/bin/env python3
# /// script
# requires-python = ">=3.9"
# dependencies = ["numpy", "matplotlib"]
# ///
"""Draws a picture of the values of a run or a game: `scripts/plot.py KIND RUN|GAME -o FILE`.

The code is the package python/grundy/plot; `--help` lists the kinds and the options.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "python"))

from grundy.plot import main

if __name__ == "__main__":
    sys.exit(main(prog="plot.py", command="scripts/plot.py"))
