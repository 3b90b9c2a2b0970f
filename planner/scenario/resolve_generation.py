"""The open ends of a question of running a diffusion model, filled in from its entry of the catalog."""

from __future__ import annotations

from planner.catalog.load import Catalog
from planner.scenario.default import Default, Defaults
from planner.scenario.demand import Arrivals
from planner.scenario.extent import shown_value, sized
from planner.scenario.generation import Generation
from planner.scenario.pool import named
from planner.yaml_io import Document

OF_MODEL = ("resolution", "frames", "audio", "steps", "guidance")


def resolved_generation(work: Generation, catalog: Catalog, document: Document, at: tuple[str | int, ...]
                        ) -> tuple[Generation, Defaults]:
    """Return a workload with the catalog's name and how its model is usually run, and what decided it.

    Raises InputError.
    """
    with named(document, *at, "model"):
        model = catalog.diffusion(work.model)
    chosen: dict[str, object] = {
        **sized(work, model, document, at),
        "steps": work.steps or model.sampling.steps, "quantization": work.quantization or ("bf16",),
        "guidance": model.sampling.guidance if work.guidance is None else work.guidance}
    shown = {**chosen, "compile": work.compile}
    if work.asked_rate is not None:
        chosen |= {"rate": work.asked_rate, "users": None, "think": None}
        chosen["arrivals"] = work.arrivals or Arrivals()
        shown["arrivals"] = "poisson"
    defaults = [Default(name=name, value=shown_value(name, value),
                        why="as the model's pipeline has it" if name in OF_MODEL else "the default")
                for name, value in shown.items() if name not in work.model_fields_set]
    if work.users is not None:
        defaults.append(Default(name="rate", value=f"{work.asked_rate:.4g}/s at most", why=(
            f"{work.users:,} users who each ask for another {work.think:g} s after the last ask for so many if that "
            "comes at once, and for fewer as they wait: --rate says fewer")))
    if work.unsaid and work.percentile is None:
        defaults.append(Default(name="percentile", value="p95", why="for latency targets that state none"))
    return work.model_copy(update={"model": model.name, **chosen, "percentile": None, **work.unsaid}), defaults
