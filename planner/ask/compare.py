"""`planner compare`: every candidate and offer side by side, each solved to its own best plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from planner.answer.assignment import Assignment
from planner.answer.comparison import Comparison, Row, ServedFigures
from planner.ask.explain.cause import infeasible_of
from planner.ask.late import late
from planner.ask.simple import only
from planner.ask.unchosen import by_deadline, in_fewer_bits, may_be_long, no_deadline, usual_deadline
from planner.catalog.hardware import Node
from planner.catalog.load import Catalog
from planner.catalog.price import Site
from planner.errors import InputError
from planner.jobs.fleet import Fleet
from planner.jobs.holding import asks_what_holds
from planner.jobs.job import NOTHING_HELD, Held, Tried
from planner.jobs.kinds import question_of
from planner.jobs.market import of_nobody
from planner.jobs.otherwise import is_last_resort
from planner.jobs.settle import wholly_settled
from planner.jobs.solved import ResolvedScenario, Solved, alone_in, settings_of, solve, solve_lifted
from planner.money.caution import outlying
from planner.money.rent import RentalOffer
from planner.scenario.default import Default
from planner.scenario.limits import Limits
from planner.scenario.model_notes import text_notes
from planner.scenario.portfolio import AnyQuestion, Portfolio
from planner.scenario.scenario import AnyScenario
from planner.scenario.sites import site_of
from planner.solver.fleet.problem import Goal
from planner.solver.progress import part
from planner.solver.settings import UNLIMITED, Effort
from planner.units import DAY

MILLION = 1e6
JOULES_PER_KWH = 3.6e6


@dataclass(frozen=True, slots=True)
class Compared:
    """One row with what it was computed from: no assignments where there is no plan, no offer where there is none."""

    row: Row
    assignments: tuple[Assignment, ...]
    offer: RentalOffer | None
    rent_usd: float | None = None
    """Of nodes that are bought: what one of many such jobs costs by the cheapest of the rented plans compared."""
    break_even_utilization: float | None = None
    """The least share of time in use at which buying costs no more than that, over the life of the nodes."""

    @property
    def assignment(self) -> Assignment | None:
        """The only assignment; none where there is no plan, or several workloads share it."""
        return self.assignments[0] if len(self.assignments) == 1 else None


def compare(scenario: AnyQuestion, catalog: Catalog, effort: Effort = UNLIMITED, *, traced: bool = False,
            defaults: Sequence[Default] = (), layout: Held = NOTHING_HELD) -> list[Compared]:
    """Return every candidate with every offer, best first. Raises PlannerError where the input is wrong.

    traced: it is asked where each figure comes from, which is known of one job alone. defaults: what nobody chose; runs
    of years for want of a deadline are compared by the usual one, as they are planned. layout: axes held at one value.
    """
    if isinstance(scenario, Portfolio):
        from planner.ask.portfolio.compare import compare_portfolio  # the other question, asked by giving jobs

        if traced or layout:
            raise InputError(f"compare {'--trace' if traced else '--layout'} applies to one workload, and the scenario "
                             "is a portfolio of jobs")
        return sorted((Compared(row, made, None) for row, made in compare_portfolio(scenario, catalog, effort)),
                      key=lambda compared: compared.row.rank("cost"))
    if asks_what_holds(scenario):
        raise InputError("compare needs workload.tokens, or the load of a service; without, planner plan lists the "
                         "fewest GPUs of each kind")
    question = question_of(scenario, catalog)
    if traced:
        only(question, "compare --trace")
    ranked = partial(_ranked, effort=effort, held=layout)

    def within_usual(cheapest: Sequence[Assignment]) -> list[Compared]:
        """Return the rows by the deadline that runs usually have; none where the cheapest run keeps it, or none does.
        """
        deadline = usual_deadline(cheapest, scenario, defaults, catalog)
        rows = [] if deadline is None else ranked(question.limited(by_deadline(scenario, deadline)))
        if deadline is None or not rows[0].assignments:
            return []
        return [_noted(rows[0], [no_deadline(cheapest[0], deadline, catalog)]), *rows[1:]]

    # of a run that may be too long, what costs least says so, and rows without a deadline need no reasons
    long = may_be_long(scenario, defaults, catalog)
    if long and (sooner := within_usual(solve_lifted(question, effort, "best", layout).assignments())):
        return sooner
    plans = ranked(question)
    if not plans[0].assignments:
        return _in_fewer_bits(scenario, defaults, partial(
            compare, catalog=catalog, effort=effort, traced=traced, layout=layout)) or plans
    return plans if long else within_usual(plans[0].assignments) or plans


def _in_fewer_bits(scenario: AnyScenario, defaults: Sequence[Default], ask: Callable[..., list[Compared]]
                   ) -> list[Compared]:
    """Return the rows in fewer bits than those of a format that nobody asked for; none where that has no plan either.
    """
    for changed, said, note in in_fewer_bits(scenario, defaults):
        rows = ask(changed, defaults=said)
        if rows[0].assignments:
            return [_noted(rows[0], [note]), *rows[1:]]
    return []


def _ranked(question: ResolvedScenario, effort: Effort, held: Held) -> list[Compared]:
    """Return every candidate with every offer, best first, of one question as it is asked."""
    scenario, catalog, market = question.scenario, question.catalog, question.terms.market
    site = site_of(scenario.sourcing, catalog)
    together = _together(question, effort, held)
    known: dict[object, Tried] = {}
    plans = []
    mine = of_nobody(market, scenario.sourcing, catalog)
    offers = [(among, offer) for among in (market, *mine) for offer in among.every_offer]
    for at, (among, offer) in enumerate(offers):
        alone = question.under(replace(question.terms, market=among.only(offer)))
        solved = None if together is None or among is not market else _of_offer(together, alone, offer)
        if solved is None:
            with part(offer.label, at, len(offers)):
                solved = wholly_settled(solve_lifted(alone, effort, held=held), known)
        plans.append(_compared(alone, solved, offer, site))
    plans += [Compared(_not_offered(catalog.node(name), catalog), (), None) for name in market.dropped
              if not any(name == candidate.node.name for each in mine for candidate in each.candidates)]
    use = scenario.sourcing.buy.utilization if scenario.sourcing.buy else 1.0
    rents = [usd for compared in plans if compared.row.kind == "rent"
             and (usd := _rent_again_and_again(compared, use)) is not None]
    plans = [_late(_against_rent(compared, rents), scenario.limits) for compared in plans]

    def rank(compared: Compared) -> tuple[object, ...]:
        """What few use is behind what is in use, as it is where one plan is chosen."""
        none, *rest = compared.row.rank(question.terms.objective)
        return (none, any(is_last_resort(made, scenario, catalog) for made in compared.assignments), *rest)

    return sorted(plans, key=rank)


def several_models(asked: object) -> list[str]:
    """Return the models that are named, as a list or with commas between, where they are several."""
    names = asked if isinstance(asked, list | tuple) else str(asked or "").split(",")
    return found if len(found := [each for name in names if (each := str(name).strip())]) > 1 else []


def compare_models(questions: Mapping[str, AnyQuestion], catalog: Catalog, effort: Effort = UNLIMITED,
                   defaults: Sequence[Default] = (), layout: Held = NOTHING_HELD) -> list[Compared]:
    """Return what several models take, each on every kind of GPU at its best offer, best first."""
    plans: list[Compared] = []
    for model, question in questions.items():
        seen: set[str] = set()
        for compared in compare(question, catalog, effort, defaults=defaults, layout=layout):
            if compared.row.gpu not in seen:
                seen.add(compared.row.gpu)
                plans.append(replace(compared, row=compared.row.model_copy(update={"model": model})))
    asked = next(iter(questions.values())).objective
    goal: Goal = asked if asked == "time" or asked == "gpus" or asked == "energy" else "cost"  # noqa: PLR1714 - narrows
    return sorted(plans, key=lambda compared: compared.row.rank(goal))


def notes_on(plans: Sequence[Compared], defaults: Sequence[Default], catalog: Catalog, most: int) -> tuple[str, ...]:
    """Return what the reader of a comparison should know beside what is noted of its rows.

    most: so many of the best offers are looked at for prices that lie far below others.
    """
    shown = [compared.row.offer or "" for compared in plans if compared.assignments][:most]
    return (*text_notes(defaults), *outlying(shown, catalog))


def comparison_of(plans: Sequence[Compared]) -> Comparison:
    """Return the rows as the contract has them."""
    return Comparison(rows=tuple(compared.row for compared in plans))


def _not_offered(node: Node, catalog: Catalog) -> Row:
    return Row(node=node.name, gpu=catalog.gpu(node.gpu).name, kind="rent", status="infeasible",
               why_not="no offer with these terms, providers and regions, and none is owned or bought")


def _rent_again_and_again(compared: Compared, utilization: float) -> float | None:
    """Return what one of many such jobs costs to rent: of a commitment, its share of the time that is used.

    Nodes under a commitment are taken to be in use as much as bought ones would be.
    """
    a, offer = compared.assignment, compared.offer
    if a is None or offer is None or a.cost_usd is None or a.duration_days is None:
        return None
    if offer.commitment <= a.duration_days * DAY:
        return a.cost_usd
    hours = (a.nodes + a.spare_nodes) * a.duration_days * 24
    return min(a.cost_usd, hours * offer.usd_per_node_hour / utilization)


def _late(compared: Compared, limits: Limits) -> Compared:
    """Return a row with what whole runs make of its deadline beside what is noted of its offer."""
    return _noted(compared, [f"{compared.row.node}: {what}" for what in late(limits, compared.assignments)])


def _noted(compared: Compared, said: Sequence[str]) -> Compared:
    """Return a row with more that its reader should know."""
    notes = [note for note in (*said, compared.row.note) if note]
    return replace(compared, row=compared.row.model_copy(update={"note": "; ".join(notes) or None}))


def _against_rent(compared: Compared, rents: list[float]) -> Compared:
    """Return a row of bought nodes with where they break even against the cheapest rented plan."""
    a, estate = compared.assignment, compared.offer.estate if compared.offer else None
    if a is None or a.duration_days is None or estate is None or not rents or a.serving is not None:
        return compared
    nodes, rent = a.nodes + a.spare_nodes, min(rents) / (a.duration_days * 24)
    row = compared.row.model_copy(update={"break_even_months": estate.break_even_months(nodes, rent)})
    return replace(compared, row=row, rent_usd=min(rents),
                   break_even_utilization=estate.break_even_utilization(nodes, rent))


def _together(question: ResolvedScenario, effort: Effort, held: Held) -> Solved | None:
    """Return the question solved on every candidate in one search, where it is of one job that ends; else none."""
    alone = len(question.terms.market.offers) > 1 and alone_in(question) is not None
    solved = solve(question, effort, "every", held) if alone else None
    return None if solved is None or solved.columns[0].open_bound is not None else solved


def _of_offer(together: Solved, question: ResolvedScenario, offer: RentalOffer) -> Solved | None:
    """Return the plan on one offer from what was found of its candidate at this price; none where nothing was."""
    if offer not in together.question.terms.market.offers:
        return None
    columns = tuple(column.of(offer.candidate) for column in together.columns)
    fleet = Fleet(columns, question.terms, settings_of(together.effort))
    solved = replace(together, question=question, columns=columns, fleet=fleet, solution=fleet.solve())
    return solved if columns[0].runs and solved.picks else None


def _compared(question: ResolvedScenario, solved: Solved, offer: RentalOffer, site: Site) -> Compared:
    """Return the row of the question on one candidate at one offer's price."""
    candidate = question.terms.market.candidates[offer.candidate]
    row = Row(node=candidate.node.name, gpu=candidate.gpu.name, offer=offer.label, kind=offer.how,
              status=solved.status, why_not=_why_not(solved), note=offer.note)
    if not solved.picks:
        return Compared(row, (), offer)
    made = tuple(solved.assignments())
    return Compared(_filled(row, made, solved, site), made, offer)


def _why_not(solved: Solved) -> str | None:
    """Return why an offer has no plan; none where it has one."""
    if solved.status == "undecided":
        return "time ran out before a plan was found"
    infeasible = infeasible_of(solved, relaxing=bool(solved.fleet.demands))
    if infeasible is None:
        return None
    nearest = infeasible.nearest if solved.fleet.demands else None
    return "; ".join((*infeasible.because, *((nearest,) if nearest else ())))


def _filled(row: Row, made: Sequence[Assignment], solved: Solved, site: Site) -> Row:
    """Return a row with the figures of its plan; for services those of a month."""
    gpus, energy = sum(a.gpus for a in made), sum(a.energy_kwh or 0.0 for a in made)
    days, cost = solved.fleet.days(solved.solution), solved.fleet.usd(solved.solution)
    work = [job.processed(columns, solved.picks_of(at)) for at, (job, columns) in enumerate(
        zip(solved.question.jobs, solved.columns, strict=True))]
    inputs, outputs = sum(processed.input for processed in work), sum(processed.output for processed in work)
    tokens, images = inputs + outputs, sum(processed.images for processed in work)
    co2 = None if site.grid_intensity is None else energy * site.pue * site.grid_intensity
    served = None
    if outputs:
        share = sum(processed.prompt_gpus for processed in work) / sum(processed.gpus for processed in work)
        served = ServedFigures(
            replicas=sum(a.serving.replicas for a in made if a.serving),
            output_tokens_per_second_per_gpu=outputs / (days * DAY) / gpus,
            usd_per_million_input_tokens=share * cost / inputs * MILLION,
            usd_per_million_output_tokens=(1 - share) * cost / outputs * MILLION,
            joules_per_token=energy * JOULES_PER_KWH / tokens)
    return row.model_copy(update={
        "gpus": gpus, "duration_days": days, "mfu": sum(a.time.mfu * a.gpus for a in made) / gpus, "cost_usd": cost,
        "cost_parts": _parts(row, made, cost), "usd_per_gpu_hour": cost / (gpus * days * 24),
        "usd_per_million_tokens": cost / tokens * MILLION if tokens else None,
        "usd_per_thousand_images": cost / images * 1000 if images else None, "energy_kwh": energy, "co2_kg": co2,
        "serving": served, "evidence": made[0].time.evidence if len(made) == 1 else None})


def _parts(row: Row, made: Sequence[Assignment], cost: float) -> dict[str, float]:
    """Return the cost by what is paid for; of bought nodes, the job's share of every part of a year."""
    bought = [a.purchase for a in made if a.purchase is not None]
    if not bought:
        return {"electricity" if row.kind == "owned" else "rent": cost}
    total = sum(usd for own in bought for usd in own.usd_per_month.values())
    parts: dict[str, float] = {}
    for purchase in bought:
        for name, usd in purchase.usd_per_month.items():
            if usd:
                parts[name] = parts.get(name, 0.0) + cost * usd / total
    return parts
