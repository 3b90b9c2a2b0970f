"""What fewer bits a weight would change where the format that a model is published in decides what holds it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner.answer.assignment import Assignment
from planner.catalog.load import Catalog
from planner.jobs.holding import held_in_fewer_bits, trained_by
from planner.scenario.scenario import AnyScenario


def narrow_notes(scenario: AnyScenario, catalog: Catalog, best: Sequence[Assignment], larger: Iterable[str] = ()
                 ) -> list[str]:
    """Return in words on how many GPUs of the one kind named, or of the kinds of the memory named, a narrower format
    holds a model to serve it, where that is fewer; of a question for the largest, which of the `larger` models it lets
    these GPUs hold.
    """
    work, gpus = trained_by(scenario), {catalog.node(name).gpu for name in scenario.hardware.candidates}
    if len({catalog.gpu(name).memory for name in gpus}) > 1:
        return []
    if work is not None and work.has_several:
        for model in larger:
            for name, made in held_in_fewer_bits(scenario, catalog, model):
                return [f"in {name}, {made.gpus} x {made.gpu} hold {model} to serve it: planner plan --model {model} "
                        f"--quantization {name} asks about it"]
        return []
    fewest = next((made.gpus for made in best if made.method == "inference"), None)
    fewer: list[tuple[str, Assignment]] = []
    for name, made in held_in_fewer_bits(scenario, catalog):
        least = fewer[-1][1].gpus if fewer else fewest
        if least is None or made.gpus < least:
            fewer.append((name, made))
    if not fewer:
        return []
    counts = " and ".join(f"{made.gpus} x {made.gpu} in {name}" for name, made in fewer)
    against = f", against {fewest} in the format it is published in" if fewest else ""
    return [f"inference: {counts} {'do' if len(fewer) > 1 or fewer[0][1].gpus > 1 else 'does'}{against}: "
            f"--quantization {fewer[-1][0]} asks about it"]
