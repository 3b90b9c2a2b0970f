"""A replay as text: the percentiles found, beside those that the plan computed."""

from __future__ import annotations

from rich.console import Console

from planner.answer.simulation import Simulation
from planner.render.figures import percent
from planner.render.page import Head, Page
from planner.units import plural, show_seconds

_LABELS = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "whole", "queue": "queue"}


def simulation_sentence(simulation: Simulation) -> str:
    """Return how many of the requests met the latency targets, and on what."""
    where = f"for {simulation.workload}, on {plural(simulation.replicas, 'replica')}"
    if not any(each.asked for each in simulation.computed.values()):
        return f"{simulation.requests:,} requests replayed {where}; no latency target is given"
    return (f"{percent(simulation.share_within_level)} of {simulation.requests:,} requests met every latency target "
            f"{where}")


def render_simulation(simulation: Simulation, console: Console) -> None:
    """Print the sentence, percentiles replayed and computed, and how busy the replicas were."""
    page = Page(console)
    page.paragraph(simulation_sentence(simulation), "bold")
    page.heading("Latency")
    rows = []
    labels = {"ttft": simulation.made, "queue": "queue"} if simulation.made else _LABELS
    for name, label in labels.items():
        replayed, computed = simulation.latency_seconds[name], simulation.computed.get(name)
        beside = (show_seconds(computed.p50), show_seconds(computed.p95)) if computed else ("", "")
        found = (replayed.p50, replayed.p90, replayed.p95, replayed.p99, replayed.mean)
        rows.append((label, *map(show_seconds, found), *beside))
    heads = ("replayed\np50", "p90", "p95", "p99", "mean", "computed\np50", "p95")
    page.table((Head("", whole=True), *(Head(head, True) for head in heads)), rows)
    page.heading("Replay")
    rate = simulation.requests_per_second
    came = "all at once" if rate is None else f"{rate:,.4g} per second on average"
    facts = [("requests", f"{simulation.requests:,}, {came}"),
             ("router", simulation.policy),
             ("output", f"{simulation.output_tokens_per_second:,.4g} {simulation.made}s/s in all" if simulation.made
              else f"{simulation.output_tokens_per_second:,.0f} tokens/s in all"),
             ("replicas", f"steps ran {percent(simulation.busy_share)} of the time")]
    if simulation.preempted:
        facts.append(("preempted", f"{plural(simulation.preempted, 'sequence')}: the cache was full"))
    if simulation.rejected:
        facts.append(("rejected", f"{plural(simulation.rejected, 'request')} too long for any replica"))
    page.facts(facts)
