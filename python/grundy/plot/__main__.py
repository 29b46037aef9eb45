"""Runs `python -m grundy.plot`."""

import sys

from . import main

sys.exit(main(prog="plot"))
