"""Published runs that predictions were held against, one by one, and where they are told."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from planner.catalog.addresses import page_of

OWN = ("what", "gpus", "measured", "predicted", "unit", "source", "where")
"""Columns that are no traits."""
TASK = "task"
"""Trait of the runs of tasks that are no training of language models on text, and no serving of them."""
LEARNING, MAKING, DIFFUSION = "reinforcement learning", "making images and clips", "training diffusion models"
RUNS = {LEARNING: "rl-step-runs", MAKING: "call-runs", DIFFUSION: "diffusion-step-runs"}
"""Task -> the file of its runs."""


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """One measured figure, and what the constants that ship make of it."""

    traits: Mapping[str, str]
    """By which questions find the runs that are like them."""
    what: str
    """Model and GPU."""
    gpus: int
    measured: float
    predicted: float
    unit: str
    """Of both."""
    source: str
    where: str
    """Within the source."""

    @property
    def ratio(self) -> float:
        """Measured over predicted."""
        return self.measured / self.predicted

    @property
    def link(self) -> str | None:
        """Address of the page that tells it, as far as the source says; none where that is no address."""
        return next(filter(None, map(page_of, (self.where, self.source))), None)


@cache
def published(path: Path) -> tuple[PublishedRun, ...]:
    """Return the runs of a file; none where there is none."""
    if not path.is_file():
        return ()
    with path.open(encoding="utf-8", newline="") as lines:
        return tuple(PublishedRun({name: value for name, value in row.items() if name not in OWN}, row["what"],
                                  int(row["gpus"]), float(row["measured"]), float(row["predicted"]), row["unit"],
                                  row["source"], row["where"]) for row in csv.DictReader(lines))
