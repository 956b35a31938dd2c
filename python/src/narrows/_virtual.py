"""Real programs in exact virtual time."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from ._narrows import NarrowsError
from ._program import program
from ._report import Report

if TYPE_CHECKING:
    from ._scenario import Scenario

Command = Union[str, Sequence[str]]


@dataclass(frozen=True)
class VirtualResult:
    """The result of a program in exact virtual time."""

    returncode: int
    stdout: str
    stderr: str
    report: Report

    def check(self) -> VirtualResult:
        """Returns this result, or raises an error if the program failed."""
        if self.returncode != 0:
            raise subprocess.CalledProcessError(self.returncode, self.report["title"], self.stdout, self.stderr)
        return self


def run_virtual(
    scenario: Scenario,
    command: Command,
    *,
    on: Mapping[str, Command] | None = None,
    write: Iterable[str | os.PathLike[str]] = (),
    check: bool = False,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    options: Iterable[str] = (),
    **flags: Any,
) -> VirtualResult:
    """Runs a program behind the network, on Linux's own TCP, in a guest with a virtual clock. The result is the same each
    time, whatever else this machine does.

    `command` runs on the first host (on another with `options=["--host=NAME"]`), the commands of `on` on their hosts; a
    string is run by `sh -c`. Only the files and folders in `write` keep what it writes. `options` are further flags of
    `narrows run --virtual`. `narrows kernel build` builds the guest kernel, once.
    """
    if flags:
        raise TypeError(f"`{next(iter(flags))}` is no option of virtual runs")
    shell = ["sh", "-c", command] if isinstance(command, str) else [os.fspath(part) for part in command]
    others: list[str] = []
    for host, text in (on or {}).items():
        others += ["--on", host, text if isinstance(text, str) else shlex.join(text)]
    with tempfile.TemporaryDirectory(prefix="narrows-") as folder, scenario._for_program() as network:
        file = Path(folder, "report.json")
        flags_of_run = [*network, "--virtual", f"--json={file}", "--report=none", *others]
        flags_of_run += [f"--write={os.fspath(path)}" for path in write]
        done = subprocess.run(
            [program(), "run", *flags_of_run, *options, "--", *shell],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            env=None if env is None else dict(env),
            cwd=cwd,
        )
        if not file.is_file():
            raise NarrowsError(done.stderr.strip() or f"the run ended with status {done.returncode}")
        report = Report.parse(file.read_text(encoding="utf-8"))
    result = VirtualResult(done.returncode, done.stdout, done.stderr, report)
    return result.check() if check else result
