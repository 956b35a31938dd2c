"""Sweeps: the same table from every engine, and nothing lost."""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import narrows
from narrows import sweep_command

MEASURES = {"lost": "link.up.dropped_share"}
QUEUES = ["5 packets", "codel"]


def net(**more: Any) -> narrows.Scenario:
    return narrows.link(rate="10mbit", delay="25ms", **more).offer("poisson=9mbit")


def p99(result: narrows.Result) -> float:
    return float(result.report()["pairs"][0]["delay"]["p99_ns"])


def swept(**options: Any) -> narrows.Sweep:
    grid = narrows.grid(rate=["10mbit", "12mbit"], queue=QUEUES)
    options = {"seeds": 6, "duration": "1s", "measure": {**MEASURES, "p99": p99}, "progress": False, **options}
    return narrows.sweep(net(), grid, **options)


def written(sweep: narrows.Sweep, folder: Path) -> tuple[bytes, bytes]:
    assert not sweep.failures, sweep.failures[0]
    sweep.to_parquet(folder / "sweep.parquet")
    return (folder / "sweep.parquet").read_bytes(), (folder / "sweep.manifest.json").read_bytes()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    return written(swept(), tmp_path_factory.mktemp("expected"))


def test_both_directions_of_a_shared_medium_have_figures() -> None:
    text = """
        [hosts.client]
        [hosts.server]
        [links.radio]
        between = ["client", "server"]
        shared = true
        rate = "2mbit"
        queue = "20 packets"
    """
    radio = narrows.Scenario.from_text(text).offer("up:constant=3mbit", "down:constant=10kbit")
    report = radio.simulate(duration="2s").report()
    up, down = (report.direction(f"radio.{way}") for way in ("up", "down"))
    assert (up["lane"], down["lane"]) == (0, 1) and up["dropped_packets"] > 100 > down["dropped_packets"]
    [row] = narrows.sweep(radio, [{"radio.rate": "2mbit"}], seeds=[radio.seed], duration="2s").rows
    for way, figures in (("up", up), ("down", down)):
        assert row[f"radio.{way}.dropped_packets"] == figures["dropped_packets"]
    assert "radio.dropped_packets" not in row
    with pytest.raises(KeyError, match="'radio' has two directions: radio.up, radio.down"):
        report.direction("radio")


def test_rows_are_those_of_single_runs() -> None:
    done = swept()
    assert [(row["rate"], row["queue"], row["seed"]) for row in done.rows] == [
        (rate, queue, seed) for rate in ("10mbit", "12mbit") for queue in QUEUES for seed in range(1, 7)
    ]
    row = done.rows[7]
    result = net().set({"link.rate": "10mbit", "link.queue": "codel"}).simulate(seed=2, duration="1s")
    assert row["p99"] == p99(result) and row["trust"] == "exact"
    assert row["lost"] == result.report().direction("link.up")["dropped_share"]
    assert done.table["p99"] == [row["p99"] for row in done.rows]
    assert {"lost", "p99", "link.up.offered.packets"} <= set(done.figures)


def test_threads_and_processes_give_the_same_bytes(expected: tuple[bytes, bytes], tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as threads:
        assert written(swept(executor=threads), tmp_path) == expected
    with ProcessPoolExecutor(2) as processes:
        assert written(swept(executor=processes), tmp_path) == expected


@contextlib.contextmanager
def dask_executor(folder: Path) -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=folder
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client.get_executor()


@contextlib.contextmanager
def ray_executor(folder: Path) -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    from narrows.executors import RayExecutor

    # Functions of this file are not installed where the workers look.
    environment = {"env_vars": {"PYTHONPATH": str(Path(__file__).parent)}}
    try:
        yield RayExecutor(num_cpus=2, include_dashboard=False, runtime_env=environment, log_to_driver=False)
    finally:
        ray.shutdown()


@contextlib.contextmanager
def parsl_executor(folder: Path) -> Iterator[Any]:
    parsl = pytest.importorskip("parsl")
    from parsl.concurrent import ParslPoolExecutor
    from parsl.providers import LocalProvider

    # Functions of this file are not installed where the workers look.
    environment = f"export PYTHONPATH={Path(__file__).parent}"
    workers = parsl.HighThroughputExecutor(
        address="127.0.0.1", max_workers_per_node=2, provider=LocalProvider(worker_init=environment, max_blocks=1)
    )
    config = parsl.Config(
        executors=[workers], run_dir=str(folder), usage_tracking=0, initialize_logging=False, strategy="none"
    )
    with ParslPoolExecutor(config) as executor:
        yield executor


ENGINES = pytest.mark.parametrize("engine", [dask_executor, ray_executor, parsl_executor])


@ENGINES
def test_engines_of_clusters_give_the_same_bytes(engine: Any, expected: tuple[bytes, bytes], tmp_path: Path) -> None:
    with engine(tmp_path / "engine") as executor:
        assert written(swept(executor=executor), tmp_path) == expected


@ENGINES
def test_a_cluster_whose_worker_is_killed_loses_nothing(engine: Any, tmp_path: Path) -> None:
    with engine(tmp_path / "engine") as executor:
        done = swept(executor=executor, measure={"measured": functools.partial(once_deadly, tmp_path / "mark")})
    assert (tmp_path / "mark").exists()
    assert len(done) == 24 and not done.failures, done.failures[:1]


def test_submitit_gives_the_same_bytes(
    expected: tuple[bytes, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitit = pytest.importorskip("submitit")
    # Functions of this file are not installed where its jobs look.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    # The engine of Slurm's users, with processes of this machine in place of its nodes.
    executor = submitit.AutoExecutor(folder=tmp_path / "jobs", cluster="local")
    executor.update_parameters(timeout_min=5)
    # Few tasks: each is a process that begins anew.
    executor._max_workers = 1
    assert written(swept(executor=executor), tmp_path) == expected


def test_an_interrupted_sweep_goes_on(expected: tuple[bytes, bytes], tmp_path: Path) -> None:
    code = "import test_sweep, sys; test_sweep.swept(cache=sys.argv[1])"
    cache = tmp_path / "cache"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    process = subprocess.Popen([sys.executable, "-c", code, str(cache)], env=environment, start_new_session=True, cwd="/")
    while process.poll() is None and not list(cache.glob("*/*.json")):
        pass
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = len(list(cache.glob("*/*.json")))
    assert before > 0
    assert written(swept(cache=cache), tmp_path) == expected
    assert len(list(cache.glob("*/*.json"))) == 24


def test_a_sweep_again_costs_nothing(expected: tuple[bytes, bytes], tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    swept(cache=cache)

    class Nobody:
        def submit(self, *_: Any) -> None:
            raise AssertionError("there is nothing to do")

    assert written(swept(cache=cache, executor=Nobody()), tmp_path) == expected
    # Anything else that a result follows from makes another one.
    for other in [{"duration": "2s"}, {"seeds": [7]}, {"measure": {}}]:
        with pytest.raises(AssertionError, match="nothing to do"):
            swept(cache=cache, executor=Nobody(), **other)


def test_functions_that_took_something_along_are_not_mistaken(tmp_path: Path) -> None:
    def above(limit: float) -> Any:
        return lambda result: float(p99(result) > limit)

    with ThreadPoolExecutor(2) as threads:
        for limit, share in [(0.0, 1.0), (1e12, 0.0)]:
            done = swept(measure={"above": above(limit)}, cache=tmp_path, executor=threads)
            assert {row["above"] for row in done.rows} == {share}


def test_damaged_entries_are_made_again(expected: tuple[bytes, bytes], tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    swept(cache=cache)
    first, second, third, *_ = sorted(cache.glob("*/*.json"))
    first.write_bytes(b"")
    second.write_bytes(second.read_bytes().replace(b"link", b"lonk"))
    third.write_bytes(b"\xff\xfe")
    with pytest.warns(UserWarning, match="3 damaged results"):
        assert written(swept(cache=cache), tmp_path) == expected
    assert written(swept(cache=cache), tmp_path) == expected


def test_a_full_disk_is_told_and_loses_nothing(
    expected: tuple[bytes, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        with pytest.warns(UserWarning, match="24 results could not be kept .*No space left"):
            done = swept(cache=tmp_path / "cache")
    assert written(done, tmp_path) == expected
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_two_sweeps_on_one_cache(expected: tuple[bytes, bytes], tmp_path: Path) -> None:
    cache, found = tmp_path / "cache", []
    threads = [threading.Thread(target=lambda: found.append(swept(cache=cache))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [written(one, tmp_path) for one in found] == [expected] * 2


def deadly(result: narrows.Result) -> float:
    if result.report()["seed"] == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0


def failing(result: narrows.Result) -> float:
    return 1 / (result.report()["seed"] - 3)


@pytest.mark.parametrize(("measure", "error"), [(deadly, "its worker died"), (failing, "ZeroDivisionError")])
def test_failures_are_kept_beside_results(measure: Any, error: str, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="4 of 24 runs failed"):
        done = swept(measure={"measured": measure}, cache=tmp_path / "cache")
    assert len(done) == 20 and 3 not in {row["seed"] for row in done.rows}
    assert [(one["rate"], one["queue"], one["seed"]) for one in done.failures] == [
        (rate, queue, 3) for rate in ("10mbit", "12mbit") for queue in QUEUES
    ]
    assert all(error in one["error"] for one in done.failures)


def once_deadly(mark: Path, result: narrows.Result) -> float:
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0


def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    done = swept(measure={"measured": functools.partial(once_deadly, tmp_path / "mark")})
    assert len(done) == 24 and not done.failures


def test_summaries_and_pairs() -> None:
    done = swept(seeds=12)
    rows = done.summary("p99", by=["queue"])
    assert [row["queue"] for row in rows] == QUEUES and all(row["n"] == 24 for row in rows)
    assert all(row["low"] < row["mean"] < row["high"] for row in rows)
    # The same seeds have the same arrivals: the difference is known far better than either.
    difference = done.compare("queue", *QUEUES, of="p99")
    assert difference.n == 24 and difference.mean == pytest.approx(rows[1]["mean"] - rows[0]["mean"])
    assert done.summary("p99", method="bootstrap")[0]["n"] == 48
    with pytest.warns(UserWarning, match="6 runs"):
        swept().summary("p99", by=["queue", "rate"])
    for wrong in [lambda: done.summary("p98"), lambda: done.summary("p99", by="speed")]:
        with pytest.raises(narrows.NarrowsError, match="there is no"):
            wrong()
    with pytest.raises(narrows.NarrowsError, match="no runs"):
        done.compare("queue", "codel", "pie", of="p99")


def made(delay: str, loss: str) -> narrows.Scenario:
    return narrows.link(rate="10mbit", delay=delay, loss=loss).offer("poisson=1mbit")


def test_functions_and_tables_of_keys_as_axes() -> None:
    grid = narrows.grid(delay=["1ms", "2ms"], loss=["0%", "50%"])
    done = narrows.sweep(made, grid, seeds=[1], duration="2s", progress=False)
    assert [row["link.up.dropped_share"] > 0.3 for row in done.rows] == [False, True, False, True]
    links = {"near": {"link.delay": "1ms"}, "far": {"link.delay": "50ms", "link.down.rate": "1mbit"}}
    done = narrows.sweep(net(), narrows.grid(place=links), duration="1s", progress=False)
    assert [row["place"] for row in done.rows] == ["near", "far"]
    assert [row["link.down.asked_rate_bps"] for row in done.rows] == [10_000_000, 1_000_000]


@pytest.mark.parametrize("whole_group", [True, False])
def test_ctrl_c_keeps_what_was_done(whole_group: bool, tmp_path: Path) -> None:
    (tmp_path / "net.toml").write_text(net().to_toml())
    plan = tmp_path / "sweep.toml"
    plan.write_text('scenario = "net.toml"\nseeds = 20000\nduration = "60s"\n')
    cache = tmp_path / "cache"
    process = subprocess.Popen(
        [sys.executable, "-m", "narrows", "sweep", str(plan), "--cache", str(cache)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd="/",
    )
    while process.poll() is None and not list(cache.glob("*/*.json")):
        time.sleep(0.01)
    # A terminal tells all processes of the group, a supervisor the first.
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130 and said == f"narrows: interrupted; what was done is in {cache}\n"
    assert list(cache.glob("*/*.json"))


@pytest.mark.usefixtures("real_time")
def test_live_runs_one_after_the_other() -> None:
    command = "ping -c 1 $NARROWS_SERVER"
    measure = {"received": lambda result: float("1 received" in result[0])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = narrows.sweep(
            narrows.link(delay="5ms"), seeds=2, mode="live", command=command, measure=measure, progress=False
        )
    assert all(row["received"] == 1 and row["link.up.delivered.packets"] >= 1 for row in done.rows)
    # On a machine under load runs may be late.
    assert len(done.rows) + len(done.failures) == 2
    assert all("not accurate" in failure["error"] for failure in done.failures)


@pytest.mark.usefixtures("guest")
def test_runs_in_exact_virtual_time(tmp_path: Path) -> None:
    def lines() -> narrows.Sweep:
        return narrows.sweep(
            narrows.link(delay="5ms", loss="20%"),
            seeds=2,
            mode="virtual",
            command="ping -q -c 30 -i 0.1 $NARROWS_SERVER; true",
            measure={"received": received},
            progress=False,
        )

    first, second = lines(), lines()
    assert first.rows == second.rows and {row["trust"] for row in first.rows} == {"exact"}
    assert all(5 < row["received"] < 30 for row in first.rows)


def received(result: narrows.VirtualResult) -> float:
    return float(result.stdout.split(" received")[0].split()[-1])


def test_what_cannot_be_is_said() -> None:
    for wrong, said in [
        (lambda: narrows.grid(rate="10mbit"), "list of values"),
        (lambda: narrows.grid(rate=[]), "no values"),
        (lambda: swept(seeds=[1, 1]), "twice"),
        (lambda: swept(mode="dream"), "dream"),
        (lambda: swept(mode="live"), "command"),
        (lambda: narrows.sweep(net(), narrows.grid(rat=["1mbit"])), "unknown key `rat`"),
    ]:
        with pytest.raises((TypeError, ValueError, narrows.NarrowsError), match=said):
            wrong()
    with pytest.warns(UserWarning, match="24 of 24"):
        failed = swept(measure={"x": "link.up.droped_share"})
    assert "perhaps `link.up.dropped_share`" in failed.failures[0]["error"]


def test_from_the_shell(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.toml").write_text(net().to_toml())
    plan = tmp_path / "sweep.toml"
    plan.write_text(
        'scenario = "net.toml"\nseeds = 12\nduration = "1s"\n[grid]\n"link.queue" = ["5 packets", "codel"]\n'
        '[measure]\nlost = "link.up.dropped_share"\n'
    )
    out = tmp_path / "out.parquet"
    arguments = [str(plan), "--out", str(out), "--cache", str(tmp_path / "cache"), "--jobs", "2"]
    assert sweep_command.main([*arguments, "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told["runs"] == 24 and [row["link.queue"] for row in told["summary"]] == ["5 packets", "codel"]
    assert sweep_command.main([*arguments, "--of", "link.up.queueing_mean_ns"]) == 0
    text = capfd.readouterr().out
    assert text.splitlines()[0].split() == ["figure", "link.queue", "n", "mean", "low", "high"]
    assert out.read_bytes()[:4] == b"PAR1" and json.loads(out.with_suffix(".manifest.json").read_text())["runs"] == 24
    # Nothing is written over what is read, and nobody waits for results that cannot be kept.
    for wrong, said in [(plan, "would write over"), (tmp_path / "net.toml", "would write over"), (tmp_path / "no" / "x", "no folder"), (tmp_path, "a folder")]:
        assert sweep_command.main([str(plan), "--out", str(wrong)]) == 2
        assert said in capfd.readouterr().err
    assert "seeds = 12" in plan.read_text()
    for contents, said in [("seeds = 3", "`scenario` is missing"), ("sed = 3", "unknown key `sed`"), ("x", "sweep.toml: ")]:
        plan.write_text(contents)
        assert sweep_command.main([str(plan)]) == 2
        assert said in capfd.readouterr().err
