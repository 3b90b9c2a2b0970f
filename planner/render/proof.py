"""Why this answer: the proof, what was searched, what lost and why, and what would make a "no" a "yes"."""

from __future__ import annotations

from collections.abc import Sequence, Set

from planner.answer.assignment import Alternative
from planner.answer.level import above_targets
from planner.answer.schema import Infeasible, Plan, Provenance
from planner.render.figures import gap_shown, objective, percent, values
from planner.render.layout_text import brief
from planner.render.page import Head, Page, Sheet
from planner.render.runners_up import fleets_of
from planner.render.serving import documents_of, is_service
from planner.units import MONTH_DAYS, show_days, show_seconds, show_usd

_LEAST = {"cost_usd": "cheapest", "gpus": "fewest GPUs", "energy_kwh": "least energy"}
_DIGEST_SHOWN = 12
"""Leading characters of the catalog digest that people see; the JSON has them all."""


def show_infeasible(page: Sheet, infeasible: Infeasible) -> None:
    """Print the nearest miss and the single changes that are enough."""
    if infeasible.nearest:
        page.facts([("nearest miss", infeasible.nearest)])
    if infeasible.relaxations:
        page.heading("One of these changes is enough")
        page.table((Head("limit"), Head("asked"), Head("enough")),
                   [(r.limit, r.from_, r.to) for r in infeasible.relaxations])


def show_proof(page: Page, plan: Plan) -> None:
    """Print status, value against bound, and how the search narrowed down."""
    search = plan.search
    rows = [("status", _status(plan) + _replayed(plan))]
    if search.layouts:
        fit = f"{search.fit:,}{' with their offloaded variants' if search.fit > search.legal else ''} fit in memory"
        counts = f"{search.layouts:,} considered, {search.legal:,} legal, {fit}"
        pruned = ", the others pruned by their bound" if plan.status == "optimal" else ""
        solved = f"{search.staged:,} staged exactly{pruned}"
        if is_service(plan):
            solved = f"{search.staged:,} meet the latency targets and are undominated; the fleet uses these"
        rows.append(("layouts", f"{counts}, {solved}"))
    if search.domains:
        axes = (f"{name} {values(domain)}" for name, domain in search.domains.items())
        rows.append(("searched", "; ".join(axes)))
    if search.wall_seconds:
        rows.append(("search time", show_seconds(search.wall_seconds)))
    page.heading("Proof")
    page.facts(rows)
    removed = [(rule, f"{count:,}") for rule, count in search.removed.items() if count]
    if removed:
        page.console.print()
        page.table((Head("removed by rule"), Head("layouts", True)), removed)


def _status(plan: Plan) -> str:
    name, value, bound = plan.objective.name, plan.objective.value, plan.objective.bound
    if value is None:
        return "proven infeasible: no layout in the space meets every limit" if plan.status == "infeasible" else (
            "stopped before a plan was found")
    seen = plan.objective.by_replay
    if seen is not None and not seen.met:
        return f"no fleet found that meets every target by replay: {objective(name, value)}"
    if plan.objective.is_load and seen is not None:
        most = objective(name, value * (1 + (seen.gap or 0.0)))
        return "replays within every target; " + (
            f"no fleet was found for {most}" if bound is None else
            f"by formula the largest load of all fleets within the limits is {most}")
    if plan.status == "optimal":
        month = f" in {MONTH_DAYS:g} days" if is_service(plan) and documents_of(plan) is None and name != "gpus" else ""
        return f"proven optimal: exact value {objective(name, value)}{month} = exact bound"
    if bound is None:
        return f"not proven: value {objective(name, value)}, no bound"
    gap = "" if plan.objective.gap is None else f", gap {gap_shown(plan.objective.gap)}"
    return f"not proven: value {objective(name, value)}, bound {objective(name, bound)}{gap}"


def proof_line(plan: Plan) -> str:
    """Return status and search in one line."""
    search = plan.search
    between = " over" if plan.status == "optimal" else ";"
    looked = f"{between} {search.layouts:,} layouts" if search.layouts else ""
    return _status(plan).replace("exact value ", "") + looked + _replayed(plan)


def _replayed(plan: Plan) -> str:
    """Return what replays add to a proof by computed latencies."""
    seen, name = plan.objective.by_replay, plan.objective.name
    if seen is None or seen.gap is None or not seen.met or plan.status != "optimal" or name not in _LEAST:
        return ""
    within = f"by replay within {percent(seen.gap)}"
    beyond = {what for a in plan.assignments if a.serving for what, _ in above_targets(a.serving)}
    if beyond:
        # the replay has shown room that no formula does
        over = " and ".join(sorted(beyond))
        return f"; {_LEAST[name]} {within}, which keeps the target of {over} where the formula does not"
    return f"; {_LEAST[name]} by formula, and {within}"


def show_alternatives(page: Page, plan: Plan) -> None:
    """Print the next best, with the reason each lost; an offer is named where it is not the plan's."""
    if not plan.alternatives:
        return
    page.heading("Alternatives")
    offers = {a.offer for a in plan.assignments}
    ends = not is_service(plan) or documents_of(plan) is not None
    columns = (Head("hardware and layout"), *((Head("time", True),) if ends else ()), Head("cost", True),
               Head("why not chosen"))
    rows = [_fleet(fleet, offers) for fleet in fleets_of(plan)]
    page.table(columns, [row if ends else (row[0], *row[2:]) for row in rows], gap=1)


def _fleet(fleet: Sequence[Alternative], offers: Set[str | None]) -> tuple[str, str, str, str]:
    """Return a row of an alternative, or of several that are one fleet."""
    hardware = [f"{a.nodes:,} x {a.node}" + (f" ({a.offer})" if a.offer and a.offer not in offers else "")
                for a in fleet]
    costs = [a.cost_usd for a in fleet if a.cost_usd is not None]
    return ("; and ".join(f"{where}, {brief(a)}" for where, a in zip(hardware, fleet, strict=True)),
            "-" if fleet[0].duration_days is None else show_days(fleet[0].duration_days),
            show_usd(sum(costs)) if len(costs) == len(fleet) else "-", fleet[0].reason)


def show_defaults(page: Page, provenance: Provenance, most: int | None = None) -> None:
    """Print the defaults that decided; with `most` without the reasons, as one paragraph, and of lists longer than that
    the length.
    """
    if most is not None:
        page.console.print()
        page.paragraph(defaults_sentence(provenance, most, " (why with -v)"))
    elif said_of := _said(provenance):
        page.heading("Defaults that decided")
        page.facts([(_together(names), f"{value} ({why})") for (value, why), names in said_of.items()])


def defaults_sentence(provenance: Provenance, most: int, beside: str = "") -> str:
    """Return the defaults that decided without their reasons, and of lists longer than `most` the length.

    beside: what is said of where the reasons are.
    """
    shown = [f"{_together(names)} {value}" for (value, _), names in _said(provenance, most).items()]
    return f"Defaults that decided{beside}: {'; '.join(shown)}" if shown else ""


def _said(provenance: Provenance, most: int | None = None) -> dict[tuple[str, str], list[str]]:
    """Return what was taken and why, with the names of all that it was taken for: several services share it."""
    said: dict[tuple[str, str], list[str]] = {}
    for default in provenance.defaults:
        named = [part.strip() for part in default.value.split(",")]
        if any(part[:1].isdigit() for part in named[1:]):
            named = [default.value]  # thousands, and no list of names
        value = ", ".join(named) if most is None or len(named) <= most else f"{len(named)} in all"
        said.setdefault((value, default.why), []).append(default.name)
    return said


def _together(names: Sequence[str]) -> str:
    """Return `chat.engine, code.engine` as `engine`."""
    return ", ".join(names) if len(names) == 1 else ", ".join(dict.fromkeys(name.split(".")[-1] for name in names))


def show_provenance(page: Page, provenance: Provenance) -> None:
    """Print the defaults that decided, and which facts and programs answered."""
    show_defaults(page, provenance)
    parts = [f"catalog {provenance.catalog_digest[:_DIGEST_SHOWN]}"] if provenance.catalog_digest else []
    parts += [f"{name} {version}" for name, version in provenance.versions.items()]
    page.console.print()
    page.paragraph(", ".join([*parts, f"seed {provenance.seed}"]), "dim")
