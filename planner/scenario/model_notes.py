"""What a question may ask of a model, and what its answer says of one that is taken in part, or for its size alone."""

from __future__ import annotations

from collections.abc import Sequence

from planner.catalog.architecture import Model
from planner.catalog.load import Catalog
from planner.catalog.sized import TEMPLATE, size_of
from planner.errors import Unsupported
from planner.scenario.default import Default, Defaults
from planner.scenario.workload import Training

SIZE = "model size"
LENGTH = "sample length"
"""What the default is called that samples of unknown length are as long as a sequence."""
DRAWN = "answers drawn"
"""What the default is called that a method is taken to draw no more answers than it learns from."""
FAILED = "runs that failed"
"""What the default is called that a model is taken to fit of which every published run ran out of memory."""
CONTEXT = "context"
"""What the default is called that a sequence is longer than the model is published to take."""
TEXT_PART = "model part"
"""What the default is called that a model which also sees is planned for as a language model."""


def generates(model: Model, what: str) -> Model:
    """Return a model that generates text. Raises Unsupported for an encoder, whatever is asked of it."""
    if model.encodes:
        raise Unsupported(f"{model.name} is an encoder, which reads and generates nothing: {what}")
    return model


def trainable(model: Model, work: Training) -> Model:
    """Return a model that may be trained as asked. Raises Unsupported for an encoder by a method that prefers answers.
    """
    return model if work.preference is None else generates(model, f"training it by {work.preference}; --method "
                                                           "pretrain, full, lora or qlora")


def text_notes(defaults: Sequence[Default]) -> tuple[str, ...]:
    """Return what the user should know: of models that also see, their text part alone; lengths taken."""
    return tuple(f"text alone is planned for: {default.why}" if default.name.endswith(TEXT_PART) else default.why
                 for default in defaults if default.name.endswith((TEXT_PART, SIZE, LENGTH, FAILED, DRAWN, CONTEXT)))


def failed_runs(name: str, catalog: Catalog) -> Defaults:
    """Return what to say of a model whose every published run of training ended out of memory; nothing of others."""
    why = catalog.diffusion_runs.failed.get(name)
    return [] if why is None else [Default(name=FAILED, value="not counted",
                                           why=f"try one step of {name} before you count on it: {why}")]


def stands_for(called: Sequence[Default]) -> tuple[str, ...]:
    """Return which model or method a name stands for, of what is planned under another name than the question's."""
    pairs = (default.value.partition(" for ") for default in called if default.name != DRAWN)
    return tuple(f"{said} stands for {planned}" for planned, _, said in pairs)


def _alone(model: Model) -> str:
    """Return why text alone is planned for."""
    if not any(tower.encoder for tower in model.towers):
        return f"the vision tower of {model.name} is not modeled"
    senses = [what for tower, what in ((model.tower, "images"), (model.ear, "audio")) if tower is not None]
    return f"{model.name} also reads {' and '.join(senses)}, and none are given"


def beyond(models: Sequence[Model], tokens: float | None) -> Defaults:
    """Return what to say of sequences that are longer than models are published to take."""
    return [Default(name=CONTEXT, value=f"{model.context:,}", why=past(model, tokens))
            for model in models if model.context is not None and tokens is not None and tokens > model.context]


def past(model: Model, tokens: float) -> str:
    """Return in words that a sequence is longer than a model is published to take."""
    return (f"{tokens:,.0f} tokens are more than the {model.context:,} that {model.name} is published to take: programs"
            " refuse them, or answers suffer, unless its positions are stretched (RoPE scaling)")


def text_part(models: Sequence[Model]) -> Defaults:
    """Return what to say of models that also see: the text part alone is costed; and of those that are a size alone."""
    return [*(Default(name=TEXT_PART, value="text", why=_alone(model)) for model in models if model.towers),
            *(Default(name=SIZE, value=f"{model.layers} layers of {model.hidden:,}",
                      why=f"{model.name} names a size and no model: taken as a dense decoder in the proportions of "
                          f"{TEMPLATE}, {model.layers} layers of {model.hidden:,}")
              for model in models if size_of(model.name) is not None)]
