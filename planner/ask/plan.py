"""`planner plan`: resolve, columns of each job, one fleet, a check without the solver, the answer in full."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Self

from planner.answer.assignment import Assignment
from planner.answer.level import above_targets
from planner.answer.relaxation import Relaxation
from planner.answer.schema import ByReplay, Infeasible, Plan
from planner.ask.account import UNREPLAYED, finished, provenance_of, search_of, with_decided
from planner.ask.alternatives import alternatives_of
from planner.ask.cautions import cautions, more_than_one
from planner.ask.cheaper import cheaper_ways
from planner.ask.doubt import doubt_of
from planner.ask.explain.cause import infeasible_of
from planner.ask.late import late
from planner.ask.simple import simplest, tells_apart
from planner.ask.slow import slow
from planner.ask.unchosen import (
    as_counted,
    by_another_engine,
    by_lighter_methods,
    enough_instead,
    in_fewer_bits,
    may_be_long,
    soon_enough,
)
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.holding import asks_what_holds
from planner.jobs.job import NOTHING_HELD, Depth, Held, Progress, Replaying
from planner.jobs.kinds import asks_for_load, at_one, question_of
from planner.jobs.settle import Settled, settle
from planner.jobs.solved import ResolvedScenario, Solved, effort_of, solve_lifted
from planner.money.rent import old_prices
from planner.process.stopping import only_to_be_told
from planner.scenario.default import Default, Defaults
from planner.scenario.limits import Deadline, Rent
from planner.scenario.model_notes import text_notes
from planner.scenario.portfolio import AnyQuestion, Portfolio
from planner.scenario.scenario import AnyScenario
from planner.simulate.reading import read_trace
from planner.solver.progress import aside
from planner.solver.settings import Effort
from planner.units import DAY

MOST_OWN = 8
"""Node types without an offer that are tried as the user's own; of more, nobody has named them."""


def make_plan(scenario: AnyQuestion, catalog: Catalog, *, defaults: Sequence[Default] = (),
              time_limit: float | None = None, simple: bool = False, pareto: Sequence[str] = (),
              workers: int = 1, replay: Path | None = None, progress: Progress | None = None,
              before: Portfolio | None = None, layout: Held = NOTHING_HELD) -> Plan:
    """Return the proven plan for a resolved scenario. Raises PlannerError where the input is wrong.

    simple: of the fleets that cannot be told from the best one, the plan is the simplest; the best comes next.
    pareto: two or more of cost, days, gpus, energy; the first is minimized, and the alternatives are the exact frontier
    of their trade-offs. workers: processes that share the search out; they change how long it takes, not the answer.
    replay: a trace that a service's plan is replayed on; progress is called with the share done.
    before: of a portfolio, the same without the jobs that are added to it. layout: axes that are held at one value.
    """
    effort = effort_of(time_limit, workers)
    given = {"--prefer": simple, "--pareto": pareto, "--replay": replay, "--layout": layout}
    if isinstance(scenario, Portfolio):
        from planner.ask.portfolio.plan import plan_portfolio  # the other question, asked by giving jobs

        _refuse(given, tuple(given), "applies to one workload, and the scenario is a portfolio of jobs")
        return plan_portfolio(scenario, catalog, defaults=defaults, effort=effort, before=before)
    if asks_what_holds(scenario):
        from planner.ask.hold import hold  # the other question, asked by leaving the amount of work out

        _refuse(given, ("--pareto",), "needs workload.tokens: without tokens there is neither cost nor duration")
        _refuse(given, ("--replay",), "is for services, and this is a training question")
        _refuse(given, ("--layout",), "has no effect without an amount of work or a load: what holds the model is by "
                "whatever layout; planner estimate takes one")
        return _holding(partial(hold, catalog=catalog, effort=effort), scenario, defaults)
    if asks_for_load(scenario):
        from planner.ask.most import most_served  # the other question, asked by its objective

        _refuse(given, ("--prefer", "--pareto", "--layout"),
                f"applies to what is minimized, but the objective is {scenario.objective}")
        replaying = Replaying(None if replay is None else read_trace(replay), progress)
        if (most := most_served(scenario, catalog, defaults, effort, replaying)) is not None:
            return most
        for changed, said, note in in_fewer_bits(scenario, defaults):
            if (most := most_served(changed, catalog, said, effort, replaying)) is not None:
                return most.model_copy(update={"notes": (note, *most.notes)})
        scenario = at_one(scenario)
    replaying_of = partial(_replaying, replay=replay, progress=progress)
    if pareto:
        from planner.ask.pareto import trade_offs  # another search, asked for by name

        _refuse(given, ("--layout",), "is one layout, and --pareto is over all of them")
        question = question_of(scenario, catalog)
        replaying_of(question)
        return trade_offs(question, pareto, defaults, effort)
    return _whole(scenario, catalog, defaults, effort, replaying_of, simple=simple, held=layout)


def _first(ways: Iterable[tuple[AnyScenario, Defaults, str]], ask: Callable[[AnyScenario, Defaults], Plan]
           ) -> Plan | None:
    """Return the first plan that there is of a question changed in some ways, with what is said of its way."""
    for changed, said, note in ways:
        if (plan := ask(changed, said)).assignments:
            return plan.model_copy(update={"notes": (note, *plan.notes)})
    return None


def _holding(hold: Callable[..., Plan], scenario: AnyScenario, defaults: Sequence[Default]) -> Plan:
    """Return what holds a model, in fewer bits than those of a format that nobody asked for where else nothing does, or
    not so many GPUs as the question counts.
    """
    plan = hold(scenario, defaults=defaults)
    for changed, said, note in in_fewer_bits(scenario, defaults) if _is_no(plan) else ():
        other = hold(changed, defaults=said)
        if not _is_no(other):
            needs = [f"{held.gpus} x {held.gpu} in the default" for held in plan.assignments]
            return other.model_copy(update={"notes": (", ".join((note, *needs)), *other.notes)})
    return plan


def _is_no(plan: Plan) -> bool:
    """Say whether nothing holds a model, or not so many GPUs as the question counts."""
    return plan.infeasible is not None or (plan.counted is not None and not any(plan.counted.holds.values()))


class _Found(NamedTuple):
    """A question, when it was begun, how much of it was looked for, and its fleet by formula."""

    started: float
    question: ResolvedScenario
    depth: Depth
    solved: Solved

    @classmethod
    def of(cls, question: ResolvedScenario, effort: Effort, held: Held, depth: Depth = "each", *, lifts: bool) -> Self:
        """Solve a question; lifts: as of `_best`."""
        started = time.monotonic()
        return cls(started, question, depth, solve_lifted(question, effort, depth, held, so_far=True, lifts=lifts))


def _refuse(given: Mapping[str, object], options: Sequence[str], why: str) -> None:
    """Raise InputError for the first of the options that is given."""
    for option in options:
        if given[option]:
            raise InputError(f"{option} {why}")


def _whole(scenario: AnyScenario, catalog: Catalog, defaults: Sequence[Default], effort: Effort,
           replaying_of: Callable[[ResolvedScenario], Replaying], *, simple: bool, held: Held) -> Plan:
    """Return the plan of one question, or of what is enough where nothing but defaults stands against one."""
    # before the user is taken to own more of what nobody offers, less of what nobody asked for does it too
    lifts = not any(default.name == "quantization" for default in defaults)
    solve = partial(_Found.of, effort=effort, held=held, lifts=lifts)
    question = question_of(scenario, catalog)
    # of a run that may be too long, what costs least is all that is asked of the question without a deadline
    found = solve(question, depth="best" if may_be_long(scenario, defaults, catalog) else "each")
    soon = soon_enough(found.solved, scenario, defaults, catalog)
    if (sooner := _first([soon] if soon else [], lambda changed, said: _best(
            changed, catalog, said, effort, replaying_of, simple=simple, held=held,
            found=solve(question.limited(changed), lifts=False)))) is not None:
        return sooner
    # who ends the first search, or has no more time, gets what it found
    if found.depth != "each" and not found.solved.interrupted and not effort.is_over:
        found = solve(question)
    plan = _best(scenario, catalog, defaults, effort, replaying_of, simple=simple, held=held, found=found)
    if (other := _instead(plan, scenario, catalog, defaults, effort, replaying_of, simple=simple,
                          held=held)) is not None:
        return other
    if plan.infeasible is not None and not lifts:
        plan = _best(scenario, catalog, defaults, effort, replaying_of, simple=simple, held=held)
    with aside():
        cheaper = [] if held else cheaper_ways(plan, scenario, defaults, catalog, effort)
    return plan.model_copy(update={"notes": (*plan.notes, *cheaper)}) if cheaper else plan


def _instead(plan: Plan, scenario: AnyScenario, catalog: Catalog, defaults: Sequence[Default], effort: Effort,
             replaying_of: Callable[[ResolvedScenario], Replaying], *, simple: bool, held: Held) -> Plan | None:
    """Return the plan where nothing but defaults stands against one, which says what they are; none elsewhere."""
    instead = enough_instead(plan, scenario, defaults)
    fewer = in_fewer_bits(scenario, defaults) if plan.infeasible is not None else []
    others = chain(by_another_engine(plan, scenario, defaults, catalog), [instead] if instead else [], fewer,
                   by_lighter_methods(plan, scenario, defaults), as_counted(plan, scenario, catalog, defaults))
    return _first(others, lambda changed, said: _best(
        changed, catalog, said, effort, replaying_of, simple=simple, held=held, lifts=False))


def _best(scenario: AnyScenario, catalog: Catalog, defaults: Sequence[Default], effort: Effort,
          replaying_of: Callable[[ResolvedScenario], Replaying], *, simple: bool, held: Held,
          lifts: bool = True, found: _Found | None = None) -> Plan:
    """Return the plan of one question as it is asked.

    lifts: whether of what nobody offers the user is taken to own as many as it takes. found: what was solved of it.
    """
    started, question, _, solved = found or _Found.of(question_of(scenario, catalog), effort, held, lifts=lifts)
    replaying = replaying_of(question)
    if any(default.name == "objective" and default.value == "time" for default in defaults):
        solved = _as_fast(solved, effort)
    settled = settle(solved, replaying.trace)
    only_to_be_told()
    solved, cut = settled.solved, settled.interrupted
    with aside():
        plain, more = simplest(solved) if simple or tells_apart(solved) else (solved, ())
    shown, more = (plain, more) if simple else (solved, ())
    # who ends the replays does not wait for one more
    made = tuple(shown.assignments(None if cut and not settled.met else replaying))
    by_replay = _by_replay(settled, made)
    unsure = cut or (by_replay is not None and not by_replay.met)
    status = "feasible" if unsure and solved.status == "optimal" else solved.status
    with aside():
        others = tuple(alternatives_of(solved, shown, plain)) if made else ()
    old = old_prices(question.terms.market.offers, {made_of.offer or "" for made_of in made}, catalog)
    notes = (*question.terms.market.notes, *more_than_one(made, question.terms.market), *dict.fromkeys(old),
             *text_notes(defaults), *late(scenario.limits, made), *slow(made, catalog.recipes),
             *cautions(made, catalog, spared=_spared(scenario)), *_kept(held),
             *([UNREPLAYED] if made and cut and by_replay is None else []))
    plan = Plan(status=status, notes=(*notes, *more),
                objective=solved.objective.model_copy(update={"by_replay": by_replay}),
                assignments=made,
                alternatives=others,
                doubt=doubt_of(made, others, solved.objective.name, catalog) if solved.alone else None,
                search=search_of(solved, time.monotonic() - started),
                infeasible=_with_own(infeasible_of(solved), scenario, question, effort),
                provenance=provenance_of(scenario, catalog, with_decided(defaults, shown), simple=shown is not solved))
    return finished(plan, solved, interrupted=cut)


def _spared(scenario: AnyScenario) -> bool:
    """Say whether a service is asked for with replicas or nodes that may fail."""
    work = scenario.workload
    return bool(getattr(work, "spare_nodes", 0) or getattr(work, "spare_replicas", 0))


def _kept(held: Held) -> list[str]:
    """Return in words which axes of the layout were not searched."""
    axes = ", ".join(f"{axis} {value}" for axis, value in held.items())
    return [f"the layout is held to {axes}: the proof, and what is named beside the plan, are of the rest and of other "
            "layouts"] if held else []


def _as_fast(fastest: Solved, effort: Effort) -> Solved:
    """Return the cheapest of what cannot be told from the fastest, where nobody asked for the fastest by name."""
    question, days = fastest.question, fastest.objective.value
    rented = any(offer.how == "rent" for offer in question.terms.market.offers)
    if fastest.status != "optimal" or not days or not rented:
        return fastest
    most = Deadline(days * DAY * (1 + question.catalog.kernels.resolution))
    limits = question.terms.limits.model_copy(update={"deadline": most})
    terms = replace(question.terms, limits=limits, objective="cost")
    cheapest = solve_lifted(question.under(terms), effort, so_far=True, held=fastest.held)
    return cheapest if cheapest.status == "optimal" else fastest


def _with_own(infeasible: Infeasible | None, scenario: AnyScenario, question: ResolvedScenario, effort: Effort
              ) -> Infeasible | None:
    """Return why there is no plan, with what does it as the user's own of the machines named that nobody offers."""
    sourcing, dropped = scenario.sourcing, question.terms.market.dropped
    if infeasible is None or not 0 < len(dropped) <= MOST_OWN or sourcing.rent != Rent() or sourcing.own:
        return infeasible
    hardware = scenario.hardware.model_copy(update={"candidates": dropped})
    as_own = question_of(scenario.model_copy(update={"hardware": hardware}), question.catalog)
    owned = solve_lifted(as_own, effort, "best")
    own = [f"{held.nodes} x {held.node}" for held in owned.assignments()] if owned.picks else []
    return infeasible if not own else infeasible.model_copy(update={"relaxations": (
        *infeasible.relaxations, Relaxation(limit="own", from_="none", to=", ".join(own)))})


def _replaying(question: ResolvedScenario, replay: Path | None, progress: Progress | None) -> Replaying:
    """Return on what services are replayed. Raises InputError for a trace that is of none, or not clearly of one."""
    if replay is None:
        return Replaying(progress=progress)
    if not any(job.has_requests for job in question.jobs):
        raise InputError("--replay is for services, and this is a training question")
    if len(question.jobs) > 1:
        raise InputError("--replay takes the requests for one service, and the scenario has several: planner simulate "
                         "--workload NAME replays them one by one")
    return Replaying(read_trace(replay), progress)


def _by_replay(settled: Settled, made: Sequence[Assignment]) -> ByReplay | None:
    """Return what replays say of the fleet as it is shown; none where nothing is replayed."""
    seen_of = [(assignment.workload, assignment.serving.replayed) for assignment in made
               if assignment.serving and assignment.serving.replayed]
    if not seen_of:
        return None
    # classes of prompts keep their targets together, not each
    services = {} if any(assignment.serving and assignment.serving.prompts for assignment in made) else dict(seen_of)
    missed = tuple(f"{name} {asked.beside(what)}" for name, seen in services.items()
                   for what, asked in above_targets(seen))
    other = settled.missed if not settled.met and not missed else ()
    return ByReplay(met=settled.met and not missed, gap=settled.gap, missed=missed or other)
