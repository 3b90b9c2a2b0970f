"""What a replica that makes images or clips is to the search, the fleet and the simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

from planner.catalog.architecture import Model
from planner.catalog.load import Catalog
from planner.errors import MissingFact
from planner.jobs.columns import ReplicaColumn
from planner.jobs.generation.options import CallWay, fits, option, pictures, splits
from planner.jobs.job import Held, Terms
from planner.jobs.serving.rates import Targets
from planner.jobs.serving.service import Service
from planner.physics.serving.level import stream_of
from planner.physics.serving.settings import EngineSettings
from planner.scenario.generation import Generation
from planner.simulate.steps import ReplicaKind

Key = tuple[int, str, int, int, int, int | None]
"""Of a column: candidate, format, degrees, images of a call."""


@dataclass(frozen=True, slots=True)
class Calls:
    """The steps of a replica as the simulator has them: a request is one token, a step makes all that are taken."""

    way: CallWay

    def fixed(self, sequences: int) -> float:
        """Return nothing: no request goes on after its step."""
        return 0.0

    def per_token(self, sequences: int) -> float:
        """Return nothing."""
        return 0.0

    def prefill(self, tokens: int, context: int, ranks: float = 1.0) -> float:
        """Return the seconds of a call for so many images."""
        return self.way.takes(tokens)

    def empty(self) -> float:
        """Return nothing."""
        return 0.0


def ways_on(asked: Generation, catalog: Catalog, terms: Terms, at: int, held: Held, confidence: float
            ) -> Iterator[tuple[CallWay, bool]]:
    """Yield of every format, batch and number of GPUs on a candidate the least lean way that fits, or the leanest."""
    candidates = terms.market.candidates
    candidate, law = candidates[at], catalog.generation_law
    for picture in pictures(asked, catalog):
        for leaner_ in splits(asked, picture, candidate.node.gpus, held):
            way = None
            try:
                for split in leaner_:
                    way = option(catalog, candidates, at, picture, split)
                    if fits(way, candidate, law, confidence) == "fits":
                        yield way, True
                        break
                else:
                    if way is not None:
                        yield way, False
            except MissingFact:
                break


def column_of(way: CallWay, rate: float) -> ReplicaColumn:
    """Return a way as the fleet sees it."""
    split = way.split
    return ReplicaColumn(way.candidate, way.picture.stored, "whole", split.ulysses * split.ring, split.pipefusion, 1,
                         split.cfg, rate, float(split.batch), float(split.batch),
                         EngineSettings(sequences=split.batch))


def key_of(column: ReplicaColumn) -> Key:
    """Return what tells a column from others of its job."""
    return (column.candidate, column.format, column.tp, column.pp, column.dp, column.settings.sequences)


def target_of(asked: Generation) -> tuple[float, float | None] | None:
    """Return the seconds that an image may take, and at which share (none: on average)."""
    level = asked.e2e
    return None if level is None else (level.seconds, None if level.percentile is None else level.percentile / 100)


def image_service(asked: Generation, way_of: Callable[[ReplicaColumn], CallWay]) -> Service:
    """Return the requests as services have them, of one token each that a step makes."""
    one = stream_of(lambda q: 1.0, lambda q: 1.0, input=1.0, output=1.0, input_cv=0.0, output_cv=0.0,
                    gap_cv=asked.gap_cv, hits=0.0, drafts=0, accepted=0.0)

    def replica(column: ReplicaColumn) -> ReplicaKind:
        way = way_of(column)
        return ReplicaKind(Calls(way), way.split.batch, way.split.batch, way.split.batch, "prefill first")

    return Service(asked, cast(Model, None), one, Targets(None, None, target_of(asked)), asked.rate, 1,
                   replica=replica)
