"""Files for services of continuous integration, as far as they can be checked without these."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]


def parses(script: str) -> None:
    # What the service fills in is a word to the shell.
    script = re.sub(r"\$\{\{[^}]*\}\}", "word", script)
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_the_composite_action() -> None:
    action = yaml.safe_load((ROOT / "packaging/github/action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    inputs = set(action["inputs"])
    for step in action["runs"]["steps"]:
        # Each step of a composite action says its shell.
        assert ("run" in step) == ("shell" in step) and ("run" in step) != ("uses" in step)
        parses(step.get("run", ""))
    named = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "packaging/github/action.yml").read_text()))
    assert named == inputs


def test_the_job_of_gitlab() -> None:
    jobs = yaml.safe_load((ROOT / "examples/ci/gitlab-ci.yml").read_text())
    for line in jobs["network-tests"]["script"]:
        parses(line)
    assert jobs["network-tests"]["artifacts"]["paths"] == ["network-artifacts"]


def test_the_examples(tmp_path: Path) -> None:
    # What tries that were not accurate leave is for nobody; a machine under load may make no other.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--network-retries=5"]
    command += [f"--network-artifacts={tmp_path}", "--network-inconclusive=pass", str(ROOT / "examples/python")]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0 and " passed" in ended.stdout, ended.stdout
    ended = subprocess.run([sys.executable, str(ROOT / "examples/python/queues.py")], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    # An M/D/1 queue at 80 %: half of 1.2 ms × 0.8 / 0.2.
    row = next(line for line in ended.stdout.splitlines() if line.split()[:2] == ["0.8", "100"])
    assert abs(float(row.split()[3]) - 2.4) < 0.2


def test_the_release_workflow() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    made = set()
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
            parses(step.get("run", ""))
            made |= set(re.findall(r"\bmake ([a-z-]+)", step.get("run", "")))
    assert made == {"release", "test-release"} <= targets
