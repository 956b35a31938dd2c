"""Networks in real time, for real programs."""

from __future__ import annotations

import json
import os
import shlex
import signal
import struct
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from ._narrows import NarrowsError
from ._program import program
from ._report import Report
from ._value import Value, plain

if TYPE_CHECKING:
    from ._scenario import Scenario

# Prints when the network is up, and ends when this process ends for any reason.
_UNTIL_CLOSED = ["sh", "-c", "echo up && exec cat >/dev/null"]
# How long to wait, in seconds, for a network to end: it waits for programs that it started.
_PATIENCE = 60.0


class Host:
    """A host of a running network. Programs started in it use its interfaces and addresses."""

    def __init__(self, network: Live, name: str, addresses: Sequence[str]) -> None:
        self.name = name
        self.addresses = list(addresses)
        self._network = network

    @property
    def address(self) -> str:
        """The first address of the host."""
        if not self.addresses:
            raise NarrowsError(f"the host `{self.name}` has no address")
        return self.addresses[0]

    def command(self, command: str | Sequence[str]) -> list[str]:
        """Returns the command line that runs `command` in the host, for libraries that start programs themselves."""
        inner = ["sh", "-c", command] if isinstance(command, str) else [os.fspath(part) for part in command]
        return [program(), "exec", self._network.name, self.name, "--", *inner]

    def popen(self, command: str | Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Starts a program, as `subprocess.Popen` does; a string is run by `sh -c`. It ends with the network at the latest."""
        return self._network._started(subprocess.Popen(self.command(command), **options))

    def run(self, command: str | Sequence[str], **options: Any) -> subprocess.CompletedProcess[Any]:
        """Runs a program and waits for it, as `subprocess.run` does."""
        return subprocess.run(self.command(command), **options)

    def check_output(self, command: str | Sequence[str], **options: Any) -> str:
        """Runs a program and returns its output as text; raises an error if it fails."""
        output: str = subprocess.check_output(self.command(command), text=True, **options)
        return output

    def __repr__(self) -> str:
        return f"<narrows.Host {self.name} {' '.join(self.addresses)}>"


class Live:
    """A network that is up inside a `with` block, for real programs and real packets:

        with net.live() as run:
            server = run.host("server").popen(["iperf3", "-s"])
            print(run.host("client").check_output(["ping", "-c", "5", run["server"].address]))
            run.set("access.down.rate", "1mbit")
        print(run.report)

    It does not need root if the host permits user namespaces (`narrows doctor` checks this). The network ends with this
    process at the latest, even if the process is killed.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        name: str | None = None,
        capture: str | os.PathLike[str] | None = None,
        series: str | os.PathLike[str] | None = None,
        packets: str | os.PathLike[str] | None = None,
        max_lateness: str | Sequence[str] | None = None,
        options: Iterable[str] = (),
    ) -> None:
        """Files to write: `capture` (pcapng), `series` and `packets` (CSV, or Parquet if the name ends in `.parquet`).
        `max_lateness` is a bound such as `"p99=1ms"`; `options` are further flags of `narrows run`.
        """
        self.name = name or f"py-{uuid.uuid4().hex[:12]}"
        bounds = [max_lateness] if isinstance(max_lateness, str) else list(max_lateness or ())
        self._options = [
            f"--name={self.name}",
            *([] if capture is None else [f"--capture={os.fspath(capture)}"]),
            *([] if series is None else [f"--series={os.fspath(series)}"]),
            *([] if packets is None else [f"--packets={os.fspath(packets)}"]),
            *[f"--max-lateness={bound}" for bound in bounds],
            *options,
        ]
        self._scenario = scenario
        self._process: subprocess.Popen[str] | None = None
        self._programs: list[subprocess.Popen[Any]] = []
        self._hosts: dict[str, Host] = {}
        self._report: Report | None = None
        self._things = ExitStack()
        self._folder = Path()
        self._errors: IO[str] | None = None

    def __enter__(self) -> Live:
        if self._process is not None or self._report is not None:
            raise NarrowsError("this network has been up already: make another one")
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def _start(self) -> None:
        self._folder = Path(self._things.enter_context(tempfile.TemporaryDirectory(prefix="narrows-")))
        network = self._things.enter_context(self._scenario._for_program())
        errors = self._things.enter_context(open(self._folder / "errors", "w+", encoding="utf-8", errors="replace"))
        self._errors = errors
        flags = [*network, *self._options, f"--json={self._folder / 'report.json'}", "--report=none"]
        self._process = subprocess.Popen(
            [program(), "run", *flags, "--", *_UNTIL_CLOSED],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            # Ctrl-C goes to this process, which then ends the network.
            start_new_session=True,
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "up\n":
            self._process.wait()
            raise NarrowsError(self._said() or "the network did not come up")
        listed = json.loads(self._ask("ls", self.name, "--json"))
        for one in listed["hosts"]:
            addresses = [str(address) for interface in one["interfaces"] for address in interface["addresses"]]
            self._hosts[one["host"]] = Host(self, one["host"], addresses)

    def _said(self) -> str:
        assert self._errors is not None
        self._errors.flush()
        self._errors.seek(0)
        return self._errors.read().strip()

    def _ask(self, *command: str) -> str:
        asked = subprocess.run([program(), *command], capture_output=True, text=True)
        if asked.returncode != 0:
            raise NarrowsError(asked.stderr.strip() or f"`narrows {shlex.join(command)}` failed")
        return asked.stdout

    @property
    def hosts(self) -> Mapping[str, Host]:
        """The hosts, by name."""
        return dict(self._hosts)

    def host(self, name: str) -> Host:
        """Returns a host by name."""
        if name not in self._hosts:
            raise NarrowsError(f"there is no host `{name}`: {', '.join(self._hosts)}")
        return self._hosts[name]

    def __getitem__(self, name: str) -> Host:
        return self.host(name)

    def set(self, key: str | Mapping[str, Value], value: Value | None = None) -> None:
        """Sets a key, or several keys at one instant, as `narrows set` does: `run.set("access.down.rate", "1mbit")`."""
        if isinstance(key, str):
            if value is None:
                raise TypeError("a key and its value, or a table of them")
            key = {key: value}
        self._ask("set", "--run", self.name, *[f"{name}={plain(one)}" for name, one in key.items()])

    def feed(self, feed: str, delays: Iterable[float | None]) -> subprocess.Popen[Any]:
        """Streams delays in seconds into a feed as packets use them; None drops a packet. A feed is `LINK.DIRECTION/NAME`,
        or as much of it as is unique. The stream runs in the background until the delays or the network end.
        """
        process = subprocess.Popen(
            [program(), "feed", "--run", self.name, "--binary", feed],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        threading.Thread(target=_write, args=(process, delays), name="narrows-feed", daemon=True).start()
        return self._started(process)

    def stats(self) -> dict[str, Any]:
        """Returns the current state of the network, as `narrows stats --json` does."""
        stats: dict[str, Any] = json.loads(self._ask("stats", "--run", self.name, "--json"))
        return stats

    @property
    def report(self) -> Report:
        """The report of the network. Available when the network has ended."""
        if self._report is None:
            raise NarrowsError("the report is there when the network has ended: ask `stats` before")
        return self._report

    def close(self) -> Report:
        """Ends the network and the programs started in it, and returns its report."""
        if self._report is None:
            if self._process is None:
                raise NarrowsError("this network is not up")
            self._end()
        return self.report

    def _started(self, started: subprocess.Popen[Any]) -> subprocess.Popen[Any]:
        self._programs.append(started)
        return started

    def _end(self) -> None:
        for started in self._programs:
            if started.poll() is None:
                started.terminate()
        process = self._process
        said = ""
        if process is not None:
            assert process.stdin is not None and process.stdout is not None
            try:
                process.stdin.close()
            except BrokenPipeError:
                pass
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
            process.stdout.close()
            said = self._said()
        for started in self._programs:
            try:
                started.wait(1)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()
        file = self._folder / "report.json"
        if process is not None and file.is_file():
            self._report = Report.parse(file.read_text(encoding="utf-8"))
        self._process = None
        self._things.close()
        if process is not None and self._report is None and self._hosts:
            raise NarrowsError(said or "the network has ended without a report")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def __repr__(self) -> str:
        state = "up" if self._process is not None else "ended" if self._report is not None else "not up"
        return f"<narrows.Live {self.name} of {self._scenario.file!r}: {state}>"



def _write(process: subprocess.Popen[Any], delays: Iterable[float | None]) -> None:
    """Writes delays in the program's format: nanoseconds, −1 for a loss. The reader may close at any time."""
    assert process.stdin is not None
    try:
        with process.stdin as to:
            for delay in delays:
                to.write(struct.pack("<q", -1 if delay is None else round(delay * 1e9)))
    except (BrokenPipeError, ValueError):
        pass
