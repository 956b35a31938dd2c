"""`narrows sweep`: a sweep from a file.

    scenario = "adsl.toml"          # relative to this file
    seeds = 100                     # a number of seeds, or a list
    duration = "60s"                # default: the scenario's

    [grid]
    "access.down.rate" = ["1mbit", "2mbit"]
    "access.down.queue" = ["20 packets", "codel"]

    [measure]                       # your names for figures of the report
    lost = "access.down.dropped_share"
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import _narrows
from ._narrows import NarrowsError
from ._scenario import Scenario
from ._sweep import Grid, Sweep, sweep
from ._workers import pool

_KEYS = {"scenario", "seeds", "duration", "grid", "measure"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="narrows sweep",
        description="Run a scenario over a grid of values and many seeds, in virtual time, on all processors.",
        epilog="Example:\n  narrows sweep sweep.toml --out results.parquet --cache results --by access.down.queue --of lost",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, metavar="FILE.toml", help="scenario, seeds, grid and measures")
    parser.add_argument("--out", type=Path, metavar="FILE.parquet", help="write a row for each run, and a manifest beside it")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="keep results there: an interrupted sweep goes on")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes (default: one for each processor)")
    parser.add_argument("--of", action="append", default=[], metavar="FIGURE", help="figure to sum up; repeatable (default: the measures)")
    parser.add_argument("--by", action="append", default=[], metavar="AXIS", help="axis to sum up by; repeatable (default: all)")
    parser.add_argument("--ci", type=float, default=0.95, metavar="SHARE", help="confidence of intervals (default: 0.95)")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    args = parser.parse_args(arguments)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        status = _guarded(args)
    for text in dict.fromkeys(str(one.message) for one in found):
        print(f"narrows: {text}", file=sys.stderr)
    return status


def _guarded(args: Any) -> int:
    try:
        return _run(args)
    except OSError as error:
        print(f"narrows: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except (NarrowsError, ValueError, TypeError) as error:
        print(f"narrows: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        kept = f"; what was done is in {args.cache}" if args.cache else ""
        print(f"narrows: interrupted{kept}", file=sys.stderr)
        return 130


def _run(args: Any) -> int:
    plan = _read(args.file)
    measures: dict[str, Any] = plan.get("measure", {})
    jobs = args.jobs
    if jobs is not None and jobs < 1:
        raise NarrowsError(f"--jobs {jobs}: at least 1")
    file = args.file.parent / plan["scenario"]
    scenario = Scenario(file)
    if args.out is not None:
        _check_output(args.out, [args.file, file, *(file.parent / name for name, _ in scenario.files)])
    executor = None
    if jobs is not None:
        executor = pool(jobs)
    done = sweep(
        scenario,
        Grid(plan.get("grid", {})),
        seeds=plan.get("seeds", 1),
        duration=plan.get("duration"),
        measure=measures,
        executor=executor,
        cache=args.cache,
    )
    if executor is not None:
        executor.shutdown()
    if args.out is not None:
        done.to_parquet(args.out)
    figures = args.of or list(measures)
    by = args.by or list(plan.get("grid", {}))
    _print(done, figures, by, args)
    for failure in done.failures[:10]:
        print(f"narrows: {failure}", file=sys.stderr)
    return 1 if done.failures else 0


def _check_output(out: Path, inputs: Sequence[Path]) -> None:
    """Fails before hours of work if the results cannot be written, or would be written over what is read."""
    if not out.parent.is_dir():
        raise NarrowsError(f"--out {out}: there is no folder {out.parent}")
    if out.is_dir() or not out.name:
        raise NarrowsError(f"--out {out}: it is a folder")
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        raise NarrowsError(f"--out {out}: it cannot be written")
    for file in (out, out.with_suffix(".manifest.json")):
        for read in inputs:
            if file.exists() and read.exists() and file.samefile(read):
                raise NarrowsError(f"--out {out} would write over {file}, which is read")


def _read(file: Path) -> dict[str, Any]:
    try:
        plan: dict[str, Any] = json.loads(_narrows.toml_to_json(file.read_text(encoding="utf-8")))
    except NarrowsError as error:
        raise NarrowsError(f"{file}: {error}") from None
    for key in plan:
        if key not in _KEYS:
            raise NarrowsError(f"{file}: unknown key `{key}`; allowed: {', '.join(sorted(_KEYS))}")
    if not isinstance(plan.get("scenario"), str):
        raise NarrowsError(f'{file}: `scenario` is missing: the name of a scenario file, as in scenario = "adsl.toml"')
    for key in ("grid", "measure"):
        if not isinstance(plan.get(key, {}), dict):
            raise NarrowsError(f"{file}: `{key}` is a table")
    return plan


def _print(done: Sweep, figures: Sequence[str], by: Sequence[str], args: Any) -> None:
    if not done.rows:
        return
    rows = [{"figure": of, **row} for of in figures for row in done.summary(of, by, args.ci)]
    if args.json:
        print(json.dumps({"schema": 1, "runs": len(done), "failures": done.failures, "summary": rows}, indent=2))
        return
    if not rows:
        print(f"{len(done)} runs; figures: --of NAME, one of {', '.join(done.figures[:8])}, …")
        return
    names = list(rows[0])
    cells = [names] + [[_text(row[name]) for name in names] for row in rows]
    widths = [max(len(line[at]) for line in cells) for at in range(len(names))]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def _text(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
