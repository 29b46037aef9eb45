"""Where the program `grundy` is."""

from __future__ import annotations

import os
import shutil
import sysconfig


def find_program() -> str | None:
    """Returns the path of the program, or None if there is none.

    The variable GRUNDY names it by path, or by its name on PATH. Without the variable, it is the
    program that was installed with this package, else the first `grundy` on PATH. The file that
    GRUNDY names need not exist.
    """
    named = os.environ.get("GRUNDY")
    if named:
        return shutil.which(named) or named
    target = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    user = "posix_user" if os.name == "posix" else "nt_user"
    directories = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", user),
        os.path.join(target, "bin"),  # pip install --target
    ]
    for directory in directories:
        path = os.path.join(directory, "grundy" + (sysconfig.get_config_var("EXE") or ""))
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return shutil.which("grundy")
