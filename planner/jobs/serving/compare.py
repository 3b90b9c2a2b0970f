"""Every candidate and offer of a serving question side by side, each at its own cheapest fleet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.answer.assignment import Assignment
from planner.answer.comparison import Comparison, Row, ServedFigures, not_offered
from planner.catalog.load import Catalog
from planner.jobs.serving.answers import assignments, loads
from planner.jobs.serving.assignment import MONTH_DAYS
from planner.jobs.serving.cause import infeasible_of
from planner.jobs.serving.delivered import working
from planner.jobs.serving.fleet import Pick, is_always
from planner.jobs.serving.options import deployment
from planner.jobs.serving.prepared import Prepared, prepare
from planner.money.rent import RentalOffer
from planner.scenario.scenario import ServingScenario
from planner.units import DAY

MILLION = 1e6
JOULES_PER_KWH = 3.6e6


@dataclass(frozen=True, slots=True)
class ComparedService:
    """One row with the assignments behind it; none where there is no plan."""

    row: Row
    assignments: tuple[Assignment, ...]


def compare_services(scenario: ServingScenario, catalog: Catalog) -> list[ComparedService]:
    """Return every candidate with every offer, best first. Raises PlannerError where the input is wrong."""
    prepared = prepare(scenario, catalog)
    found = [_compared(prepared, offer) for offer in prepared.every_offer]
    found += [ComparedService(not_offered(catalog.node(name), catalog), ()) for name in prepared.dropped]
    return sorted(found, key=lambda one: one.row.rank(scenario.objective))


def comparison_of(found: Sequence[ComparedService]) -> Comparison:
    """Return the rows as the contract has them."""
    return Comparison(rows=tuple(one.row for one in found))


def _compared(prepared: Prepared, offer: RentalOffer) -> ComparedService:
    candidate = prepared.candidates[offer.candidate]
    fleet = prepared.fleet([offer])
    solved = fleet.solve()
    row = Row(node=candidate.node.name, gpu=candidate.gpu.name, offer=offer.label, kind=offer.how, status=solved.status,
              note=offer.note)
    if solved.value is None:
        why = infeasible_of(prepared, fleet, solved)
        return ComparedService(row.model_copy(update={
            "why_not": "; ".join((*why.because, *((why.nearest,) if why.nearest else ())))}), ())
    picks, hours = fleet.picks(solved), fleet.nodes_by_hour(solved)[0]
    made = assignments(prepared, picks, simulated=False)
    return ComparedService(_filled(prepared, row, picks, made, _daily_cost(offer, hours)), tuple(made))


def _filled(prepared: Prepared, row: Row, picks: Sequence[Pick], made: Sequence[Assignment],
            daily: float) -> Row:
    site = prepared.catalog.site(prepared.scenario.sourcing.site)
    gpus, days = sum(a.gpus for a in made), MONTH_DAYS
    cost = daily * days
    energy = sum(a.energy_kwh or 0.0 for a in made)
    seconds = days * DAY
    inputs = outputs = prompts = busy = 0.0
    for at, service in enumerate(prepared.services):
        mine = [pick for pick in picks if pick.service == at]
        if not mine:
            continue
        day = service.asked.day or (1.0,)
        requests = (service.rate or 0.0) * sum(day) / len(day) * seconds
        inputs, outputs = inputs + requests * service.stream.input, outputs + requests * service.stream.output
        for pick, rate in zip(mine, loads(service, mine), strict=True):
            d = deployment(prepared.catalog, service, prepared.candidates[pick.column.candidate], pick.column.format,
                           pick.column.settings)
            share = {"prefill": 1.0, "decode": 0.0}.get(
                pick.column.role, float(working(d, pick.column, service, rate).prompts[0]))
            gpus_at_work = pick.replicas * pick.column.gpus
            prompts, busy = prompts + share * gpus_at_work, busy + gpus_at_work
    share = prompts / busy
    return row.model_copy(update={
        "gpus": gpus, "duration_days": days, "mfu": sum(a.time.mfu * a.gpus for a in made) / gpus, "cost_usd": cost,
        "cost_parts": {"electricity" if row.kind == "owned" else "rent" if row.kind == "rent" else "purchase": cost},
        "usd_per_gpu_hour": cost / (gpus * days * 24), "usd_per_million_tokens": cost / (inputs + outputs) * MILLION,
        "energy_kwh": energy,
        "co2_kg": None if site.grid_intensity is None else energy * site.pue * site.grid_intensity,
        "serving": ServedFigures(
            replicas=sum(a.serving.replicas for a in made if a.serving),
            output_tokens_per_second_per_gpu=outputs / seconds / gpus,
            usd_per_million_input_tokens=share * cost / inputs * MILLION,
            usd_per_million_output_tokens=(1 - share) * cost / outputs * MILLION,
            joules_per_token=energy * JOULES_PER_KWH / (inputs + outputs))})


def _daily_cost(offer: RentalOffer, together: Sequence[int]) -> float:
    """Return USD a day of the nodes of one offer, hour by hour; what is always paid for, at its busiest hour."""
    paid = [max(together)] * len(together) if is_always(offer) else together
    each = [offer.usd_per_node_hour if offer.estate is None else offer.estate(nodes) / MILLION if nodes else 0.0
            for nodes in paid]
    return float(sum(nodes * usd for nodes, usd in zip(paid, each, strict=True)) * 24 / len(paid))
