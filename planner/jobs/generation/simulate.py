"""Assignments that make images or clips read back as replicas, and requests replayed on them."""

from __future__ import annotations

from collections.abc import Sequence

from planner.answer.assignment import Assignment
from planner.answer.simulation import Simulation
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.generation.options import option, pictures
from planner.jobs.generation.replicas import column_of, image_service, key_of
from planner.jobs.job import Progress
from planner.jobs.serving.simulate import candidate_of, simulate_fleet
from planner.physics.diffusion.generate import CallSplit
from planner.scenario.generation import Generation
from planner.simulate.trace import Trace


def simulate_images(asked: Generation, mine: Sequence[Assignment], catalog: Catalog, trace: Trace | None = None, *,
                    policy: str = "least-outstanding", progress: Progress | None = None, seed: int = 0) -> Simulation:
    """Replay a trace on replicas that make images or clips, or what they are asked for. Raises InputError."""
    if asked.samples is not None:
        raise InputError("a batch of images or clips has no requests that come over time: its replicas make one call "
                         "after another")
    candidates = tuple(candidate_of(a, catalog) for a in mine)
    ways = []
    for at, a in enumerate(mine):
        made = a.serving and a.serving.made
        assert a.serving is not None
        assert made
        picture, = pictures(asked.model_copy(update={"quantization": (a.layout.stored,)}), catalog)
        split = CallSplit(made.batch, made.offload, made.vae == "tiled", made.cfg, made.ulysses, made.ring,
                          made.pipefusion)
        ways.append(option(catalog, candidates, at, picture, split))
    columns = [column_of(way, a.serving.requests_per_second / a.serving.replicas if a.serving else 0.0)
               for way, a in zip(ways, mine, strict=True)]
    by_key = {key_of(column): way for column, way in zip(columns, ways, strict=True)}
    service = image_service(asked, lambda column: by_key[key_of(column)])
    return simulate_fleet(asked, mine, catalog, trace, policy=policy, progress=progress, seed=seed,
                          made=(service, columns))
