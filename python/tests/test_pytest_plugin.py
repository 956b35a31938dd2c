"""The plugin for pytest, in a pytest of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import narrows

pytestmark = pytest.mark.usefixtures("real_time")

PING = 'network["client"].check_output(["ping", "-c", "2", "-i", "0.2", network["server"].address])'


def run(pytester: pytest.Pytester, body: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(f"import pytest\n{body}")
    # Lateness is what some of them test, and what machines under load have.
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)


LATE = '@pytest.mark.network(delay="5ms", max_lateness="p50=1ns")\n'
# Never inconclusive, whatever the load.
CALM = '@pytest.mark.network(delay="5ms", seed=7, max_lateness="p99=60s")\n'


def test_a_network_for_a_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        f'{CALM}def test_ping(network):\n    assert "2 received" in {PING}\n    assert network.stats()["seed"] == 7\n'
        '@pytest.mark.network(rate="1mbit")\n'
        "def test_virtual(virtual_network):\n"
        '    done = virtual_network.offer("poisson=2mbit").simulate(duration="2s")\n'
        '    assert done.report().direction("link.up")["utilisation_share"] > 0.9\n'
        '@pytest.mark.network("net.toml", seed=3)\n'
        "def test_file(virtual_network):\n    assert virtual_network.seed == 3 and virtual_network.links == ['access']\n"
        if pytester.path.joinpath("net.toml").write_text(
            '[hosts.a]\n[hosts.b]\n[links.access]\nbetween = ["a", "b"]\n'
        )
        else "",
        "--network-retries=5",
    )
    result.assert_outcomes(passed=3)


def test_what_a_failed_test_leaves(pytester: pytest.Pytester) -> None:
    body = f"{CALM}def test_no(network):\n    network['server'].popen(['sleep', '1000'])\n    {PING}\n    assert 0\n"
    result = run(pytester, body, "--network-retries=5")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*- network -*", "link.up *", "kept in network-artifacts/*test_no: capture.pcapng, *"])
    kept = next(pytester.path.glob("network-artifacts/*"))
    names = ["capture.pcapng", "report.json", "report.txt", "series.csv", "series.svg"]
    assert sorted(path.name for path in kept.iterdir()) == names
    assert (kept / "series.svg").read_text().lstrip().startswith("<svg")
    report = narrows.Report(narrows.Report.parse((kept / "report.json").read_text())._report)
    assert report.direction("link.up")["delivered"]["packets"] >= 2


def test_a_late_network_is_inconclusive(pytester: pytest.Pytester) -> None:
    body = f"{LATE}def test_late(network):\n    open('tries', 'a').write('x')\n    {PING}\n    {{}}\n"
    for end, said in [("", "passed"), ("assert 0", "failed")]:
        Path(pytester.path, "tries").unlink(missing_ok=True)
        result = run(pytester, body.format(end), "--network-retries=2", "-v")
        assert result.ret == 1 and Path(pytester.path, "tries").read_text() == "xxx"
        result.stdout.fnmatch_lines(
            ["*::test_late INCONCLUSIVE*", "*inconclusive in 3 runs*", f"(the test itself: {said})", "*1 inconclusive in *"]
        )
    result = run(pytester, body.format(""), "--network-retries=0", "--network-inconclusive=pass")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*1 inconclusive in *"])


def test_what_is_wrong_is_said_in_a_line(pytester: pytest.Pytester) -> None:
    body = '@pytest.mark.network(latency="5ms")\ndef test_wrong(network):\n    pass\n'
    result = run(pytester, body + body.replace("latency", "delay").replace("5ms", "5 parsecs").replace("_wrong", "_unit"))
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["`latency` is no flag of a link; did you mean `delay`?", "*parsecs*", "*^*"])
    assert "_live.py" not in result.stdout.str()


def test_several_at_once(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    body = "".join(f"{CALM}def test_{n}(network):\n    {PING}\n    assert {n} < 3\n" for n in range(4))
    result = run(pytester, body, "-n", "2", "--network-retries=5")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["kept in network-artifacts/*test_3: *"])
    result = run(pytester, f"{LATE}def test_late(network):\n    {PING}\n", "-n", "2", "--network-retries=1")
    result.stdout.fnmatch_lines(["*inconclusive in 2 runs*", "*1 inconclusive in *"])


def test_unittest_needs_no_plugin(pytester: pytest.Pytester) -> None:
    body = (
        "import unittest, narrows\nclass Case(unittest.TestCase):\n    def setUp(self):\n"
        '        self.network = self.enterContext(narrows.link(delay="5ms").live())\n'
        if hasattr(__import__("unittest").TestCase, "enterContext")
        else "import unittest, narrows\nclass Case(unittest.TestCase):\n    def setUp(self):\n"
        '        self.network = narrows.link(delay="5ms").live().__enter__()\n        self.addCleanup(self.network.close)\n'
    )
    body += f'    def test_ping(self):\n        self.assertIn("2 received", {PING.replace("network[", "self.network[")})\n'
    Path(pytester.path, "test_case.py").write_text(body)
    result = pytester.run(__import__("sys").executable, "-m", "unittest", "test_case")
    assert result.ret == 0, result.errlines
