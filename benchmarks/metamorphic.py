"""Relations between the answers to related questions, of training and of services: no truth is needed to check them.

A question that allows more has no dearer answer, one that asks for more no cheaper one, and what only renames or
rescales a question does the same to its answer.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from planner.answer.schema import Plan
from planner.ask.plan import make_plan
from planner.catalog.load import Catalog
from planner.catalog.price import PriceList
from planner.layouts.enumerate import Grid
from planner.layouts.rules import SPLIT_BY
from planner.scenario.limits import Limits
from planner.scenario.load import load_any
from planner.solver.fleet.problem import FleetOffer
from planner.solver.quantize import DURATION_QUANTUM, duration_limit
from planner.solver.search.job import Pricing
from planner.units import DAY, show_days
from tests.search_cases import Choice, choose
from tests.small_cases import Small, small_case

Check = Callable[[Choice], bool]
TIMES = 7
"""How many times as much of prices and tokens, where those are scaled."""


@dataclass(frozen=True, slots=True)
class Held:
    """How often each relation was checked, and what broke one."""

    counts: Mapping[str, int]
    broken: tuple[str, ...]


def solve(case: Small) -> Choice:
    """Return the proven choice of a case."""
    return choose(case.question, Grid(case.facts), case.job)


def value(choice: Choice) -> float:
    """Return the objective, without end where there is no plan."""
    return math.inf if choice.value is None else choice.value


def rank(choice: Choice) -> tuple[int, ...] | None:
    """Return the objective and the tie-breaks that do not depend on names."""
    return choice.best.key[:5] if choice.best else None


def more_time(case: Small, found: Choice) -> tuple[Small, Check] | None:
    """A later deadline is never dearer."""
    limit = case.job.deadline_us
    return None if limit is None else (_job(case, deadline_us=limit * 3 // 2), _no_worse(found))


def more_budget(case: Small, found: Choice) -> tuple[Small, Check] | None:
    """A larger budget is never worse."""
    limit = case.job.budget_cents
    return None if limit is None else (_job(case, budget_cents=limit * 3 // 2), _no_worse(found))


def more_power(case: Small, found: Choice) -> tuple[Small, Check] | None:
    """More power is never dearer."""
    limit = case.job.max_power_w
    return None if limit is None else (_job(case, max_power_w=2 * limit), _no_worse(found))


def more_gpus(case: Small, found: Choice) -> tuple[Small, Check] | None:
    """More GPUs, or nodes, are never dearer."""
    if case.facts.fixed_gpus:
        return None
    space, nodes = replace(case.space, max_gpus=2 * case.space.max_gpus), case.facts.max_nodes
    facts = replace(case.facts, space=space, max_nodes=None if nodes is None else nodes + 1)
    return replace(case, space=space, facts=facts), _no_worse(found)


def fewer_candidates(case: Small, found: Choice) -> tuple[Small, Check] | None:
    """The best of fewer candidates is never better, and the best of the one that won is the best."""
    if found.best is None or len(case.space.candidates) < 2:
        return None
    won = found.best.column.candidate
    space = replace(case.space, only={**case.space.only, "candidate": (won,)})
    return (replace(case, space=space, facts=replace(case.facts, space=space)),
            lambda again: rank(again) == rank(found))


def cheaper_offer(case: Small, found: Choice) -> tuple[Small, Check] | None:
    """One price less is never dearer, by cost."""
    if case.job.objective != "cost":
        return None
    first = case.job.offers[0]
    half = replace(first, micro_usd_per_node_hour=first.micro_usd_per_node_hour // 2, by_count=_times(first, 0.5))
    return _job(case, offers=(half, *case.job.offers[1:])), _no_worse(found)


def dearer_prices(case: Small, found: Choice) -> tuple[Small, Check] | None:
    """Prices and budget TIMES as high: the cost is so, to the rounding of a cent, and the layout costs as much."""
    offers = tuple(replace(one, micro_usd_per_node_hour=TIMES * one.micro_usd_per_node_hour,
                           by_count=_times(one, TIMES)) for one in case.job.offers)
    if found.best is None or case.job.objective != "cost" or case.job.budget_cents is not None:
        return None
    cents, changed = found.best.cents, _job(case, offers=offers)
    column = found.best.column
    same = offers[column.candidate].cents(column.rented_nodes, column.paid_us)
    return changed, lambda again: TIMES * (cents - 1) < value(again) <= TIMES * cents and value(again) <= same


def deadline_of_the_plan(case: Small, found: Choice) -> tuple[Small, Check] | None:
    """A plan's own duration as deadline, as it is printed, has the same plan."""
    if found.best is None or case.job.deadline_us is not None:
        return None
    printed = show_days(found.best.column.duration_us * DURATION_QUANTUM / DAY).replace("days", "d").replace(",", "")
    limit = Limits.model_validate({"deadline": printed}).deadline
    assert limit is not None
    changed = _job(case, deadline_us=duration_limit(limit.seconds), upper=(1.0,) * len(case.job.offers),
                   uppers=())
    return changed, lambda again: again.best is not None and again.best.key == found.best.key  # type: ignore[union-attr]


def more_tokens(case: Small, found: Choice) -> tuple[Small, Check] | None:
    """TIMES the tokens of a fixed batch: TIMES the steps, and of the objective to the rounding of its quantum."""
    job, tied = case.job, any(one.least_us or one.by_count for one in case.job.offers)
    if found.best is None or tied or case.space.tolerance or job.tokens % (
            step := case.space.global_batch * job.sequence_length):
        return None
    limits = {name: None if (limit := getattr(job, name)) is None else limit * TIMES
              for name in ("deadline_us", "budget_cents")}
    if any(limits.values()):
        return None
    rows = found.best.batch.rows.take(np.array([found.best.row]))
    steps = Pricing(job, case.question.candidates).steps(rows)[0]
    changed = _job(case, tokens=TIMES * job.tokens)
    if Pricing(changed.job, case.question.candidates).steps(rows)[0] != TIMES * steps or steps != job.tokens // step:
        return changed, lambda again: False
    most = found.best.key[0] * (1 if job.objective == "gpus" else TIMES)
    slack = 0 if job.objective == "gpus" else 2 * TIMES + most * 1e-9
    return changed, lambda again: most - slack <= value(again) <= most + slack


def other_order(case: Small, found: Choice) -> tuple[Small, Check] | None:
    """Candidates in another order have the same answer."""
    order = list(reversed(range(len(case.space.candidates))))
    return None if len(order) < 2 else (_with(case, order), lambda again: rank(again) == rank(found))


def dominated_candidate(case: Small, found: Choice) -> tuple[Small, Check] | None:
    """A candidate like the first at a higher price changes nothing."""
    changed = _with(case, [*range(len(case.space.candidates)), 0])
    *offers, last = changed.job.offers
    dear = replace(last, micro_usd_per_node_hour=2 * last.micro_usd_per_node_hour, by_count=_times(last, 2))
    return _job(changed, offers=(*offers, dear)), lambda again: rank(again) == rank(found)


TRAINING = (more_time, more_budget, more_power, more_gpus, fewer_candidates, cheaper_offer, dearer_prices,
            deadline_of_the_plan, more_tokens, other_order, dominated_candidate)


def training(seed: int) -> Held:
    """Check every relation that a small random scenario has."""
    case = small_case(seed)
    job = case.job
    if seed % 2:
        # whole steps, and no limits but those of counts, for the relations that need so
        step = job.sequence_length * case.space.global_batch
        case = _job(case, tokens=-(-job.tokens // step) * step, deadline_us=None, budget_cents=None)
    found, counts, broken = solve(case), dict[str, int](), []
    for relation in TRAINING:
        asked = relation(case, found)
        if asked is None:
            continue
        counts[relation.__name__] = 1
        again = solve(asked[0])
        if not asked[1](again):
            broken.append(f"seed {seed}: {relation.__name__}: {found.status} {rank(found)}, "
                          f"then {again.status} {rank(again)}")
    return Held(counts, tuple(broken))


def _no_worse(found: Choice) -> Check:
    return lambda again: value(again) <= value(found)


def _job(case: Small, **changes: object) -> Small:
    return replace(case, job=replace(case.job, **changes))  # type: ignore[arg-type]


def _times(offer: FleetOffer, factor: float) -> Callable[[int], int] | None:
    """Return the price by count `factor` as high; none where there is none."""
    price = offer.by_count
    return None if price is None else lambda nodes: int(price(nodes) * factor)


def _with(case: Small, order: list[int]) -> Small:
    """Return the case with its candidates in this order; one that is named twice is there twice."""
    question, facts, job = case.question, case.facts, case.job
    candidates = tuple(question.candidates[at] for at in order)
    question = replace(question, candidates=candidates, rates=tuple(question.rates[at] for at in order))
    space = replace(case.space, candidates=candidates)
    held, rest = np.divmod(facts.whole_sequences, 1024 ** (len(SPLIT_BY) - 1))
    whole = [at * 1024 ** (len(SPLIT_BY) - 1) + rest[held == old] for at, old in enumerate(order)]
    facts = replace(facts, space=space, node_gpus=facts.node_gpus[order], clustered=facts.clustered[order],
                    precisions=facts.precisions[order], whole_sequences=np.concatenate(whole).astype(np.int64))
    offers = tuple(replace(job.offers[old], key=at, candidate=at) for at, old in enumerate(order))
    job = replace(job, offers=offers, upper=tuple(job.upper[at] for at in order),
                  **{name: tuple(each[at] for at in order) for name in ("reclaims", "uppers", "means")
                     if (each := getattr(job, name))})
    return Small(question, space, facts, job)


def relations(seeds: Iterable[int], served: Iterable[int]) -> Held:
    """Check small random scenarios of training, and of services."""
    catalog, dear = Catalog(), Priced()
    found = [*(training(seed) for seed in seeds), *(services(seed, catalog, dear) for seed in served)]
    counts = sum((Counter(one.counts) for one in found), Counter[str]())
    return Held(counts, tuple(line for one in found for line in one.broken))


class Priced(Catalog):
    """The shipped catalog with every price TIMES as high."""

    @cached_property
    def price_lists(self) -> list[PriceList]:
        """Every provider's offers, dearer."""
        return [one.model_copy(update={"offers": tuple(
            offer.model_copy(update={"price": TIMES * offer.price}) for offer in one.offers)})
            for one in super().price_lists]


SERVICE_NODES = ("rtx-4090-1x", "l40s-1x", "h100-sxm-1x", "a100-pcie-40gb-2x", "h200-sxm-2x", "l4-1x")
SERVICES: Mapping[str, tuple[Mapping[str, Callable[[float], str]], bool]] = {
    "less rate": ({"rate": lambda x: f"{x / 2:g}"}, False), "more rate": ({"rate": lambda x: f"{x * 2:g}"}, True),
    "looser TTFT": ({"ttft": lambda x: f"{x * 2:g} s"}, False),
    "tighter TPOT": ({"tpot": lambda x: f"{x / 2:g} ms"}, True)}
"""What is changed of a service, and whether that asks for more. Longer answers may be cheaper: the wait for a prompt is
a smaller part of each, so that the same TPOT at p95 is easier to keep."""


def services(seed: int, catalog: Catalog, dear: Priced, only: Collection[str] = ()) -> Held:
    """Check the relations of a small random service; all, or `only` those named."""
    rng = random.Random(seed)
    asked = {"rate": round(10 ** rng.uniform(-0.5, 1.6), 2), "input": rng.choice((200, 1000, 4000)),
             "output": rng.choice((50, 200, 500)), "ttft": rng.choice((0.5, 1, 2, 4)),
             "tpot": rng.choice((25, 50, 100))}
    nodes = rng.sample(SERVICE_NODES, rng.choice((1, 2, 3)))
    values = {name: f"{x:g}{ {'ttft': ' s', 'tpot': ' ms'}.get(name, '')}" for name, x in asked.items()}
    values |= {"model": rng.choice(("qwen3-0.6b", "llama-3.1-8b", "gpt-oss-20b")), "on": ",".join(nodes)}
    found, counts, broken = _served(values, catalog), dict[str, int](), []

    def check(name: str, changed: Mapping[str, str], holds: Callable[[float, float], bool],
              priced: Catalog = catalog) -> None:
        if only and name not in only:
            return
        again = _served(changed, priced)
        if {found.status, again.status} <= {"optimal", "infeasible"}:
            counts[name] = 1
            if not holds(_cost(found), _cost(again)):
                broken.append(f"service {seed} {values}: {name}: {_cost(found)}, then {_cost(again)}")

    for name, (changes, more) in SERVICES.items():
        changed = values | {key: change(float(asked[key])) for key, change in changes.items()}
        check(name, changed, (lambda a, b: b >= a) if more else (lambda a, b: b <= a))
    check("prices", values, lambda a, b: b == a or abs(b - TIMES * a) <= 0.01 * TIMES, dear)
    check("order", values | {"on": ",".join(reversed(nodes))}, lambda a, b: a == b)
    if len(nodes) > 1:
        check("fewer candidates", values | {"on": nodes[0]}, lambda a, b: b >= a)
    return Held(counts, tuple(broken))


def _served(values: Mapping[str, str], catalog: Catalog) -> Plan:
    paths = {"on": "hardware.candidates"}
    scenario, _ = load_any(None, {paths.get(key, f"workload.{key}"): text for key, text in values.items()}, catalog)
    return make_plan(scenario, catalog)


def _cost(plan: Plan) -> float:
    return math.inf if plan.objective.value is None else plan.objective.value
