"""Whether it fits, in words and as a color: green only where runs of the kind were measured."""

from __future__ import annotations

from planner.answer.assignment import Assignment, PostTrainingAssignment
from planner.answer.breakdown import Memory

PROBABLY_NOT = "probably does not fit"
"""What is tight, and expected to take more than there is."""
UNMEASURED = "fits, not validated"
"""What fits by a prediction that no measured peak of its stack and method was held against."""
_COLORS = {"fits": "green", "tight": "yellow", "does not fit": "red"}


def at_confidence(confidence: float | None) -> str:
    """Return ` at 95% confidence`, or nothing where the confidence is not known."""
    return f" at {confidence * 100:.4g}% confidence" if confidence else ""


def verdict(memory: Memory) -> str:
    """Return the verdict in words."""
    if memory.fits == "fits" and memory.evidence is not None and not memory.evidence.validated:
        return UNMEASURED
    return PROBABLY_NOT if memory.fits == "tight" and memory.expected_bytes > memory.usable_bytes else memory.fits


def verdict_color(memory: Memory) -> str:
    """Return the color of the verdict on a terminal."""
    return "yellow" if verdict(memory) == UNMEASURED else _COLORS[memory.fits]


def whose_peak(a: Assignment) -> str:
    """Return of what the peak of a GPU's memory is: of the worst pipeline stage, in reinforcement learning of a phase.
    """
    if isinstance(a, PostTrainingAssignment):
        return f"{max(a.phases, key=lambda phase: phase.gpu_bytes).label}, its fullest phase,"
    return "the worst stage"


def verdict_heading(memory: Memory, confidence: float | None) -> str:
    """Return the verdict as a heading: `Memory per GPU: fits at 95% confidence`."""
    said = verdict(memory)
    return f"Memory per GPU: {said}{'' if said == UNMEASURED else at_confidence(confidence)}"
