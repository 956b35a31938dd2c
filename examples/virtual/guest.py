"""Runs narrows in exact virtual time, several runs in parallel, each in its own guest."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NARROWS = os.environ.get("NARROWS", str(ROOT / "target/release/narrows"))


def run(scenario, seed, program, *options, environment=None):
    """Returns the output of `program`, an sh script, run in a fresh guest behind the network of `scenario`."""
    command = [NARROWS, "run", "--virtual", str(ROOT / "scenarios" / scenario), "--seed", str(seed), *options]
    done = subprocess.run(
        [*command, "--", "sh", "-c", program],
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout


def all_of(jobs, work, arguments):
    """Calls `work` on each of `arguments`, `jobs` in parallel; returns the results in order."""
    with ThreadPoolExecutor(jobs) as pool:
        for number, result in enumerate(pool.map(work, arguments), 1):
            if sys.stderr.isatty():
                print(f"\r{number} of {len(arguments)} ", end="", file=sys.stderr, flush=True)
            yield result
