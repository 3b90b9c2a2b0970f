"""The answer in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.answer.assignment import Assignment, DiffusionAssignment, PostTrainingAssignment, TrainingAssignment
from planner.answer.breakdown import Memory
from planner.answer.schema import Infeasible, Plan
from planner.ask.largest import Largest
from planner.ask.levers import Lever
from planner.render.figures import METHODS, gap_shown, in_unit, listed, pace, paid_for
from planner.render.holding import enumerated
from planner.render.layout_text import sample_noun
from planner.render.serving import BEST, is_service, serving_sentence
from planner.render.verdict import at_confidence, verdict
from planner.units import GIB, plural, show_bytes, show_days, show_kwh, show_seconds, show_usd

MOST_LEVERS = 3
"""Changes that save memory that are told."""
ALL_OF_IT = 0.99
"""Share of the tokens of full sequences from which a step counts as full."""
YEAR_DAYS = 365
"""A plan that runs longer, with no deadline asked for, is pointed out."""


def plan_sentence(plan: Plan) -> str:
    """Return what was found, what it takes, and whether it is proven."""
    if plan.infeasible is not None:
        return "No: " + "; ".join(plan.infeasible.because)
    if not plan.assignments:
        return "Undecided: stopped by a limit before a plan was found or excluded"
    if is_service(plan):
        return serving_sentence(plan)
    first = plan.assignments[0]
    body = _one(first) if len(plan.assignments) == 1 else _several(plan.assignments)
    if plan.status == "optimal":
        best = BEST[plan.objective.name] if first.mean_cost_usd is None else (
            f"Least mean cost, {show_usd(first.mean_cost_usd)} over the interval of the step")
        if plan.provenance.prefer == "simple":
            return f"{best}, simplest of the tied: {body}{_energy(plan)} ({_price(plan)})"
        return f"{best}: {body}{_energy(plan)} (proven optimal){_cheaper(plan)}"
    gap = plan.objective.gap
    within = "" if gap is None else f", within {gap_shown(gap)} of the best possible"
    return f"Best found: {body} (not proven{within})"


def _price(plan: Plan) -> str:
    """Return what the simplest layout costs beside the proven optimum, which is the first alternative."""
    name = plan.objective.name
    ours, best = (float(getattr(a, name)) for a in (plan.assignments[0], plan.alternatives[0]))
    return f"{ours / best - 1:+.1%} against the proven optimum of {in_unit(name, best)}"


def _energy(plan: Plan) -> str:
    """Return the energy where that was minimized."""
    used = [a.energy_kwh for a in plan.assignments if a.energy_kwh is not None]
    return f" with {show_kwh(sum(used))}" if plan.objective.name == "energy_kwh" and used else ""


def _cheaper(plan: Plan) -> str:
    """Return what the cheapest alternative costs where energy was minimized and money was not."""
    if plan.objective.name != "energy_kwh" or len(plan.assignments) != 1 or plan.assignments[0].cost_usd is None:
        return ""
    priced = [(a.cost_usd, a) for a in plan.alternatives if a.cost_usd is not None]
    if not priced:
        return ""
    cost, cheapest = min(priced, key=lambda pair: pair[0])
    if cost >= plan.assignments[0].cost_usd or cheapest.energy_kwh is None:
        return ""
    return f"; the cheapest alternative costs {show_usd(cost)} and takes {show_kwh(cheapest.energy_kwh)}"


def no_deadline_sentence(plan: Plan) -> str | None:
    """Return a reminder where no deadline was given, and the plan runs for over a year or leaves GPUs at hand idle."""
    asked = plan.provenance.scenario
    limits, objective = asked.get("limits"), asked.get("objective")
    limits = limits if isinstance(limits, dict) else {}
    if limits.get("deadline") is not None or objective == "time":
        return None
    longest = max((a.duration_days or 0.0 for a in plan.assignments), default=0.0)
    if longest > YEAR_DAYS:
        return f"No deadline given: this takes {longest / YEAR_DAYS:,.1f} years; --deadline 60d asks for faster"
    if len(plan.assignments) != 1 or plan.assignments[0].serving or limits.get("gpus") or limits.get("budget"):
        return None
    used, sourcing = plan.assignments[0], asked.get("sourcing")
    own = sourcing.get("own") if isinstance(sourcing, dict) else None
    each = used.gpus // max(1, used.nodes)
    owned = (own or {}).get(used.node, 0) * each if isinstance(own, dict) else 0
    most = min(filter(None, (owned, limits.get("max_gpus"), (limits.get("max_nodes") or 0) * each)), default=0)
    if used.gpus < most and objective in ("cost", "energy"):
        return (f"No deadline given: the {objective} is least on {used.gpus:,} of the {most:,} GPUs; --objective time "
                "asks for the fastest")
    return None


def close_call_sentence(plan: Plan, *, settled: bool) -> str | None:
    """Return the chance that the nearest other hardware is better, what that doubt costs, and, if asked, what would
    settle it; nothing where no other hardware comes close.
    """
    doubt = plan.doubt
    if doubt is None:
        return None
    name = plan.objective.name
    best, show = plan.assignments[0], show_usd if name == "cost_usd" else show_days
    more = doubt.value / getattr(best, name) - 1
    better = "are cheaper" if name == "cost_usd" else "are faster"
    line = (f"Open: {doubt.chance:.0%} that {doubt.gpus:,} {doubt.gpu} for {show(doubt.value)} ({more:+.1%}) "
            f"{better}; choosing now costs {show(doubt.loss)} on average")
    if settled and (test := doubt.measurement) is not None:
        each = "1 node" if test.nodes == 1 else f"{test.nodes} nodes"
        line += (f"; measuring both on {each} for {test.hours:g} h ({show_usd(test.cost_usd)}) cuts that to "
                 f"{show_usd(test.loss)}")
    return line


def infeasible_sentence(infeasible: Infeasible) -> str:
    """Return cause, nearest miss and relaxations in one line."""
    line = "No: " + "; ".join(infeasible.because)
    if infeasible.nearest:
        line += f". Nearest miss: {infeasible.nearest}"
    if infeasible.relaxations:
        changes = " or ".join(f"{r.limit} {r.to} instead of {r.from_}" for r in infeasible.relaxations)
        line += f". One change is enough: {changes}"
    return line


def largest_sentence(what: str, largest: Largest[Any], context: int | None = None) -> str:
    """Return the largest micro-batch, sequence or model that fits, and by how much the next one misses.

    context: tokens that the model is published to take, where that is known.
    """
    noun = sample_noun(largest.estimate) if largest.estimate else "sequence"
    unit = {"micro-batch": f" {noun}s", "sequence": " tokens"}.get(what, "")
    shown = {"micro-batch": "{:,}", "sequence": "{:,}"}.get(what, "{}")
    beyond = ""
    if largest.beyond is not None:
        serves = largest.estimate is not None and largest.estimate.serving
        missing = (f"{show_bytes(largest.missing_bytes)} more" if largest.missing_bytes else
                   "more than the cache" if serves else "more than the host has")
        beyond = f"; {shown.format(largest.beyond)} needs {missing}"
    if largest.value is None:
        return f"No {what} fits{beyond}"
    own = ""
    if what == "sequence" and context is not None and largest.value > context:
        own = f"; of memory alone: the model is published to take {context:,}"
    elif what == "sequence" and context is None and largest.estimate is not None and largest.estimate.serving:
        own = "; of memory alone: what the model was made for is in its config (max_position_embeddings)"
    return f"Largest {what} that fits: {shown.format(largest.value)}{unit}{beyond}{own}"


def levers_sentence(levers: Sequence[Lever], enough: Lever | None = None) -> str:
    """Return what the largest single changes would save, what they cost in time, and which of them are enough; where
    none is, which changes are, or that not even all are.
    """
    shown = [f"{lever.name} saves {show_bytes(lever.saved_bytes)} at {_slower(lever)}"
             + (", and it fits" if lever.fits else "") for lever in levers[:MOST_LEVERS]]
    line = f"Largest lever: {'; '.join(shown)}" if shown else "No single change of the layout saves memory"
    if enough is None:
        return line
    if enough.fits:
        none = " None of these is enough." if shown else ""
        return f"{line}.{none} It fits with {enough.name}, at {_slower(enough)}"
    return f"{line}. None is enough, nor all together: {enough.name} saves {show_bytes(enough.saved_bytes)}"


def _slower(lever: Lever) -> str:
    """Write what a change costs in time; what rounds to nothing has no sign of less."""
    return f"{round(lever.slower, 2) + 0.0:+.0%} time"


def _outside(memory: Memory) -> list[str]:
    """Return what a layout keeps outside the GPU that is more than there is."""
    places = (("host memory", memory.host_bytes_per_node, memory.host_usable_bytes),
              ("local NVMe", memory.nvme_bytes_per_node, memory.nvme_usable_bytes))
    return [f"{show_bytes(needs)} of {where} per node, and {show_bytes(has)} are there for it"
            for where, needs, has in places if has is not None and needs > has]


def estimate_sentence(assignment: Assignment, confidence: float | None) -> str:
    """Return whether the layout fits, and how fast it is if it does."""
    memory, time = assignment.memory, assignment.time
    used = f"{memory.peak_bytes / GIB:.1f} of {show_bytes(memory.usable_bytes)}{at_confidence(confidence)}"
    if memory.fits == "does not fit":
        missing = memory.peak_bytes - memory.usable_bytes
        on_gpu = used + (f", {show_bytes(missing)} too much" if missing > 0 else "")
        return "Does not fit: " + "; ".join([on_gpu, *_outside(memory)][::1 if missing > 0 else -1])
    if memory.fits == "tight":
        used += f", {show_bytes(memory.expected_bytes)} expected"
    method, out = _of_method(assignment), assignment.layout.offload
    kept = "attention's activations" if assignment.kind == "diffusion" else "checkpoints"
    if waits := [name for name, share in (
            ("weights", out.parameters), ("optimizer states", out.optimizer), (kept, out.activations),
            ("checkpoints", getattr(assignment, "checkpoints", 0.0))) if share]:
        used += f", with {enumerated(waits)} on {'local NVMe' if out.to == 'nvme' else 'the host'}"
    return (f"{verdict(memory).capitalize()}: {used}; {method}{'at ' if method else ''}{pace(assignment)}, "
            f"MFU {time.mfu:.2f}, step {show_seconds(time.step_seconds)}"
            + (f", on {assignment.gpus:,} GPUs of {assignment.nodes:,} nodes" if assignment.nodes > 1 else ""))


def _one(a: Assignment) -> str:
    line = " and ".join(f"{plural(each.nodes, 'node')} of {each.node} ({each.gpus:,} {each.gpu} "
                        f"{'GPU' if each.gpus == 1 else 'GPUs'})" for each in a.kinds_of_nodes)
    if a.spare_nodes:
        line += f" and {plural(a.spare_nodes, 'spare')}"
    if a.time.evidence is not None and not a.time.evidence.validated:
        line += f" with {a.stack}, whose speed is not validated,"
    if a.offer:
        line += f" from {a.offer}"
    if a.usd_per_node_hour is not None:
        # nodes of several types have no one price
        line += (f" at {listed(a) * (a.nodes + a.spare_nodes):,.2f} USD/h in all{paid_for(a)}"
                 if len(a.kinds_of_nodes) > 1 else f" at {listed(a):,.2f} USD/h per node{paid_for(a)}")
    several = a.nodes + a.spare_nodes > 1
    return line + _finished(a, several)


def _finished(a: Assignment, several: bool) -> str:
    verb = "finish" if several else "finishes"
    step = f"{_of_method(a)}step"
    work = f" {plural(a.time.steps, step)}{batch(a)}" if a.time.steps else ""
    line = "" if a.duration_days is None else f" {verb}{work} in {show_days(a.duration_days)}"
    return line if a.cost_usd is None else f"{line} for {show_usd(a.cost_usd)}"


def _of_method(a: Assignment) -> str:
    """Return the method of steps of post-training with what trains, such as "DPO (LoRA) "; or "LoRA training " of a
    diffusion model, which can be run as well.
    """
    if isinstance(a, DiffusionAssignment) and a.method is not None:
        return f"{METHODS[a.method]} training "
    tuning = a.tuning if isinstance(a, TrainingAssignment | PostTrainingAssignment) else None
    if tuning is None or a.method is None:
        return ""
    return METHODS[a.method] + (" " if tuning == "full" else f" ({METHODS[tuning]}) ")


def batch(a: Assignment) -> str:
    """Return the batch of a step, and how long or large its samples are."""
    if isinstance(a, DiffusionAssignment):
        frames = f" x {a.frames:,} frames" if a.frames > 1 else ""
        return f" of {plural(a.global_batch, a.noun)} of {a.resolution}{frames}"
    if isinstance(a, PostTrainingAssignment):
        return f" of {plural(a.prompts, 'prompt')} x {plural(a.samples_per_prompt, 'answer')}"
    if not isinstance(a, TrainingAssignment) or a.global_batch is None or a.sequence_length is None:
        return ""
    each = f"{a.sequences_per_sample} x " if sample_noun(a) == "pair" else ""
    each = f"up to {each}" if a.sequences_per_sample or _shorter(a) else each
    return f" of {plural(a.global_batch, sample_noun(a))} of {each}{a.sequence_length:,} tokens"


def _shorter(a: TrainingAssignment) -> bool:
    """Whether a step takes fewer tokens than its sequences could hold: samples are not packed."""
    longest = (a.global_batch or 0) * (a.sequence_length or 0)
    return a.time.tokens_per_second_per_gpu * a.gpus * a.time.step_seconds < ALL_OF_IT * longest


def _several(assignments: tuple[Assignment, ...]) -> str:
    gpus = sum(a.gpus for a in assignments)
    nodes = sum(a.nodes + a.spare_nodes for a in assignments)
    line = f"{plural(len(assignments), 'workload')} on {plural(nodes, 'node')} ({plural(gpus, 'GPU')})"
    costs = [a.cost_usd for a in assignments if a.cost_usd is not None]
    return f"{line} for {show_usd(sum(costs))}" if costs else line
