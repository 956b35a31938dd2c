"""What the tests need of this machine, and of each other."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

import pytest

import narrows

pytest_plugins = ["pytester"]

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"


@cache
def live_refused() -> str | None:
    """Why there are no live runs here, if so."""
    tried = subprocess.run([narrows.program(), "run", "--quiet", "--", "true"], capture_output=True, text=True)
    return None if tried.returncode == 0 else tried.stderr.strip()


@cache
def virtual_refused() -> str | None:
    """Why there is no exact virtual time here, if so."""
    command = [narrows.program(), "run", "--virtual", "--quiet", "--delay=1ms", "--", "true"]
    tried = subprocess.run(command, capture_output=True, text=True)
    return None if tried.returncode == 0 else tried.stderr.strip()


def needs(refusal: str | None, what: str) -> None:
    """Leaves a test out for a reason; in CI that is a failure."""
    if refusal is None:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} cannot be had: {refusal}")
    pytest.skip(f"{what} cannot be had: {refusal}")


@pytest.fixture
def real_time() -> None:
    """For tests on real packets."""
    needs(live_refused(), "live runs")


@pytest.fixture
def guest() -> None:
    """For tests in exact virtual time."""
    needs(virtual_refused(), "exact virtual time")


@pytest.fixture
def adsl() -> Path:
    """A scenario of the repository."""
    return SCENARIOS / "adsl.toml"
