"""What not knowing is worth: the chance that the other of two choices is better, and what a measurement would save.

Logarithms of measured over predicted are taken as normal, correlated where two predictions share a cause. Then the
loss of choosing now is the value of an option to exchange one choice for the other (Margrabe 1978); a measurement saves
what the variance that it removes is worth (Raiffa and Schlaifer 1961), which is what the measured logarithms, each with
its noise, explain of that of one choice over the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Choices:
    """Two predicted values of which the lower one counts, as medians, with variances of their logarithms."""

    ours: float
    theirs: float
    our_variance: float
    their_variance: float
    shared: float
    """Covariance: of the causes that both predictions share."""

    @property
    def variance(self) -> float:
        """Of the logarithm of one over the other."""
        return max(0.0, self.our_variance + self.their_variance - 2 * self.shared)

    @property
    def chance(self) -> float:
        """Of the other one to be lower."""
        apart = math.log(self.theirs / self.ours)
        return _NORMAL.cdf(-apart / math.sqrt(self.variance)) if self.variance else float(apart < 0)

    @property
    def loss(self) -> float:
        """Expected, of choosing ours now instead of knowing."""
        return self._exchange(self.variance)

    def loss_after(self, our_noise: float, their_noise: float) -> float:
        """Return the expected loss that remains where both are measured first, with variances of what is measured."""
        return self.loss - self._exchange(self._removed(our_noise, their_noise))

    def _removed(self, our_noise: float, their_noise: float) -> float:
        """Return what measured logarithms explain of the variance: by regression on both."""
        ours, theirs, shared = self.our_variance + our_noise, self.their_variance + their_noise, self.shared
        ours_with, theirs_with = self.our_variance - shared, shared - self.their_variance
        span = ours * theirs - shared**2
        if span <= 0:  # one says all of the other
            return self.variance
        return (ours_with**2 * theirs - 2 * shared * ours_with * theirs_with + theirs_with**2 * ours) / span

    @property
    def _means(self) -> tuple[float, float]:
        return (self.ours * math.exp(self.our_variance / 2), self.theirs * math.exp(self.their_variance / 2))

    def _exchange(self, variance: float) -> float:
        """Return the mean of what ours is above theirs where it is, at that variance of their ratio."""
        ours, theirs = self._means
        if variance <= 0:
            return max(0.0, ours - theirs)
        sd = math.sqrt(variance)
        first = (math.log(ours / theirs) + variance / 2) / sd
        return ours * _NORMAL.cdf(first) - theirs * _NORMAL.cdf(first - sd)
