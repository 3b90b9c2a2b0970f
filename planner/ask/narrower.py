"""What fewer bits a weight would change where the format that a model is published in decides what holds it; and in
words that nothing does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner.answer.assignment import Assignment
from planner.answer.relaxation import Relaxation
from planner.ask.unchosen import FORMAT
from planner.catalog.load import Catalog
from planner.jobs.holding import MOST_HOLDING, formats_of, held_in_fewer_bits, holding_served, trained_by
from planner.scenario.scenario import AnyScenario
from planner.scenario.workload import EVERY
from planner.units import plural


def _most_gpus(scenario: AnyScenario) -> str:
    """Return in words how many GPUs a question what holds a model admits."""
    limits = scenario.limits
    if limits.gpus is not None:
        return f"{limits.gpus:,} GPUs"
    if limits.max_nodes is not None and limits.max_gpus is None:
        return f"up to {plural(limits.max_nodes, 'node')} of a kind"
    return f"up to {plural(limits.max_gpus or MOST_HOLDING, 'GPU')} of a kind"


def nothing_holds(scenario: AnyScenario, catalog: Catalog, without: Sequence[str], *, any_format: bool) -> str:
    """Say which methods no count of GPUs within the limits holds, and to serve it in which formats: in all of fewer
    bits too where nobody asked for one.
    """
    work, count = trained_by(scenario), _most_gpus(scenario)
    if work is not None:
        what = "any model of the catalog" if work.model == EVERY else (
            f"{'' if work.has_several else 'the model for '}{', '.join(without)}")
        return f"nothing on {count} holds {what}"
    formats = formats_of(scenario, catalog)[:None if any_format else 1]
    return f"nothing on {count} holds the model for {', '.join(without)} in {' or '.join(formats)}"


def held_if(scenario: AnyScenario, catalog: Catalog) -> list[Relaxation]:
    """Return which single changes let something hold a model to serve it, where nothing does: fewer bits, more GPUs."""
    limits, fewer = scenario.limits, next(iter(held_in_fewer_bits(scenario, catalog)), None)
    changes = [] if fewer is None else [
        Relaxation(limit=FORMAT, from_=formats_of(scenario, catalog)[0], to=fewer[0])]
    for key, was in (("gpus", limits.gpus), ("max_gpus", limits.max_gpus), ("max_nodes", limits.max_nodes)):
        if was is not None:
            lifted = scenario.model_copy(update={"limits": limits.model_copy(update={key: None})})
            for made in holding_served(lifted, catalog)[0][:1]:
                enough = f"{made.nodes if key == 'max_nodes' else made.gpus:,} ({made.gpu}, {made.layout.precision})"
                changes.append(Relaxation(limit=key, from_=f"{was:,}", to=enough))
    return changes


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
            for name, (made, *_) in held_in_fewer_bits(scenario, catalog, model):
                return [f"in {name}, {made.gpus} x {made.gpu} hold {model} to serve it: planner plan --model {model} "
                        f"--quantization {name} asks about it"]
        return []
    fewest = next((made.gpus for made in best if made.method == "inference"), None)
    fewer: list[tuple[str, Assignment]] = []
    for name, (made, *_) in held_in_fewer_bits(scenario, catalog):
        least = fewer[-1][1].gpus if fewer else fewest
        if least is None or made.gpus < least:
            fewer.append((name, made))
    if not fewer:
        return []
    counts = " and ".join(f"{made.gpus} x {made.gpu} in {name}" for name, made in fewer)
    against = f", against {fewest} in the format it is published in" if fewest else ""
    return [f"inference: {counts} {'do' if len(fewer) > 1 or fewer[0][1].gpus > 1 else 'does'}{against}: "
            f"--quantization {fewer[-1][0]} asks about it"]
