"""Runs `python -m grundy.plot`."""

import sys

from . import main

sys.exit(main(command="python3 -m grundy.plot"))
