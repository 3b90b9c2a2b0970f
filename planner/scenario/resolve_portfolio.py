"""The open ends of a portfolio: every workload, the hardware, and what is owned or has a quota by its name."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from planner.catalog.load import Catalog
from planner.scenario.dates import stretch
from planner.scenario.default import Default, Defaults
from planner.scenario.diffusion import DiffusionTraining
from planner.scenario.hardware_names import owned_nodes
from planner.scenario.horizon import Horizon
from planner.scenario.limits import Hardware, Limits, Sourcing
from planner.scenario.moment import written
from planner.scenario.pool import named, pool
from planner.scenario.portfolio import DATES, Portfolio
from planner.scenario.portfolio_job import AnyWork, PortfolioJob
from planner.scenario.portfolio_supply import PortfolioSourcing
from planner.scenario.posttraining import PostTraining
from planner.scenario.quarters import quarter_after, quarter_of
from planner.scenario.recurring import due_written
from planner.scenario.resolve import NO_FILE, in_precision, named_nodes, resolve_service, resolve_training
from planner.scenario.resolve_diffusion import resolved_diffusion
from planner.scenario.resolve_posttraining import resolved_posttraining
from planner.scenario.serving import Serving
from planner.scenario.workload import Training
from planner.units import DAY
from planner.yaml_io import Document, Frozen

MONTH = Horizon.model_validate({"length": "30 d", "period": "1 h"})
"""What is planned unless said, by the hour, where jobs are due within hours."""
FEW_DAYS = 2
"""Within which a day is too long a period."""


def resolve_portfolio(portfolio: Portfolio, catalog: Catalog, document: Document = NO_FILE
                      ) -> tuple[Portfolio, Defaults]:
    """Return `portfolio` with the catalog's names and no open ends, and the defaults that closed them.

    Raises InputError.
    """
    defaults = Defaults()
    if "horizon" not in portfolio.model_fields_set:
        if due_in_hours(portfolio):
            portfolio = portfolio.model_copy(update={"horizon": MONTH})
        horizon, hourly = portfolio.horizon, portfolio.horizon is MONTH
        defaults.append(Default(name="horizon", value=f"{horizon.length / DAY:g} d from {written(horizon.start)}" + (
            " by the hour" if hourly else ""), why="unless said: services run, and cost, to its end" if not hourly else
            "some jobs are due within hours, which a year of days does not tell apart: services cost this long"))
    defaults += [*told_of_dates(portfolio, document), *told_of_quarters(portfolio)]
    jobs: list[tuple[PortfolioJob, AnyWork]] = []
    for at, job in enumerate(portfolio.jobs):
        work, decided = _resolved(job.workload, catalog, document, ("jobs", at, "workload"))
        jobs.append((job, work))
        defaults += [default.model_copy(update={"name": f"{job.name}.{default.name}"}) for default in decided]
    sourcing = _sourced(portfolio, catalog, document)
    given = Limits().model_copy(update={"max_gpus": portfolio.limits.max_gpus})
    supply = pool(portfolio.hardware, sourcing.undated, given, catalog, document, defaults)
    _limits_count(portfolio, sourcing, supply["hardware"], document)
    resolved = tuple(job.model_copy(update={"workload": in_precision(
        work, job.workload, named_nodes(portfolio.hardware, supply), catalog, defaults, f"{job.name}.")
        if isinstance(work, Training) and isinstance(job.workload, Training) else work}) for job, work in jobs)
    plain, limits, rent = supply["sourcing"], supply["limits"], sourcing.rent
    assert isinstance(plain, Sourcing)
    assert isinstance(limits, Limits)
    if rent is not None and plain.rent is not None:
        rent = rent.model_copy(update={
            "providers": plain.rent.providers, "regions": plain.rent.regions, "instances": plain.rent.instances})
    return portfolio.model_copy(update={
        "jobs": resolved, "hardware": supply["hardware"],
        "limits": portfolio.limits.model_copy(update={"max_gpus": limits.max_gpus}),
        "sourcing": sourcing.model_copy(update={"rent": rent})}), defaults


def told_of_dates(portfolio: Portfolio, document: Document) -> Iterator[Default]:
    """Yield what dates without a year, and deadlines that are more than a day, were taken for."""
    said = document.data.get("jobs") if isinstance(document.data, dict) else None
    for job, given in zip(portfolio.jobs, said if isinstance(said, list) else (), strict=False):
        if isinstance(job.deadline, timedelta):
            yield Default(name=f"{job.name}.deadline", value=f"{due_written(job.deadline)} from each release", why=(
                "beside every, a span of time is that of each instance; a date is that of all"))
        for key in DATES if isinstance(given, dict) else ():
            text, moment = given.get(key), getattr(job, "from_" if key == "from" else key)
            named = stretch(text, portfolio.horizon.start.date()) if isinstance(text, str) else None
            if named is None or not isinstance(moment, datetime):
                continue
            long = key == "deadline" and (named[1] - named[0]).days > 1
            if long or stretch(text, None) is None:
                yield Default(name=f"{job.name}.{key}", value=written(moment), why=(
                    f"{text} is its first day, before which the job must have ended: write end of {text} for its end"
                    if long else f"{text} is the first from the start of the horizon on"))


def told_of_quarters(portfolio: Portfolio) -> Iterator[Default]:
    """Yield which quarters have no budget where some have one of their own."""
    by_quarter, moment = portfolio.limits.budget_by_quarter, portfolio.horizon.start
    left = []
    while isinstance(by_quarter, dict) and moment < portfolio.horizon.end:
        left += [quarter_of(moment)] if quarter_of(moment) not in by_quarter else []
        moment = quarter_after(moment)
    if left:
        yield Default(name="budget_by_quarter", value=f"none in {', '.join(left)}", why=(
            "other quarters have an amount, and these have not"))


def due_in_hours(portfolio: Portfolio) -> bool:
    """Say whether all that ends is due within a month, and some of it within hours, and nothing comes back or grows."""
    start, runs = portfolio.horizon.start, [job for job in portfolio.jobs if job.ends]
    spans = [(job.deadline - start).total_seconds() for job in runs if isinstance(job.deadline, datetime)]
    stays = all(job.every is None and job.growth is None and job.release is None and job.from_ is None
                and job.late is None for job in portfolio.jobs)
    dated = any((owned.from_, owned.until, owned.maintenance) != (None,) * 3 for owned in portfolio.sourcing.own)
    return stays and not dated and portfolio.sourcing.buy is None and len(spans) == len(runs) > 0 and (
        min(spans) <= FEW_DAYS * DAY and max(spans) <= MONTH.length)


def _limits_count(portfolio: Portfolio, sourcing: PortfolioSourcing, hardware: Frozen, document: Document) -> None:
    """Raise InputError for a quota of nodes that the question does not admit, and for the power of a site without any;
    who holds a file to other nodes means those.
    """
    assert isinstance(hardware, Hardware)
    if portfolio.limits.site_power is not None and not sourcing.own and sourcing.buy is None:
        raise document.error(("limits", "site_power"), "has no effect here: it is of nodes that are owned or bought; "
                             "max_power counts rented ones too")
    held = ("hardware", "candidates") in document.labels
    for node in sourcing.rent.quota if sourcing.rent and not held else ():
        if node not in hardware.candidates:
            raise document.error(("sourcing", "rent", "quota"), f"{node} is no candidate, so that its quota has no "
                                 f"effect: candidates are {', '.join(hardware.candidates)}")


def _resolved(work: AnyWork, catalog: Catalog, document: Document, at: tuple[str | int, ...]
              ) -> tuple[AnyWork, Defaults]:
    """Return one workload with the catalog's names, and what decided it."""
    if isinstance(work, Serving):
        return resolve_service(work, catalog, document, at)
    if isinstance(work, DiffusionTraining):
        return resolved_diffusion(work, catalog, document, at)
    if isinstance(work, PostTraining):
        return resolved_posttraining(work, catalog, document, at)
    return resolve_training(work, catalog, document, at)


def _sourced(portfolio: Portfolio, catalog: Catalog, document: Document) -> PortfolioSourcing:
    """Return where hardware comes from, with what is owned or has a quota by its name."""
    sourcing, own = portfolio.sourcing, []
    for number, owned in enumerate(sourcing.own):
        with named(document, "sourcing", "own", number, "node"):
            node, nodes = owned_nodes(owned.node, owned.nodes, catalog)
            own.append(owned.model_copy(update={"node": node, "nodes": nodes}))
    rent = sourcing.rent
    if rent is not None:
        quota = {}
        for name, most in rent.quota.items():
            with named(document, "sourcing", "rent", "quota", name):
                quota[catalog.node(name).name] = most
        rent = rent.model_copy(update={"quota": quota})
    return sourcing.model_copy(update={"own": tuple(own), "rent": rent})
