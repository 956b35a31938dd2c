"""narrows: emulated networks for real programs, in real time and in exact virtual time.

    import narrows

    net = narrows.Scenario("adsl.toml").set({"access.down.rate": "2mbit"})
    print(net.simulate(seed=7).summary)

    with net.live() as run:
        run.host("client").check_output(["ping", "-c", "5", run["server"].address])

A network is described by a scenario file, by the program's flags (`narrows.link(rate="10mbit", delay="25ms")`), or by Python
tables; the keys are the same. Times and rates have units.
"""

from typing import TYPE_CHECKING, Any

from ._live import Host, Live
from ._narrows import Interval, NarrowsError, QueuedPacket, ScenarioError, Table, __version__
from ._program import program
from ._report import Report
from ._scenario import Queue, Result, Scenario, link
from ._session import Session

if TYPE_CHECKING:
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

# Imported at their first use: pools of processes and data classes take half the time of `import narrows`.
_LATER = {
    "Grid": "_sweep",
    "Sweep": "_sweep",
    "grid": "_sweep",
    "sweep": "_sweep",
    "VirtualResult": "_virtual",
    "run_virtual": "_virtual",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
