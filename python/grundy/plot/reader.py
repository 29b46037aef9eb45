"""The reader of run directories, under one name for all modules of this package.

This is the only module that imports the reader.
"""

from __future__ import annotations

import os
import sys

_SCRIPTS = os.path.normpath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3, "scripts"))
if _SCRIPTS not in sys.path:
    sys.path.append(_SCRIPTS)

from grundy_table import Damage, Run, RunError, open_run  # noqa: E402

__all__ = ["Damage", "Run", "RunError", "open_run"]
