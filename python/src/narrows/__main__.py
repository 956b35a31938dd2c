"""`python -m narrows sweep FILE.toml`; anything else goes to the program."""

import os
import sys

from ._program import program
from .sweep_command import main


def run() -> None:
    """Does what the arguments say."""
    if sys.argv[1:2] == ["sweep"]:
        sys.exit(main(sys.argv[2:]))
    name = program()
    os.execv(name, [name, *sys.argv[1:]])


run()
