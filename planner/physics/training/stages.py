"""Peak memory of every stage of one layout: its states, and the phase that peaks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.layouts.table import Floats, Ints
from planner.physics.training.memory import MemoryTerms
from planner.physics.training.question import Question


@dataclass(frozen=True, slots=True)
class StageMemory:
    """Peak bytes of every stage by component, arrays of shape (..., stages); states, then work."""

    weights: Floats
    gradients: Floats
    master: Floats
    moments: Floats
    reference: Floats
    activations: Floats
    logits: Floats
    gathered: Floats

    @property
    def allocated(self) -> Floats:
        """Tensors of the phase that peaks."""
        return (self.weights + self.gradients + self.master + self.moments + self.reference + self.activations
                + self.logits + self.gathered)


def stage_memory(question: Question, terms: MemoryTerms, row: Ints | int, layers: Ints, counts: Ints, in_flight: Ints,
                 chunks: Ints | int) -> StageMemory:
    """Return the peak of each stage of row `row`, or of many rows, whose numbers have shape (rows, 1).

    layers: (stages,) uniform layers; counts: (..., stages, 3) of them per recompute mode; in_flight: (..., stages)
    chunk activations.
    """
    n, flight = layers.astype(np.float64), in_flight / chunks
    last, none = np.arange(len(layers)) == len(layers) - 1, np.zeros(in_flight.shape)

    def states(field: str) -> Floats:
        total: Floats = n * getattr(terms.layer, field)[row]
        total[..., :1] += getattr(terms.first, field)[row]
        total[..., -1:] += getattr(terms.last, field)[row]
        return total

    kept = (counts * terms.kept[row]).sum(axis=-1) * flight
    kept[..., :1] += terms.kept_first[row] * flight[..., :1]
    kept[..., -1:] += terms.kept_last[row] * flight[..., -1:]
    live = none + terms.live[row]
    logits = np.where(last & (terms.logits[row] > live), terms.logits[row], 0.0)
    work = np.where(logits > 0, 0.0, live)
    gradients = states("gradients")
    activations, gathered = kept + work, none + terms.gathered[row]
    if not question.stack.gradients_persist:
        # freed gradients never meet the saved activations: the peak is the larger of loss and backward
        loss_peaks = activations + logits >= gradients + live
        activations = np.where(loss_peaks, activations, live)
        logits = np.where(loss_peaks, logits, 0.0)
        gradients = np.where(loss_peaks, 0.0, gradients)
    return StageMemory(weights=states("weights"), gradients=gradients, master=states("master"),
                       moments=states("moments"), reference=states("reference"), activations=activations,
                       logits=logits, gathered=gathered)
