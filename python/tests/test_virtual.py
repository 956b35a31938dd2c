"""Real programs in exact virtual time."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import narrows


@pytest.mark.usefixtures("guest")
def test_a_program_gets_the_same_each_time(tmp_path: Path) -> None:
    net = narrows.link(rate="10mbit", delay="100ms", loss="10%").with_seed(4)
    command = f"ping -c 20 -i 0.2 $NARROWS_SERVER | tee {tmp_path}/ping; exit 3"
    first, second = (net.virtual(command, write=[tmp_path]) for _ in range(2))
    assert first.stdout == second.stdout == (tmp_path / "ping").read_text()
    assert "time=200 ms" in first.stdout and first.returncode == 3
    assert dict(first.report) == dict(second.report) and first.report.trust == "exact"
    with pytest.raises(subprocess.CalledProcessError):
        first.check()
    assert net.virtual(["true"], check=True, on={"server": "sleep 1"}).returncode == 0


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(narrows.NarrowsError, match="--nonsense"):
        narrows.link(delay="1ms").virtual(["true"], options=["--nonsense"])
    with pytest.raises(TypeError, match="`speed`"):
        narrows.link(delay="1ms").virtual(["true"], speed=3)
