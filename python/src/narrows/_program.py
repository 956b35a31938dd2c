"""Finds the program `narrows`, which runs networks for real programs."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

from ._narrows import NarrowsError


def program() -> str:
    """Returns the path of the program: `$NARROWS`, else the program of this package, else the first in `PATH`."""
    named = os.environ.get("NARROWS")
    if named and os.sep in named:
        return named
    beside = Path(sysconfig.get_path("scripts")) / "narrows"
    if os.access(beside, os.X_OK):
        return str(beside)
    found = shutil.which("narrows")
    if found is None:
        raise NarrowsError(
            "there is no program `narrows` here: this package was built without it. "
            "Install it, or say in the variable NARROWS where it is"
        )
    return found
