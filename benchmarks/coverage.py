"""What docs/validation.md says of rows left out: their errors, how often intervals hold them, how wide those are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from benchmarks.held_out import Check, by_source, checked, held_out
from benchmarks.intervals import evidence_of, refitted
from benchmarks.table import table
from planner.ask.calibrate import RESIDUALS, SERVING, learnt
from planner.catalog.load import Catalog
from planner.evidence.spread import LogRatio

APART = ("family", "engine", "architecture")
"""Traits each of whose values is left out as a whole, beside sources."""
BACKED = ((0, 0, "none other"), (1, 1, "one other"), (2, 3, "two or three others"), (4, 10**6, "four others or more"))
"""Least and most of sources, and what the page calls so many."""
HEAD = ("left out", "figures", "inside", "a source's mean", "sources below 70%", "median width")
FIRSTS = "nothing, as predicted first"
"""What the page calls rows against intervals as they came in."""
LOW = 0.7
"""Share of a source's rows inside of their intervals from which on these serve it."""
CALLED = {"output_tok_s_per_gpu": "output tokens/s of a GPU", "tpot_ms": "TPOT", "ttft_ms": "TTFT"}
"""Quantities of serving as the first table calls them."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What the page says of one kind of interval, where sources and more are left out."""

    errors: list[str]
    section: list[str]


def left_out(names: Sequence[str]) -> list[LeftOut]:
    """Return some files of residuals with the source of each sample left out of constants, law and interval."""
    with ProcessPoolExecutor(2) as both:
        return list(both.map(_left_out, names))


def errors(found: Sequence[LeftOut]) -> Iterator[str]:
    """Yield the table of the errors of sources left out."""
    head = ("of", "rows", "median", "p90", "bias", "in 90% interval", "a source's mean", "sources below 70%",
            "median width")
    yield from table(head, [one.errors for one in found])


def coverage(found: Sequence[LeftOut]) -> Iterator[str]:
    """Yield the lines of the section on intervals."""
    yield from ("", "## Intervals", "",
                "How often the 5% to 95% interval contains the figures of rows left out of the constants, of the "
                "classes and of the law that intervals follow, and how wide it is (upper end over lower). In-sample "
                "is what `planner validate` prints for these files. Seen and unseen: whether rows of the same stack "
                "or engine remained. As predicted first: runs of sources that came in later against what the program "
                "said before anything of them was known, with the law that the other sources decide and the distance "
                "to those that were there before (docs/intervals.md). A source's mean counts every source alike.")
    for one in found:
        yield from one.section


def _left_out(name: str) -> LeftOut:
    catalog, what = Catalog(), RESIDUALS[name][1]
    how, law = catalog.spreading, catalog.spreading.laws[name]
    samples, left = learnt(name, evidence_of(name), catalog, refitted(name))
    sources = held_out(samples, law, how, left, lambda sample: sample.source)
    off = np.expm1([-check.log for check in sources])
    size = np.abs(off)
    shipped = [checked(catalog.residuals(name), sample, at, sample.log) for at, sample in enumerate(samples)]
    firsts = [check.first for check in sources if check.first is not None]
    lines = [_line("nothing (in-sample)", shipped, samples), *_lines("the row's source", sources, samples),
             *(_backed("the row's source", sources, samples) if law.like else ()),
             *([_line(FIRSTS, firsts, samples), *_backed(FIRSTS, firsts, samples)] if firsts else ())]
    # of serving more than sources takes an hour, as constants are solved anew each time
    for trait in APART if name not in SERVING else ():
        if trait in law.traits:
            lines += _lines(f"the row's {trait}", held_out(samples, law, how, left, _trait(trait)), samples)
    share = np.mean([check.inside for check in sources])
    return LeftOut(
        [CALLED.get(what, what), str(len(size)), f"{np.median(size):.1%}", f"{np.quantile(size, 0.9):.1%}",
         f"{np.median(off):+.1%}", *_line("", sources, samples)[2:]],
        ["", f"`{name}`: {share:.0%} of {len(sources)} rows inside with their source left out. Of {what}:", "",
         *table(HEAD, lines), "", "By source, with it left out:", "",
         *table(("source", *HEAD[1:3], HEAD[-1]), _by_source(samples, sources))])


def _trait(trait: str) -> Callable[[LogRatio], str]:
    return lambda sample: sample.traits[trait]


def _lines(label: str, checks: Sequence[Check], samples: Sequence[LogRatio]) -> list[list[str]]:
    parts = {"": checks, ", stack seen": [c for c in checks if c.seen], ", unseen": [c for c in checks if not c.seen]}
    return [_line(label + name, part, samples) for name, part in parts.items() if part]


def _backed(label: str, checks: Sequence[Check], samples: Sequence[LogRatio]) -> Iterator[list[str]]:
    """Yield a line for rows that so many other sources have the like of."""
    for least, most, called in BACKED:
        mine = [check for check in checks if least <= check.backing <= most]
        if mine:
            yield _line(f"{label}, {called} with rows alike", mine, samples)


def _line(label: str, checks: Sequence[Check], samples: Sequence[LogRatio]) -> list[str]:
    each = np.array(by_source(checks, samples))
    return [label, str(len(checks)), f"{np.mean([c.inside for c in checks]):.1%}", f"{np.mean(each):.1%}",
            f"{np.sum(each < LOW)} of {len(each)}", f"{np.median([c.width for c in checks]):.2f}"]


def _by_source(samples: Sequence[LogRatio], checks: Sequence[Check]) -> list[list[str]]:
    names = sorted({sample.source for sample in samples})
    each = [(name, [c for c in checks if samples[c.place].source == name]) for name in names]
    return [[*(line := _line(name, mine, samples))[:3], line[-1]] for name, mine in each if mine]
