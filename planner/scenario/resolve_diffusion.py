"""The open ends of a question of a diffusion model, filled in from its entry of the catalog."""

from __future__ import annotations

from planner.catalog.load import Catalog
from planner.scenario.default import Default, Defaults
from planner.scenario.diffusion import DiffusionScenario, DiffusionTraining
from planner.scenario.extent import shown_value, sized
from planner.scenario.model_notes import failed_runs
from planner.scenario.pool import named, pool
from planner.yaml_io import Document


def resolve_diffusion(scenario: DiffusionScenario, catalog: Catalog, document: Document
                      ) -> tuple[DiffusionScenario, Defaults]:
    """Return `scenario` with the catalog's names and no open ends, and the defaults that closed them.

    Raises InputError.
    """
    work, defaults = resolved_diffusion(scenario.workload, catalog, document)
    usual, passes = catalog.recipes.pictures, work.total_steps
    few = passes is not None and work.steps is None and work.epochs is None and (work.samples or 0) < usual.steps
    if passes is not None and few and passes < usual.steps:
        # nobody shows a model a few images once
        defaults.append(Default(name="steps", value=str(usual.steps), why=f"as {usual.example} has, "
                                f"{usual.steps / passes:.3g} passes over {work.samples:,} samples: --epochs or --steps "
                                "say how many"))
        work = work.model_copy(update={"steps": usual.steps})
    if work.total_steps is None:
        work = work.model_copy(update={"steps": usual.steps})
        defaults.append(Default(name="steps", value=str(usual.steps), why=f"as {usual.example} has: give steps, or "
                                "samples and epochs; method inference runs it"))
    supply = pool(scenario.hardware, scenario.sourcing, scenario.limits, catalog, document, defaults)
    return scenario.model_copy(update={"workload": work, **supply}), defaults


def resolved_diffusion(work: DiffusionTraining, catalog: Catalog, document: Document,
                       at: tuple[str | int, ...] = ("workload",)) -> tuple[DiffusionTraining, Defaults]:
    """Return a workload with the catalog's name and what its model was made for, and what decided it."""
    with named(document, *at, "model"):
        model = catalog.diffusion(work.model)
    usual_of_model = sized(work, model, document, at)
    shown = {**{name: getattr(work, name) for name in ("method", "quantization", "optimizer", "latents", "batch")},
             **usual_of_model}
    defaults = [Default(name=name, value=shown_value(name, value),
                        why="what the model was made for" if name in usual_of_model else "the default")
                for name, value in shown.items() if name not in work.model_fields_set]
    defaults += failed_runs(model.name, catalog)
    return work.model_copy(update={"model": model.name, **usual_of_model}), defaults
