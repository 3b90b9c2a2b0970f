"""`planner compare`: every candidate and offer side by side, each solved to its own best plan."""

from __future__ import annotations

from dataclasses import replace

from planner.answer.assignment import Assignment
from planner.answer.comparison import Compared, Comparison, Row, not_offered
from planner.catalog.load import Catalog
from planner.catalog.price import Site
from planner.errors import InputError
from planner.jobs.training.cause import infeasible_of
from planner.jobs.training.prepared import Prepared, prepare
from planner.jobs.training.solved import Planned, planned
from planner.money.rent import RentalOffer
from planner.scenario.scenario import Scenario
from planner.solver.settings import UNLIMITED, Effort
from planner.units import DAY


def compare(scenario: Scenario, catalog: Catalog, effort: Effort = UNLIMITED) -> list[Compared]:
    """Return every candidate with every offer, best first. Raises PlannerError where the input is wrong."""
    if scenario.workload.tokens is None:
        raise InputError("compare needs workload.tokens: without, planner plan lists the fewest GPUs of every kind")
    prepared, site = prepare(scenario, catalog), catalog.site(scenario.sourcing.site)
    found = [_compared(prepared, offer, site, effort) for offer in prepared.every_offer]
    found += [Compared(not_offered(catalog.node(name), catalog), None, None) for name in prepared.dropped]
    use = scenario.sourcing.buy.utilization if scenario.sourcing.buy else 1.0
    rents = [usd for one in found if one.row.kind == "rent" and (usd := _rent_again_and_again(one, use)) is not None]
    found = [_against_rent(one, rents) for one in found]
    return sorted(found, key=lambda one: one.row.rank(scenario.objective))


def comparison_of(found: list[Compared]) -> Comparison:
    """Return the rows as the contract has them."""
    return Comparison(rows=tuple(one.row for one in found))


def _rent_again_and_again(one: Compared, utilization: float) -> float | None:
    """Return what one of many such jobs costs to rent: of a commitment, its share of the time that is used.

    Nodes under a commitment are taken to be in use as much as bought ones would be.
    """
    a, offer = one.assignment, one.offer
    if a is None or offer is None or a.cost_usd is None or a.duration_days is None:
        return None
    if offer.commitment <= a.duration_days * DAY:
        return a.cost_usd
    hours = (a.nodes + a.spare_nodes) * a.duration_days * 24
    return min(a.cost_usd, hours * offer.usd_per_node_hour / utilization)


def _against_rent(one: Compared, rents: list[float]) -> Compared:
    """Return a row of bought nodes with where they break even against the cheapest rented plan."""
    a, estate = one.assignment, one.offer.estate if one.offer else None
    if a is None or a.duration_days is None or estate is None or not rents:
        return one
    nodes, rent = a.nodes + a.spare_nodes, min(rents) / (a.duration_days * 24)
    row = one.row.model_copy(update={"break_even_months": estate.break_even_months(nodes, rent)})
    return replace(one, row=row, rent_usd=min(rents),
                   break_even_utilization=estate.break_even_utilization(nodes, rent))


def _compared(prepared: Prepared, offer: RentalOffer, site: Site, effort: Effort) -> Compared:
    """Solve the question on one candidate at one offer's price."""
    at = offer.candidate
    space = replace(prepared.space, only={**prepared.space.only, "candidate": (at,)})
    offers = [offer if one.candidate == at else one for one in prepared.offers]
    solved = planned(replace(prepared, facts=replace(prepared.facts, space=space), offers=offers), effort)
    row = _empty(prepared, offer, solved)
    assignment = solved.assignment()
    if assignment is None:
        return Compared(row, None, offer)
    return Compared(_filled(row, assignment, prepared, site), assignment, offer)


def _empty(prepared: Prepared, offer: RentalOffer, solved: Planned) -> Row:
    """Return the row of an offer with why it has no plan, where it has none."""
    candidate = prepared.question.candidates[offer.candidate]
    infeasible = infeasible_of(solved)
    why = "; ".join(infeasible.because) if infeasible else None
    if solved.choice.status == "undecided":
        why = "time ran out before a plan was found"
    return Row(node=candidate.node.name, gpu=candidate.gpu.name, offer=offer.label,
               kind=offer.how, status=solved.choice.status, why_not=why, note=offer.note)


def _filled(row: Row, a: Assignment, prepared: Prepared, site: Site) -> Row:
    assert a.cost_usd is not None
    assert a.duration_days is not None
    assert a.energy_kwh is not None
    tokens = prepared.scenario.workload.tokens or 0
    co2 = None if site.grid_intensity is None else a.energy_kwh * site.pue * site.grid_intensity
    return row.model_copy(update={
        "gpus": a.gpus, "duration_days": a.duration_days, "mfu": a.time.mfu, "cost_usd": a.cost_usd,
        "cost_parts": _parts(row, a),
        "usd_per_gpu_hour": a.cost_usd / (a.gpus * a.duration_days * 24),
        "usd_per_million_tokens": a.cost_usd / tokens * 1e6, "energy_kwh": a.energy_kwh, "co2_kg": co2})


def _parts(row: Row, a: Assignment) -> dict[str, float]:
    """Return the cost by what is paid for; of bought nodes, the job's share of every part of a year."""
    assert a.cost_usd is not None
    if a.purchase is None:
        return {"electricity" if row.kind == "owned" else "rent": a.cost_usd}
    total = sum(a.purchase.usd_per_month.values())
    return {name: a.cost_usd * usd / total for name, usd in a.purchase.usd_per_month.items() if usd}
