"""What may be held or made smaller of images and clips, whether they are made at a rate or as a batch."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from planner.jobs.generation.lacking import leaner
from planner.jobs.generation.options import AXES
from planner.jobs.job import Leaner
from planner.scenario.generation import Generation


class GenerationChoices:
    """The part of a job that its workload of kind generation decides alone."""

    __slots__ = ()
    asked: Any

    @property
    def work(self) -> Generation:
        """What is asked."""
        return cast(Generation, self.asked)

    @property
    def axes(self) -> Collection[str]:
        """Axes of its layouts that a choice may hold."""
        return AXES

    @property
    def choices(self) -> Mapping[str, str]:
        """Other choices that are its own."""
        return {"quantization": "workload.quantization"}

    @property
    def leaner(self) -> Iterator[Leaner]:
        """Smaller formats, sizes and clips."""
        return leaner(self.work)
