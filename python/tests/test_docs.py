"""The code for Python in the documentation runs, in the order of each page."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import SCENARIOS, live_refused, needs, virtual_refused

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python(?:,(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("page", "least"), [("README.md", 1), ("docs/python.md", 11)])
def test_the_code_of_a_page(page: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    shutil.copy(SCENARIOS / "adsl.toml", tmp_path)
    names: dict[str, Any] = {}
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) >= least
    for block in blocks:
        kind, code = block.groups()
        line = text.count("\n", 0, block.start(2))
        if kind == "needs=live":
            needs(live_refused(), "live runs")
        elif kind == "needs=guest":
            needs(virtual_refused(), "exact virtual time")
        elif kind == "test":
            (tmp_path / "test_page.py").write_text(code)
            command = [sys.executable, "-m", "pytest", "-q", "--network-retries=5"]
            command += ["--network-inconclusive=pass", "test_page.py"]
            ended = subprocess.run(command, capture_output=True, text=True)
            assert ended.returncode == 0 and " passed" in ended.stdout, ended.stdout
            continue
        elif kind and importlib.util.find_spec(kind.removeprefix("needs=")) is None:
            continue
        # Errors name the line of the page.
        exec(compile("\n" * line + code, page, "exec"), names)
    if page != "README.md":
        assert (tmp_path / "sweep.parquet").exists() and (tmp_path / "packets.parquet").exists()
