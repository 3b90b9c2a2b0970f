"""What runs of reinforcement learning say of the seconds of its phases, as the catalog's entry with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.answer.validation import Entry
from planner.catalog.posttraining import PostTrainingLaw
from planner.yaml_io import dump

LEARNED = "posttraining"
FACTORS = {"gen_s": "generation", "actor_update_s": "update"}
"""Measured phase -> the factor of its counted seconds."""


def factors_of(entries: Sequence[Entry], before: PostTrainingLaw) -> dict[str, float]:
    """Return the factors that the median run asks for, drawn halfway back to those before where there is one run."""
    found = dict[str, float]()
    for quantity, factor in FACTORS.items():
        ratios = [np.log(float(entry.measured) / float(entry.predicted)) for entry in entries
                  if entry.quantity == quantity and entry.measured and entry.predicted]
        if ratios:
            share = len(ratios) / (len(ratios) + 1)
            found[factor] = round(getattr(before, factor) * float(np.exp(share * np.median(ratios))), 4)
    return found


def learned_file(factors: dict[str, float], before: PostTrainingLaw, source: str, as_of: str) -> str:
    """Return the text of posttraining.yaml with other factors."""
    kept = before.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    own = {name: {"source": source, "as_of": as_of, "kind": "fitted"} for name in factors}
    return dump({**kept, "name": LEARNED, **factors, "facts": {**kept.get("facts", {}), **own}})
