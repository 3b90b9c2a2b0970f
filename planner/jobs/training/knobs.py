"""What is a training job's own that may cost something: memory of GPUs, bandwidth of network adapters."""

from __future__ import annotations

from collections.abc import Sequence

from planner.answer.assignment import Assignment
from planner.jobs.job import ENDLESS, Change, Knob
from planner.physics.training.question import Question
from planner.units import show_bytes

GB, GBIT = 1e9, 1e9 / 8


def knobs_of(question: Question, assignments: Sequence[Assignment]) -> list[Knob]:
    """Return what one unit more of memory and network would change, and all there could be."""
    (a,) = assignments
    memory = sorted({one.gpu.usable_memory for one in question.candidates})
    span = " to ".join(show_bytes(size) for size in dict.fromkeys((memory[0], memory[-1])))
    rates = sorted({one.nics.bandwidth for one in question.candidates})
    speeds = " to ".join(f"{rate / GBIT:g}" for rate in dict.fromkeys((rates[0], rates[-1])))
    spent = a.time.components
    waits = spent.data_parallel + spent.pipeline_p2p + spent.context_parallel + spent.expert_parallel
    return [
        Knob("gpu_memory", f"{span} usable",
             f"{show_bytes(a.memory.peak_bytes)} of {show_bytes(a.memory.usable_bytes)}", "1 GB per GPU",
             Change(memory=GB), Change(memory=ENDLESS)),
        Knob("nic_bandwidth", f"{speeds} Gbit/s per adapter", f"{waits / a.time.step_seconds:.1%} of the step waits",
             "10 Gbit/s per adapter", Change(nics=10 * GBIT), Change(nics=ENDLESS))]
