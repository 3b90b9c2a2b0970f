"""A serving scenario looked up: services, hardware with its offers, the columns of every service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.serving.columns import ReplicaColumn
from planner.jobs.serving.fleet import Fleet, is_always
from planner.jobs.serving.options import Account, Admitted, options
from planner.jobs.serving.service import Service, services_of
from planner.layouts.candidate import Candidate
from planner.money.rent import RentalOffer, candidates_with_offers, notes_of
from planner.scenario.scenario import ServingScenario
from planner.solver.fleet.covering import LIMITED
from planner.solver.settings import Settings


@dataclass(frozen=True, slots=True)
class Prepared:
    """A serving question resolved against the catalog. `account` tells what was looked at."""

    scenario: ServingScenario
    catalog: Catalog
    services: tuple[Service, ...]
    """Each whole, and where it may be split every range of its classes of prompt length."""
    candidates: tuple[Candidate, ...]
    offers: tuple[RentalOffer, ...]
    """The cheapest of each candidate, of each way to pay where the load changes over the day."""
    every_offer: tuple[RentalOffer, ...]
    dropped: tuple[str, ...]
    columns: tuple[tuple[int, ReplicaColumn], ...]
    account: Account

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know of the offers."""
        return notes_of(self.every_offer, self.dropped, self.scenario.sourcing)

    def fleet(self, offers: Sequence[RentalOffer] | None = None, settings: Settings = LIMITED) -> Fleet:
        """Return the cover question, on some of the offers."""
        return Fleet(self.services, self.columns, self.offers if offers is None else offers, self.candidates,
                     self.scenario.limits, self.scenario.objective, settings)


def prepare(scenario: ServingScenario, catalog: Catalog, admitted: Admitted = lambda column: True) -> Prepared:
    """Look up everything the scenario names, with the columns admitted. Raises PlannerError."""
    for asked in scenario.services:
        if asked.concurrency is not None:
            raise InputError(f"{asked.label}: concurrency is of one layout, which planner estimate answers; a plan "
                             "needs a rate or a trace")
        if asked.rate is None and asked.trace is None:
            raise InputError(f"{asked.label}: neither rate nor trace is given: a plan needs the load, such as "
                             "rate: 20 requests/s; what one layout gives at most is planner estimate's to say")
    nodes = sorted(set(scenario.hardware.candidates))
    candidates, offers, dropped = candidates_with_offers(nodes, scenario.sourcing, catalog)
    terms = ", ".join(scenario.sourcing.rent.terms) if scenario.sourcing.rent else "none"
    if not candidates:
        raise InputError(f"no candidate has a usable offer: {', '.join(dropped)} with terms {terms}")
    services = tuple(replace(service, of=number) for number, asked in enumerate(scenario.services)
                     for service in services_of(asked, catalog))
    account, columns = Account(), []
    for at, service in enumerate(services):
        columns += [(at, column) for column in options(catalog, service, candidates, account, admitted)]
    daily = any(asked.day for asked in scenario.services)
    return Prepared(scenario, catalog, services, tuple(candidates), tuple(_cheapest(offers, daily=daily)),
                    tuple(offers), tuple(dropped), tuple(columns), account)


def _cheapest(offers: Sequence[RentalOffer], *, daily: bool) -> list[RentalOffer]:
    """Return the cheapest offer of each candidate: a dearer one that pays the same way can never win."""
    best: dict[tuple[int, bool], RentalOffer] = {}
    for offer in sorted(offers, key=lambda one: (one.usd_per_node_hour, one.label)):
        best.setdefault((offer.candidate, daily and is_always(offer)), offer)
    return [best[key] for key in sorted(best)]
