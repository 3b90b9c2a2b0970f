"""What holds a model: the fewest GPUs of every kind, for inference, LoRA, QLoRA and full training."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile

from planner.answer.assignment import Alternative, Assignment, alternative
from planner.answer.schema import Infeasible, Objective, Plan, Search, Status
from planner.ask.account import provenance_of
from planner.ask.counted import counted
from planner.ask.narrower import held_if, narrow_notes, nothing_holds
from planner.ask.no_more import TRAINS, lenders, no_more
from planner.ask.unchosen import ENGINE, FORMAT
from planner.catalog.hardware import LOW_PRECISION
from planner.catalog.load import Catalog
from planner.catalog.stack import Method
from planner.errors import Unsupported
from planner.jobs.columns import Run, joined
from planner.jobs.holding import MOST_HOLDING, holding, holding_served, trained_by
from planner.jobs.job import NOTHING_HELD, Held
from planner.jobs.market import sold
from planner.jobs.solved import ResolvedScenario, Solved, solve
from planner.physics.shapes import parameters
from planner.scenario.default import Default
from planner.scenario.model_notes import text_notes
from planner.scenario.scenario import AnyScenario, Scenario, only_training
from planner.scenario.workload import EVERY
from planner.solver.progress import part
from planner.solver.settings import UNLIMITED, Effort
from planner.units import show_bytes

FROZEN, NARROW, WIDE, MOMENTS = 0.5, 1.0, 2.0, 2.0
"""Bytes of a weight at least: frozen in 4 bits, computed in 8, in 16; and of both moments of one that trains."""
EVEN = 0.5
"""Confidence at which memory is what is expected, without a margin."""
INSIDE = {"offload_optimizer": "0", "offload_parameters": "0", "offload_activations": "0"}
"""Layouts that keep everything on the GPUs."""


@dataclass(slots=True)
class _Fewest:
    """What was found so far, method by method."""

    effort: Effort
    best: list[Assignment] = field(default_factory=list)
    others: list[Alternative] = field(default_factory=list)
    accounts: list[Search] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    """Methods, or methods of models, that nothing holds."""
    proven: bool = True

    def solved(self, question: ResolvedScenario, held: Held = NOTHING_HELD) -> Solved:
        """Solve a question and count it."""
        solved = solve(question, self.effort, held=held)
        self.accounts.append(solved.columns[0].account)
        self.proven &= solved.columns[0].open_bound is None
        return solved

    def serve(self, found: Sequence[Assignment], account: Search) -> bool:
        """Add the GPUs of every kind that hold a model to serve it, fewest first; say whether any do."""
        self.accounts.append(account)
        self.best += found[:1]
        self.others += [alternative(made, f"{made.gpus:,} of this kind") for made in found[1:]]
        return bool(found)

    def add(self, question: ResolvedScenario) -> Mapping[str, Assignment] | None:
        """Add the fewest GPUs of every kind; return those by GPU that need the host, or none where nothing fits."""
        with part("with help of the host", 0, 2):
            solved = self.solved(question)
        if not solved.picks:
            return None
        (fewest,) = solved.assignments()
        kinds = _other_kinds(solved, fewest)
        outside = {assignment.gpu: assignment for assignment in (fewest, *kinds)
                   if assignment.layout.offload.to != "none"}
        if outside:
            with part("on GPUs alone", 1, 2):
                alone = _on_gpus_alone(self.solved(question.on(outside), INSIDE), outside)
            fewest, kinds = _beside(fewest, kinds, alone)
            outside = {gpu: assignment for gpu,
                       assignment in outside.items() if gpu not in {other.gpu for other in alone}}
        self.best.append(fewest)
        self.others += kinds
        return outside


def hold(scenario: AnyScenario, catalog: Catalog, defaults: Sequence[Default], effort: Effort = UNLIMITED) -> Plan:
    """Return the fewest GPUs that hold the model, one assignment a method; other GPU kinds are the alternatives.

    Providers and regions that are named limit the kinds to what they sell.
    Where the fewest keep something on the host, the fewest that need no host are an alternative too.
    Of several models the largest that fits is answered for, and where it needs the host the largest that does not is an
    alternative. Every count is proven: no layout of the space on fewer GPUs of that kind fits at the asked confidence;
    unless a time limit cut a search short, which the status says.
    """
    started, tally = time.monotonic(), _Fewest(effort)
    nodes = sold(scenario.hardware.candidates, scenario.sourcing, catalog)
    scenario = scenario.model_copy(update={"hardware": scenario.hardware.model_copy(update={
        "candidates": tuple(nodes)})})
    work = trained_by(scenario)
    if work is None:
        open_engine = any(default.name == ENGINE for default in defaults)
        if not tally.serve(*holding_served(scenario, catalog, any_engine=open_engine)):
            tally.without.append("inference")
        return _plan(scenario, catalog, defaults, tally, started, narrow_notes(scenario, catalog, tally.best))
    methods = list(holding(scenario, catalog))
    for number, (method, models, asking) in enumerate(methods):
        inside = [model for model in models if _may_be_inside(scenario, catalog, method, model)]
        for at, model in enumerate(inside if method == "inference" and work.model == EVERY else models):
            try:
                with part(method, number, len(methods)):
                    outside = tally.add(asking(model)) if method != "inference" else (
                        {} if tally.serve(*holding_served(
                            scenario, catalog, model, any_engine=not work.has_several)) else None)
            except Unsupported:
                if work.model != EVERY:
                    raise
                continue
            if outside is None:
                tally.without.append(f"{method} of {model}" if work.has_several else method)
                continue
            if outside and work.has_several:
                tally.others += _largest_alone(
                    tally, [name for name in models[at + 1:] if name in inside], asking, model)
            break
    asked = "inference" in [method for method, _, _ in methods]
    expected = narrow_notes(scenario, catalog, tally.best, _larger(scenario, catalog, tally)) if asked else []
    if tally.proven and not work.has_several:
        expected += [*_no_more(only_training(scenario, "what holds it"), catalog, tally),
                     *_expected(scenario, catalog, tally.best, tally.others, effort)]
    return _plan(scenario, catalog, defaults, tally, started, expected)


def _plan(scenario: AnyScenario, catalog: Catalog, defaults: Sequence[Default], tally: _Fewest, started: float,
          expected: Sequence[str] = ()) -> Plan:
    """Return what was found as an answer."""
    best, proven = tally.best, tally.proven
    total = float(sum(assignment.gpus for assignment in best))
    ended: Status = "optimal" if best else "infeasible"
    if not proven:
        ended = "feasible" if best else "undecided"
    open_format = any(default.name == FORMAT for default in defaults)
    nothing = (nothing_holds(scenario, catalog, tally.without, any_format=open_format)
               if tally.without and proven else None)
    notes = [] if best and _asks_of_every(scenario) else [nothing] if nothing else []
    notes = [*notes, *expected] if proven else ["stopped by the time limit: fewer GPUs may do"]
    account = joined(tally.accounts, time.monotonic() - started)
    return Plan(
        status=ended, notes=(*text_notes(defaults), *(notes if best or not proven else ())),
        assignments=tuple(best), alternatives=tuple(tally.others),
        objective=Objective(name="gpus", **({"value": total} if best else {}),
                            **({"bound": total, "gap": 0.0} if best and proven else {})),
        search=account.model_copy(update={"domains": {}}),
        infeasible=None if best or nothing is None else Infeasible(
            because=(nothing,), relaxations=tuple(held_if(scenario, catalog)) if trained_by(scenario) is None else ()),
        counted=counted(scenario, catalog, best, tally.others, tally.without) if proven else None,
        provenance=provenance_of(scenario, catalog, defaults))


def _no_more(scenario: Scenario, catalog: Catalog, tally: _Fewest) -> list[str]:
    """Let what trains less take what holds what trains more; return what did."""
    shown = [made.workload for made in tally.best if made.workload != "inference"]
    shown += [method for method in tally.without if method in TRAINS]
    asking, lending = lenders(scenario, catalog, (*tally.best, *tally.others))
    more = _Fewest(tally.effort)
    for _, (model,), ask in holding(asking, catalog, lending):
        with suppress(Unsupported):
            more.add(ask(model))
    served = [made for made in tally.best if made.workload == "inference"]
    others = [made for made in tally.others if made.workload == "inference"]
    trained = [made for made in (*tally.best, *tally.others) if made.workload != "inference"]
    best, beside, notes = no_more([*trained, *more.best, *more.others], list(dict.fromkeys(shown)))
    tally.best, tally.others = [*served, *best], [*others, *beside]
    tally.accounts += more.accounts
    tally.proven &= more.proven
    tally.without = [method for method in tally.without if method not in {made.workload for made in best}]
    return notes


def _larger(scenario: AnyScenario, catalog: Catalog, tally: _Fewest) -> Iterator[str]:
    """Yield the models that may be inside, larger than the one that is held to serve it."""
    shown = {made.workload for made in tally.best}
    for _, models, _ in holding(scenario, catalog, ("inference",)):
        yield from (model for model in takewhile(lambda name: f"inference {name}" not in shown, models)
                    if _may_be_inside(scenario, catalog, "inference", model))


def _asks_of_every(scenario: AnyScenario) -> bool:
    work = trained_by(scenario)
    return work is not None and work.model == EVERY


def _expected(scenario: AnyScenario, catalog: Catalog, best: Sequence[Assignment], others: Sequence[Assignment],
              effort: Effort) -> Iterator[str]:
    """Yield where fewer GPUs of the one kind named are expected to hold the model without the host, at even odds.

    The margin of the asked confidence is what stands between: people do run there, some out of memory.
    """
    gpus = {catalog.node(name).gpu for name in scenario.hardware.candidates}
    if len(gpus) > 1 or scenario.confidence <= EVEN:
        return
    even, inside = scenario.model_copy(update={"confidence": EVEN}), {
        held.workload: held.gpus for held in (*others, *best) if held.layout.offload.to == "none"}
    for method, (model,), asking in holding(even, catalog):
        if method == "inference":  # what an engine allocates is its own choice, at any confidence
            continue
        with suppress(Unsupported):
            likely = solve(asking(model), effort, held=INSIDE)
            for held in likely.assignments() if likely.picks else ():
                if held.gpus < inside.get(method, held.gpus + 1):
                    yield (f"at even odds {method} holds on {held.gpus} x {held.gpu} without the host, "
                           f"{show_bytes(held.memory.peak_bytes)} of {show_bytes(held.memory.usable_bytes)} expected "
                           f"({held.stack}): tight, below the {scenario.confidence:.0%} asked")


def _may_be_inside(scenario: AnyScenario, catalog: Catalog, method: Method, model: str) -> bool:
    """Say whether a model's weights and moments alone are not more than the memory of the GPUs that limits admit."""
    limits, precision = scenario.limits, only_training(scenario, "what holds it").workload.precision
    count = limits.gpus or limits.max_gpus or MOST_HOLDING
    memory = max(catalog.gpu(catalog.node(candidate).gpu).usable_memory for candidate in scenario.hardware.candidates)
    each = FROZEN if method in ("qlora", "inference") else NARROW if LOW_PRECISION & set(precision) else WIDE
    return parameters(catalog.model(model)) * (each + MOMENTS * (method == "full")) <= count * memory


def _largest_alone(tally: _Fewest, models: Sequence[str], asking: Callable[[str], ResolvedScenario],
                   larger: str) -> list[Alternative]:
    """Return the first of the smaller models that needs nothing outside the GPUs, where the largest does."""
    for model in models:
        with suppress(Unsupported):
            inside = tally.solved(asking(model), INSIDE)
            if inside.picks:
                (alone,) = inside.assignments()
                return [alternative(alone, f"the largest with nothing outside the GPUs, against {larger}")]
    return []


def _on_gpus_alone(inside: Solved, outside: Mapping[str, Assignment]) -> list[Alternative]:
    """Return the fewest GPUs with nothing outside them, of every kind (by GPU) whose fewest keep something there."""
    if inside.solution.run is None:
        return []
    (assignment,) = inside.assignments()
    kinds = [alternative(assignment, ""), *_other_kinds(inside, assignment)]
    return [other.model_copy(update={
        "why": f"nothing outside the GPUs: {other.gpus:,} against {outside[other.gpu].gpus:,}"})
            for other in kinds if other.gpu in outside]


def _beside(fewest: Assignment, kinds: Sequence[Alternative],
            alone: Sequence[Alternative]) -> tuple[Assignment, list[Alternative]]:
    """Return both with the layouts on GPUs alone: instead of what offloads where as few do, else after them."""
    counts = {assignment.gpu: assignment.gpus for assignment in (fewest, *kinds)}
    same = {other.gpu: other for other in alone if other.gpus == counts[other.gpu]}
    if runner_up := same.get(fewest.gpu):
        fewest = fewest.model_copy(update={name: getattr(runner_up, name) for name in type(fewest).model_fields})
    return fewest, [*(same.get(kind.gpu, kind) for kind in kinds), *(other for other in alone if other.gpu not in same)]


def _other_kinds(solved: Solved, best: Assignment) -> list[Alternative]:
    """Return the fewest GPUs of every other kind."""
    alone, (columns,), taken = solved.alone, solved.columns, solved.solution.run
    assert alone is not None
    assert taken is not None
    kinds: dict[int, Run] = {}
    for column in columns.runs:
        kinds.setdefault(column.candidate, replace(taken, column=column))
    return [alone.beside(columns, run, best) for candidate, run in kinds.items()
            if candidate != taken.column.candidate]
