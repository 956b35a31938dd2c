"""Scenarios, and their results in virtual time."""

from __future__ import annotations

import html
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Union

from . import _narrows
from ._report import Report
from ._value import Value, document, plain, time_text, toml

if TYPE_CHECKING:
    from ._live import Live
    from ._session import Session
    from ._virtual import Command, VirtualResult

Time = Union[str, timedelta]
"""A duration: `"250ms"`, `"2h"`, or a `timedelta`."""

IN_PYTHON = "<scenario in Python>"
# Key names of other tools, as in the program.
_WORDS_OF_OTHERS = {"latency": "delay", "bandwidth": "rate", "lag": "delay", "packet_loss": "loss", "throughput": "rate"}


class Scenario:
    """A network: hosts, links, routers, traffic and timeline.

    Scenarios are immutable: `set` and `offer` return a new one.

    >>> net = Scenario("adsl.toml")
    >>> net = Scenario(links={"access": {"between": ["client", "server"], "rate": "10mbit", "delay": "25ms"}})
    >>> net = narrows.link(rate="10mbit", delay="25ms")
    """

    def __init__(
        self,
        source: str | PathLike[str] | None = None,
        *,
        links: Mapping[str, Mapping[str, Value]] | Iterable[Mapping[str, Value]] | None = None,
        hosts: Mapping[str, Mapping[str, Value]] | Iterable[str] | None = None,
        routers: Mapping[str, Mapping[str, Value]] | Iterable[str] | None = None,
        traffic: Iterable[Mapping[str, Value]] = (),
        **others: Value,
    ) -> None:
        """Reads the file `source`, or builds a scenario from Python tables, which have the keys of scenario files.

        In a list of links each link needs a `name`. Without `hosts`, every end of a link (`between`) that is not a router is
        a host.
        """
        if source is None and links is None:
            raise TypeError("a scenario is a file, or has links")
        if source is not None:
            if links is not None or hosts is not None or routers is not None or list(traffic) or others:
                raise TypeError("a scenario is a file, or has links: use `set` to change one of a file")
            self._scenario = _narrows.Scenario.load(source)
            self._seed: int | None = None
            self._arguments: list[str] | None = [os.fspath(source)]
            return
        text = _text(links or {}, hosts, routers, list(traffic), others)
        self._take(_narrows.Scenario.parse(text, IN_PYTHON))

    def _take(self, scenario: _narrows.Scenario, arguments: list[str] | None = None) -> None:
        self._scenario = scenario
        self._seed = None
        # The same scenario as program arguments; None if the program needs a generated file.
        self._arguments = arguments

    @classmethod
    def _of(cls, scenario: _narrows.Scenario, arguments: list[str] | None) -> Scenario:
        self = cls.__new__(cls)
        self._take(scenario, arguments)
        return self

    @classmethod
    def from_text(cls, text: str, name: str = IN_PYTHON) -> Scenario:
        """Parses the text of a scenario file. Files that it names are relative to the folder of the file `name`."""
        return cls._of(_narrows.Scenario.parse(text, name), None)

    @classmethod
    def from_flags(cls, **flags: Value) -> Scenario:
        """Builds a link between the hosts `client` and `server`: `rate="10mbit/1mbit"`, `delay="25ms"`, `loss="1%"`.

        The keywords are the program's flags, with `_` for `-`. `DOWN/UP` sets a value for each direction.
        """
        known = {name.replace("-", "_"): name for name in _narrows.Scenario.flags()} | {
            "seed": "seed",
            "duration": "duration",
        }
        for name in flags:
            if name not in known:
                near = get_close_matches(_WORDS_OF_OTHERS.get(name, name), known, 1)
                also = f"; did you mean `{near[0]}`?" if near else ""
                raise _narrows.ScenarioError(f"`{name}` is no flag of a link{also}")
        texts = [(known[name], plain(value)) for name, value in flags.items()]
        arguments = [f"--{name}={text}" for name, text in texts]
        arguments = [one for one in arguments if not one.startswith("--duration=")]
        return cls._of(_narrows.Scenario.from_flags(texts), arguments)

    def set(self, assignments: Mapping[str, Value] | None = None, /, **more: Value) -> Scenario:
        """Returns a scenario with these keys set to these values: `set({"access.down.rate": "2mbit"})`."""
        texts = [f"{key}={plain(value)}" for key, value in {**(assignments or {}), **more}.items()]
        arguments = None
        if self._arguments is not None:
            arguments = self._arguments + [part for text in texts for part in ("--set", text)]
        changed = Scenario._of(self._scenario.set(texts), arguments)
        changed._seed = self._seed
        return changed

    def offer(self, *traffic: str | Mapping[str, Value]) -> Scenario:
        """Returns a scenario with this traffic instead of its own: `offer("up:poisson=2mbit", "down:aimd")`.

        Each argument is a value of `narrows sim --traffic`, or a table with the keys of `[[traffic]]`.
        """
        texts = [one if isinstance(one, str) else toml(one) for one in traffic]
        changed = Scenario._of(self._scenario.offer(texts), None)
        changed._seed = self._seed
        return changed

    def with_seed(self, seed: int) -> Scenario:
        """Returns a scenario with this seed."""
        changed = Scenario._of(self._scenario.with_seed(seed), self._arguments)
        changed._seed = seed
        return changed

    @property
    def file(self) -> str:
        """The name of the scenario: the file, or the flags."""
        return self._scenario.file

    @property
    def links(self) -> list[str]:
        """The names of the links."""
        return self._scenario.links

    @property
    def hosts(self) -> list[str]:
        """The names of the hosts."""
        return self._scenario.hosts

    @property
    def files(self) -> list[tuple[str, bytes]]:
        """The files that the scenario has read, such as traces, with their contents."""
        return self._scenario.files

    @property
    def seed(self) -> int:
        """The seed of all random draws."""
        return self._scenario.seed if self._seed is None else self._seed

    @property
    def duration(self) -> timedelta | None:
        """The duration, if the scenario sets one."""
        nanos = self._scenario.duration_ns
        return None if nanos is None else timedelta(microseconds=nanos / 1000)

    def to_toml(self) -> str:
        """Returns the text of the scenario file."""
        return self._scenario.to_toml()

    def check(self) -> str:
        """Returns the effective settings as text, as `narrows check` does: limits, defaults, expected round-trip times."""
        return self._scenario.explain()

    def explain(self) -> dict[str, Any]:
        """Returns the effective settings as data, as `narrows check --json` does."""
        explained: dict[str, Any] = json.loads(self._scenario.explain_json())
        return explained

    def simulate(
        self,
        *,
        seed: int | None = None,
        duration: Time | None = None,
        packets: bool = False,
        interval: Time | None = None,
        capture: str | PathLike[str] | None = None,
        progress: bool | Callable[[float], object] = False,
        elements: Mapping[str, Callable[[int], Iterable[float]] | Queue] | None = None,
        threads: int = 1,
    ) -> Result:
        """Runs the scenario in virtual time. The same scenario and seed give the same verdict for every packet, on every
        machine.

        Other Python threads continue to run, and Ctrl-C ends the run. A scenario without traffic gets the default traffic of
        `narrows sim`.

        `packets` records each packet; `interval` records a series with one row per interval. Otherwise `Result.packets` and
        `Result.series` repeat the run on first access. `capture` is a pcapng file to write. `progress` is a function that
        receives the seconds of virtual time so far, or True for a tqdm progress bar.

        `elements` are Python models for the delay or the loss of a direction of a link. A model is a function that receives n
        and returns n delays in seconds, or n booleans (lost or not), one for each packet in turn:
        `{"access.down.delay": lambda n: rng.gamma(4, 0.005, n)}`. An object can replace a queue,
        `{"access.down.queue": queue}`: see `narrows.Queue`. The report still shows the settings of the scenario. A model in
        the same initial state gives the same run. With elements, a result has only the packets and series that were requested.

        `threads` is the most threads that a run may be divided among; the result is the same on any number. Only large networks
        get faster by it, and some run on one thread: see "Large networks on several threads".
        """
        if threads < 1:
            raise ValueError(f"a run has one thread or more, not {threads}")
        scenario = self._scenario if self._scenario.has_traffic else self._scenario.offer_most()[0]
        models = list((elements or {}).items())
        run = _Run(scenario, self._seed if seed is None else seed, None if duration is None else time_text(duration), threads)
        with _progress(progress, duration or self.duration) as told:
            done = run(packets=packets, interval=None if interval is None else time_text(interval), capture=capture, progress=told, elements=models)
        return Result(None if models else run, done)

    def packets(self, *, seed: int | None = None, duration: Time | None = None) -> Iterator[_narrows.Table]:
        """Runs the scenario in another thread and yields packet records as they arrive, in tables of 65,536 rows.

        Memory is bounded, whatever the length of the run. Closing the iterator stops the run.
        """
        scenario = self._scenario if self._scenario.has_traffic else self._scenario.offer_most()[0]
        seed = self._seed if seed is None else seed
        tables = scenario.packets(seed, None if duration is None else time_text(duration))
        try:
            yield from tables
        finally:
            tables.close()

    def session(self, seed: int | None = None) -> Session:
        """Starts a session, which advances virtual time in steps, for senders written in Python. See `narrows.Session`."""
        from ._session import Session

        return Session(self, seed)

    def live(self, **options: Any) -> Live:
        """Returns a real-time network for real programs, which is up inside a `with` block. See `narrows.Live`."""
        from ._live import Live

        return Live(self, **options)

    def virtual(self, command: Command, **options: Any) -> VirtualResult:
        """Runs a program in exact virtual time. See `narrows.run_virtual`."""
        from ._virtual import run_virtual

        return run_virtual(self, command, **options)

    @contextmanager
    def _for_program(self) -> Iterator[list[str]]:
        """Yields the scenario as program arguments, which are valid inside the `with` block."""
        seed = [] if self._seed is None else [f"--seed={self._seed}"]
        if self._arguments is not None:
            yield self._arguments + seed
            return
        with tempfile.TemporaryDirectory(prefix="narrows-") as folder:
            for name, contents in self._scenario.files:
                # A file with an absolute path stays in place.
                path = Path(folder, name)
                if not Path(name).is_absolute() and ".." not in Path(name).parts:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(contents)
            path = Path(folder, "scenario.toml")
            path.write_text(self.to_toml(), encoding="utf-8")
            yield [str(path)] + seed

    def __reduce__(self) -> tuple[Any, ...]:
        state = (self._scenario.to_toml(), self._scenario.file, self._scenario.files, self._seed, self._arguments)
        return (_unpickled, state)

    def __repr__(self) -> str:
        return f"<narrows.Scenario {self.file!r}>"

    def _repr_html_(self) -> str:
        from ._picture import topology

        return f"<div><b>{html.escape(self.file)}</b><br>{topology(self.explain(), self.to_toml())}</div>"


def _unpickled(
    text: str, file: str, files: Sequence[tuple[str, bytes]], seed: int | None, arguments: list[str] | None
) -> Scenario:
    scenario = Scenario._of(_narrows.Scenario.parse_with_files(text, file, files), arguments)
    scenario._seed = seed
    return scenario


def link(**flags: Value) -> Scenario:
    """Builds a link between the hosts `client` and `server` from the program's flags: `link(rate="10mbit", delay="25ms")`."""
    return Scenario.from_flags(**flags)


class Queue(Protocol):
    """A queue in Python: scheduler, limit and queue management in one. It is called for each enqueue and each dequeue; a call
    takes some microseconds.
    """

    def enqueue(self, packet: _narrows.QueuedPacket) -> bool | None | list[int]:
        """Called when a packet arrives. Return `False` to drop it, or a list of the numbers of queued packets to drop."""

    def dequeue(self, now: float) -> int | None | tuple[int | None, list[int]]:
        """Called when the transmitter is free and packets are queued. Return the number of the packet to send, or None, or a
        tuple of that and a list of packets to drop. After None it is called again when a packet arrives.
        """


class Result:
    """The result of a run in virtual time."""

    def __init__(self, run: _Run | None, done: _narrows.Simulation) -> None:
        self._run = run
        self._report = Report(done.report)
        self._packets = done.packets
        self._series = done.series

    def report(self) -> Report:
        """Returns the report, with the names of `narrows sim --json`."""
        return self._report

    @property
    def summary(self) -> str:
        """The summary that `narrows sim` prints, about a dozen lines."""
        return self._report.summary

    @property
    def packets(self) -> _narrows.Table:
        """A record of each packet, with the columns of `narrows sim --packets`, for Polars, DuckDB, pandas or pyarrow.

        `polars.DataFrame(result.packets)`, `duckdb.sql("…")` over it, `pyarrow.table(result.packets).to_pandas()`:
        Arrow's PyCapsule interface, without a copy.
        """
        if self._packets is None:
            self._packets = self._again("packets=True")(packets=True).packets
        assert self._packets is not None
        return self._packets

    @property
    def series(self) -> _narrows.Table:
        """The state of each link and flow per interval, with the columns of `narrows sim --series`. Interval: 100 ms, or the
        value of `simulate(interval=…)`.
        """
        if self._series is None:
            self._series = self._again('interval="100ms"')(interval="100ms").series
        assert self._series is not None
        return self._series

    def _again(self, option: str) -> _Run:
        if self._run is None:
            raise _narrows.NarrowsError(f"a run with elements of Python is not made again: simulate(…, {option})")
        return self._run

    def plot(self) -> Any:
        """Plots throughput, backlog and drops of each link over time as a matplotlib figure (`pip install narrows[plot]`)."""
        from ._picture import figure

        return figure(self.series, self._report["title"])

    def __str__(self) -> str:
        return self.summary

    def __repr__(self) -> str:
        return f"<narrows.Result of {self._report['title']!r}>"

    def _repr_html_(self) -> str:
        return self._report._repr_html_()


class _Run:
    """A run that can be repeated with the same result."""

    def __init__(self, scenario: _narrows.Scenario, seed: int | None, duration: str | None, threads: int) -> None:
        self._scenario, self._seed, self._duration, self._threads = scenario, seed, duration, threads

    def __call__(
        self,
        packets: bool = False,
        interval: str | None = None,
        capture: str | PathLike[str] | None = None,
        progress: Callable[[float], object] | None = None,
        elements: Sequence[tuple[str, object]] = (),
    ) -> _narrows.Simulation:
        return self._scenario.simulate(
            self._seed, self._duration, packets, interval, capture, progress, elements, self._threads
        )


@contextmanager
def _progress(asked: bool | Callable[[float], object], length: Time | None) -> Iterator[Callable[[float], object] | None]:
    if asked is False:
        yield None
        return
    if callable(asked):
        yield asked
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield lambda at: print(f"\r{at:.1f} s of virtual time", end="", file=sys.stderr)
        print(file=sys.stderr)
        return
    total = length.total_seconds() if isinstance(length, timedelta) else None
    with tqdm(total=total, unit="s", unit_scale=True) as bar:
        yield lambda at: bar.update(at - bar.n)


def _text(
    links: Mapping[str, Mapping[str, Value]] | Iterable[Mapping[str, Value]],
    hosts: Mapping[str, Mapping[str, Value]] | Iterable[str] | None,
    routers: Mapping[str, Mapping[str, Value]] | Iterable[str] | None,
    traffic: list[Mapping[str, Value]],
    others: Mapping[str, Value],
) -> str:
    if not isinstance(links, Mapping):
        named: dict[str, Mapping[str, Value]] = {}
        for one in links:
            if "name" not in one:
                raise _narrows.ScenarioError(f"a link in a list needs a `name`: {dict(one)!r}")
            name = str(one["name"])
            if name in named:
                raise _narrows.ScenarioError(f"two links are called `{name}`")
            named[name] = {key: value for key, value in one.items() if key != "name"}
        links = named
    if routers is None or not isinstance(routers, Mapping):
        routers = {name: {} for name in routers or ()}
    if hosts is None:
        ends = [str(end) for one in links.values() for end in _list(one.get("between", ()))]
        hosts = [end for end in dict.fromkeys(ends) if end not in routers]
    if not isinstance(hosts, Mapping):
        hosts = {name: {} for name in hosts}
    contents: dict[str, Value] = {**others, "hosts": hosts, "routers": routers, "links": links, "traffic": traffic}
    return document({key: value for key, value in contents.items() if value not in ({}, [])})


def _list(value: Value) -> Iterable[Value]:
    return value if isinstance(value, (list, tuple)) else ()
