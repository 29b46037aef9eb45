"""The reader of run directories, under one name for all modules of this package."""

from __future__ import annotations

from ..counts import BlockCounts
from ..errors import Damage, RunError
from ..run import Run, open_run

__all__ = ["BlockCounts", "Damage", "Run", "RunError", "open_run"]
