"""A sweep on Slurm: a cluster of one node, which this test starts and ends. Left out where it cannot be had."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from test_sweep import swept, written

submitit = pytest.importorskip("submitit")

# Without accounting, control groups and a configuration of the host's.
CONFIGURATION = """
ClusterName=narrows
SlurmctldHost={host}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=1
ReturnToService=2
NodeName={host} CPUs=2 Boards=1 SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def asked(*command: str) -> str:
    """What Slurm answers, or nothing: its programs wait for a controller that does not answer."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()
    except subprocess.TimeoutExpired:
        return ""


def free_ports() -> list[int]:
    sockets = [socket.socket() for _ in range(2)]
    for one in sockets:
        one.bind(("", 0))
    ports: list[int] = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    lacking = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(name) is None]
    if lacking or os.geteuid() != 0:
        pytest.skip(f"Slurm on this machine needs root and {', '.join(lacking) or 'nothing else'}")
    if (os.cpu_count() or 1) < 2:
        pytest.skip("Slurm's node has two processors here")
    host = socket.gethostname().split(".")[0]
    # munged wants folders that only its user writes to.
    folder = Path("/var/tmp") / f"narrows-slurm-{os.getpid()}"
    folder.mkdir(mode=0o755)
    (folder / "key").write_bytes(os.urandom(128))
    (folder / "key").chmod(0o400)
    (folder / "slurm.conf").write_text(CONFIGURATION.format(host=host, folder=folder, ports=free_ports()))
    for name in ("state", "spool"):
        (folder / name).mkdir()
    monkeypatch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
    munge = ["munged", "-F", "--force", f"--socket={folder}/munge.socket", f"--key-file={folder}/key"]
    munge += [f"--pid-file={folder}/munge.pid", f"--seed-file={folder}/seed", f"--log-file={folder}/munge.log"]
    started: list[subprocess.Popen[bytes]] = []
    try:
        with open(folder / "log", "wb") as log:
            for command in (munge, ["slurmctld", "-D"], ["slurmd", "-D", "-N", host]):
                started.append(subprocess.Popen(command, stdout=log, stderr=log))
                time.sleep(1)

        def said() -> str:
            return (folder / "log").read_text(errors="replace")[-1000:]

        until = time.monotonic() + 60
        while (state := asked("sinfo", "-h", "-o", "%T")) != "idle":
            if time.monotonic() > until:
                pytest.skip(f"Slurm's node is {state or 'not there'}: {said()}")
            time.sleep(0.5)
        # A node may be idle and start no job.
        if asked("srun", "-n", "1", "--immediate=15", "echo", "ran") != "ran":
            pytest.skip(f"Slurm runs no job on this machine: {said()}")
        yield tmp_path
    finally:
        # Its jobs end a little after their results are there.
        until = time.monotonic() + 10
        while asked("squeue", "-h") and time.monotonic() < until:
            time.sleep(0.25)
        for process in reversed(started):
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def test_slurm_gives_the_same_bytes(slurm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = written(swept(), slurm)
    # Functions of the tests are not installed where its jobs look.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    executor = submitit.AutoExecutor(folder=slurm / "jobs", cluster="slurm")
    executor.update_parameters(timeout_min=5, cpus_per_task=1)
    # Few tasks: each is a job.
    executor._max_workers = 1
    # Without accounting, submitit waits for ever for a job that ended without a result.
    got: list[tuple[bytes, bytes]] = []
    sweep = threading.Thread(target=lambda: got.append(written(swept(executor=executor), slurm)), daemon=True)
    sweep.start()
    sweep.join(150)
    if not got:
        state = asked("squeue", "-h", "-o", "%i %T %r")
        logs = [file.read_text(errors="replace")[-1000:] for file in (slurm / "jobs").glob("*_log.*")]
        if not logs:
            pytest.skip(f"Slurm started no job in 150 s: {state}")
        pytest.fail(f"no result in 150 s: {state}\n" + "\n".join(logs))
    assert got == [expected]
    assert list((slurm / "jobs").glob("*_submission.sh"))


