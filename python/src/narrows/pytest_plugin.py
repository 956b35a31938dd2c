"""Tests on an emulated network, for pytest.

    @pytest.mark.network(delay="25ms", loss="1%", seed=1)
    def test_reconnects(network):
        server = network.host("server").popen(["my-server"])
        network.host("client").check_output(["my-client", network["server"].address])

- The fixture `network` is a `narrows.Live` that is up while the test runs, built from the marker's flags, file or scenario.
  `virtual_network` is the scenario, for programs in exact virtual time: `virtual_network.virtual(["my-client", …])`.
- If the network was not accurate (packets late, or lost by this machine), the test is *inconclusive*, a separate outcome, and
  is repeated up to `--network-retries` times. The marker's `max_lateness="p99=1ms"` sets the bound.
- For a failed test, the report, the series with a plot and the capture are kept, and named in its section `network`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ._live import Live
from ._narrows import NarrowsError
from ._program import program
from ._report import Report
from ._scenario import Scenario

_LIVE = ("max_lateness", "capture", "options")

_networks = pytest.StashKey["list[Network]"]()
_failed = pytest.StashKey[bool]()


class Network:
    """The network of a test, and its artifacts."""

    def __init__(self, live: Live, folder: Path) -> None:
        self.live, self.folder = live, folder
        self.report: Report | None = None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of the plugin."""
    group = parser.getgroup("network", "modelled networks (narrows)")
    group.addoption(
        "--network-retries",
        type=int,
        default=2,
        metavar="N",
        help="make a test again so often when its network was not accurate (default: 2)",
    )
    group.addoption(
        "--network-inconclusive",
        choices=["fail", "pass"],
        default="fail",
        help="whether tests that stay inconclusive make the session fail (default: fail)",
    )
    group.addoption(
        "--network-artifacts",
        default="network-artifacts",
        metavar="DIR",
        help="where reports, series with plots, and captures of failed tests are kept (default: network-artifacts)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker."""
    config.addinivalue_line(
        "markers",
        "network(scenario=None, *, max_lateness=None, capture=True, options=(), **flags): the network of the fixtures "
        "`network` and `virtual_network`: a file, a narrows.Scenario, or the flags of `narrows run`",
    )


def _marked(request: pytest.FixtureRequest) -> tuple[Scenario, dict[str, Any]]:
    flags: dict[str, Any] = {}
    source: Any = None
    # The innermost marker takes precedence, key by key.
    for marker in reversed(list(request.node.iter_markers("network"))):
        if len(marker.args) > 1:
            raise pytest.UsageError("the marker `network` takes one file or scenario")
        source = marker.args[0] if marker.args else marker.kwargs.get("scenario", source)
        flags.update({key: value for key, value in marker.kwargs.items() if key != "scenario"})
    live = {key: flags.pop(key) for key in _LIVE if key in flags}
    if isinstance(source, Scenario):
        scenario = source
    elif isinstance(source, (str, PathLike)):
        path = Path(source)
        scenario = Scenario(path if path.is_absolute() else request.path.parent / path)
    elif source is None:
        return Scenario.from_flags(**flags), live
    else:
        raise pytest.UsageError(f"the marker `network` takes a file or a scenario, not {source!r}")
    seed = flags.pop("seed", None)
    if flags:
        raise pytest.UsageError("the marker `network` takes a scenario or flags of a link, not both: use `scenario.set`")
    return scenario if seed is None else scenario.with_seed(seed), live


_T = TypeVar("_T")


def _told(call: Callable[[], _T]) -> _T:
    """Returns the result of a call; reports its error as narrows' message only, without a traceback through this package."""
    try:
        return call()
    except NarrowsError as error:
        words = str(error)
    pytest.fail(words, pytrace=False)


@pytest.fixture
def network(request: pytest.FixtureRequest) -> Iterator[Live]:
    """A network that is up while the test runs, as described by the marker `network`; its programs end with it."""
    scenario, options = _told(lambda: _marked(request))
    folder = Path(tempfile.mkdtemp(prefix="narrows-test-"))
    keeps = options.pop("capture", True)
    live = scenario.live(
        capture=folder / "capture.pcapng" if keeps else None, series=folder / "series.csv", **options
    )
    one = Network(live, folder)
    request.node.stash.setdefault(_networks, []).append(one)
    _told(live.__enter__)
    try:
        yield live
    finally:
        one.report = live.close()


@pytest.fixture
def virtual_network(request: pytest.FixtureRequest) -> Scenario:
    """The scenario of the marker `network`, to run programs in exact virtual time; never inconclusive."""
    scenario, options = _told(lambda: _marked(request))
    if set(options) - {"capture"}:
        raise pytest.UsageError("`max_lateness` and `options` are for the fixture `network`: virtual time has no lateness")
    return scenario


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Adds the outcome of the test's networks, once they have ended."""
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    if report.when == "setup":
        item.stash[_failed] = False
    if report.failed:
        item.stash[_failed] = True
    networks = item.stash.get(_networks, None)
    if report.when != "teardown" or not networks:
        return
    reports = [one.report for one in networks if one.report is not None]
    poor = [one for one in reports if not one.is_accurate]
    if poor:
        setattr(report, "narrows_trust", [one.trust_line for one in poor])
    if item.stash[_failed] or poor:
        kept = _keep(item, networks)
        if kept is not None:
            report.sections.append(("network", kept))
            setattr(report, "narrows_kept", kept)
    for one in networks:
        shutil.rmtree(one.folder, ignore_errors=True)
    del item.stash[_networks]


def _keep(item: pytest.Item, networks: list[Network]) -> str | None:
    root = Path(str(item.config.getoption("--network-artifacts")))
    name = re.sub(r"[^\w.-]+", "_", item.nodeid).strip("_")[-150:]
    lines: list[str] = []
    for number, one in enumerate(networks):
        if one.report is None:
            continue
        folder = root / (name if number == 0 else f"{name}_{number + 1}")
        try:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(one.folder, folder)
            (folder / "report.json").write_text(one.report.to_json(), encoding="utf-8")
            (folder / "report.txt").write_text(one.report.text, encoding="utf-8")
        except OSError as error:
            lines.append(f"cannot keep what the network did in {folder}: {error.strerror}")
            continue
        drawn = subprocess.run(
            [program(), "plot", str(folder / "series.csv"), "--plot", str(folder / "series.svg")],
            capture_output=True,
            text=True,
        )
        if drawn.returncode != 0:
            lines.append(f"no plot of the series: {drawn.stderr.strip()}")
        lines.append(one.report.summary.rstrip())
        lines.append(f"kept in {folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
    return "\n".join(lines) or None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> object:
    """Repeats a test whose network was not accurate."""
    if "network" not in getattr(item, "fixturenames", ()):
        return None
    from _pytest.runner import runtestprotocol

    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    retries = max(0, int(str(item.config.getoption("--network-retries"))))
    reports: list[pytest.TestReport] = []
    trust: list[str] = []
    for attempt in range(retries + 1):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        trust = [line for report in reports for line in getattr(report, "narrows_trust", ())]
        if not trust or attempt == retries:
            break
        # Create new fixtures for the next attempt.
        getattr(item, "_initrequest", lambda: None)()
    if trust:
        reports = _inconclusive(item, reports, trust, retries)
    else:
        _add_kept(reports)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _add_kept(reports: list[pytest.TestReport]) -> None:
    """Adds the artifacts, which are known only after teardown, to the failure report."""
    kept = [text for report in reports if (text := getattr(report, "narrows_kept", None))]
    for report in reports:
        if report.failed and report.when != "teardown" and kept:
            report.sections.append(("network", kept[0]))


def _inconclusive(
    item: pytest.Item, reports: list[pytest.TestReport], trust: list[str], retries: int
) -> list[pytest.TestReport]:
    """Returns one report for an inconclusive test."""
    times = f" in {retries + 1} runs" if retries else ""
    kept = next((text for report in reports if (text := getattr(report, "narrows_kept", None))), "")
    said = next((report.outcome for report in reports if report.when == "call"), "not run")
    words = f"inconclusive{times}: this machine did not keep the network's times\n{trust[0]}\n(the test itself: {said})"
    fails = item.config.getoption("--network-inconclusive") == "fail"
    call = next((report for report in reports if report.when == "call"), reports[-1])
    report = pytest.TestReport(
        nodeid=call.nodeid,
        location=call.location,
        keywords=call.keywords,
        outcome="failed" if fails else "skipped",
        longrepr=words if fails else (str(item.path), item.location[1] or 0, words),
        when="call",
        sections=[("network", kept)] if kept else [],
        duration=sum(report.duration for report in reports),
        start=reports[0].start,
        stop=reports[-1].stop,
    )
    setattr(report, "narrows_inconclusive", True)
    return [report]


def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> Any:
    """Gives inconclusive tests a letter and a word of their own."""
    if getattr(report, "narrows_inconclusive", False):
        return "inconclusive", "?", ("INCONCLUSIVE", {"yellow": True})
    return None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Lists inconclusive tests at the end."""
    reports = terminalreporter.stats.get("inconclusive", [])
    if not reports:
        return
    terminalreporter.section("inconclusive: the network was not accurate", yellow=True)
    for report in reports:
        words = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        terminalreporter.write_line(f"{report.nodeid}: {words}")
        for _, text in report.sections:
            terminalreporter.write_line(text)


