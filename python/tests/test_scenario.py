"""Scenarios from files, flags and Python, and what comes of them."""

from __future__ import annotations

import csv
import json
import pickle
import re
import subprocess
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import narrows
from narrows._narrows import toml_to_json
from narrows._value import document

OFFERED = "poisson=8mbit"


def program(*arguments: str, cwd: Path | None = None) -> str:
    done = subprocess.run([narrows.program(), *arguments], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def net(**more: Any) -> narrows.Scenario:
    return narrows.link(rate="10mbit", delay="25ms", loss="1%", queue="codel", **more).offer(OFFERED)


def verdicts(scenario: narrows.Scenario, **options: Any) -> dict[str, list[Any]]:
    return scenario.simulate(seed=7, duration="2s", **options).packets.to_dict()


def test_file_flags_python_and_program_give_the_same_verdicts(tmp_path: Path) -> None:
    flags = net()
    file = tmp_path / "net.toml"
    file.write_text(flags.to_toml())
    text = narrows.Scenario.from_text(flags.to_toml(), str(file))
    ours = {"rate": "10mbit", "delay": "25ms", "loss": "1%", "queue": "codel"}
    tables = narrows.Scenario(
        links=[{"name": "link", "between": ["client", "server"], **ours}],
        traffic=[
            {"name": "traffic-1", "from": "client", "to": "server", "poisson": "8mbit"},
            {"name": "traffic-2", "from": "server", "to": "client", "poisson": "8mbit"},
        ],
    )
    first = verdicts(flags)
    assert len(first["port"]) > 1000 and "wire loss" in first["reason"]
    for other in [narrows.Scenario(file), text, tables, pickle.loads(pickle.dumps(flags))]:
        assert verdicts(other) == first
    assert verdicts(flags, threads=2) == first
    # A timeline that makes a run begin again on one thread.
    shorter = narrows.Scenario.from_text(flags.to_toml() + '\n[[timeline]]\nat = "1s"\nset.link.delay = "9ms"\n')
    assert verdicts(shorter, threads=2) == verdicts(shorter) != first
    with pytest.raises(ValueError, match="one thread or more, not 0"):
        flags.simulate(threads=0)

    out = tmp_path / "packets.csv"
    arguments = ["--rate=10mbit", "--delay=25ms", "--loss=1%", "--queue=codel", f"--traffic={OFFERED}"]
    program("sim", *arguments, "--seed=7", "--duration=2s", "--quiet", f"--packets={out}")
    with out.open() as lines:
        rows = list(csv.DictReader(lines))
    assert list(rows[0]) == list(first)
    times = ("link", "entered_ns", "queueing_ns", "left_ns")
    for name, values in first.items():
        if name == "links":
            values = [";".join(":".join(str(link[time]) for time in times) for link in links) for links in values]
        assert [row[name] for row in rows] == [str(value) for value in values], name
    entered, left = first["links"][-1][0]["entered_ns"], first["links"][-1][-1]["left_ns"]
    assert (entered, left) == (first["arrival_ns"][-1], first["departure_ns"][-1])


def test_series_are_those_of_the_program(tmp_path: Path) -> None:
    out = tmp_path / "series.csv"
    file = tmp_path / "net.toml"
    file.write_text(net().to_toml())
    program("sim", str(file), "--seed=7", "--duration=2s", "--quiet", f"--series={out}", "--interval=250ms")
    series = narrows.Scenario(file).simulate(seed=7, duration="2s", interval=timedelta(milliseconds=250)).series
    with out.open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == len(series) == 8 * 4
    for name, values in series.to_dict().items():
        assert [row[name] for row in rows] == ["" if value is None else str(value) for value in values], name


def test_the_report_is_that_of_the_program(tmp_path: Path) -> None:
    file = tmp_path / "net.toml"
    file.write_text(net().to_toml())
    theirs = json.loads(program("sim", str(file), "--duration=2s", "--json"))
    report = narrows.Scenario(file).simulate(duration="2s").report()
    assert dict(report) == theirs
    assert report.trust == "exact" and report.is_accurate
    assert report.direction("link.up") == theirs["directions"][0]
    with pytest.raises(KeyError, match="link.up, link.down"):
        report.direction("nowhere")
    assert narrows.Report.parse(json.dumps(theirs)).text == report.text
    assert "codel" in report._repr_html_()


def test_packets_go_to_arrow_without_a_copy() -> None:
    packets = net().simulate(seed=7, duration="60s", packets=True).packets
    tables = [pyarrow.table(packets) for _ in range(2)]
    assert tables[0].num_rows == len(packets) > 65_536
    assert tables[0].num_columns == len(packets.column_names) == 18

    def addresses(table: Any) -> list[int]:
        return [chunk.buffers()[1].address for chunk in table.column("departure_ns").chunks]

    assert addresses(tables[0]) == addresses(tables[1])
    # All chunks have one dictionary.
    chunks = tables[0].column("where").chunks
    assert len(chunks) > 1 and all(chunk.dictionary.equals(chunks[0].dictionary) for chunk in chunks)
    assert tables[0].schema.metadata[b"narrows.columns"] == b"1"


def test_other_readers_of_arrow_and_parquet(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    import pyarrow.parquet

    packets = net().simulate(seed=7, duration="2s").packets
    lost = packets["reason"].count("wire loss")
    assert lost > 10
    assert (polars.DataFrame(packets)["reason"].cast(str) == "wire loss").sum() == lost
    assert duckdb.sql("select count(*) from packets where reason = 'wire loss'").fetchall() == [(lost,)]
    packets.to_parquet(tmp_path / "packets.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "packets.parquet").equals(pyarrow.table(packets))
    with pytest.raises(KeyError, match="departure_ns"):
        packets["departure"]
    with pytest.raises(narrows.NarrowsError, match="cannot write /nowhere/x.parquet"):
        packets.to_parquet("/nowhere/x.parquet")


def test_packets_as_they_come() -> None:
    scenario = net()
    whole = scenario.simulate(seed=7, duration="60s", packets=True).packets
    tables = list(scenario.packets(seed=7, duration="60s"))
    assert [len(table) for table in tables[:-1]] == [65_536] * (len(tables) - 1) and len(tables) > 1
    assert sum((table["departure_ns"] for table in tables), []) == whole["departure_ns"]
    # One that is not read to its end breaks its run off, which would last for days.
    endless = scenario.packets(duration="100000h")
    assert len(next(endless)) == 65_536
    endless.close()


def test_set_offer_and_seed_give_another_scenario() -> None:
    scenario = net()
    slower = scenario.set({"link.up.rate": "1mbit"}, **{"link.down.loss": 0.5})
    assert "1mbit" in slower.check() and "1mbit" not in scenario.check()
    assert (scenario.links, scenario.hosts) == (["link"], ["client", "server"])
    assert scenario.with_seed(3).simulate(duration="1s").report()["seed"] == 3
    assert scenario.with_seed(3).offer("up:poisson=1mbit").seed == 3
    assert "seed = 3" in scenario.with_seed(3).to_toml()
    assert scenario.with_seed(3).simulate(seed=4, duration="1s").report()["seed"] == 4
    assert narrows.link(rate="1mbit", duration="2s").duration == timedelta(seconds=2)
    # Without traffic, as much as the link carries.
    full = narrows.link(rate="1mbit", delay="1ms").simulate(duration="5s").report()
    assert full.direction("link.up")["utilisation_share"] > 0.85


def test_a_scenario_without_a_seed_of_its_own_takes_files_along(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text("time_s,rate_mbit\n0,1\n1,5\n")
    file = tmp_path / "traced.toml"
    file.write_text(
        '[hosts.a]\n[hosts.b]\n[links.l]\nbetween = ["a", "b"]\ntrace = "rates.csv"\n'
        '[[traffic]]\nfrom = "a"\nto = "b"\npoisson = "3mbit"\nstop = "3s"\n'
    )
    scenario = narrows.Scenario(file)
    assert [name for name, _ in scenario.files] == ["rates.csv"]
    first = verdicts(scenario)
    moved = pickle.dumps(scenario)
    (tmp_path / "rates.csv").unlink()
    assert verdicts(pickle.loads(moved)) == first


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: net().set({"link.up.rat": "2mbit"}), r"unknown key `rat`(.|\n)*did you mean `rate`"),
        (lambda: net().set({"link.up.rate": "2 parsecs"}), r"link\.up\.rate=2 parsecs\n(.|\n)*\^"),
        (lambda: net().set({"link.up.delay": 5}), "delay"),
        (lambda: narrows.link(latency="3ms"), "did you mean `delay`"),
        (lambda: narrows.Scenario("nowhere.toml"), "nowhere.toml"),
        (lambda: narrows.Scenario(links=[{"between": ["a", "b"]}]), "needs a `name`"),
        (
            lambda: narrows.Scenario(links={"l": {"between": ["a", "b"], "rate": "10 m bits"}}),
            r"<scenario in Python>:\d+(.|\n)*did you mean `mbit`",
        ),
        (lambda: net().simulate(duration="soon"), "duration"),
        (lambda: net().simulate(duration="1s", interval="0s").series, "interval"),
        (lambda: narrows.Scenario(links={"l": {"between": ["a", "b"]}}, traffic=[{"from": "a"}]), "traffic"),
        (
            lambda: list(
                narrows.Scenario(
                    links={"l": {"between": ["a", "b"]}}, traffic=[{"from": "a", "to": "b", "poisson": "1mbit"}]
                ).packets()
            ),
            "never ends",
        ),
    ],
)
def test_what_is_wrong_is_said_as_in_the_program(wrong: Any, said: str) -> None:
    with pytest.raises(narrows.NarrowsError) as error:
        wrong()
    assert re.search(said, str(error.value)), error.value


def test_a_file_or_links_but_not_both(adsl: Path) -> None:
    with pytest.raises(TypeError, match="use `set`"):
        narrows.Scenario(adsl, seed=3)
    with pytest.raises(TypeError):
        narrows.Scenario()


def test_odd_names_and_values_stay_what_they_are() -> None:
    odd = 'a "b"\\\n\x7f\x1b é'
    contents = {"a key": odd, "on": True, "n": 1.5, "t": {odd: {"list": [1, "x", {"y": False}]}}, "l": [{"k": odd}]}
    assert json.loads(toml_to_json(document(contents))) == contents
    delay = {"normal": {"mean": "10ms", "sd": timedelta(milliseconds=1)}}
    assert "normal" in narrows.Scenario(links={"l": {"between": ["a", "b"], "delay": delay}}).check()


def test_other_threads_go_on_and_ctrl_c_is_heard() -> None:
    seen: list[float] = []
    began = threading.Event()

    def tell(at: float) -> None:
        seen.append(at)
        began.set()

    ticks = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal ticks
        began.wait()
        while not stop.is_set():
            ticks += 1
            time.sleep(0.001)
            if ticks == 20:
                import _thread

                _thread.interrupt_main()

    thread = threading.Thread(target=count)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            net().simulate(duration="100000h", progress=tell)
    finally:
        stop.set()
        began.set()
        thread.join()
    assert ticks >= 20 and seen == sorted(seen)

    def broken(at: float) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        net().simulate(duration="100000h", progress=broken)


def test_pictures_for_notebooks() -> None:
    scenario = net()
    assert "<svg" in scenario._repr_html_() and "server" in scenario._repr_html_()
    pytest.importorskip("matplotlib")
    figure = scenario.simulate(duration="5s").plot()
    assert len(figure.axes) == 3 and len(figure.axes[0].lines) == 2


def test_it_is_imported_quickly() -> None:
    # No package but the standard library's comes along, and what only sweeps and virtual runs need comes with their first use.
    import sys

    late = ("numpy", "pyarrow", "matplotlib", "tqdm", "concurrent.futures", "multiprocessing", "dataclasses")
    code = f"import sys, narrows; print([name for name in {late} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True, cwd="/") == "[]\n"
