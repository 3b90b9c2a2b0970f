"""Which modules have adapters, as a stack that takes names of modules is told it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.launch.axes import No, Say, Settings
from planner.launch.checks.words import EVERY
from planner.launch.work import Work
from planner.scenario.tuned import ADAPTERS


def modules_by(every: Settings, some: Callable[[Sequence[str]], Settings | No]) -> Say:
    """Return what to say of adapters on every linear layer, and of those on the modules named."""
    def say(work: Work) -> Settings | No:
        if work.method not in ADAPTERS:
            return {}
        places = work.asked.lora_targets
        if not places:
            return every
        names = [name for place, name in work.modules.items() if place in places]
        instead = {"lora_targets": "all"}
        if "embeddings" in places:
            return No("embeddings (they train whole there, beside adapters)", instead)
        if not names:
            return No(f"{work.value('lora_targets')} (what the modules of {work.model.name} are called is not known)",
                      instead)
        return some(names)
    return say


def listed(key: str) -> Say:
    """Return the same where PEFT's names are a list under one key, and all-linear means every linear layer."""
    return modules_by({key: "all-linear"}, lambda names: {key: list(names)})


def adapted(work: Work) -> list[str]:
    """Return the names of the modules that have adapters, as those that a parser comes to."""
    places = work.asked.lora_targets
    return [name for place, name in work.modules.items() if place in places] if places else list(EVERY)
