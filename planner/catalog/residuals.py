"""How far measurements lie from predictions: one law for training and serving, from near evidence and distance to it.

The logarithm of measured over predicted is taken to vary by what rows alike show (a cell's spread), by what one source
differs from the next (`between`), and by all that no row of the same stack has shown (`unseen`, `beyond`, `open`).
Variances add; the quantiles of what is left, over its scale, are those of rows whose source took no part. Of speed they
are even about the prediction: which side the few sources there are lie on says nothing of the next.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import cached_property
from statistics import NormalDist
from typing import Annotated, Self

from pydantic import Field, model_validator

from planner.catalog.nearness import Cell, Distance, Nearness, Sd
from planner.catalog.sourced import Sourced
from planner.yaml_io import Frozen

Ratio = Annotated[float, Field(ge=1e-4, le=1e6)]
Deviations = Annotated[float, Field(ge=-100, le=100)]
"""A logarithm over its scale."""
LEVELS = {"q05": 0.05, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q95": 0.95}
"""The quantiles that are kept, by name."""
SPEEDS = {"output_tok_s_per_gpu": "output", "total_tok_s_per_gpu": "output", "tpot_ms": "tpot", "ttft_ms": "ttft"}
"""Quantity of serving speed as evidence names it -> what its file of residuals is called by."""
NORMAL_WIDTH = 2 * NormalDist().inv_cdf(0.95)
"""From the 5% to the 95% quantile of a normal distribution, in standard deviations."""


def lacking(parts: Collection[str], shares: Mapping[str, float]) -> float:
    """Return the logarithm by which a prediction falls without some parts, of which it has these shares."""
    return -math.log1p(-math.fsum(shares.get(name, 0.0) for name in parts))


class Law(Frozen):
    """Of one quantity: the traits by which rows are alike, and what adds to the variance of a prediction."""

    traits: tuple[str, ...] = Field(min_length=1)
    """The most telling first."""
    head: int = Field(ge=1, le=100)
    """How many of them say whose rows others are compared with: of training the stack."""
    common: float = Field(default=0.0, ge=0, le=10)
    """Of every prediction, however near: where errors hardly differ by what is known of a question."""
    between: Sd
    """Of one source from the next."""
    like: tuple[str, ...] = ()
    """Traits by which rows say that what a question is of was ever held against a run."""
    thin: Sd | None = None
    """Of how few sources have such rows: of n the n-th part of its square."""
    alone: float = Field(default=1, gt=0, le=1)
    """Sources that none counts as there."""
    unseen: dict[str, Sd]
    """Of a value of a trait that no row of the same head has."""
    fixed: tuple[str, ...] = ()
    """Traits whose novelty rows left out cannot tell: what a stack does was written knowing its rows."""
    beyond: dict[str, Sd]
    """Of each doubling of a size past those of the rows of the same head."""
    open: Sd
    """Of what is left open and had to be assumed."""
    guessed: dict[str, Sd] = Field(default_factory=dict)
    """The same, added for a choice that decides more than others where it had to be guessed."""
    parts: tuple[str, ...] = ()
    """Parts of what is predicted that a kernel may do without: below the prediction they may be absent as a whole."""
    even: bool = True
    """Whether quantiles are even about the prediction; of memory they are not, as what nobody counts is always more."""
    scored: bool = False
    """Whether the figures are those whose intervals score best, by what rows were first predicted to be where that is
    known; else the most likely ones.
    """
    intraclass: float | None = Field(default=None, ge=0, le=1)
    """Correlation r of how far rows of one source lie off: n of them count as n / (1 + (n - 1) r), from one to 1 / r.
    Without it a source counts as the root of its models on GPUs.
    """

    def scale(self, far: Distance, *, is_open: bool, guessed: Collection[str] = ()) -> float:
        """Return the standard deviation of the logarithm of measured over predicted of a question that far away."""
        return math.sqrt(math.fsum(self.causes(far, {}, is_open=is_open, guessed=guessed).values()))

    def few(self, far: Distance) -> float:
        """Return what so few sources leave open over what one does."""
        return 0.0 if far.cell.own else 1 / max(far.backing, self.alone)

    def causes(self, far: Distance, traits: Mapping[str, str], *, is_open: bool, guessed: Collection[str] = ()
               ) -> dict[str, float]:
        """Return the variances that add up to the scale's, by cause; two questions share those of the same name."""
        head = " ".join(traits.get(name, "") for name in self.traits[:self.head])
        few = ({f"few {[traits.get(name, '') for name in self.like]}": self.thin**2 * self.few(far)}
               if self.thin else {})
        return {f"rows of {traits}": far.cell.spread**2 + self.common**2, f"site {head}": self._site(far), **few,
                **{f"{name} {traits.get(name, '')}": self.unseen.get(name, 0.0)**2 for name in far.unseen},
                **{f"past {name}": (self.beyond.get(name, 0.0) * by)**2 for name, by in far.past.items()},
                **{f"guessed {name}": self.guessed.get(name, 0.0)**2 for name in guessed},
                "open": self.open**2 if is_open else 0.0}

    def _site(self, far: Distance) -> float:
        """Return the variance that comes of the site: of one's own, what its rows leave of it."""
        if far.cell.own:
            return 1 / (self.between**-2 + far.cell.rows * far.cell.spread**-2)
        return self.between**2 * (1 + 1 / far.among)

    @model_validator(mode="after")
    def _names_its_traits(self) -> Self:
        if self.head > len(self.traits) or not {*self.unseen, *self.like} <= set(self.traits):
            raise ValueError(f"head, unseen and like must be of the traits {', '.join(self.traits)}")
        if (self.thin is None) == bool(self.like):
            raise ValueError("like and thin go together")
        return self


class Quantiles(Frozen):
    """Of the logarithm of measured over predicted, over its scale."""

    q05: Deviations
    q10: Deviations
    q50: Deviations
    q90: Deviations
    q95: Deviations

    @model_validator(mode="after")
    def _rise(self) -> Self:
        if not self.q05 <= self.q10 <= self.q50 <= self.q90 <= self.q95:
            raise ValueError("quantiles must rise")
        return self


class Measuring(Frozen):
    """What it takes to measure a plan's own step on a few nodes, and how far that leaves it open."""

    hours: float = Field(gt=0, le=1000)
    """For which the nodes are paid."""
    repeat: Sd
    """Of the logarithm of a step that is measured again."""


class Spreading(Sourced):
    """Laws before any row is seen, by file of residuals, and how rows change them."""

    freedom: float = Field(ge=1, le=100)
    """Degrees of freedom of the Student-t distribution of logarithms: the smaller, the heavier its tails."""
    pull: float = Field(ge=0, le=1000)
    """Groups of rows that the spread of a wider class counts as in a narrower one."""
    least: Sd
    """Spread that no class is below: rounding and repeats."""
    doubt: float = Field(ge=1e-3, le=10)
    """Standard deviation of the logarithm of each figure of a law before rows are seen."""
    measuring: Measuring
    quantiles: Quantiles
    """Where samples of one source alone decide none."""
    laws: dict[str, Law]


class Residual(Frozen):
    """Quantiles of measured over predicted for one question, and the rows that it is comparable with."""

    rows: int = Field(ge=0)
    """Of the same head, as alike as there are; none where the head has none."""
    sources: int = Field(default=0, ge=0)
    error: float | None = None
    """Median of their relative error; none without rows."""
    backing: int = Field(default=0, ge=0)
    """Sources of rows that have what the law calls alike."""
    unseen: tuple[str, ...] = ()
    """Traits and sizes by which no row of the same head is alike."""
    causes: tuple[tuple[str, float], ...] = ()
    """Variances of the logarithm, by cause."""
    parts: tuple[str, ...] = ()
    """Parts of the prediction that may be absent."""
    alike: tuple[tuple[str, str], ...] = ()
    """Traits that these rows share with the question, by name."""
    q05: Ratio
    q10: Ratio
    q50: Ratio
    q90: Ratio
    q95: Ratio

    @property
    def mean(self) -> float:
        """Mean of measured over predicted, of a logarithm that is taken as normal about the prediction."""
        return math.exp(math.fsum(value for _, value in self.causes) / 2)

    def lowered(self, ratio: float, shares: Mapping[str, float]) -> float:
        """Return a quantile where parts of the prediction have these shares: below it they may be absent beside."""
        return math.exp(-math.hypot(math.log(ratio), lacking(self.parts, shares))) if ratio < 1 else ratio

    def of_parts(self, shares: Mapping[str, float]) -> Residual:
        """Return the quantiles where parts of the prediction have these shares."""
        return self.model_copy(update={name: self.lowered(getattr(self, name), shares) for name in ("q05", "q10")})

    @property
    def validated(self) -> bool:
        """Whether there are rows of the same head by the same method."""
        return self.rows > 0 and "method" not in self.unseen


class Residuals(Sourced):
    """The law of one quantity with the cells of its evidence, the most alike first; the last is of all rows."""

    law: Law
    quantiles: Quantiles
    cells: tuple[Cell, ...] = Field(min_length=1)
    held_out: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of the samples inside their interval with their source left out of constants and cells."""

    @model_validator(mode="after")
    def _last_is_of_all(self) -> Self:
        if self.cells[-1].traits:
            raise ValueError("the last cell must be of all rows: traits {}")
        return self

    @cached_property
    def nearness(self) -> Nearness:
        """The cells as questions are held against them."""
        return Nearness(self.law.traits, self.law.head, self.cells, self.law.like)

    @cached_property
    def stretch(self) -> float:
        """By what a figure of the law is multiplied to give the deviation of a normal logarithm as wide as the 90%."""
        return (self.quantiles.q95 - self.quantiles.q05) / NORMAL_WIDTH

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of all rows."""
        return self.cells[-1].sources

    def most(self, traits: Mapping[str, str], size: str) -> float:
        """Return the largest of a size that rows of the same head have; endless where none states it."""
        ahead = {name: traits[name] for name in self.law.traits[:self.law.head] if name in traits}
        near = [cell for cell in self.cells if ahead.items() <= cell.traits.items()] or [self.cells[-1]]
        return max((cell.sizes[size][1] for cell in near if size in cell.sizes), default=math.inf)

    def has(self, **traits: str) -> bool:
        """Say whether there are rows of these traits."""
        return any(traits.items() <= cell.traits.items() for cell in self.cells)

    def at(self, traits: Mapping[str, str], sizes: Mapping[str, float] | None = None, *,
           is_open: bool = False, guessed: Collection[str] = (), media: bool = False) -> Residual:
        """Return the quantiles for a question with these traits and sizes.

        traits: by the names of the law's; what is not known is left out. sizes: by the names of `beyond`.
        is_open: whether something had to be assumed that the question leaves open; guessed: what of it by name.
        media: whether images or sound are read, which no row does, so that what they add is open.
        """
        far = self.nearness.distance(traits, sizes or {})
        causes = self.law.causes(far, traits, is_open=is_open or media, guessed=guessed)
        width = math.sqrt(math.fsum(causes.values()))
        unseen = (*far.unseen, *(name for name, by in far.past.items() if by >= 1), *(("media",) if media else ()))
        return Residual(rows=far.cell.rows if far.same else 0, sources=len(far.cell.sources) if far.same else 0,
                        error=far.cell.error if far.same else None, backing=far.backing, unseen=unseen,
                        alike=tuple(far.cell.traits.items()) if far.same else (),
                        causes=tuple((name, value * self.stretch**2) for name, value in causes.items()),
                        parts=self.law.parts,
                        **{name: math.exp(width * getattr(self.quantiles, name)) for name in LEVELS})
