"""What trains under a method, by its name or by `tuning`: all weights, or adapters on a plain or a quantized base."""

from __future__ import annotations

from typing import Any, Protocol, cast, get_args

from planner.catalog.preference import Tuned
from planner.catalog.stack import Weights

ADAPTERS = ("lora", "qlora")
"""What trains beside frozen weights."""
ADAPTER_KEYS = ("lora_rank", "lora_targets")
"""Keys that only adapters have."""
RANK = 16
"""Of adapters, where none is given."""


class Tunable(Protocol):
    """A block of a scenario that trains a language model; its adapter keys are empty where none is given."""

    @property
    def method(self) -> str | None:
        """What it is trained by."""

    @property
    def tuning(self) -> Tuned | None:
        """What trains, where it is said."""


def with_method(data: object) -> object:
    """Return a block with the method that its tuning, or a key of adapters alone, names where no method is given."""
    if not isinstance(data, dict) or data.get("method") is not None:
        return data
    named = data.get("tuning") or ("lora" if any(data.get(key) for key in ADAPTER_KEYS) else None)
    return {**data, "method": named} if named in get_args(Tuned) else data


def weights_of(work: Tunable) -> Weights | None:
    """Return what trains: the method where its name says so, else the tuning; adapters where only their keys are given.

    None where no method is given.
    """
    if work.method is None or work.method in get_args(Weights):
        return cast("Weights | None", work.method)
    return work.tuning or ("lora" if _adapter_keys(work) else "full")


def check_tuning(work: Tunable) -> None:
    """Raise ValueError where the method, the tuning and the keys of adapters contradict each other."""
    named = work.method if work.method in get_args(Weights) else None
    if named is not None and work.tuning not in (None, named):
        raise ValueError(f"tuning {work.tuning} contradicts method {named}, whose name says what trains: leave tuning "
                         f"out, or write {work.tuning} as the method")
    if (trains := weights_of(work)) is None or trains in ADAPTERS:
        return
    for key in _adapter_keys(work):
        block, value = ("method", named) if named else ("tuning", trains)
        raise ValueError(f"{key} applies to adapters, and {block} {value} trains none: leave {key} out, or write lora "
                         f"or qlora as the {block}")


def without_idle_rank(scenario: Any) -> Any:  # noqa: ANN401 - as a file holds it
    """Return the scenario inside a plan without the rank that plans from before `tuning` had beside every method."""
    if not isinstance(scenario, dict):
        return scenario
    if isinstance(jobs := scenario.get("jobs"), list):
        return {**scenario, "jobs": [without_idle_rank(job) for job in jobs]}
    work = scenario.get("workload")
    if not isinstance(work, dict) or "tuning" in work or work.get("method") in ADAPTERS or work.get(
            "kind") != "training":
        return scenario
    return {**scenario, "workload": {key: value for key, value in work.items() if key != "lora_rank"}}


def _adapter_keys(work: Tunable) -> list[str]:
    return [key for key in ADAPTER_KEYS if getattr(work, key)]
