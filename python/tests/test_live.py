"""Networks that are up while Python has them open."""

from __future__ import annotations

import csv
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import narrows

pytestmark = pytest.mark.usefixtures("real_time")


def runs() -> str:
    return subprocess.check_output([narrows.program(), "ls", "--quiet"], text=True)


def test_programs_in_hosts_and_changes(tmp_path: Path) -> None:
    series, packets = tmp_path / "series.csv", tmp_path / "packets.csv"
    with narrows.link(rate="10mbit", delay="10ms").live(series=series, packets=packets) as run:
        assert sorted(run.hosts) == ["client", "server"] and run.name in runs()
        client, server = run.host("client"), run["server"]
        assert client.address in client.check_output(["ip", "-br", "address"])
        ping = ["ping", "-c", "1", server.address]
        assert "1 received" in client.check_output(ping)
        run.set("link.down.delay", "200ms")
        run.set({"link.up.delay": "200ms", "link.up.loss": "0%"})
        began = time.monotonic()
        client.run(ping, check=True, stdout=subprocess.DEVNULL)
        assert time.monotonic() - began > 0.4
        assert run.stats()["directions"][0]["delivered"]["packets"] >= 2
        assert client.run("exit 3").returncode == 3
        with pytest.raises(subprocess.CalledProcessError):
            client.check_output("exit 3")
        with pytest.raises(narrows.NarrowsError, match="there is no host `x`: client, server"):
            run.host("x")
        with pytest.raises(narrows.NarrowsError, match="parsecs(.|\n)*\\^"):
            run.set("link.down.delay", "50 parsecs")
        with pytest.raises(narrows.NarrowsError, match="has ended"):
            print(run.report)
        left = server.popen(["sleep", "1000"])
    assert run.report["kind"] == "live" and run.report.direction("link.up")["delivered"]["packets"] >= 2
    assert left.returncode is not None and run.name not in runs()
    assert run.close() is run.report
    with series.open() as lines:
        assert {row["name"] for row in csv.DictReader(lines)} == {"link.up", "link.down"}
    with packets.open() as lines:
        assert "icmp" in {row["protocol"] for row in csv.DictReader(lines)}
    with pytest.raises(narrows.NarrowsError, match="make another"), run:
        pass


def test_scenarios_of_python_go_there_with_their_files(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text("time_s,rate_mbit\n0,1\n1,5\n")
    links = {"l": {"between": ["a", "b"], "trace": str(tmp_path / "rates.csv")}, "m": {"between": ["b", "c"]}}
    with narrows.Scenario(links=links).with_seed(5).live() as run:
        assert list(run.hosts) == ["a", "b", "c"]
        stats = run.stats()
        assert stats["seed"] == 5
        assert "rates.csv" in stats["directions"][0]["asked"] or "trace" in stats["directions"][0]["asked"]


def test_delays_from_python_feed_a_link() -> None:
    delay = {"feed": "radio", "on-empty": "drop"}
    with narrows.link(delay="1ms").set({"link.up.delay": delay}).live() as run:
        feeding = run.feed("link.up/radio", itertools.cycle([0.150, 0.150, None]))
        said = run["client"].run(
            ["ping", "-c", "9", "-i", "0.2", run["server"].address], capture_output=True, text=True
        ).stdout
        assert feeding.poll() is None
    assert feeding.returncode is not None
    times = [float(line.rpartition("time=")[2].split()[0]) for line in said.splitlines() if "time=" in line]
    # Neighbours are asked for, too, so that it is not known which third of the packets is lost.
    assert 4 <= len(times) <= 7 and all(time >= 151 for time in times)


def test_what_cannot_be_is_said_and_leaves_nothing() -> None:
    before = runs()
    for options, said in [(["--nonsense"], "--nonsense"), (["--max-lateness=p12=1ms"], "not a quantile")]:
        with pytest.raises(narrows.NarrowsError, match=said):
            narrows.link(rate="10mbit").live(options=options).__enter__()
    assert runs() == before


def test_an_error_within_ends_it() -> None:
    with pytest.raises(ZeroDivisionError), narrows.link(delay="1ms").live() as run:
        raise ZeroDivisionError
    assert run.name not in runs() and run.report["kind"] == "live"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_python(number: signal.Signals, tmp_path: Path) -> None:
    code = "import narrows, time\nwith narrows.link().live() as run:\n    print(run.name, flush=True)\n    time.sleep(1000)"
    # Killed, it cannot remove its temporary folder.
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd="/",
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    name = process.stdout.readline().strip()
    assert name in runs()
    os.kill(process.pid, number)
    process.wait()
    process.stdout.close()
    for _ in range(600):
        if name not in runs():
            return
        time.sleep(0.1)
    pytest.fail("the network stayed")
