"""What the models of a sentence do, which decides what its numbers are: five seconds are frames of a clip, or sound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from planner.catalog.load import Catalog
from planner.catalog.recipes import Text, UsualRequests
from planner.catalog.sized import size_of
from planner.physics.shapes import parameters


class NamedWork(NamedTuple):
    """Facts about the models that are named, and what text is where nobody counts its tokens."""

    text: Text
    usual: UsualRequests
    models: int = 0
    """How many are named."""
    hears: float = 0.0
    """Seconds that the one which hears reads at once; none of others."""
    makes: str = ""
    """What a diffusion model makes: image, video, audio."""
    frames_per_second: int = 0
    seconds: float = 0.0
    """Of a piece of sound that it makes, where nobody says how long."""
    embeds: bool = False
    length: int = 0
    """Tokens that it is made to read."""
    sees: bool = False
    sizes: tuple[float, ...] = ()
    """Parameters of each that has a name."""


def named_work(names: Sequence[str], catalog: Catalog) -> NamedWork:
    """Return what models of these names do."""
    work = NamedWork(catalog.recipes.text, catalog.recipes.requests, len(set(names)))
    for name in names:
        if (model := catalog.known_model(name)) is not None:
            reads = model.ear.encoder.reads if (
                model.ear is not None and model.ear.encoder is not None and model.attends_to == "sound") else None
            longest = float(getattr(reads, "longest", None) or 0.0)
            work = work._replace(hears=longest or work.hears, embeds=work.embeds or model.is_silent,
                                 sees=work.sees or model.tower is not None,
                                 length=model.sequence_length,
                                 sizes=(*work.sizes, *([] if size_of(name) else [float(parameters(model))])))
        elif (made := catalog.known_diffusion(name)) is not None:
            called = next((target.models[made.name] for target in catalog.releases.targets.values()
                           if "fps" in target.models.get(made.name, {})), {})
            work = work._replace(makes=made.media, seconds=made.audio or 0.0,
                                 frames_per_second=int(called.get("fps", "16")))
    return work
