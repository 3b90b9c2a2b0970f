"""Times of kernels and copies on one GPU, or on the CPU. Every function takes torch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from statistics import median

from planner.probe.backend import Torch
from planner.probe.tasks import SECONDS, ProbeTask

LEAST, MOST = 3, 1000
"""Repeats of a task."""
BURST = 0.01
"""Seconds of runs that are queued at once."""
Run = Callable[[], object]


def formats(torch: Torch) -> dict[str, Torch]:
    """Return torch's types by the names of precisions; those that the device has are `precisions`."""
    eight = "float8_e4m3fnuz" if torch.version.hip else "float8_e4m3fn"
    return {"bf16": torch.bfloat16, "fp16": torch.float16, "tf32": torch.float32, "fp32": torch.float32,
            "fp8": getattr(torch, eight, None)}


def precisions(torch: Torch, device: str) -> tuple[str, ...]:
    """Return the precisions whose products are measured: by the CUDA capability, since 8.0 bf16 and tf32, 8.9 fp8."""
    if device == "cpu":
        return ("bf16", "fp32")
    if torch.version.hip:
        return ("bf16", "fp16", "fp32")
    capability = torch.cuda.get_device_capability(0)
    ampere, ada = capability >= (8, 0), capability >= (8, 9)
    return (*(("bf16",) if ampere else ()), "fp16", *(("fp8",) if ada else ()), *(("tf32",) if ampere else ()), "fp32")


def seconds(torch: Torch, device: str, task: ProbeTask) -> float:
    """Return the time of a task: of a product the least, as benchmarks have it that a catalog's shares are of, since
    the power limit's share is fitted apart; else the median. Raises what torch raises: out of memory, not implemented.
    """
    with torch.no_grad():
        run = _RUNS[task.operation](torch, device, task)
    # of a backward alone, whose forward no graph has, PyTorch fails to capture the state of its random numbers
    took = timed(torch, device, run, captured=task.operation != "attention_backward")
    return min(took) if task.operation == "product" else median(took)


def timed(torch: Torch, device: str, run: Run, *, captured: bool = True) -> list[float]:
    """Return the seconds of repeated runs, after one that does not count.

    On a GPU each is the mean of several in one graph, so that the host's time to launch them is left out; or, not
    captured, of several queued one after the other.
    """
    run()
    clock = _clock if device == "cpu" else _cuda_clock(torch)
    times = 1 if device == "cpu" else math.ceil(min(MOST, max(1.0, BURST / clock(run))))
    several = run if times == 1 else _queued(torch, run, times, captured=captured)
    took, left = list[float](), SECONDS
    while len(took) < LEAST or (left > 0 and len(took) < MOST):
        once = clock(several)
        took.append(once / times)
        left -= once
    return took


def _clock(run: Run) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def _cuda_clock(torch: Torch) -> Callable[[Run], float]:
    def clock(run: Run) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3
    return clock


def _queued(torch: Torch, run: Run, times: int, *, captured: bool) -> Run:
    """Return a run of several: a CUDA graph of them, or where they cannot be captured one after the other."""
    def each() -> None:
        for _ in range(times):
            run()

    if not captured:
        return each
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(aside):
            run()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            each()
    except RuntimeError:
        return each
    replay: Run = graph.replay
    return replay


def _product(torch: Torch, device: str, task: ProbeTask) -> Run:
    m, n, k = task.shape
    torch.set_float32_matmul_precision("high" if task.precision == "tf32" else "highest")
    dtype = formats(torch)[task.precision]
    if task.precision == "fp8":
        # _scaled_mm takes the second matrix by columns, and at least 16 rows of the first
        a = torch.randn(max(16, m), k, device=device, dtype=torch.bfloat16).to(dtype)
        b = torch.randn(n, k, device=device, dtype=torch.bfloat16).to(dtype).t()
        scale = torch.ones((), device=device)
        return lambda: torch._scaled_mm(a, b, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)
    a = torch.randn(m, k, device=device, dtype=dtype)
    b = torch.randn(n, k, device=device, dtype=dtype).t()
    return lambda: torch.matmul(a, b)


def _attention(torch: Torch, device: str, task: ProbeTask) -> Run:
    q, k, v = (torch.randn(*task.shape, device=device, dtype=formats(torch)[task.precision]) for _ in range(3))
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def _attention_backward(torch: Torch, device: str, task: ProbeTask) -> Run:
    inputs = [torch.randn(*task.shape, device=device, dtype=formats(torch)[task.precision]).requires_grad_()
              for _ in range(3)]
    with torch.enable_grad():
        out = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=True)
    gradient = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, inputs, gradient, retain_graph=True)


def _memory(torch: Torch, device: str, task: ProbeTask) -> Run:
    a = torch.zeros(task.shape[0] // 4, device=device)
    b = torch.empty_like(a)
    return lambda: b.copy_(a)


def _between(torch: Torch, device: str, task: ProbeTask) -> Run:
    host = torch.zeros(task.shape[0], dtype=torch.uint8).pin_memory()
    there = torch.zeros(task.shape[0], dtype=torch.uint8, device=device)
    to, of = (there, host) if task.operation == "host_to_device" else (host, there)
    return lambda: to.copy_(of, non_blocking=True)


_RUNS: dict[str, Callable[[Torch, str, ProbeTask], Run]] = {
    "product": _product, "attention": _attention, "attention_backward": _attention_backward, "memory": _memory,
    "host_to_device": _between, "device_to_host": _between}
