"""A comparison on a screen: a line for each of the first candidates and offers, of jobs and of services alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.answer.level import Percentiles
from planner.ask.compare import Compared
from planner.render.facts import held_against, is_endless
from planner.render.figures import TOKENS, paid_each
from planner.render.layout_text import asked_latency
from planner.render.page import Head, Page, Sheet
from planner.render.runners_up import shortened
from planner.units import show_days, show_usd

MOST_ROWS = 10
"""Candidates with a plan that are shown; the others are behind -v."""
MOST_REASONS = 4
"""Candidates without one."""
REPLAYED = "*"
"""Behind a latency that is over its target as computed, and kept where it is replayed."""
INDENT = 2


def show_lines(page: Page, compared: Sequence[Compared]) -> None:
    """Print the best rows, and why some have no plan."""
    plans = [plan for plan in compared if plan.assignments]
    without = [plan for plan in compared if not plan.assignments]
    if plans:
        page.console.print()
        heads, row = columns(plans)
        what = ("model", "GPU") if plans[0].row.model else ("hardware", "from")
        page.lines([*map(Head, what), *(Head(head, True) for head in heads)],
                   [(*((plan.row.model, plan.row.gpu) if plan.row.model else (plan.row.node, whence(plan))),
                     f"{plan.row.gpus:,}", *row(plan)) for plan in plans[:MOST_ROWS]])
        if len(plans) > MOST_ROWS:
            page.paragraph(f"{' ' * INDENT}{len(plans) - MOST_ROWS} more with -v")
    show_behind(page, plans[:MOST_ROWS])
    if without:
        page.heading("Without a plan")
        for lacking in without[:MOST_REASONS]:
            name = f"{' ' * INDENT}{named(lacking)}, {whence(lacking)}: "
            page.paragraph(name + shortened(lacking.row.why_not or "", page.console.width - len(name)))
        if len(without) > MOST_REASONS:
            page.paragraph(f"{' ' * INDENT}{len(without) - MOST_REASONS} more with -v")


def show_behind(page: Sheet, plans: Sequence[Compared]) -> None:
    """Write what a mark behind a latency means, where one has it, and what the speeds are held against."""
    if any(map(_is_marked, plans)):
        page.paragraph(f"{REPLAYED} over its target as computed, and within it where it is replayed, event by event")
    show_evidence(page, plans)


def _over(latency: Percentiles) -> bool:
    """Say whether a latency as computed is over its target, which a replay keeps."""
    return latency.asked is not None and latency.asked.seconds > latency.asked.target_seconds


def _is_marked(compared: Compared) -> bool:
    return any(_over(latency) for a in compared.assignments if a.serving
               for latency in (a.serving.ttft_seconds, a.serving.tpot_seconds))


def named(compared: Compared) -> str:
    """Return the node type of a row, and before it the model where several are compared."""
    return " on ".join(filter(None, (compared.row.model, compared.row.node)))


def show_evidence(page: Sheet, plans: Sequence[Compared]) -> None:
    """Print what published runs the speeds are held against, once for all nodes of which it is the same."""
    said: dict[str, list[str]] = {}
    for plan in plans:
        if plan.row.evidence is not None:
            text = f"{plan.assignments[0].stack}: {held_against(plan.row.evidence, 'speed')}"
            said.setdefault(text, []).append(plan.row.node)
    for text, nodes in said.items():
        page.paragraph(f"{', '.join(dict.fromkeys(nodes))} with {text}", "dim")


TRAINED = ("GPUs", "time", "MFU", "cost")
SERVED = ("GPUs", "USD/h", "TTFT", "TPOT", "USD/M output")
MADE = ("GPUs", "USD/h", "p95")
"""Of a service whose requests have one answer: an image, a clip or an embedding."""
ENDED = ("GPUs", "time", "cost")
"""Of a batch; in both cases what 1,000 cost comes last."""


MANY = ("GPUs at most", "cost", "late", "rejected")


def of_portfolio(plans: Sequence[Compared]) -> bool:
    """Say whether the rows are of many jobs together."""
    return any(a.job for compared in plans for a in compared.assignments)


def columns(plans: Sequence[Compared]) -> tuple[tuple[str, ...], Callable[[Compared], tuple[str, ...]]]:
    """Return the heads after hardware and source, and what stands below those after the first."""
    if of_portfolio(plans):
        return MANY, _many
    made = [a for plan in plans for a in plan.assignments]
    last = f"USD/{'M tokens' if (each := counted(plans)) == TOKENS else each}"
    if any(is_endless(a) for a in made):
        return ((*MADE, last), _made) if answers_at_once(plans) else (SERVED, _served)
    return ((*ENDED, last), _ended) if any(a.serving for a in made) else ((*TRAINED, last), _trained)


def counted(plans: Sequence[Compared]) -> str:
    """Return what costs are given for: a million tokens, or 1,000 images, clips, documents or requests."""
    made = (a for plan in plans for a in plan.assignments)
    return next((each[1] for a in made if (each := paid_each(a, 0.0)) is not None), TOKENS)


def answers_at_once(plans: Sequence[Compared]) -> bool:
    """Say whether they serve requests that have one answer each: images, clips or embeddings."""
    return not any(a.serving and a.serving.made is None and a.serving.writes for plan in plans
                   for a in plan.assignments)


def slowest_p95(compared: Compared) -> str:
    """Return the latency of such an answer at the percentile of its target, or p95."""
    levels = [a.serving for a in compared.assignments if a.serving]
    each = [level.e2e_seconds or level.ttft_seconds for level in levels]
    at, seconds = asked_latency(max(each, key=lambda latency: latency.p95))
    return seconds if at == "p95" else f"{seconds} {at}"


def _many(compared: Compared) -> tuple[str, ...]:
    row = compared.row
    return "-" if row.cost_usd is None else show_usd(row.cost_usd), f"{row.late or 0:,}", f"{row.rejected or 0:,}"


def _trained(compared: Compared) -> tuple[str, ...]:
    row = compared.row
    return ("-" if row.duration_days is None else show_days(row.duration_days), f"{row.mfu or 0:.2f}",
            "-" if row.cost_usd is None else show_usd(row.cost_usd), _each(compared))


def _ended(compared: Compared) -> tuple[str, ...]:
    row = compared.row
    return ("-" if row.duration_days is None else show_days(row.duration_days),
            "-" if row.cost_usd is None else show_usd(row.cost_usd), _each(compared))


def _each(compared: Compared) -> str:
    """Return what a million tokens, or 1,000 images or clips, cost."""
    each = each_of(compared)
    return "-" if each is None else f"{each:,.3g}"


def each_of(compared: Compared) -> float | None:
    """Return the same as a number of USD: of replicas of several kinds their mean by what each answers."""
    made = compared.assignments
    if len(made) < 2 or any(not is_endless(a) for a in made):
        each = paid_each(made[0], compared.row.cost_usd or 0.0) if made else None
        return None if each is None else each[0]
    costs = [each[0] for a in made if (each := paid_each(a, compared.row.cost_usd or 0.0)) is not None]
    # each is the whole cost over the answers of one kind
    return 1 / sum(1 / cost for cost in costs) if len(costs) == len(made) and all(costs) else None


def _hourly(compared: Compared) -> str:
    row = compared.row
    return "-" if not row.cost_usd or not row.duration_days else f"{row.cost_usd / row.duration_days / 24:,.2f}"


def _made(compared: Compared) -> tuple[str, ...]:
    return _hourly(compared), slowest_p95(compared), _each(compared)


def _served(compared: Compared) -> tuple[str, ...]:
    row, levels = compared.row, [a.serving for a in compared.assignments if a.serving]
    slowest = [max((getattr(level, name) for level in levels), key=lambda each: each.p95)
               for name in ("ttft_seconds", "tpot_seconds")]
    first, each = (" ".join(asked_latency(one)[::-1]) + REPLAYED * _over(one) for one in slowest)
    return (_hourly(compared), first, each if any(level.writes for level in levels) else "-",
            f"{row.serving.usd_per_million_output_tokens:,.3g}" if row.serving else "-")


def whence(compared: Compared) -> str:
    """Return the provider, with terms that are not the usual; or whose the nodes are."""
    if compared.offer is None:
        return compared.row.offer or "not offered"
    offer = compared.offer
    if offer.how != "rent":
        return {"buy": "bought", "owned": "owned"}[offer.how]
    return offer.provider if offer.term == "on-demand" else f"{offer.provider} {offer.term}"
