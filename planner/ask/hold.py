"""What holds a model: the fewest GPUs of every kind, for inference, LoRA, QLoRA and full training."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.answer.assignment import Alternative, Assignment, alternative
from planner.answer.schema import Infeasible, Objective, Plan, Search, Status
from planner.ask.provenance import provenance_of
from planner.catalog.load import Catalog
from planner.jobs.columns import Run, joined
from planner.jobs.kinds import MOST_HOLDING, holding
from planner.jobs.solved import Solved, solve
from planner.scenario.default import Default
from planner.scenario.scenario import AnyScenario
from planner.solver.settings import UNLIMITED, Effort

INSIDE = {"offload_optimizer": "0", "offload_parameters": "0", "offload_activations": "0"}
"""Layouts that keep everything on the GPUs."""


def hold(scenario: AnyScenario, catalog: Catalog, defaults: Sequence[Default], effort: Effort = UNLIMITED) -> Plan:
    """Return the fewest GPUs that hold the model, one assignment a method; other GPU kinds are the alternatives.

    Where the fewest keep something on the host, the fewest that need no host are an alternative too.
    Of several models the largest that fits is answered for. Every count is proven: no layout of the space on fewer
    GPUs of that kind fits at the asked confidence; unless a time limit cut a search short, which the status says.
    """
    started = time.monotonic()
    best: list[Assignment] = []
    others: list[Alternative] = []
    accounts: list[Search] = []
    without: list[str] = []
    several, proven = False, True
    for method, questions in holding(scenario, catalog):
        models = list(questions)
        several = len(models) > 1
        for model, question in models:
            solved = solve(question, effort)
            accounts.append(solved.columns[0].account)
            proven &= solved.columns[0].open_bound is None
            if solved.picks:
                (fewest,) = solved.assignments()
                kinds = _other_kinds(solved, fewest)
                if outside := {one.gpu: one for one in (fewest, *kinds) if one.layout.offload.to != "none"}:
                    inside = solve(question, effort, held=INSIDE)
                    accounts.append(inside.columns[0].account)
                    proven &= inside.columns[0].open_bound is None
                    fewest, kinds = _beside(fewest, kinds, _on_gpus_alone(inside, outside))
                best.append(fewest)
                others += kinds
                break
            without.append(f"{method} of {model}" if several else method)
    total = float(sum(assignment.gpus for assignment in best))
    ended: Status = "optimal" if best else "infeasible"
    if not proven:
        ended = "feasible" if best else "undecided"
    nothing = _nothing(scenario, without, several=several) if without and proven else None
    notes = [nothing] if nothing else [] if proven else ["stopped by the time limit: fewer GPUs may do"]
    account = joined(accounts, time.monotonic() - started)
    return Plan(
        status=ended, notes=tuple(notes) if best or not proven else (),
        assignments=tuple(best), alternatives=tuple(others),
        objective=Objective(name="gpus", **({"value": total} if best else {}),
                            **({"bound": total, "gap": 0.0} if best and proven else {})),
        search=account.model_copy(update={"domains": {}}),
        infeasible=None if best or nothing is None else Infeasible(because=(nothing,)),
        provenance=provenance_of(scenario, catalog, defaults))


def _on_gpus_alone(inside: Solved, outside: Mapping[str, Assignment]) -> list[Alternative]:
    """Return the fewest GPUs with nothing outside them, of every kind (by GPU) whose fewest keep something there."""
    if inside.solution.run is None:
        return []
    (found,) = inside.assignments()
    kinds = [alternative(found, ""), *_other_kinds(inside, found)]
    return [one.model_copy(update={"why": f"nothing outside the GPUs: {one.gpus:,} against {outside[one.gpu].gpus:,}"})
            for one in kinds if one.gpu in outside]


def _beside(fewest: Assignment, kinds: Sequence[Alternative],
            alone: Sequence[Alternative]) -> tuple[Assignment, list[Alternative]]:
    """Return both with the layouts on GPUs alone: instead of what offloads where as few do, else after them."""
    counts = {one.gpu: one.gpus for one in (fewest, *kinds)}
    same = {one.gpu: one for one in alone if one.gpus == counts[one.gpu]}
    if found := same.get(fewest.gpu):
        fewest = fewest.model_copy(update={name: getattr(found, name) for name in type(fewest).model_fields})
    return fewest, [*(same.get(one.gpu, one) for one in kinds), *(one for one in alone if one.gpu not in same)]


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


def _nothing(scenario: AnyScenario, without: Sequence[str], *, several: bool) -> str:
    """Say which methods no count of GPUs within the limits holds."""
    limits = scenario.limits
    count = f"{limits.gpus} GPUs" if limits.gpus else f"up to {limits.max_gpus or MOST_HOLDING} GPUs of a kind"
    return f"nothing on {count} holds {'' if several else 'the model for '}{', '.join(without)}"
