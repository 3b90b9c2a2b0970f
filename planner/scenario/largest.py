"""Questions for the largest model that hardware holds: which are, and those that name it as their objective."""

from __future__ import annotations

from collections.abc import Mapping

from planner.errors import InputError
from planner.scenario.words import LARGEST

_OPEN = {"kind", "method", "tuning", "sequence_length", "precision", "stack", "optimizer", "lora_rank", "lora_targets"}
"""Keys of a training job that say neither what is trained nor for how long."""


def largest_asked(data: object, labels: Mapping[str, str]) -> object:
    """Return `data` without the objective that asks for the largest model. Raises InputError beside another question.
    """
    if not isinstance(data, dict) or str(data.get("objective")).lower() not in LARGEST:
        return data
    data = {key: value for key, value in data.items() if key != "objective"}
    if not asks_for_the_largest(data):
        raise InputError(f"{labels.get('objective', 'objective')}: the largest model is asked by hardware and "
                         "method alone, such as --on 8xh100 --method full: leave model, tokens and loads out")
    return data


def asks_for_the_largest(data: object) -> bool:
    """Say whether hardware is named and neither a model nor an amount of work: what is the largest that it holds?"""
    blocks = data if isinstance(data, dict) else {}
    work, sourcing = blocks.get("workload"), blocks.get("sourcing")
    return isinstance(work, dict) and work.keys() <= _OPEN and work.get("kind", "training") == "training" and bool(
        blocks.get("hardware") or (isinstance(sourcing, dict) and sourcing.get("own")))
