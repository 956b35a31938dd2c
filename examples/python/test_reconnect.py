"""Tests of a client over bad networks: pip install narrows pytest; pytest examples/python"""

import sys
from pathlib import Path

import pytest

# A client that must get a 100 kB page within its time limit.
CLIENT = """
import sys, urllib.request
page = urllib.request.urlopen(f"http://{sys.argv[1]}:8000/page", timeout=20).read()
print(len(page))
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "page").write_bytes(bytes(100_000))
    return tmp_path


@pytest.mark.parametrize("loss", ["0%", "2%"])
@pytest.mark.network(rate="10mbit", delay="25ms", seed=1)
def test_the_page_arrives(network, page, loss):
    client, server = network.host("client"), network.host("server")
    network.set("link.down.loss", loss)
    served = server.popen([sys.executable, "-u", "-m", "http.server", "8000"], cwd=page, stdout=-1, text=True)
    served.stdout.readline()  # it listens
    assert client.check_output([sys.executable, "-c", CLIENT, server.address]) == "100000\n"
    served.terminate()
    served.wait()
    served.stdout.close()


@pytest.mark.network(rate="2mbit", delay="40ms", queue="codel")
def test_a_call_beside_a_download(virtual_network):
    offered = virtual_network.offer("down:aimd", "down:constant=50/s")
    report = offered.simulate(seed=1, duration="20s").report()
    call = next(source for source in report["generated"] if source["kind"] == "constant")
    assert call["delay"]["p99_ns"] < 150_000_000
