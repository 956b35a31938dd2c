"""Sweeps: a scenario over a grid of values and many seeds, on any executor."""

from __future__ import annotations

import itertools
import json
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Union, cast

from . import _narrows
from ._cache import Cache, Measure, identity_of, key_of, measure_identity
from ._narrows import NarrowsError
from ._report import Report, named_directions
from ._scenario import Result, Scenario, Time
from ._statistics import Interval, bootstrap_interval, t_interval
from ._value import Value, plain, time_text
from ._workers import Progress, spread, spread_here, worker_count

_FEW = 10
_MOST_IN_A_CHUNK = 64


class Grid(Sequence[Mapping[str, Value]]):
    """All combinations of the values of some axes; the last axis varies fastest."""

    def __init__(self, axes: Mapping[str, Iterable[Value]]) -> None:
        self.axes = {name: _values(name, values) for name, values in axes.items()}
        self._points = [
            dict(zip(self.axes, values)) for values in itertools.product(*self.axes.values())
        ]

    def __len__(self) -> int:
        return len(self._points)

    def __getitem__(self, at: Any) -> Any:
        return self._points[at]

    def __iter__(self) -> Iterator[Mapping[str, Value]]:
        return iter(self._points)


def grid(axes: Mapping[str, Iterable[Value]] | None = None, /, **more: Iterable[Value]) -> Grid:
    """Builds a grid: `grid(rate=["10mbit", "100mbit"], queue=["10 packets", "codel"])`.

    An axis with a dot is a key of the scenario (`{"access.down.rate": […]}`); one without a dot is a key of every link. A
    value may be a table of keys that are set together:
    `grid(link={"slow": {"access.rate": "1mbit", "access.delay": "80ms"}, …})`.
    """
    return Grid({**(axes or {}), **more})


def _values(name: str, values: Iterable[Value]) -> list[Any]:
    if isinstance(values, str):
        raise TypeError(f"the axis `{name}` takes a list of values, not the text {values!r}")
    if isinstance(values, Mapping):
        listed: list[Any] = [_Labelled(str(label), keys) for label, keys in values.items()]
    else:
        listed = list(values)
    if not listed:
        raise ValueError(f"the axis `{name}` has no values")
    return listed


class _Labelled(str):
    """A name for values that are set together."""

    keys: Mapping[str, Value]

    def __new__(cls, label: str, keys: Value) -> _Labelled:
        if not isinstance(keys, Mapping):
            raise TypeError(f"`{label}` names a table of keys, not {keys!r}")
        made = super().__new__(cls, label)
        made.keys = cast("Mapping[str, Value]", keys)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return (_Labelled, (str(self), dict(self.keys)))


Net = Union[Scenario, Callable[..., Scenario]]


def _scenario_at(net: Net, point: Mapping[str, Any]) -> Scenario:
    if not isinstance(net, Scenario):
        return net(**point)
    keys: dict[str, Value] = {}
    for axis, value in point.items():
        if isinstance(value, _Labelled):
            keys.update(value.keys)
        elif "." in axis:
            keys[axis] = value
        else:
            keys.update({f"{link}.{axis}": value for link in net.links})
    return net.set(keys) if keys else net


class _Task:
    """Some runs of one scenario, as sent to a worker."""

    def __init__(
        self,
        scenario: Scenario,
        seeds: Sequence[int],
        mode: str,
        duration: str | None,
        measures: Mapping[str, Measure],
        command: Any,
    ) -> None:
        self.scenario, self.seeds, self.mode = scenario, list(seeds), mode
        self.duration, self.measures, self.command = duration, dict(measures), command

    def __call__(self) -> list[dict[str, Any]]:
        return [self._one(seed) for seed in self.seeds]

    def _one(self, seed: int) -> dict[str, Any]:
        try:
            result, report = self._run(seed)
            figures = figures_of(report)
            for name, measure in self.measures.items():
                if isinstance(measure, str):
                    if measure not in figures:
                        raise NarrowsError(f"there is no figure `{measure}`{_near(measure, figures)}")
                    figures[name] = figures[measure]
                else:
                    figures[name] = float(measure(result))
        except Exception as error:  # a measure may raise anything; the other runs continue
            return {"error": f"{type(error).__name__}: {error}"}
        return {"figures": figures, "trust": report.trust}

    def _run(self, seed: int) -> tuple[Any, Report]:
        if self.mode == "simulate":
            result: Result = self.scenario.simulate(seed=seed, duration=self.duration)
            return result, result.report()
        if self.mode == "virtual":
            done = self.scenario.with_seed(seed).virtual(self.command, check=True)
            return done, done.report
        with self.scenario.with_seed(seed).live() as run:
            first = next(iter(run.hosts.values()))
            output = first.check_output(self.command)
        if not run.report.is_accurate:
            raise NarrowsError(run.report.trust_line)
        return (output, run.report), run.report


def figures_of(report: Report) -> dict[str, float]:
    """Returns the figures of a report by name: for each direction (`access.down.dropped_share`, and for a shared medium or a
    pipe `radio.up.dropped_share`), each pair of ports (`client.access>server.access.delay.p99_ns`), each traffic source and
    each application (`web.…`).
    """
    found: dict[str, float] = {}

    def take(name: str, value: Any) -> None:
        if isinstance(value, bool):
            return
        if isinstance(value, (int, float)):
            found[name] = value
        elif isinstance(value, Mapping):
            for key, inner in value.items():
                take(f"{name}.{key}", inner)

    for name, one in named_directions(report).items():
        take(name, one)
    for one in report["pairs"]:
        take(f"{one['from_port']}>{one['to_port']}", one)
    for one in [*report["generated"], *report["applications"]]:
        take(one["name"], one)
    return found


def _near(name: str, figures: Mapping[str, float]) -> str:
    near = get_close_matches(name, figures, 3, 0.5)
    return f"; perhaps {', '.join(f'`{one}`' for one in near)}" if near else ""


class Sweep:
    """The result of a sweep: a row for each point of the grid and each seed, in that order."""

    def __init__(
        self, axes: Sequence[str], rows: list[dict[str, Any]], failures: list[dict[str, Any]], manifest: dict[str, Any]
    ) -> None:
        self._axes = list(axes)
        self.rows = rows
        """The successful runs: axes, `seed`, `trust`, and figures."""
        self.failures = failures
        """The failed runs: axes, `seed` and `error`."""
        self.manifest = manifest
        """The inputs of the sweep, sufficient to repeat it."""

    @property
    def figures(self) -> list[str]:
        """The names of the figures."""
        known = dict.fromkeys(name for row in self.rows for name in row)
        return [name for name in known if name not in (*self._axes, "seed", "trust")]

    @property
    def table(self) -> _narrows.Table:
        """The rows as columns, for Polars, DuckDB, pandas or pyarrow."""
        names = [*self._axes, "seed", "trust", *sorted(self.figures)]
        return _narrows.Table.of([(name, [row.get(name) for row in self.rows]) for name in names])

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the rows as Parquet and, next to it, the manifest (`NAME.manifest.json`) with the failures."""
        self.table.to_parquet(path)
        manifest = json.dumps({**self.manifest, "failures": self.failures}, indent=2, sort_keys=True) + "\n"
        Path(os.fspath(path)).with_suffix(".manifest.json").write_text(manifest, encoding="utf-8")

    def summary(
        self, of: str, by: str | Sequence[str] = (), ci: float = 0.95, method: str = "t"
    ) -> list[dict[str, Any]]:
        """Returns the mean of a figure with its confidence interval, for each value of some axes, as a list of rows.

        The interval is Student's t, or with `method="bootstrap"` the percentile bootstrap. Fewer than ten runs give a warning.
        """
        by = [by] if isinstance(by, str) else list(by)
        for axis in by:
            if axis not in self._axes:
                raise NarrowsError(f"there is no axis `{axis}`: {', '.join(self._axes)}")
        groups: dict[tuple[Any, ...], list[float]] = {}
        for row in self.rows:
            if of in row and row[of] is not None:
                groups.setdefault(tuple(row[axis] for axis in by), []).append(row[of])
        if not groups:
            raise NarrowsError(f"there is no figure `{of}`{_near(of, dict.fromkeys(self.figures, 0.0))}")
        summed: list[dict[str, Any]] = []
        for group, values in groups.items():
            interval = _interval(values, ci, method, of)
            summed.append({**dict(zip(by, group)), **interval._asdict()})
        return summed

    def compare(
        self, axis: str, first: Any, second: Any, of: str, ci: float = 0.95, method: str = "t"
    ) -> Interval:
        """Returns the difference of a figure, `second` minus `first`, all else equal. Runs with the same seed have the same
        random draws and are compared in pairs.
        """
        if axis not in self._axes:
            raise NarrowsError(f"there is no axis `{axis}`: {', '.join(self._axes)}")
        sides: tuple[dict[Any, float], dict[Any, float]] = ({}, {})
        for row in self.rows:
            if row.get(of) is None:
                continue
            rest = tuple(row[other] for other in self._axes if other != axis) + (row["seed"],)
            for side, value in zip(sides, (first, second)):
                if row[axis] == _cell(value):
                    side[rest] = row[of]
        pairs = [sides[1][rest] - value for rest, value in sides[0].items() if rest in sides[1]]
        if not pairs:
            raise NarrowsError(f"there are no runs with `{of}` of both {first!r} and {second!r} on `{axis}`")
        return _interval(pairs, ci, method, of)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<narrows.Sweep over {', '.join(self._axes) or 'seeds'}: {len(self.rows)} runs{failed}>"


def _interval(values: Sequence[float], ci: float, method: str, of: str) -> Interval:
    if not 0 < ci < 1:
        raise ValueError(f"a confidence is between 0 and 1, not {ci}")
    if len(values) < _FEW:
        warnings.warn(f"`{of}`: an interval of {len(values)} runs says little; take at least {_FEW}", stacklevel=3)
    if method == "t":
        return t_interval(values, ci)
    if method == "bootstrap":
        return bootstrap_interval(values, ci)
    raise ValueError(f'intervals are "t" or "bootstrap", not {method!r}')


def sweep(
    net: Net,
    grid: Iterable[Mapping[str, Value]] | None = None,
    *,
    seeds: Iterable[int] | int = 1,
    duration: Time | None = None,
    measure: Mapping[str, Measure] | None = None,
    executor: Any = None,
    cache: str | os.PathLike[str] | None = None,
    mode: str = "simulate",
    command: Any = None,
    retries: int = 1,
    progress: bool = True,
) -> Sweep:
    """Runs a scenario for each point of a grid and each seed.

    `net` is a scenario in which the values of a point are set, or a function that takes the values and returns a scenario.
    `seeds` is a list of seeds, or their number. Each run keeps the figures of its report. `measure` adds columns: the name of
    a figure, or a function of the `Result` (defined in a module if it is sent to other processes).

    `executor` is any executor of `concurrent.futures`, Dask's `client.get_executor()`, submitit's or Parsl's, or
    `narrows.executors.RayExecutor()`. Default: a pool with one process per processor. A task consists of several runs.

    `cache` is a folder that keeps each result under a hash of its inputs (scenario and files, seed, version of narrows,
    measures): an interrupted sweep continues, and a repeated sweep reads its results from the cache. A failed run does not
    end the sweep: it is retried `retries` times if its worker died, and then listed in `Sweep.failures`.

    `mode` is `"simulate"`, or `"virtual"` or `"live"` with `command`, which runs on the first host. Functions of `measure`
    then get a `VirtualResult`, or the command's output and the report. Live runs execute one after the other; a run that was
    not accurate counts as failed.
    """
    if mode not in ("simulate", "virtual", "live"):
        raise ValueError(f'a mode is "simulate", "virtual" or "live", not {mode!r}')
    if (mode == "simulate") != (command is None):
        raise TypeError("`command` is for the modes virtual and live, which need one")
    points = list(grid) if grid is not None else [{}]
    seeds = list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)
    if len(set(seeds)) != len(seeds):
        raise ValueError("a seed comes twice: its runs would be the same")
    length = None if duration is None else time_text(duration)
    measures = dict(measure or {})
    kept = Cache(Path(cache)) if cache is not None else None

    scenarios = [_scenario_at(net, point) for point in points]
    runs = [(at, seed) for at in range(len(points)) for seed in seeds]
    texts = [identity_of(scenario, mode, length, measures, command) for scenario in scenarios]
    keys = {(at, seed): key_of(texts[at], seed) for at, seed in runs}
    outcomes: dict[tuple[int, int], dict[str, Any]] = {}
    if kept is not None:
        for run in runs:
            known = kept.get(keys[run])
            if known is not None:
                outcomes[run] = known
    missing = [run for run in runs if run not in outcomes]
    workers = 1 if mode == "live" else worker_count(executor)
    size = max(1, min(_MOST_IN_A_CHUNK, math.ceil(len(missing) / (workers * 8))))
    chunks = [
        (at, [seed for _, seed in group[start : start + size]])
        for at, group in ((at, list(runs_of)) for at, runs_of in itertools.groupby(missing, key=lambda run: run[0]))
        for start in range(0, len(group), size)
    ]

    told = Progress(len(runs), len(outcomes), progress)

    def take(at: int, done: Sequence[int], results: Sequence[dict[str, Any]]) -> None:
        for seed, result in zip(done, results):
            outcomes[at, seed] = result
            if kept is not None and "error" not in result:
                kept.put(keys[at, seed], result)
        told.add(len(done))

    def task(at: int, part: Sequence[int]) -> _Task:
        return _Task(scenarios[at], part, mode, length, measures, command)

    try:
        if mode == "live":
            for at, part in chunks:
                take(at, part, task(at, part)())
        elif executor is None:
            spread_here(chunks, task, take, workers, retries)
        else:
            spread(chunks, task, take, executor, retries)
    finally:
        told.close()
        if kept is not None:
            kept.tell()

    axes = list(dict.fromkeys(axis for point in points for axis in point))
    rows: list[dict[str, Any]] = []
    failures: list[dict[str, Any]] = []
    for at, seed in runs:
        place = {axis: _cell(points[at].get(axis)) for axis in axes} | {"seed": seed}
        outcome = outcomes[at, seed]
        if "error" in outcome:
            failures.append({**place, "error": outcome["error"]})
        else:
            rows.append({**place, "trust": outcome["trust"], **outcome["figures"]})
    if failures:
        warnings.warn(f"{len(failures)} of {len(runs)} runs failed: see `failures`", stacklevel=2)
    manifest = {
        "narrows": _narrows.__version__,
        "mode": mode,
        "command": command,
        "duration": length,
        "seeds": seeds,
        "measures": {name: measure_identity(one) for name, one in measures.items()},
        "points": [{axis: _cell(value) for axis, value in point.items()} for point in points],
        "scenarios": [scenario.to_toml() for scenario in scenarios],
        "runs": len(runs),
    }
    return Sweep(axes, rows, failures, manifest)


def _cell(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float)) else str(plain(value))
