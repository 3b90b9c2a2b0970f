"""What one change would save: each change of a layout tried alone, in memory of the worst GPU and in time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from planner.answer.assignment import Assignment
from planner.errors import PlannerError

FUSED = {"loss": "fused"}
"""Of the work: a loss that never holds all logits (Liger, cut cross entropy)."""


class Ask(Protocol):
    """What estimates a layout, with some keys of the work changed."""

    def __call__(self, layout: Mapping[str, str] | None = None, **work: Any) -> Assignment:  # noqa: ANN401 - keys
        """Return the estimate. Raises InputError for what cannot be."""


LEAST_SHARE = 0.01
"""Share of usable memory below which a saving is not worth a line."""


@dataclass(frozen=True, slots=True)
class Lever:
    """One change: device bytes of the worst stage's GPU it saves, and step time over what it was, less one."""

    name: str
    saved_bytes: int
    slower: float
    fits: bool = False
    """Whether the layout fits with it, and does not without."""


def levers(ask: Ask, layout: Mapping[str, str], now: Assignment) -> list[Lever]:
    """Return the changes that save memory, the largest saving first; what the stack cannot do is left out.

    layout: the axes that were asked for; the others are held as they were chosen, where the work has them all.
    """
    same = {"micro_batch", "mbs"}
    chosen = {axis: value for axis, value in now.layout.stated.items()
              if axis not in layout and not (axis in same and same & layout.keys())}
    return _helpful(ask, {**chosen, **layout}, now) or _helpful(ask, layout, now)


def _helpful(ask: Ask, layout: Mapping[str, str], now: Assignment) -> list[Lever]:
    helpful = []
    for name, change, work in _changes(now):
        if "dp" in layout and "recompute" not in {**layout, **change} and now.layout.recompute == "mixed":
            continue  # it would be another recompute, too
        try:
            then = ask({**layout, **change}, **work)
        except PlannerError:
            continue
        saved = now.memory.peak_bytes - then.memory.peak_bytes
        if saved > LEAST_SHARE * now.memory.usable_bytes:
            helpful.append(Lever(name, saved, then.time.step_seconds / now.time.step_seconds - 1,
                                 now.memory.fits != "fits" == then.memory.fits))
    return sorted(helpful, key=lambda lever: -lever.saved_bytes)


def fuses(now: Assignment) -> bool:
    """Say whether logits are a part of the memory that is worth a line, so that a fused loss may save it."""
    return now.memory.components.logits > LEAST_SHARE * now.memory.usable_bytes


def _changes(now: Assignment) -> list[tuple[str, dict[str, str], dict[str, str]]]:
    """Return what may be changed, with axes of the layout and keys of the work."""
    layout, kept = now.layout, now.layout.recompute
    fixed = {"dp": str(layout.dp), "zero": str(layout.zero)}
    changes: list[tuple[str, dict[str, str]]] = []
    changes += [(f"{mode} recompute", {"recompute": mode}) for mode in ("selective", "full")
                if kept == "none" or (kept, mode) in (("selective", "full"), ("mixed", "full"))]
    changes += [(f"ZeRO-{stage} over {layout.shard}", {"zero": str(stage)})
                for stage in range(layout.zero + 1, 4) if layout.shard > 1]
    if layout.micro_batch > 1:
        half = layout.micro_batch // 2
        changes.append((f"micro-batch {half}", {"mbs": str(half)}))
    host = {"offload_optimizer": "1"}
    if layout.offload.optimizer < 1:
        changes.append(("optimizer states on the host", host))
    if not layout.offload.parameters:
        changes.append(("weights and optimizer states on the host", {**host, "offload_parameters": "1", "zero": "3"}))
    if not layout.offload.activations:
        outside = {"recompute": "full", "offload_activations": "1"}
        changes.append(("full recompute with checkpoints on the host", outside))
    work = [("a fused loss (--loss fused)", fixed, FUSED)] if fuses(now) else []
    return [*work, *((name, {**fixed, **change}, {}) for name, change in changes)]


def served_levers(ask: Ask, changes: Mapping[str, Mapping[str, Any]], now: Assignment) -> list[tuple[str, Assignment]]:
    """Return what a service comes to by one of some changes that lets it answer or hold more, the most first; what the
    engine or the GPU cannot do is left out.
    """
    found = []
    for name, work in changes.items():
        try:
            then = ask(**work)
        except PlannerError:
            continue
        (late, *more), (late_now, *less) = _able(then), _able(now)
        if late >= late_now and any(one > (1 + LEAST_SHARE) * other for one, other in zip(
                (1 / -late, *more), (1 / -late_now, *less), strict=True)):
            found.append((name, then))
    return sorted(found, key=lambda one: _able(one[1]), reverse=True)


def _able(a: Assignment) -> tuple[float, float, float]:
    """Return minus how many times as long as its targets a service takes, at least 1, the output tokens/s of a GPU, and
    the tokens that all caches hold; nothing where no request fits.
    """
    if a.serving is None or a.memory.fits == "does not fit":
        return -math.inf, 0.0, 0.0
    latencies = (a.serving.ttft_seconds, a.serving.tpot_seconds, a.serving.e2e_seconds)
    asked = [latency.asked for latency in latencies if latency is not None and latency.asked is not None]
    late = max((target.seconds / target.target_seconds for target in asked), default=1.0)
    return (-max(1.0, late), a.serving.output_tokens_per_second_per_gpu,
            float(a.serving.kv_tokens * a.serving.replicas))
