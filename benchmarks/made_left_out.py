"""Making images and clips: every source, and every model, predicted by constants that were fitted without it.

The constants are fitted to all calls from wide priors (Gauss-Newton on the logarithm of seconds, residuals beyond a
spread counting less), and solved again without each of them about what that fit comes to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.table import ERRORS, error_cells, table
from planner.answer.validation import Entry
from planner.catalog.generation_law import GenerationLaw
from planner.catalog.load import Catalog
from planner.evidence.compare import compare
from planner.evidence.diffusion_row import DiffusionRow
from planner.evidence.kinds import EvidenceFile
from planner.evidence.reading import read_evidence
from planner.layouts.table import Floats

PRIORS = {
    "products": (0.72, 0.2), "convolutions": (0.6, 0.2), "passes": (5.0, 0.4), "convolved": (3.0, 0.4),
    "cached": (0.5, 0.4), "fused": (0.7, 0.6), "host_launch": (30e-6, 0.4), "host_fused": (0.35e-3, 0.4),
    "host_shared": (1.5e-3, 0.4), "host_image": (0.1, 0.5), "moved": (25.0, 0.5), "copied_in": (8e9, 0.8),
    "copied_out": (5e9, 0.8), "sharing": (0.9, 0.1), "ring": (1.3, 0.3), "attention ampere": (0.8, 0.2),
    "attention ada": (0.8, 0.2), "attention hopper": (0.8, 0.2), "small products": (0.8, 0.2),
    "small convolutions": (0.8, 0.2), "small attention": (0.6, 0.2)}
"""Constant -> what is taken of it before any run, and by which part of its logarithm it may be another."""
SHARES = ("products", "convolutions", "cached", "sharing")
SPREAD, ROUNDS, STEP, MOST = 0.1, 4, 0.01, 0.999
QUANTITIES = ("latency_s", "throughput")


@dataclass(frozen=True, slots=True)
class Fit:
    """Calls about fitted constants: residuals, derivatives, and how far the constants lie from their priors."""

    left: Floats
    slopes: Floats
    moved: Floats
    weight: Floats

    def move(self, out: Floats) -> Floats:
        """Return how far constants go that are solved without some of the calls."""
        spread = np.array([spread for _, spread in PRIORS.values()])
        keep, move = self.weight * ~out.astype(bool), np.zeros(len(spread))
        for _ in range(ROUNDS):
            now = self.left + self.slopes @ move
            sure = keep / np.sqrt(1 + (now / SPREAD) ** 2)
            inner = self.slopes.T @ (self.slopes * sure[:, None]) + np.diag((SPREAD / spread) ** 2)
            rest = self.slopes.T @ (sure * self.left) + (SPREAD / spread) ** 2 * self.moved
            move = -np.linalg.solve(inner, rest)
        return move


def made_left_out(path: Path) -> Iterator[str]:
    """Yield the lines of the table: errors of sources and models by constants without them."""
    every, catalog = read_evidence(path), Catalog()
    read = replace(every, rows=tuple(row for row in every.rows if isinstance(row, DiffusionRow) and "inference" in (
        row.run.kind or "")), unread=())
    entries = _entries(read, catalog)
    rows = {row.id: row for row in read.rows if isinstance(row, DiffusionRow)}
    mine = [rows[entry.id] for entry in entries]
    keys = {"a source": np.array([_source(row) for row in mine]),
            "a model": np.array([(row.run.model or "").lower() for row in mine])}
    fitted = _fit(read, catalog, keys["a source"])
    alone = np.array([row.run.component is not None for row in mine])
    found = list[list[str]]()
    for name, key in keys.items():
        made = np.array(_left(fitted, entries, key), object)
        found += [[f"{name}: calls", *error_cells(list(made[~alone]))],
                  [f"{name}: decoding alone", *error_cells(list(made[alone]))]]
        if name == "a source":
            each = [[str(source), *error_cells(list(made[key == source]))] for source in sorted(set(key))]
    yield from ("", "Seconds of making images and clips, and of decoding, with what the first column says left out of "
                "the constants, in the intervals of today:", "")
    yield from table(("left out", *ERRORS), [*found, *each])


def _left(fitted: Fit, entries: Sequence[Entry], key: Floats) -> list[Entry]:
    """Return the entries as constants predict them that are solved without those of the same key."""
    made = list(entries)
    for one in set(key):
        move = fitted.move(key == one)
        for at in map(int, np.flatnonzero(key == one)):
            made[at] = _with(entries[at], float(np.exp(fitted.left[at] + fitted.slopes[at] @ move)))
    return made


def _source(row: DiffusionRow) -> str:
    return (row.run.source or "").partition("@")[0].partition(" (")[0].partition(" pull request")[0]


def _with(entry: Entry, over: float) -> Entry:
    """Return an entry as constants predict it that say so many times the seconds that were measured."""
    assert isinstance(entry.measured, float)
    predicted = entry.measured * over if entry.quantity == "latency_s" else entry.measured / over
    assert entry.interval90 is not None
    assert isinstance(entry.predicted, float)
    low, high = (end * predicted / entry.predicted for end in entry.interval90)
    return entry.model_copy(update={"predicted": predicted, "error": predicted / entry.measured - 1,
                                    "interval90": (low, high)})


def _entries(read: EvidenceFile, catalog: Catalog) -> list[Entry]:
    return [entry for entry in compare(read, catalog).entries if entry.quantity in QUANTITIES]


def _over(read: EvidenceFile, catalog: Catalog) -> Floats:
    """Return the logarithm of predicted over measured seconds of every call."""
    return np.array([np.log1p(entry.error or 0.0) * (1 if entry.quantity == "latency_s" else -1)
                     for entry in _entries(read, catalog)])


def _law(law: GenerationLaw, moved: Floats) -> GenerationLaw:
    """Return constants that lie so far from their priors, in logarithms."""
    values = {name: prior * float(np.exp(by)) for (name, (prior, _)), by in zip(PRIORS.items(), moved, strict=True)}
    plain = {name: min(MOST, value) if name in SHARES else value for name, value in values.items() if " " not in name}
    small = {name: min(MOST, values[f"small {name}"]) for name in ("products", "convolutions", "attention")}
    attention = {name: min(MOST, values[f"attention {name}"]) for name in ("ampere", "ada", "hopper")}
    return law.model_copy(update={**plain, "small": law.small.model_copy(update=small),
                                  "attention": {**law.attention, **attention}})


def _fit(read: EvidenceFile, catalog: Catalog, sources: Sequence[str] | Floats) -> Fit:
    """Return the calls about constants fitted to all of them; each source weighs by the root of its calls."""
    count = {source: int(np.sum(sources == source)) for source in set(sources)}
    weight = np.array([count[source] ** -0.5 for source in sources])
    weight *= len(weight) / weight.sum()
    moved = np.zeros(len(PRIORS))

    def at(where: Floats) -> Floats:
        # a copy, as catalogs of the same files share what they hold
        changed = copy(catalog)
        vars(changed)["generation_law"] = _law(catalog.generation_law, where)
        return _over(read, changed)

    for turn in range(ROUNDS):
        left = at(moved)
        slopes = np.column_stack([(at(moved + STEP * one) - left) / STEP for one in np.eye(len(PRIORS))])
        now = Fit(left, slopes, moved, weight)
        if turn + 1 < ROUNDS:
            moved = moved + np.clip(now.move(np.zeros(len(left))), -0.5, 0.5)
    return now
