"""The section of docs/validation.md on whole runs: GPU-hours, with each run's organization left out of the fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.table import ERRORS, table
from planner.catalog.load import Catalog
from planner.catalog.whole_runs import RunShares
from planner.evidence.compare import compare
from planner.evidence.reading import read_evidence
from planner.evidence.whole_rows import WholeRow
from planner.evidence.whole_runs import BILLION, HOUR, WITHIN_95, WholePrediction
from planner.fit.whole import WholeSample, fit_whole, whole_samples

ORGANIZATIONS = {"opt": "llama", "olmoe": "olmo"}
"""Families of an organization that has another one."""
WHOLE = ("printed-hours", "calendar")
WORST = 10
BY_HAND = ("bloom-176b", "mpt-7b", "smollm3-3b", "llama3.1-405b", "apertus-70b")
CAUSES = {
    "apertus-70b": "723 tokens/s per GPU by its authors, 4% above its hours; searched under a pipeline not interleaved",
    "opt-175b-calendar": "62 days for 33 of steps: some 105 restarts, holidays, a cluster deleted once",
    "llama3-8b": "a sixth of the peak; how it was run is not published", "llama3.1-8b": "as llama3-8b, all stages",
    "bloomberggpt-50b": "40 GB cards, 102 TFLOP/s with recompute by its authors: sharding within groups, not modeled",
    "nemotron-4-15b": "TP 8 for 15B, printed MFU 0.31 to 0.34",
    "smollm3-3b": "no slower than its steps by its authors' figures, which few runs are",
    "llama3.1-405b": "steps as published; little was lost besides failures",
}
"""What is known of why single runs are far off; never an input."""
Found = tuple[WholeRow, WholePrediction, WholeSample]


def whole(path: Path) -> Iterator[str]:
    """Yield the lines of the section."""
    catalog = Catalog()
    compared = compare(read_evidence(path), catalog).whole
    found = [(row, prediction, sample) for (row, prediction, _), sample in
             zip(compared, whole_samples(compared), strict=True)]
    shares = catalog.whole_runs
    yield from (
        "", "## GPU-hours of whole runs", "",
        f"From {path.name}: published hours over those of the fastest layout that keeps what the row states. What it "
        "leaves open (framework, batch, layout, number of GPUs) is assumed as was usual, or searched, so these "
        "errors are not those of a plan whose layout is used. Hours that the authors derived from the step speed "
        "(step-derived) include neither failures nor anything else; the others are scored.", "")
    kept = [one for one in found if one[0].run.run_class in WHOLE]
    left = _left_out([sample for _, _, sample in found], catalog)
    rows = []
    for name, chosen in (("scored", kept), ("step-derived too", found)):
        others = [left[_organization(sample)] for _, _, sample in chosen]
        rows += [_figures(name, "left out", chosen, others),
                 _figures(name, "in-sample", chosen, [shares] * len(chosen))]
    yield from table(("runs", "organization", *ERRORS), rows)
    added = shares.added
    yield from (
        "", f"What runs add to steps and failures: median {added.quantile(0.5) - 1:.0%}, 90% interval "
        f"{added.quantile(0.05) - 1:.0%} to {added.quantile(0.95) - 1:.0%}, on {added.rows} runs whose hours and speed "
        f"are both published and a prior worth {shares.prior.added.weight:.0f}. Beyond that, runs that name their "
        f"framework took {shares.framework_stated.factor:.2f} times what is computed, the others "
        f"{shares.framework_open.factor:.2f} times.", "",
        "The goal of a median below 15% is missed: the rest is what these rows do not say (layout, batch, what else "
        "the hours include).", "", "Runs that are furthest off with their organization left out:", "")
    errors = [(_error(one, left[_organization(one[2])]), one) for one in kept]
    errors.sort(key=lambda pair: -abs(pair[0]))
    yield from table(("run", "measured over computed", "error", "what is known"), [
        (row.id, f"{sample.ratio:.2f}", f"{error:+.0%}", CAUSES.get(row.id, ""))
        for error, (row, _, sample) in errors[:WORST]])
    yield from ("", "By hand: 6 FLOPs per parameter and token at the peak of the GPUs, beside the computed steps and "
                "the published hours (share of the peak in parentheses):", "")
    yield from table(("run", "6ND at the peak", "computed steps", "published hours"),
                     [_by_hand(row, prediction, catalog) for row, prediction, _ in found if row.id in BY_HAND])


def _organization(sample: WholeSample) -> str:
    return ORGANIZATIONS.get(sample.family, sample.family)


def _left_out(samples: Sequence[WholeSample], catalog: Catalog) -> dict[str, RunShares]:
    """Return what all other organizations' runs give, by organization."""
    return {one: fit_whole([s for s in samples if _organization(s) != one], catalog.whole_runs.prior)
            for one in {_organization(s) for s in samples}}


def _factors(sample: WholeSample, shares: RunShares) -> tuple[float, float, float]:
    """Return predicted hours over those of steps and failures: median, 5% and 95% quantile."""
    published = shares.framework_open if sample.is_open else shares.framework_stated
    whole = shares.added.quantile(0.5) if sample.is_whole else 1.0
    low, high = (whole * published.quantile(z) for z in (-WITHIN_95, WITHIN_95))
    return whole * published.factor, low, high


def _error(one: Found, shares: RunShares) -> float:
    return _factors(one[2], shares)[0] / one[2].ratio - 1


def _figures(name: str, how: str, found: Sequence[Found], fits: Sequence[RunShares]) -> list[str]:
    errors = np.array([_error(one, shares) for one, shares in zip(found, fits, strict=True)])
    inside = []
    for (_, _, sample), shares in zip(found, fits, strict=True):
        _, low, high = _factors(sample, shares)
        inside.append(low <= sample.ratio <= high)
    size = np.abs(errors)
    return [name, how, str(len(found)), *(f"{value + 0.0:.1%}" for value in (
        np.median(size), np.percentile(size, 90), np.median(errors), np.mean(inside)))]


def _by_hand(row: WholeRow, prediction: WholePrediction, catalog: Catalog) -> list[str]:
    run, hours = row.run, row.measured.gpu_hours or 0.0
    parameters = (run.active_params_b or run.params_b or 0.0) * BILLION
    ideal = 6 * parameters * (run.tokens_b or 0.0) * BILLION / catalog.gpu(run.gpu or "").peak["bf16"] / HOUR
    return [row.id, f"{ideal:,.0f} h",
            *(f"{took:,.0f} h ({ideal / took:.0%})" for took in (prediction.step_hours, hours))]
