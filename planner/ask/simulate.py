"""`planner simulate`: requests replayed on the replicas of a plan, or on those that an estimate is of."""

from __future__ import annotations

from planner.answer.assignment import Assignment
from planner.answer.schema import Plan
from planner.answer.simulation import Simulation
from planner.ask.estimate import Estimating
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.job import Progress
from planner.jobs.kinds import replay_service, service_of
from planner.scenario.scenario import GenerationScenario, ServingScenario
from planner.scenario.serving import Serving
from planner.simulate.trace import Trace


def simulate_plan(plan: Plan, catalog: Catalog, trace: Trace | None = None, *, workload: str | None = None,
                  policy: str = "least-outstanding", progress: Progress | None = None, seed: int = 0) -> Simulation:
    """Replay a trace on the replicas of a plan's service, or what it is asked for, drawn by a seed. Raises InputError.
    """
    asked, mine = _service(plan, workload)
    return replay_service(asked, mine, catalog, trace, policy=policy, progress=progress, seed=seed)


def simulate_layout(ask: Estimating, trace: Trace | None = None, *, policy: str = "least-outstanding",
                    progress: Progress | None = None, seed: int = 0) -> Simulation:
    """Replay a trace on the replicas that an estimate is of, or what they are asked for, drawn by a seed.

    Raises InputError.
    """
    return replay_service(service_of(ask.scenario), [ask()], ask.catalog, trace, policy=policy, progress=progress,
                          seed=seed)


def _service(plan: Plan, workload: str | None) -> tuple[Serving, list[Assignment]]:
    """Return the service to replay and its assignments."""
    images = any(a.serving is not None and a.serving.made is not None for a in plan.assignments)
    try:
        scenario = (GenerationScenario if images else ServingScenario).model_validate(plan.provenance.scenario)
    except ValueError:
        raise InputError("the plan is not for a service: simulate replays what planner plan --json found for one with "
                         "a rate or a trace") from None
    names = list(dict.fromkeys(a.workload for a in plan.assignments))
    if not names:
        raise InputError(f"the plan has no replicas: its status is {plan.status}")
    if workload is None and len(names) > 1:
        raise InputError(f"the plan has several services: name one with --workload: {', '.join(names)}")
    name = workload or names[0]
    if name not in names:
        raise InputError(f"the plan has no service {name!r}: {', '.join(names)}")
    asked = next((service for service in scenario.services if service.label == name), None)
    if asked is None:
        raise InputError(f"the plan's own question has no service {name!r}, which it has replicas for")
    return asked, [a for a in plan.assignments if a.workload == name]
