"""narrows: emulated networks for real programs, in real time and in exact virtual time.

    import narrows

    net = narrows.Scenario("adsl.toml").set({"access.down.rate": "2mbit"})
    print(net.simulate(seed=7).summary)

    with net.live() as run:
        run.host("client").check_output(["ping", "-c", "5", run["server"].address])

A network is described by a scenario file, by the program's flags (`narrows.link(rate="10mbit", delay="25ms")`), or by Python
tables; the keys are the same. Times and rates have units.
"""

from ._live import Host, Live
from ._narrows import Interval, NarrowsError, QueuedPacket, ScenarioError, Table, __version__
from ._program import program
from ._report import Report
from ._scenario import Queue, Result, Scenario, link
from ._session import Session
from ._sweep import Grid, Sweep, grid, sweep
from ._virtual import VirtualResult, run_virtual

__all__ = [
    "Grid",
    "Host",
    "Interval",
    "Live",
    "NarrowsError",
    "Queue",
    "QueuedPacket",
    "Report",
    "Result",
    "Scenario",
    "ScenarioError",
    "Session",
    "Sweep",
    "Table",
    "VirtualResult",
    "__version__",
    "grid",
    "link",
    "program",
    "run_virtual",
    "sweep",
]
