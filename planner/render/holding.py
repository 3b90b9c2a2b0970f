"""The answer to "what holds it": GPUs of every kind by method, fewest first, and the layout of the fewest."""

from __future__ import annotations

from collections.abc import Sequence

from planner.answer.assignment import Assignment
from planner.answer.schema import Plan
from planner.render.figures import METHODS
from planner.render.layout_text import brief
from planner.render.page import Head, Page
from planner.scenario.serving import LOADS
from planner.scenario.workload import EVERY
from planner.units import GIB

OUTSIDE = {"none": "", "host": "the host", "nvme": "local NVMe"}
"""Where a layout offloads to, in words."""


def asks_what_holds(plan: Plan) -> bool:
    """Say whether the question left the amount of work open, so that only memory is asked."""
    work = plan.provenance.scenario.get("workload")
    if not isinstance(work, dict):
        return False
    kind = work.get("kind", "training")
    return (kind == "training" and work.get("tokens") is None) or (
        kind == "serving" and plan.objective.name == "gpus" and not work.keys() & set(LOADS))


def holding_sentence(plan: Plan) -> str:
    """Return the fewest GPUs for each method, and whether that is proven."""
    proof = "proven optimal" if plan.status == "optimal" else "not proven: stopped by a limit"
    parts = [_part(a, _alone(a, plan), plan) for a in plan.assignments]
    work = plan.provenance.scenario["workload"]
    if _has_several(plan):
        limits = plan.provenance.scenario.get("limits") or {}
        most = next((f" on at most {limits[name]} GPUs" for name in ("max_gpus", "gpus") if limits.get(name)), "")
        return f"Largest that fits{most}: {', '.join(parts)} ({proof})"
    return f"{_yes_or_no(plan)}Fewest GPUs that hold {work['model']}: {', '.join(parts)} ({proof})"


def _yes_or_no(plan: Plan) -> str:
    """Say whether the GPUs that the question counts hold the model; empty where it counts none."""
    counted = plan.counted
    if counted is None:
        return ""
    model, these = plan.provenance.scenario["workload"]["model"], f"{counted.gpus:,} x {counted.gpu}"
    # another format may hold where the one that a model is published in does not
    formats = {a.workload: f" in {a.layout.precision}" for a in plan.assignments if a.serving}
    does, does_not = ([f"{METHODS.get(method, method)}{formats.get(method, '')}"
                       for method, holds in counted.holds.items() if holds is answer] for answer in (True, False))
    verb, negated = ("hold", "do not hold") if counted.gpus > 1 else ("holds", "does not hold")
    if not does:
        return f"No: {these} {negated} {model} for {' or '.join(does_not)}. "
    if counted.holds.get("inference") is False:
        # who asks of no work asks first whether it runs at all
        return f"For {does_not[0]} no: {these} {negated} {model}; for {enumerated(does)} yes. "
    but = f", not for {' or '.join(does_not)}" if does_not else ""
    return f"Yes: {these} {verb} {model} for {enumerated(does)}{but}. "


def enumerated(names: Sequence[str]) -> str:
    """Return names as a sentence lists them: a, b and c."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _alone(a: Assignment, plan: Plan) -> Assignment | None:
    """Return the fewest GPUs of the same kind that need nothing beside them, where `a` needs the host or flash."""
    return None if a.layout.offload.to == "none" else next(
        (alternative for alternative in plan.alternatives
         if (alternative.gpu, alternative.method, alternative.layout.offload.to) == (a.gpu, a.method, "none")), None)


def _part(a: Assignment, alone: Assignment | None, plan: Plan) -> str:
    """Return what one method takes; of several models the largest with nothing outside the GPUs leads."""
    stored = f" in {a.layout.precision}" if a.serving and not _has_several(plan) else ""
    here, to = f"{a.gpus} x {a.gpu}{stored}", OUTSIDE[a.layout.offload.to]
    if not to:
        return f"{_called(a, plan)} {here}"
    if alone is not None and alone.model != a.model:
        return (f"{_called(alone, plan)} {alone.gpus} x {alone.gpu} (with offload to {to} {a.model} on {a.gpus:,})")
    without = "no number does" if alone is None else f"{alone.gpus:,}"
    return f"{_called(a, plan)} {here} with offload to {to} ({without} without)"


def _called(a: Assignment, plan: Plan) -> str:
    """Return the method as people write it, and the model where several were asked for."""
    method = METHODS.get(a.method or a.workload, a.workload)
    return f"{method} {a.model}" if _has_several(plan) else method


def _has_several(plan: Plan) -> bool:
    model = plan.provenance.scenario["workload"]["model"]
    return "," in model or model == EVERY


def show_holding(page: Page, plan: Plan, *, full: bool) -> None:
    """Print a table of GPU kinds by method where one model was asked for, and the layouts of the fewest."""
    if not _has_several(plan):
        _show_kinds(page, plan, full=full)
    page.heading("Layouts of the fewest")
    shown = [(label, assignment, "" if assignment.model == a.model else f"{assignment.model} on ")
             for a in plan.assignments
             for label, assignment in ((_called(a, plan), a), ("no offload", _alone(a, plan))) if assignment]
    rows = [(label, f"{model}{a.gpus} x {a.gpu}: {brief(a)}, {_held(a)} ({a.stack})"
             f"{_speed(a) if a.layout.offload.to != 'none' else ''}") for label, a, model in shown]
    fastest = plan.counted.fastest if plan.counted else ()
    rows += [(f"all {a.gpus}", f"the fastest: {brief(a)}, {a.memory.peak_bytes / GIB:.1f} GiB per GPU ({a.stack})"
              f"{_speed(a)}") for a in fastest]
    page.facts(rows)


def _held(a: Assignment) -> str:
    """Return what a GPU holds: of an engine, which takes what there is, the weights and the room beside them."""
    if a.serving is None:
        return f"{a.memory.peak_bytes / GIB:.1f} GiB per GPU"
    return (f"{a.memory.components.weights / GIB:.1f} GiB of weights per GPU, room for {a.serving.kv_tokens:,} tokens "
            "in the cache")


def _speed(a: Assignment) -> str:
    """Return the speed of a layout, and whether anything like it was measured; what is only held has none."""
    if a.method == "inference" or not a.time.tokens_per_second_per_gpu:
        return ""
    measured = a.time.evidence is not None and a.time.evidence.validated
    return f"; {a.time.tokens_per_second_per_gpu:,.0f} tokens/s/GPU{'' if measured else ', not validated'}"


def _show_kinds(page: Page, plan: Plan, *, full: bool) -> None:
    methods = [a.workload for a in plan.assignments]
    by_kind: dict[str, dict[str, list[Assignment]]] = {}
    for assignment in (*plan.assignments, *plan.alternatives):
        by_kind.setdefault(assignment.gpu, {}).setdefault(assignment.workload, []).append(assignment)
    work = plan.provenance.scenario["workload"]
    page.heading(f"GPUs needed, at {work.get('sequence_length') or work.get('max_model_len')} tokens a sequence")
    heads = [Head(METHODS.get(m, m), True) for m in methods]
    kinds = sorted(by_kind, key=lambda gpu: (-_usable(by_kind[gpu]), gpu))
    rows = {gpu: tuple(_count(by_kind[gpu].get(m)) for m in methods) for gpu in kinds}
    if full:
        page.table([Head("GPU"), Head("usable GiB", True), *heads],
                   [[gpu, f"{_usable(by_kind[gpu]) / GIB:.1f}", *rows[gpu]] for gpu in kinds])
    else:
        alike: dict[tuple[str, ...], list[str]] = {}
        for gpu in kinds:
            alike.setdefault(rows[gpu], []).append(gpu)
        page.lines([*heads, Head("GPU, largest memory first")],
                   [[*counts, ", ".join(gpus)] for counts, gpus in alike.items()])
    counts = "".join(count for row in rows.values() for count in row)
    signs = {"*": "* with something on the host or on local NVMe, which costs time; in brackets with nothing there",
             "-": "- nothing in the searched space fits"}
    if said := "; ".join(text for sign, text in signs.items() if sign in counts):
        page.paragraph(said)


def _usable(methods: dict[str, list[Assignment]]) -> int:
    return next(iter(methods.values()))[0].memory.usable_bytes


def _count(assignments: list[Assignment] | None) -> str:
    """Return the fewest GPUs, and where these need the host's memory or flash those that do not."""
    if assignments is None:
        return "-"
    fewest, *alone = assignments
    if fewest.layout.offload.to == "none":
        return f"{fewest.gpus:,}"
    return f"{fewest.gpus:,}* ({', '.join(f'{assignment.gpus:,}' for assignment in alone) or '-'})"
