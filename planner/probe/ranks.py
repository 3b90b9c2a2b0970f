"""Times of collectives: among the ranks that torchrun has started, or among processes of our own on this node."""

from __future__ import annotations

import multiprocessing
import queue
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

from planner.errors import InputError
from planner.probe.backend import Result, Torch, torch_of
from planner.probe.kernels import Run
from planner.probe.tasks import START, ProbeTask

WAIT = 120.0
"""Seconds after which ranks that do not answer are given up."""
REPEATS = {True: 20, False: 5}
"""Of a collective between two looks at the clock: below a MiB, and above."""
BACKENDS = {"cuda": "nccl", "cpu": "gloo"}


def join(device: str, rank: int, local: int, world: int, store: str = "env://") -> Torch:
    """Become a rank, and return torch."""
    torch = torch_of()
    if device == "cuda":
        torch.cuda.set_device(local)
    torch.distributed.init_process_group(BACKENDS[device], init_method=store, rank=rank, world_size=world,
                                         timeout=timedelta(seconds=WAIT))
    return torch


def results(torch: Torch, device: str, tasks: Sequence[ProbeTask]) -> Iterator[Result]:
    """Yield the time of every task among its first ranks; the others wait."""
    distributed = torch.distributed
    rank, world = distributed.get_rank(), distributed.get_world_size()
    groups = {ranks: distributed.new_group(list(range(ranks))) for ranks in sorted({task.ranks for task in tasks})
              if ranks <= world}
    for task in tasks:
        if rank < task.ranks:
            try:
                yield task, _seconds(torch, device, task, groups[task.ranks])
            except RuntimeError as error:  # what a backend does not implement is one
                yield task, str(error).splitlines()[0]
        distributed.barrier()


def _seconds(torch: Torch, device: str, task: ProbeTask, group: Torch) -> float:
    repeats = REPEATS[task.shape[0] < 2**20]
    once = _run(torch, device, task, group)

    def run() -> None:
        for _ in range(repeats):
            once()

    # as many turns on every rank, or one would wait for a collective that the others do not start
    return min(_timed(torch, device, run) for _ in range(4)) / repeats


def _timed(torch: Torch, device: str, run: Run) -> float:
    began = time.perf_counter()
    run()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def _run(torch: Torch, device: str, task: ProbeTask, group: Torch) -> Run:
    """Return one collective over a buffer of the task's bytes: the whole of it, as nccl-tests counts."""
    distributed, n = torch.distributed, task.ranks
    whole = torch.zeros(max(n, task.shape[0] // 4 // n * n), device=device)
    part = torch.zeros(len(whole) // n, device=device)
    if task.operation == "all_reduce":
        return lambda: distributed.all_reduce(whole, group=group)
    if task.operation == "all_gather":
        gather = getattr(distributed, "all_gather_single", None) or distributed.all_gather_into_tensor
        return lambda: gather(whole, part, group=group)
    if task.operation == "reduce_scatter":
        scatter = getattr(distributed, "reduce_scatter_single", None) or distributed.reduce_scatter_tensor
        return lambda: scatter(part, whole, group=group)
    other = torch.empty_like(whole)
    return lambda: distributed.all_to_all_single(other, whole, group=group)


def on_this_node(device: str, world: int, tasks: Sequence[ProbeTask]) -> Iterator[Result]:
    """Yield the time of every task among processes that this one starts, one for each GPU.

    Raises InputError where they end or fall silent.
    """
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        store = (Path(folder) / "store").as_uri()
        ranks = [context.Process(target=_rank, args=(device, rank, world, store, tuple(tasks), out), daemon=True)
                 for rank in range(world)]
        for process in ranks:
            process.start()
        try:
            for _ in tasks:
                yield _heard(out, ranks)
        finally:
            for process in ranks:
                process.join(START if sys.exc_info()[0] is None else 0)
                process.kill()


def _heard(out: Torch, ranks: Sequence[Torch]) -> Result:
    for _ in range(round(WAIT)):
        try:
            heard: Result = out.get(timeout=1)
            return heard
        except queue.Empty:
            if any(process.exitcode for process in ranks):
                break
    raise InputError("the processes that measure collectives ended or fell silent: see their messages above; a second "
                     "run goes on from here")


def _rank(device: str, rank: int, world: int, store: str, tasks: Sequence[ProbeTask], out: Torch) -> None:
    """Take part as one rank; the first tells what was measured."""
    torch = join(device, rank, rank, world, store)
    for result in results(torch, device, tasks):
        if rank == 0:
            out.put(result)
    torch.distributed.destroy_process_group()
