"""The loss kernel of a row, as bytes per logit on the last stage: what the source and its notes say of it."""

from __future__ import annotations

from planner.catalog.quirk import Sources
from planner.evidence.rows import TrainRun
from planner.physics.training.recipes import FUSED_LINEAR_LOSS, SHORT_LOSS


def loss_bytes(run: TrainRun, sources: Sources) -> float | None:
    """Return bytes per logit of the loss kernel that is stated, none for the stack's own."""
    kernel = sources.word("loss", run)
    if kernel == "fused with its projection" and run.hidden and run.vocab:
        return FUSED_LINEAR_LOSS * run.hidden / run.vocab
    if kernel != "in chunks":
        return None
    counted = sources.number("loss_bytes", run)
    return SHORT_LOSS if counted is None else counted
