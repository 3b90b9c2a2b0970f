"""What training on preferences adds to a step: sequences of a sample, passes without backward, a frozen reference.

A sample of DPO, ORPO, SimPO and reward models is a pair, whose two answers are padded to the longer and run in one
batch; one of KTO is a labeled answer. The reference runs forward alone over the same sequences: as a frozen copy beside
the policy, as the policy with its adapters off, or once before training, which then needs neither. KTO estimates a KL
on answers of other prompts, forward alone by both. A reward model has one value in place of the vocabulary.
Sources: calibration/recipes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist, fmean

from planner.catalog.recipes import PreferenceRecipes
from planner.physics.layers import Shape


@dataclass(frozen=True, slots=True)
class Sample:
    """What a step does with one sample; the default is one sequence of supervised training."""

    sequences: int = 1
    """That train."""
    policy_forwards: float = 0.0
    """Forward passes of the policy besides, each over as many sequences, without backward."""
    reference_forwards: float = 0.0
    """The same of the frozen reference, which has no adapters."""
    copy: bool = False
    """Whether a frozen copy of the model is held beside it."""
    reference_logit: float = 0.0
    """Bytes per logit that those of the reference add."""
    preference: str | None = None
    """The method, where it is of preferences."""
    scores: bool = False
    """Whether the head has one value."""
    spread: float = 0.0
    """Standard deviation of lengths over their mean, where the samples of micro-batches are padded to the longest."""

    @property
    def forwards(self) -> float:
        """Forward passes without backward."""
        return self.policy_forwards + self.reference_forwards


def sample_of(recipes: PreferenceRecipes, method: str, reference: str | None, passes: float = 1.0, *,
              padded: bool = True) -> Sample:
    """Return what a step does with a sample of a method; supervised where it takes no preferences.

    reference: where the frozen model is (copy, adapters-off, precomputed); passes: over the samples, in which the one
    before training is counted where it is precomputed; padded: whether micro-batches are padded to their longest.
    """
    if method not in recipes.methods:
        return Sample()
    works = recipes.methods[method]
    before = reference == "precomputed"
    return Sample(
        sequences=works.sequences, copy=reference == "copy" and works.reference_forwards > 0,
        policy_forwards=works.policy_forwards,
        reference_forwards=works.reference_forwards / (max(passes, 1.0) if before else 1.0),
        reference_logit=recipes.reference_logit if works.reference_forwards and not before else 0.0,
        preference=method, scores=works.scores, spread=recipes.usual.spread if padded else 0.0)


@lru_cache(maxsize=256)
def longest_of(count: int) -> float:
    """Return the mean of the largest of `count` values of a standard normal distribution, summed over its quantiles."""
    normal, parts = NormalDist(), 1000
    return fmean(normal.inv_cdf(((at + 0.5) / parts) ** (1 / count)) for at in range(parts))


def headed(shape: Shape, sample: Sample) -> Shape:
    """Return a model with the head that a sample asks for: one value of its own, in place of the vocabulary."""
    if not sample.scores:
        return shape
    more = shape.hidden - (0 if shape.tied else shape.vocab * shape.hidden)
    return replace(shape, vocab=1, tied=False, head=shape.head + more, total=shape.total + more)
