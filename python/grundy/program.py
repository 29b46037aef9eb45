"""Where the program `grundy` is."""

from __future__ import annotations

import os
import shutil
import sysconfig


def find_program() -> str | None:
    """Returns the path of the program: that of this package, or the first on PATH; None without."""
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
