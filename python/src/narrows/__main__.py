"""`python -m narrows sweep FILE.toml`; passes other arguments to the program."""

import os
import sys

from ._program import program
from .sweep_command import main


def run() -> None:
    """Runs the command in the arguments."""
    if sys.argv[1:2] == ["sweep"]:
        sys.exit(main(sys.argv[2:]))
    name = program()
    os.execv(name, [name, *sys.argv[1:]])


run()
