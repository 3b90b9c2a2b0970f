"""The section of docs/validation.md on intervals: how often they hold what took no part in them, and their width."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks.held_out import Check, held_out
from benchmarks.intervals import evidence_of, refitted
from benchmarks.table import table
from planner.ask.calibrate import RESIDUALS, learnt
from planner.catalog.load import Catalog
from planner.evidence.spread import Sample

APART = ("family", "engine", "architecture")
"""Traits each of whose values is left out as a whole, beside sources."""
HEAD = ("left out", "figures", "inside", "median width")


def coverage(names: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the section, for some files of residuals."""
    yield from ("", "## Intervals", "",
                "How often the 5% to 95% interval contains the figures of rows left out of the constants, of the "
                "classes and of the law that intervals follow, and how wide it is (upper end over lower). In-sample "
                "is what `planner validate` prints for these files. Seen and unseen: whether rows of the same stack "
                "or engine remained.")
    catalog = Catalog()
    for name in names:
        what = RESIDUALS[name][1]
        samples, left = learnt(name, evidence_of(name), catalog, refitted(name))
        how, law = catalog.spreading, catalog.spreading.laws[name]
        inside, widths = [], []
        for sample in samples:
            one = catalog.residuals(name).at(sample.traits, sample.sizes, is_open=sample.is_open,
                                             guessed=sample.guessed)
            inside.append(one.q05 <= np.exp(sample.log) <= one.q95)
            widths.append(one.q95 / one.q05)
        lines = [["nothing (in-sample)", str(len(samples)), f"{np.mean(inside):.1%}", f"{np.median(widths):.2f}"]]
        sources = held_out(samples, law, how, left, lambda sample: sample.source)
        lines += _lines("the row's source", sources)
        for trait in APART:
            if trait in law.traits:
                lines += _lines(f"the row's {trait}", held_out(samples, law, how, left, _trait(trait)))
        share = np.mean([check.inside for check in sources])
        yield from ("", f"`{name}`: {share:.0%} of {len(sources)} rows inside with their source left out. Of {what}:",
                    "")
        yield from table(HEAD, lines)
        yield from ("", "By source, with it left out:", "")
        yield from table(("source", *HEAD[1:]), _by_source(samples, sources))


def _trait(trait: str) -> Callable[[Sample], str]:
    return lambda sample: sample.traits[trait]


def _lines(label: str, checks: Sequence[Check]) -> list[list[str]]:
    parts = {"": checks, ", stack seen": [c for c in checks if c.seen], ", unseen": [c for c in checks if not c.seen]}
    return [_line(label + name, part) for name, part in parts.items() if part]


def _line(label: str, checks: Sequence[Check]) -> list[str]:
    return [label, str(len(checks)), f"{np.mean([c.inside for c in checks]):.1%}",
            f"{np.median([c.width for c in checks]):.2f}"]


def _by_source(samples: Sequence[Sample], checks: Sequence[Check]) -> list[list[str]]:
    names = sorted({sample.source for sample in samples})
    return [_line(name, mine) for name in names if (mine := [c for c in checks if samples[c.place].source == name])]
