"""Reads the runs of `grundy`: nim-values of heap games, from a table on disk.

    import grundy
    run = grundy.open_run("runs/grundy")
    run[7250049]                   # one value, an int
    run[1000:0:-10]                # a uint16 array
    run.zeros(), run.records()     # what `grundy find` finds
    run.to_parquet("grundy.parquet")

`python -m grundy ARGUMENTS` runs the program, `python -m grundy plot` draws pictures of a run.
docs/PYTHON.md describes every name. Only NumPy is required; `import grundy` alone loads nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import bursts as bursts
    from . import period as period
    from .errors import Damage, Discarded, RunError
    from .period import find_period
    from .run import Run, open_run

    __version__: str

__all__ = ["Damage", "Discarded", "Run", "RunError", "find_period", "open_run"]

_MODULES = {
    "Damage": "errors",
    "Discarded": "errors",
    "RunError": "errors",
    "Run": "run",
    "open_run": "run",
    "find_period": "period",
}

_SUBMODULES = {"bursts", "period"}


if not TYPE_CHECKING:  # a checker of types would accept every name

    def __getattr__(name: str) -> Any:
        """Imports a public name when it is first used, so that the program starts without NumPy."""
        if name == "__version__":
            return _version()
        if name in _SUBMODULES:
            return importlib.import_module(f".{name}", __name__)
        if name not in _MODULES:
            raise AttributeError(f"module 'grundy' has no attribute {name!r}")
        value = getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def _version() -> str:
    """Returns the version of the installed package; "0+source" for an uninstalled one."""
    from importlib import metadata

    try:
        return metadata.version("grundy")
    except metadata.PackageNotFoundError:
        return "0+source"
