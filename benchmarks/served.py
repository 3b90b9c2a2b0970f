"""Whether what is planned is what is served: `python -m benchmarks.served 40` draws as many service questions, plans
each, replays the plan on requests of other seeds and by a second simulator (`served_simulator.py`), and checks that a
fleet with fewer replicas misses. It prints the table of docs/serving.md.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.served_cases import KINDS, Case, drawn
from benchmarks.served_simulator import Fleet, Kind, Request
from benchmarks.table import table
from planner.answer.assignment import Assignment
from planner.catalog.load import Catalog
from planner.errors import PlannerError
from planner.jobs.kinds import question_of
from planner.jobs.serving.deployed import deployment, held
from planner.jobs.serving.service import Service, services_of
from planner.jobs.serving.simulate import candidate_of, simulate_fleet
from planner.jobs.settle import settle
from planner.jobs.solved import solve_lifted
from planner.layouts.table import Floats
from planner.physics.serving.apart import sending
from planner.physics.serving.deployment import Replicas
from planner.physics.serving.settings import EngineSettings
from planner.scenario.load import load_any
from planner.scenario.scenario import ServingScenario
from planner.scenario.serving import Serving

SEEDS = (101, 202)
"""Of the planner's own replays; the plan was found with others."""
OWN = 303
"""Of the second simulator's."""
REQUESTS, MOST = 3000, 8000
SLACK = 1.02
"""Times its target that a latency may be."""
FILLED = 0.2
"""Share of the requests that come while the replicas fill."""


@dataclass(slots=True)
class Judged:
    """A plan by its replays: latencies over their targets, the worst of each."""

    kind: str
    asked: dict[str, object]
    fleet: str = ""
    seconds: float = 0.0
    replayed: float = 0.0
    second: float = 0.0
    fewer: list[tuple[int, float, float]] = field(default_factory=list)
    """Replicas of a kind less, and the same of what is left, by both."""
    said: str = ""
    """Why there is no plan."""


def judged(case: Case, catalog: Catalog) -> Judged:
    """Plan a question and replay what is planned."""
    found, began = Judged(case.kind, case.asked), time.process_time()
    scenario, _ = load_any(case.asked, {}, catalog)
    assert isinstance(scenario, ServingScenario)
    settled = settle(solve_lifted(question_of(scenario, catalog), lifts=False))
    if settled.solved.objective.value is None or not settled.met:
        found.said = "; ".join(settled.missed) or "no plan"
        return found
    mine, asked = settled.solved.assignments(), scenario.services[0]
    found.seconds = time.process_time() - began
    found.fleet = " and ".join(
        f"{one.serving.replicas} x {one.node} tp{one.layout.tp} pp{one.layout.pp} dp{one.layout.dp} {one.serving.role}"
        for one in mine if one.serving)
    found.replayed, found.second = both(asked, mine, catalog)
    if asked.day is None:
        found.fewer = [(less, *both(asked, without(mine, at, less), catalog, SEEDS[:1]))
                       for at, one in enumerate(mine) for less in (1, 2) if one.serving and one.serving.replicas > less]
    return found


def both(asked: Serving, mine: Sequence[Assignment], catalog: Catalog, seeds: Sequence[int] = SEEDS
         ) -> tuple[float, float]:
    """Return the worst latency over its target by the planner's replays, and by the second simulator."""
    worst = 0.0
    for seed in seeds if asked.trace is None else (0,):
        shown = simulate_fleet(asked, mine, catalog, seed=seed).latency_seconds
        worst = max(worst, *(getattr(shown[name], "mean" if level.percentile is None else f"p{level.percentile:g}")
                             / level.seconds for name, level in asked.levels))
    return worst, second(asked, mine, catalog)


def without(mine: Sequence[Assignment], at: int, less: int) -> list[Assignment]:
    """Return the assignments with so many replicas of one of them gone."""
    left = list(mine)
    one, serving = left[at], left[at].serving
    assert serving is not None
    many = serving.replicas - less
    left[at] = one.model_copy(update={
        "layout": one.layout.model_copy(update={"dp": one.layout.dp // serving.replicas * many}),
        "serving": serving.model_copy(update={
            "replicas": many, "requests_per_second": serving.requests_per_second * many / serving.replicas})})
    return left


def second(asked: Serving, mine: Sequence[Assignment], catalog: Catalog) -> float:
    """Return the worst latency over its target by the second simulator, of a day in each hour that has a fleet of its
    own, at the most that it gets.
    """
    service, worst = services_of(asked, catalog)[0], 0.0
    busiest: dict[tuple[int, ...], float] = {}
    for hour, factor in enumerate(asked.day or (1.0,)):
        there = tuple(one.serving.replicas if one.serving.replicas_by_hour is None else
                      one.serving.replicas_by_hour[hour] for one in mine if one.serving)
        busiest[there] = max(factor, busiest.get(there, 0.0))
    for there, factor in busiest.items():
        requests = list(drawn_requests(service, factor, np.random.default_rng(OWN)))
        kinds = [kind_of(service, one, catalog, many) for one, many in zip(mine, there, strict=True) if many]
        readers = [kind for kind in kinds if kind.role == "prefill"]
        sent = float(sending(readers[0].d, readers[0].rows, 1.0)[0]) if readers else 0.0
        host = kinds[0].d.engine.request
        for one in requests if asked.clients else ():
            one.think += host
        Fleet(kinds, sent).replay(requests, asked.clients or 0)
        worst = max(worst, *over(asked, service, requests, host))
    return worst


def over(asked: Serving, service: Service, requests: Sequence[Request], host: float) -> Iterator[float]:
    """Yield each latency over its target."""
    many = len(requests)
    ends = min(asked.clients, many // 4) if asked.clients else 0
    inner = requests if service.trace is not None else requests[max(int(FILLED * many), ends):many - ends]
    shown = {"ttft": [one.first - one.arrival + host for one in inner],
             "tpot": [(one.end - one.first) / (one.answer - 1) for one in inner if one.answer > 1],
             "e2e": [one.end - one.arrival + host for one in inner]}
    for name, level in asked.levels:
        values = np.array(shown[name])
        yield float(values.mean() if level.percentile is None else np.percentile(values, level.percentile)
                    ) / level.seconds


def kind_of(service: Service, one: Assignment, catalog: Catalog, many: int) -> Kind:
    """Return replicas as the second simulator runs them."""
    serving, layout = one.serving, one.layout
    assert serving is not None
    settings = EngineSettings(serving.memory_fraction, serving.max_batched_tokens, serving.max_sequences,
                              serving.prefill_delay)
    d = deployment(catalog, service, candidate_of(one, catalog), layout.stored, settings)
    copies = layout.dp // serving.replicas
    rows = Replicas(*(np.array([count]) for count in (0, layout.tp, layout.pp, layout.ep, copies)))
    tokens = float(held(catalog, service, d, rows, service.mean_length, settings).concurrency[0]) * service.mean_length
    return Kind(d, rows, int(tokens) // copies, d.engine.sequences, service.asked.prefix_hits, many, serving.role,
                serving.requests_per_second / serving.replicas)


def drawn_requests(service: Service, factor: float, rng: np.random.Generator) -> Iterator[Request]:
    """Yield the requests of a trace, else as many as fill the replicas, drawn as the service asks."""
    asked, trace = service.asked, service.trace
    if trace is not None:
        yield from (Request(float(when), int(read), int(written)) for when, read, written in zip(
            trace.arrival, trace.input, trace.output, strict=True))
        return
    assert asked.input is not None
    assert asked.output is not None
    there = sum(level.seconds * (asked.output.mean if name == "tpot" else 1) for name, level in asked.levels)
    rate = (asked.rate or 0.0) * factor
    many = int(min(max(REQUESTS, 8 * rate * there, 8 * (asked.clients or 0)), MOST))
    cv = asked.gap_cv
    gaps = np.zeros(many) if not rate else rng.gamma(1 / cv**2, cv**2 / rate, many) if cv else np.full(many, 1 / rate)
    thinks = rng.exponential(asked.think, many) if asked.think else np.zeros(many)
    reads, writes = (lengths(rng, many, size.mean, size.cv) for size in (asked.input, asked.output))
    for when, read, written, think in zip(np.cumsum(gaps), reads, writes, thinks, strict=True):
        yield Request(float(when), int(read), int(written), think=float(think))


def lengths(rng: np.random.Generator, many: int, mean: float, cv: float) -> Floats:
    """Return lognormal lengths in tokens."""
    spread = math.sqrt(math.log1p(cv**2))
    found: Floats = np.maximum(1, np.rint(rng.lognormal(math.log(mean) - spread**2 / 2, spread, many)))
    return found


def lines(found: Sequence[Judged]) -> Iterator[str]:
    """Yield the table: of each kind of load how many plans are within their targets, and how many are smallest."""
    def row(name: str, mine: Sequence[Judged]) -> list[str]:
        planned = [one for one in mine if one.fleet]
        less = {by: [[more[by] > 1 for more in one.fewer if more[0] == count] for one in planned if any(
            more[0] == count for more in one.fewer)] for by, count in ((1, 1), (2, 2))}
        too_many = [one for one in planned if any(max(more[1:]) <= 1 and more[0] == 2 for more in one.fewer)]
        return [name, str(len(planned)), str(sum(one.replayed <= SLACK for one in planned)),
                str(sum(one.second <= SLACK for one in planned)),
                f"{sum(map(all, less[1]))} of {len(less[1])}", str(len(too_many)),
                f"{np.median([one.seconds for one in planned]):.1f}" if planned else "-"]

    head = ("load", "plans", "within 2% on other requests", "within 2% by the second simulator",
            "one replica less misses", "two less hold", "CPU s")
    kinds = [(kind, [one for one in found if one.kind == kind]) for kind in KINDS]
    yield from table(head, [*(row(*pair) for pair in kinds if pair[1]), row("all", found)])


def main() -> int:
    """Judge as many plans as asked for; a file named second gets each as it is found."""
    count, catalog, found = int(sys.argv[1]), Catalog(configs=True), list[Judged]()
    log = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    with TemporaryDirectory() as folder:
        for case in drawn(7, count, Path(folder)):
            try:
                found.append(judged(case, catalog))
            except PlannerError as error:
                found.append(Judged(case.kind, case.asked, said=str(error)))
            if log is not None:
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(found[-1])) + "\n")
    print("\n".join(lines(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
