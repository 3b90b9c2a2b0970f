"""Figures as people read them, each with its unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from planner.answer.assignment import Assignment, DiffusionAssignment, ServingAssignment, TrainingAssignment
from planner.answer.bought import Bought
from planner.units import (
    DAY,
    round_up,
    show_bytes,
    show_days,
    show_kwh,
    show_price,
    show_seconds,
    show_usd,
)

_UNITS = {"cost_usd": ("USD", 2), "duration_days": ("d", 4), "gpus": ("GPUs", 0), "energy_kwh": ("kWh", 1),
          "requests_per_second": ("requests/s", 3), "users": ("users", 0)}
TOKENS = "million tokens"
LONG, MINUTE = 10, 60
"""Seconds of a step from which its parts are in seconds, and from which on they have one decimal."""
_LISTED = 8
"""More values than this are shown as a range."""

METHODS = {"inference": "inference", "qlora": "QLoRA", "lora": "LoRA", "lokr": "LoKr", "full": "full",
           "pretrain": "pre-training",
           "dpo": "DPO", "kto": "KTO", "orpo": "ORPO", "simpo": "SimPO", "reward-model": "reward model",
           "grpo": "GRPO", "ppo": "PPO", "rloo": "RLOO", "reinforce": "REINFORCE",
           "on-policy-distillation": "on-policy distillation", "rejection-sampling": "rejection sampling"}
"""Methods as people write them."""


def pace(a: Assignment) -> str:
    """Write how fast a job that ends goes, in what it works on: tokens, or images or clips."""
    if isinstance(a, DiffusionAssignment):
        return f"{a.samples_per_second:,.3g} {a.noun}s/s"
    return f"{a.time.tokens_per_second_per_gpu:,.0f} tokens/s/GPU"


def paid_each(a: Assignment, usd: float) -> tuple[float, str] | None:
    """Return what work costs for each million tokens, or 1,000 images, clips, documents or requests, and what they are.

    None without work, and of a service whose requests have answers of several tokens, or whose replicas come and go.
    """
    if (level := a.serving) is not None:
        if level.documents is not None:
            return usd / level.documents * 1e3, f"1,000 {level.each}"
        requests = level.requests_per_second * (a.duration_days or 0.0) * DAY
        if not requests or level.replicas_by_hour is not None or (level.made is None and level.writes):
            return None
        return usd / requests * 1e3, f"1,000 {level.noun}"
    steps = a.time.steps or 0
    if isinstance(a, DiffusionAssignment):
        return (usd / (a.global_batch * steps) * 1e3, f"1,000 {a.noun}s") if steps else None
    tokens = a.time.tokens_per_second_per_gpu * a.gpus * a.time.step_seconds * steps
    return (usd / tokens * 1e6, TOKENS) if tokens else None


def each_in_words(usd: float, what: str) -> str:
    """Say what work costs for each 1,000 of what it is, or each million where 1,000 cost less than a cent."""
    thousand = "1,000 "
    if usd < 0.01 and what.startswith(thousand):
        usd, what = usd * 1e3, f"million {what.removeprefix(thousand)}"
    return f"{show_price(usd)} per {what}"


_SHOWN = {"bytes": show_bytes, "days": show_days, "kwh": show_kwh, "seconds": show_seconds, "usd": show_usd}


def in_unit(name: str, value: object) -> str:
    """Write a field's value in the unit that ends its name (bytes, days, kwh, seconds or usd); as it is elsewhere."""
    shown = _SHOWN.get(name.rpartition("_")[2])
    if not isinstance(value, int | float):
        return str(value)
    return shown(value) if shown else f"{int(value):,}" if value == int(value) else f"{value:,.4g}"


def percent(share: float) -> str:
    """Write a share of one: `12.3%`."""
    return f"{share:.1%}"


def gap_shown(gap: float) -> str:
    """Write what a plan is at most above the best: `2.3%`; what is not nothing is not shown as 0.0%."""
    return "less than 0.1%" if 0 < gap < 0.0005 else percent(gap)


def share_of(share: float, what: str) -> str:
    """Write a chosen share: `50% of the optimizer states`, or `all ...`."""
    return f"all {what}" if share == 1 else f"{share * 100:.4g}% of the {what}"


def part_of_step(seconds: float, step: float) -> tuple[str, str]:
    """Write the time of a part of a step as a number and its unit, the same for all parts of a step."""
    if step >= LONG:
        return (f"{seconds:,.1f}" if step >= MINUTE else f"{seconds:,.2f}"), "s"
    return milliseconds(seconds, step), "ms"


def milliseconds(seconds: float, total: float) -> str:
    """Write seconds as a number of ms, with decimals that suit a whole of `total` seconds."""
    return f"{seconds * 1e3:,.1f}" if total >= 0.1 else f"{seconds * 1e3:,.3f}"


def objective(name: str, value: float) -> str:
    """Write an objective's value as solved, with its unit; a duration up, so that it is kept."""
    unit, decimals = _UNITS[name]
    if name == "requests_per_second":
        return f"{value:,.4g} {unit}"
    if name == "duration_days":
        if value < 2:
            return show_days(value)
        return f"{round_up(value, decimals):,} {unit}"
    return f"{value:,.{decimals}f} {unit}"


def values(domain: Sequence[int | float | str]) -> str:
    """Write the values of an axis, equal ones once with their count: all when few, else first, last and how many."""
    counts = Counter(map(str, domain))
    if len(counts) <= _LISTED:
        return ", ".join(f"{v} (x{n})" if n > 1 else v for v, n in counts.items())
    return f"{domain[0]} to {domain[-1]} ({len(domain)} values)"


def listed(a: Assignment) -> float:
    """Return USD per node and hour that is paid for: of a commitment that outlasts the job, less than per hour of use.

    Raises ValueError where nothing is paid by the hour.
    """
    if a.usd_per_node_hour is None:
        raise ValueError("it has no price")
    held = a.commitment if isinstance(a, TrainingAssignment | ServingAssignment) else None
    return a.usd_per_node_hour * (1.0 if held is None else held.used_days / held.paid_days)


def paid_for(a: Assignment) -> str:
    """Return for how long nodes are paid, where that is longer than they work."""
    held = a.commitment if isinstance(a, TrainingAssignment | ServingAssignment) else None
    return "" if held is None else f", paid for {show_days(held.paid_days)},"


def bill(bought: Bought) -> list[tuple[str, str, str, str]]:
    """Return the bill of materials: item, count, each, USD."""
    return [(each.item, f"{each.count:,}", show_usd(each.unit_usd), f"{each.usd:,.0f}") for each in bought.bill]
