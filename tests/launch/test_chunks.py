"""Chunks of interleaved pipelines, of which stages have unlike numbers: their pace and what of them is in flight."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from types import SimpleNamespace
from typing import cast

import pytest

from planner.launch.chunks import layers_of_chunks
from planner.launch.work import Work
from planner.physics.training.schedule import fixed_layers, in_flight_chunks


def chunks_of(stages: list[int], vpp: int, lead: int = 0) -> list[list[int]]:
    """Return the layers of each chunk by stage."""
    work = SimpleNamespace(layout=SimpleNamespace(vpp=vpp, pp=len(stages)),
                           model=SimpleNamespace(leading_layers=lead), stage_layers=tuple(stages))
    found = layers_of_chunks(cast(Work, work))
    return [found[stage::len(stages)] for stage in range(len(stages))]


def pace(chunks: list[list[int]]) -> int:
    """Return the layers that all passes through the stages take, each that of its largest chunk."""
    return sum(max(sizes) for sizes in zip(*chunks, strict=True))


@pytest.mark.parametrize(("layers", "stages"), [(layers, stages) for stages in (2, 3) for layers in range(4, 9)])
def test_no_chunks_of_the_same_stages_have_a_better_pace(layers: int, stages: int) -> None:
    held = fixed_layers(layers, stages).tolist()
    for vpp in range(2, min(3, (layers + 2) // stages) + 1):
        splits = [[list(sizes) for sizes in product(range(count + 1), repeat=vpp) if sum(sizes) == count]
                  for count in held]
        assert pace(chunks_of(held, vpp)) == min(pace(list(split)) for split in product(*splits)) == max(held)


@pytest.mark.parametrize(("layers", "lead"), [(61, 3), (60, 1), (58, 0), (36, 0), (94, 0)])
def test_layers_in_flight_are_no_more_than_the_physics_holds(layers: int, lead: int) -> None:
    for stages, vpp in combinations_with_replacement((2, 3, 4, 5, 7, 8), 2):
        held = fixed_layers(layers - lead, stages).tolist()
        if vpp > (layers - lead + 2) // stages:
            continue
        found = chunks_of([held[0] + lead, *held[1:]], vpp, lead)
        assert [sum(sizes) for sizes in found] == [held[0] + lead, *held[1:]]
        found[0][0] -= lead
        for stage in range(stages - 1):  # the last keeps its smallest for its head, and the fewest in flight
            flight = int(in_flight_chunks(stages, vpp, 8 * stages, stage))
            alive = sum(found[stage][number // stages % vpp] for number in range(flight))
            assert alive <= flight / vpp * held[stage] + 1e-9
