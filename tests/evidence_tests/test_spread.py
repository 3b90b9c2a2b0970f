"""Intervals: the law of residuals against sources simulated with known variances, and how distance widens."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.held_out import by_source, checked, held_out
from planner.catalog.nearness import Cell
from planner.catalog.residuals import Law, Measuring, Quantiles, Residuals, Spreading
from planner.evidence.spread import LEAST_FIRST, LogRatio, before, residuals_of, weights_of

BETWEEN, UNSEEN, WITHIN = 0.10, 0.20, 0.05
"""Standard deviations of the logarithm that the simulation plants: of sources, of stacks, of rows."""
PRIOR = Law(traits=("family", "kind"), head=1, between=0.05, unseen={"family": 0.2, "kind": 0.1},
            beyond={"gpus": 0.05}, open=0.2, scored=True, intraclass=1)
HOW = Spreading(name="spreading", source="a test", as_of="2026", kind="assumed", freedom=4, pull=4, least=0.01,
                measuring=Measuring(hours=3, repeat=0.03),
                doubt=0.5, quantiles=Quantiles(q05=-1.6, q10=-1.2, q50=0, q90=1.2, q95=1.6), laws={"x": PRIOR})


def simulated(seed: int, sources: int = 24, stacks: int = 6) -> list[LogRatio]:
    """Return twelve rows of each source; a stack is off for all of its sources alike only where none was fitted."""
    random = np.random.default_rng(seed)
    found = []
    for source in range(sources):
        stack, off = int(random.integers(stacks)), random.normal(0, BETWEEN)
        for row in range(12):
            traits = {"family": f"f{stack}", "kind": "dense" if row % 2 else "moe"}
            wide = WITHIN * (1 if row % 2 else 2)
            found.append(LogRatio(f"s{source}", f"s{source} {row // 4}", traits, {"gpus": 8.0 * 2 ** (row % 4)}, False,
                                  off + random.normal(0, wide)))
    return found


def file_of(samples: Sequence[LogRatio], prior: Law = PRIOR) -> Residuals:
    law, quantiles, cells, _ = residuals_of(samples, prior, HOW)
    return Residuals(name="x", source="a test", as_of="2026", kind="fitted", law=law, quantiles=quantiles,
                     cells=tuple(cells))


def test_planted_variances_are_found() -> None:
    """That of one source from the next lies in part in the cells: what a question gets is the sum."""
    files = [file_of(simulated(seed)) for seed in range(1, 9)]
    for kind, within in (("dense", WITHIN), ("moe", 2 * WITHIN)):
        asked = [({"family": f"f{at}", "kind": kind}, {"gpus": 16.0}) for at in range(6)]
        halves = [np.mean([np.log(found.at(*one).q95) for one in asked]) for found in files]
        assert np.mean(halves) == pytest.approx(1.645 * np.hypot(within, BETWEEN), rel=0.2)
        assert np.std(halves) < 0.25 * np.mean(halves)


def test_a_source_nobody_has_seen_is_inside_as_often_as_said() -> None:
    """The file of one simulation against the sources of others: exactly what a user's cluster is."""
    found = file_of(simulated(1))
    fresh = [sample for seed in range(11, 19) for sample in simulated(seed)]
    ratios = [(found.at(s.traits, s.sizes), np.exp(s.log)) for s in fresh]
    assert 0.86 <= np.mean([one.q05 <= ratio <= one.q95 for one, ratio in ratios]) <= 0.96
    assert 0.76 <= np.mean([one.q10 <= ratio <= one.q90 for one, ratio in ratios]) <= 0.90


@pytest.mark.parametrize(("sources", "few"), [(0, 10), (1, 1), (4, 0.25)])
def test_the_fewer_sources_have_rows_alike_the_wider(sources: int, few: float) -> None:
    """By hand: variances of a class of 0.05, of a site of 0.03 by as many sources, and of so few."""
    law = PRIOR.model_copy(update={"between": 0.03, "like": ("family",), "thin": 0.08, "alone": 0.1})
    cells = [*(Cell(traits={"family": "f", "kind": "moe"}, rows=9, sources=tuple("abcd"[:sources]), spread=0.05,
                    error=0.04) for _ in range(min(1, sources))),
             Cell(traits={}, rows=20, sources=("e",), spread=0.05, error=0.04)]
    found = Residuals(name="x", source="a test", as_of="2026", kind="fitted", law=law, quantiles=HOW.quantiles,
                      cells=tuple(cells))
    one = found.at({"family": "f", "kind": "moe"})
    new = 0 if sources else 0.2**2 + 0.1**2
    scale = (0.05**2 + 0.03**2 * (1 + 1 / max(sources, 1)) + 0.08**2 * few + new) ** 0.5
    assert one.backing == sources
    assert found.nearness.distance({"kind": "moe"}, {}).backing == sources  # what is not known is left out
    assert np.log(one.q95 / one.q05) == pytest.approx(3.2 * scale)


def test_a_source_left_out_of_all_is_inside_as_often_as_one_never_seen() -> None:
    samples = simulated(4, sources=14, stacks=4)
    checks = held_out(samples, PRIOR, HOW, None, lambda sample: sample.source)
    assert sorted(check.place for check in checks) == list(range(len(samples)))
    assert 0.84 <= np.mean([check.inside for check in checks]) <= 0.97


def test_constants_fitted_without_a_source_decide_and_not_those_with_it() -> None:
    """Sources that a fit has absorbed look right with their own constants, and are off without."""
    samples = [LogRatio(s.source, s.group, s.traits, s.sizes, False, 0.0) for s in simulated(5)]
    truth = np.array([sample.log for sample in simulated(5)])
    absorbed = residuals_of(samples, PRIOR, HOW)
    honest = residuals_of(samples, PRIOR, HOW, lambda places: truth[places])
    assert honest[0].between > 2 * absorbed[0].between
    assert honest[2][-1].spread > 5 * absorbed[2][-1].spread


def test_distance_widens_and_is_named() -> None:
    found = file_of(simulated(6))
    near = found.at({"family": "f1", "kind": "dense"}, {"gpus": 16.0})
    assert (near.unseen, near.validated) == ((), True)
    assert near.rows > 0
    assert near.sources > 0
    assert near.error is not None
    for traits, gpus, unseen in (({"family": "f1", "kind": "other"}, 16.0, ("kind",)),
                                 ({"family": "none-such", "kind": "dense"}, 16.0, ("family",)),
                                 ({"family": "f1", "kind": "dense"}, 1024.0, ("gpus",)),
                                 ({"family": "f1", "kind": "dense"}, 1.0, ("gpus",))):
        far = found.at(traits, {"gpus": gpus})
        assert far.unseen == unseen
        assert far.q95 / far.q05 > 1.02 * near.q95 / near.q05
        assert far.q05 < far.q10 < far.q50 < far.q90 < far.q95
    none = found.at({"family": "none-such", "kind": "dense"})
    assert (none.rows, none.sources, none.error, none.validated) == (0, 0, None, False)
    assert found.at({"family": "f1", "kind": "dense"}, is_open=True).q95 > near.q95
    assert found.at({"family": "f1"}).rows >= near.rows  # what is not known is held against all


def test_what_is_common_and_what_images_leave_open_adds_to_every_variance() -> None:
    """By hand: one term each, beside those of the class and of the site."""
    plain = file_of(simulated(6))
    wide = plain.model_copy(update={"law": plain.law.model_copy(update={"common": 0.2})})
    asked = {"family": "f1", "kind": "dense"}
    one, more, seen = plain.at(asked), wide.at(asked), plain.at(asked, media=True)
    scale = [np.log(found.q95) / plain.quantiles.q95 for found in (one, more, seen)]
    assert scale[1]**2 == pytest.approx(scale[0]**2 + 0.2**2)
    assert scale[2]**2 == pytest.approx(scale[0]**2 + plain.law.open**2)
    assert (one.unseen, more.unseen, seen.unseen) == ((), (), ("media",))


def test_a_choice_that_decides_more_than_others_has_a_spread_of_its_own_where_it_was_guessed() -> None:
    random, law = np.random.default_rng(8), PRIOR.model_copy(update={"guessed": {"recompute": 0.2}})
    samples = [replace(s, is_open=at % 3 > 0, guessed=("recompute",) if at % 3 == 2 else (),
                       log=s.log + (0, 0.05, 0.5)[at % 3] * random.normal()) for at, s in enumerate(simulated(8))]
    found = file_of(samples, law)
    assert found.law.guessed["recompute"] > 2 * found.law.open
    asked = {"family": "f1", "kind": "dense"}
    plain, guessed = (found.at(asked, is_open=True, guessed=names) for names in ((), ("recompute",)))
    assert guessed.q95 / guessed.q05 > 1.5 * plain.q95 / plain.q05
    assert any(name == "guessed recompute" for name, _ in guessed.causes)


@pytest.mark.parametrize(("fixed", "moves"), [((), True), (("kind",), False)])
def test_what_a_fixed_trait_adds_stays_at_its_prior(fixed: tuple[str, ...], moves: bool) -> None:
    samples = [replace(s, traits=s.traits | {"kind": s.source}) for s in simulated(9)]
    law = PRIOR.model_copy(update={"fixed": fixed})
    assert (file_of(samples, law).law.unseen["kind"] != PRIOR.unseen["kind"]) == moves


def test_a_source_of_many_rows_counts_as_one_and_its_side_as_chance() -> None:
    """Thirty sources far off beside three of many rows that are near: nine of ten sources are inside, not of rows."""
    random = np.random.default_rng(7)
    rows = [(f"s{n}", 0.3 * random.normal()) for n in range(30)] + [(f"t{n % 3}", 0.01) for n in range(300)]
    samples = [LogRatio(source, f"{source} {n % 9}", {"family": "f", "kind": "dense"}, {}, False, log)
               for n, (source, log) in enumerate(rows)]
    found = file_of(samples)
    checks = [checked(found, sample, place, sample.log) for place, sample in enumerate(samples)]
    assert 0.8 <= np.mean(by_source(checks, samples)) <= 0.95
    one = found.at({"family": "f", "kind": "dense"})
    assert one.q05 * one.q95 == pytest.approx(1)
    assert one.q50 == 1


def test_skewed_residuals_give_skewed_intervals_where_a_law_is_not_even() -> None:
    """As memory has them: what runs out of memory is seldom written down."""
    random = np.random.default_rng(7)
    samples = [LogRatio(s.source, s.group, s.traits, s.sizes, False, float(random.exponential(0.2) - 0.14))
               for s in simulated(7)]
    likely = PRIOR.model_copy(update={"scored": False, "even": False})
    one = file_of(samples, likely).at({"family": "f1", "kind": "dense"}, {"gpus": 16.0})
    assert np.log(one.q95) > 1.5 * -np.log(one.q05)


def test_a_part_that_a_kernel_may_do_without_may_be_absent_as_a_whole_below_the_prediction() -> None:
    """Half of the rows are said to hold logits for half of the peak, and every other one of them holds none."""
    random = np.random.default_rng(3)
    samples = [replace(s, parts={"logits": share}, log=s.log / 4 + float(np.log(1 - share * random.integers(2))))
               for at, s in enumerate(simulated(3)) for share in (0.5 if at // 2 % 2 else 0.0,)]
    flat = PRIOR.model_copy(update={"scored": False, "even": False})
    prior = flat.model_copy(update={"parts": ("logits",)})
    asked = {"family": "f1", "kind": "dense"}, {"gpus": 16.0}
    plain, alike = (file_of(samples, law).at(*asked) for law in (prior, flat))
    half, quarter = (plain.of_parts({"logits": share}) for share in (0.5, 0.25))
    assert plain.q05 > 1.2 * alike.q05
    for one, left in ((half, 0.5), (quarter, 0.75)):
        assert np.log(one.q05) == pytest.approx(-np.hypot(np.log(plain.q05), np.log(left)))
    assert (half.q90, half.q95) == (plain.q90, plain.q95)
    checks = held_out(samples, prior, HOW, None, lambda sample: sample.source)
    for share in (0.0, 0.5):
        mine = [check.inside for check in checks if samples[check.place].parts["logits"] == share]
        assert 0.85 <= np.mean(mine) <= 0.97


@pytest.mark.parametrize(("intraclass", "many"), [(1, 1), (0, 40), (0.2, 40 / (1 + 39 * 0.2)), (None, 40**0.5)])
def test_a_source_of_many_rows_counts_as_its_effective_number(intraclass: float | None, many: float) -> None:
    samples = [LogRatio("big", f"big {n}", {}, {}, False, 0.0) for n in range(40)]
    weights = weights_of([*samples, LogRatio("small", "small", {}, {}, False, 0.0)], intraclass)
    assert weights[:40].sum() == pytest.approx(many)
    assert weights[40] == pytest.approx(1)


@pytest.mark.parametrize("scored", [True, False])
def test_rows_lie_off_by_what_they_were_predicted_to_be_as_they_came_in(scored: bool) -> None:
    """The facts of stacks know every row by now: what was said before is what the next source will be off."""
    late, prior = {f"s{n}" for n in range(12)}, PRIOR.model_copy(update={"scored": scored})
    known = [replace(s, log=s.log / 10) for s in simulated(10, sources=16, stacks=3)]
    first = [replace(s, first=10 * s.log, since=1 + int(s.source[1:]) % 2) if s.source in late else s for s in known]
    few = [s if int(s.source[1:]) < LEAST_FIRST - 1 else known[at] for at, s in enumerate(first)]
    asked = {"family": "f1", "kind": "dense"}, {"gpus": 16.0}
    width, chance, honest = (np.log(one.q95 / one.q05) for one in (
        file_of(samples, prior).at(*asked) for samples in (known, few, first)))
    assert honest > 3 * width
    assert chance == width
    checks = held_out(first, PRIOR, HOW, None, lambda sample: sample.source)
    firsts = {samples.source: check.first for check in checks if check.first and (samples := first[check.place])}
    assert firsts.keys() == late
    there = [before(first, np.array([at])) for at, s in enumerate(first) if s.source in ("s2", "s3") and not at % 12]
    assert [{first[int(at)].source for at in places} & late for places in there] == [
        set(), {f"s{n}" for n in range(0, 12, 2)}]  # of a batch only what came in before it


def test_a_file_that_does_not_hold_together_is_refused() -> None:
    found = file_of(simulated(8, sources=4))
    with pytest.raises(ValueError, match="the last cell must be of all rows"):
        Residuals.model_validate(found.model_dump() | {"cells": found.model_dump()["cells"][:1]})
    with pytest.raises(ValueError, match="quantiles must rise"):
        Quantiles(q05=1, q10=0, q50=0, q90=0, q95=0)
    with pytest.raises(ValueError, match="of the traits"):
        Law.model_validate(PRIOR.model_dump() | {"unseen": {"colour": 0.1}})
