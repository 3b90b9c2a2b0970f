"""A real Slurm of made-up nodes on this machine: a controller, and a daemon for each node of the plan."""

import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from socket import socket

THERE = all(shutil.which(name) for name in ("slurmctld", "slurmd", "sbatch")) and os.geteuid() == 0
CONF = """ClusterName=planner
SlurmctldHost=localhost
SlurmUser=root
AuthType=auth/none
CredType=cred/none
SlurmctldPort={port}
StateSaveLocation={place}/state
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd-%n.pid
SlurmdSpoolDir={place}/spool-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
MailProg=/bin/true
ReturnToService=2
MessageTimeout=60
TCPTimeout=30
SlurmdParameters=config_overrides
{nodes}
PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = ("NodeName=node{at} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs={cpus} RealMemory=100000 "
        "State=UNKNOWN")
PATIENCE = 120
CPUS = 64


def _free(count: int) -> int:
    """Return the first of some ports in a row that nobody listens on, starting apart from other test processes."""
    for first in range(21000 + os.getpid() % 500 * 16, 31000, count + 1):
        sockets = [socket() for _ in range(count)]
        try:
            for at, each in enumerate(sockets):
                each.bind(("127.0.0.1", first + at))
        except OSError:
            continue
        else:
            return first
        finally:
            for each in sockets:
                each.close()
    raise RuntimeError("no free ports")


@contextmanager
def slurm(place: Path, nodes: int, gpus: int, cpus: tuple[int, ...] = ()):
    """Yield what runs a command on a cluster of so many nodes; cpus: of each, where they differ."""
    port = _free(nodes + 1)
    (place / "state").mkdir()
    conf = place / "slurm.conf"
    lines = [NODE.format(at=at, port=port + 1 + at, cpus=each) for at, each in enumerate(cpus or (CPUS,) * nodes)]
    conf.write_text(CONF.format(port=port, place=place, nodes="\n".join(lines)))
    environment = {**os.environ, "SLURM_CONF": str(conf)}

    def run(*words, **more):
        return subprocess.run(words, env={**environment, **more.pop("env", {})}, text=True, capture_output=True,
                              check=False, timeout=PATIENCE, **more)

    daemons = [subprocess.Popen(["slurmctld", "-c", "-D"], env=environment, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)]
    try:
        time.sleep(0.5)
        daemons += [subprocess.Popen(["slurmd", "-D", "-N", f"node{at}"], env=environment, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL) for at in range(nodes)]
        until = time.monotonic() + PATIENCE
        while run("sinfo", "-h", "-o", "%t %D").stdout.split() != ["idle", str(nodes)]:
            assert time.monotonic() < until, run("sinfo").stdout
            time.sleep(0.2)
        # as a line of slurm.conf it would have to be there, and the daemons find none
        run("scontrol", "update", f"nodename=node[0-{nodes - 1}]", f"gres=gpu:h100:{gpus}")
        yield run
    finally:
        for each in reversed(daemons):
            each.terminate()
        for each in daemons:
            each.wait(PATIENCE)


def finished(run, job: str) -> str:
    """Wait for a job, and return the state it ended in."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        states = {line.partition("JobState=")[2].split()[0] for line in run("scontrol", "show", "job", job)
                  .stdout.splitlines() if "JobState=" in line}
        if states and not states & {"PENDING", "RUNNING", "CONFIGURING", "COMPLETING"}:
            return "+".join(sorted(states))
        time.sleep(0.2)
    return "still running"
