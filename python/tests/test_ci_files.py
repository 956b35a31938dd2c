"""Files for services of continuous integration, as far as they can be checked without these."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
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


# A job as a user writes one. The cache of the service says that it holds the guest kernel, so that none is built.
JOB = """
on: push
jobs:
  network-tests:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: ./packaging/github
        with: { package: "PACKAGE", guest-kernel: "true" }
      - run: narrows run --delay 20ms -- ping -c 3 -i 0.2 server
"""
CACHE = """
name: cache
outputs: { cache-hit: { value: "true" } }
runs: { using: composite, steps: [{ shell: bash, run: "true" }] }
"""


def test_the_composite_action_in_a_runner(tmp_path: Path, real_time: None) -> None:
    """By act, on this machine itself: the wheel is installed by the action, and the step after it runs a live network."""
    act, wheel = shutil.which("act"), os.environ.get("NARROWS_WHEEL")
    if act is None or wheel is None:
        pytest.skip("this needs act, a runner for GitHub's workflows, and NARROWS_WHEEL")
    if Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").exists() and os.environ.get("CI") != "true":
        pytest.skip("the action would change a setting of this host")
    repository, cache = tmp_path / "repository", tmp_path / "cache"
    shutil.copytree(ROOT / "packaging/github", repository / "packaging/github")
    (repository / ".github/workflows").mkdir(parents=True)
    (repository / ".github/workflows/test.yml").write_text(JOB.replace("PACKAGE", wheel))
    cache.mkdir()
    (cache / "action.yml").write_text(CACHE)
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=n", "-c", "user.email=n@example.org", "commit", "-qm", "all"]):
        subprocess.run(["git", *command], cwd=repository, check=True)
    venv.create(tmp_path / "env", with_pip=True)
    there = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    there |= {"PATH": f"{tmp_path}/env/bin:{os.environ['PATH']}", "XDG_CACHE_HOME": str(tmp_path / "act")}
    command = [act, "push", "--platform", "ubuntu-latest=-self-hosted", "--local-repository", f"actions/cache@v4={cache}"]
    ended = subprocess.run(command, cwd=repository, env=there, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "3 packets transmitted, 3 received" in ended.stdout
    assert (tmp_path / "env/bin/narrows").exists() and "live runs will not work" not in ended.stdout


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
