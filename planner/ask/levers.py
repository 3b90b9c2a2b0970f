"""What changes would save: each of a layout tried alone, in memory of the worst GPU and in time, and then together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

from planner.answer.assignment import Assignment
from planner.errors import PlannerError
from planner.jobs.posttraining.held import TRAINED
from planner.layouts.axes import BY_NAME

FUSED = {"loss": "fused"}
"""Of the work: a loss that never holds all logits (Liger, cut cross entropy)."""


class Ask(Protocol):
    """What estimates a layout, with some keys of the work changed."""

    def __call__(self, layout: Mapping[str, str] | None = None, **work: Any) -> Assignment:  # noqa: ANN401 - keys
        """Return the estimate. Raises InputError for what cannot be."""


_SAME = {"micro_batch": "mbs"}
"""Axes that have two names."""
_LABELS = {"mbs": "micro-batch", "shard": "shard group", "offload_to": "offload to"}
"""Names of axes that no axis of the table has -> how they read."""
_MOVED = {"offload_optimizer": "optimizer states", "offload_parameters": "weights",
          "offload_activations": "checkpoints"}
"""Axes of what may lie on the host -> what that is."""
LEAST_SHARE = 0.01
"""Share of usable memory below which a saving is not worth a line."""


@dataclass(frozen=True, slots=True)
class Move:
    """What may be done to a layout: some of its axes otherwise, or some keys of the work."""

    name: str
    axes: tuple[tuple[str, str], ...]
    work: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Lever:
    """One change, or several together: device bytes of the worst stage's GPU saved, and step time over what it was,
    less one.
    """

    name: str
    saved_bytes: int
    slower: float
    fits: bool = False
    """Whether the layout fits with it, and does not without."""


def levers(ask: Ask, layout: Mapping[str, str], now: Assignment) -> list[Lever]:
    """Return the changes that save memory, the largest saving first; what the stack cannot do is left out.

    layout: the axes that were asked for; the others are held as they were chosen, where the work has them all.
    """
    for held in _held(layout, now):
        if helpful := [lever for change in _changes(now) if (lever := _lever(ask, held, now, [change])) is not None
                       and lever.saved_bytes > LEAST_SHARE * now.memory.usable_bytes]:
            return sorted(helpful, key=lambda lever: -lever.saved_bytes)
    return []


def released(ask: Ask, layout: Mapping[str, str], now: Assignment) -> Lever | None:
    """Return the fewest of the axes that were asked for with which, searched again, a layout fits, of as many the
    quickest; nothing where none does.
    """
    axes = {axis: value for axis, value in layout.items() if axis != "dp"}
    if not axes or not _freed(ask, layout, now, tuple(axes)).fits:
        return None
    for count in range(1, len(axes) + 1):
        fitting = [lever for some in combinations(axes, count) if (lever := _freed(ask, layout, now, some)).fits]
        if fitting:
            return min(fitting, key=lambda lever: lever.slower)
    return None


def _freed(ask: Ask, layout: Mapping[str, str], now: Assignment, axes: Sequence[str]) -> Lever:
    """Return what comes of the search where some of the axes that were asked for are left open."""
    then = ask({axis: value for axis, value in layout.items() if axis not in axes})
    stated = then.layout.stated
    said = [otherwise(axis, stated.get(_SAME.get(axis, axis), "open"), layout[axis]) for axis in axes]
    by = "" if then.stack == now.stack else f" ({then.stack})"
    return Lever(" + ".join(said) + by, now.memory.peak_bytes - then.memory.peak_bytes,
                 then.time.step_seconds / now.time.step_seconds - 1, then.memory.fits == "fits")


def otherwise(axis: str, value: str, was: str) -> str:
    """Return in words that an axis is otherwise, values as a layout is asked for with them."""
    if axis not in _MOVED:
        return f"{_LABELS.get(axis) or (BY_NAME[axis].label if axis in BY_NAME else axis)} {value} instead of {was}"
    what, where = _MOVED[axis], "on the GPU" if float(value) == 0 else "on the host"
    return f"{what} {where}" if float(value) in (0.0, 1.0) else f"{float(value):.0%} of {what} {where}"


def together(ask: Ask, layout: Mapping[str, str], now: Assignment) -> Lever | None:
    """Return the fewest changes with which a layout fits that no one change makes fit, of as many the quickest; all
    that go together where not even they are enough, and nothing where only one is left.
    """
    for held in _held(layout, now):
        saved = {change: lever.saved_bytes for change in _changes(now, least=True)
                 if (lever := _lever(ask, held, now, [change])) is not None and lever.saved_bytes > 0}
        helpful = sorted(saved, key=lambda change: -saved[change])
        whole: list[Move] = []
        for change in helpful:
            whole += [change] if _go_together([*whole, change]) else []
        most = _lever(ask, held, now, whole) if len(whole) > 1 else None
        if most is not None:
            return _fewest(ask, held, now, helpful, len(whole)) or most
    return None


def _fewest(ask: Ask, held: Mapping[str, str], now: Assignment, changes: Sequence[Move], most: int) -> Lever | None:
    """Return the fewest of some changes, two to `most`, with which it fits, of as many the quickest."""
    for count in range(2, most + 1):
        fitting = [lever for some in combinations(changes, count) if _go_together(some)
                   and (lever := _lever(ask, held, now, some)) is not None and lever.fits]
        if fitting:
            return min(fitting, key=lambda lever: lever.slower)
    return None


def _held(layout: Mapping[str, str], now: Assignment) -> Iterator[Mapping[str, str]]:
    """Yield the axes of which changes are tried: those that were chosen with those asked for, then the latter alone."""
    same = {*_SAME, *_SAME.values()}
    chosen = {axis: value for axis, value in _heard(now.layout.stated, now).items()
              if axis not in layout and not (axis in same and same & layout.keys())}
    yield {**chosen, **layout}
    if chosen:
        yield layout


def _heard(axes: Mapping[str, str], now: Assignment) -> dict[str, str]:
    """Return those of some axes that may be held of such work."""
    return {axis: value for axis, value in axes.items() if now.kind != "posttraining" or axis in TRAINED}


def _go_together(changes: Sequence[Move]) -> bool:
    """Say whether changes agree on every axis, and none is a part of another."""
    said = {pair for change in changes for pair in change.axes}
    return len({axis for axis, _ in said}) == len(said) and not any(
        one != other and {*one.axes, *one.work} <= {*other.axes, *other.work} for one in changes for other in changes)


def _lever(ask: Ask, held: Mapping[str, str], now: Assignment, changes: Sequence[Move]) -> Lever | None:
    """Return what changes do together; nothing where the stack cannot, or where it would be another recompute, too."""
    axes = {**held, **_heard({"dp": str(now.layout.dp), "zero": str(now.layout.zero)}, now)}
    work = dict[str, str]()
    for change in changes:
        axes |= dict(change.axes)
        work |= dict(change.work)
    if "dp" in held and "recompute" not in axes and now.layout.recompute == "mixed":
        return None
    try:
        then = ask(axes, **work)
    except PlannerError:
        return None
    return Lever(" + ".join(change.name for change in changes), now.memory.peak_bytes - then.memory.peak_bytes,
                 then.time.step_seconds / now.time.step_seconds - 1, now.memory.fits != "fits" == then.memory.fits)


def fuses(now: Assignment) -> bool:
    """Say whether logits are a part of the memory that is worth a line, so that a fused loss may save it."""
    return now.memory.components.logits > LEAST_SHARE * now.memory.usable_bytes


def _changes(now: Assignment, *, least: bool = False) -> list[Move]:
    """Return what may be changed. least: a micro-batch not halved, but of one."""
    layout, kept = now.layout, now.layout.recompute
    changes: list[tuple[str, dict[str, str]]] = []
    changes += [(f"{mode} recompute", {"recompute": mode}) for mode in ("selective", "full")
                if kept == "none" or (kept, mode) in (("selective", "full"), ("mixed", "full"))]
    changes += [(f"ZeRO-{stage} over {layout.shard}", {"zero": str(stage)})
                for stage in range(layout.zero + 1, 4) if layout.shard > 1]
    if layout.no_sync:
        changes.append(("a reduction after every micro-batch (no_sync=0)", {"no_sync": "0"}))
    if layout.micro_batch > 1:
        less = 1 if least else layout.micro_batch // 2
        changes.append((f"micro-batch {less}", {"mbs": str(less)}))
    host = {"offload_optimizer": "1"}
    if layout.offload.optimizer < 1:
        changes.append(("optimizer states on the host", host))
    if not layout.offload.parameters:
        changes.append(("weights and optimizer states on the host", {**host, "offload_parameters": "1", "zero": "3"}))
    if not layout.offload.activations:
        outside = {"recompute": "full", "offload_activations": "1"}
        changes.append(("full recompute with checkpoints on the host", outside))
    fused = [Move("a fused loss (--loss fused)", (), tuple(FUSED.items()))] if fuses(now) else []
    return [*fused, *(Move(name, tuple(axes.items())) for name, axes in changes)]


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
